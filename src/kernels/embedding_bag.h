// Sums, means and maxima of bags of rows of a table.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

enum class BagMode : int8_t { Sum, Mean, Max };

// Bag b holds the indices from offsets[b] up to the next offset, the last one to the end. Indices
// equal to `padding` (-1: none) are left out. All have been checked.
struct Bags {
  const int64_t* indices;
  int64_t count;  // of indices
  const int64_t* offsets;
  int64_t bags;
  int64_t padding;

  int64_t begin(int64_t bag) const { return offsets[bag]; }
  int64_t end(int64_t bag) const { return bag + 1 < bags ? offsets[bag + 1] : count; }
};

// made[b] = the sum of the rows of bag b, each times its weight where there are weights (of the
// table's dtype), or the mean, or the maximum, `largest` (int64, like `made`) saying which row it
// came from. Empty bags are zero. Halves are added up in f32. `sizes`: how many rows each bag had.
void embedding_bag(const Tensor& made, const Tensor& largest, int64_t* sizes, const Tensor& table,
                   const Bags& bags, BagMode mode, const Tensor& weights);

// The gradient by the table, of whose rows each is the sum over the indices in order, whatever the
// number of threads. `by_frequency`: divided by how often the row occurs. `largest` for Max alone.
void embedding_bag_gradient(const Tensor& made, const Tensor& grad, const Bags& bags, BagMode mode,
                            const Tensor& weights, bool by_frequency, const Tensor& largest);

// The gradient by the weights of a sum: table[index] . grad[bag]; zero for padding.
void embedding_bag_weights_gradient(const Tensor& made, const Tensor& grad, const Tensor& table,
                                    const Bags& bags);

}  // namespace rushlight::kernels
