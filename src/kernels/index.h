// Reading and writing at positions that other tensors name.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>

namespace rushlight::kernels {

// How a written value meets the old one. Max and Min let NaN through.
enum class Update : uint8_t { Set, Add, Mul, Max, Min };

// A tensor seen as [outer..., index, inner...], where position i of `index` begins offsets[i]
// elements after the tensor's first; and a dense tensor of the same form.
struct IndexSpace {
  IntList outer_sizes;
  IntList inner_sizes;
  IntList base_outer;  // strides of the indexed tensor
  IntList base_inner;
  IntList dense_outer;  // strides of the dense one
  IntList dense_inner;
  int64_t dense_index = 1;
  int64_t count = 0;
  const int64_t* offsets = nullptr;
};

// dense[o, i, k] = base[o, offsets[i], k].
void read_indexed(const Tensor& dense, const Tensor& base, const IndexSpace& space);

// base[o, offsets[i], k] becomes its update with dense[o, i, k], in the order of i for each
// position, whatever the number of threads. Same dtype, other memory. Set moves bytes; the others
// calculate in the dtype, complex numbers included save for Max and Min.
void write_indexed(const Tensor& base, const Tensor& dense, const IndexSpace& space, Update update);

// As int64 and contiguous; an int32 or int64 tensor.
Tensor index_values(const Tensor& index);

// How the message about an index outside begins.
enum class IndexText : uint8_t {
  Dimension,  // "index 5 is out of bounds for dimension 0 with size 5"
  Embedding,  // "index out of range in self: ..."
  Flat,       // "out of range: tried to access index 5 on a tensor of 5 elements."
};

// Adds index[i] * stride to offsets[i]. Negative indices count from the end where `wrap`.
// Error(kind) where one is outside, naming the first.
struct IndexBound {
  int64_t size;
  int64_t dim;
  bool wrap;
  ErrorKind kind = ErrorKind::Index;
  std::string_view op = "";
  IndexText text = IndexText::Dimension;
};
void add_offsets(int64_t* offsets, const int64_t* index, int64_t count, int64_t stride,
                 const IndexBound& bound);

// out[i] = element index[i] of `base`, in row-major order; all contiguous, `index` int64. Indices
// count from the end where they are negative; Error as `bound` says.
void read_flat(const Tensor& out, const Tensor& base, const Tensor& index, const IndexBound& bound);

// Error where an element of `index` is outside [0, size), or [-size, size) with wrap.
void check_index(const int64_t* index, int64_t count, const IndexBound& bound);

}  // namespace rushlight::kernels
