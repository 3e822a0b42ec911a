// The iteration space of an element-wise kernel: operands of one broadcast shape, with dimensions
// ordered by stride and folded together where every operand allows it.
#pragma once

#include <rushlight/tensor.h>

#include <array>
#include <cstdint>

#include "loop/kernel.h"
#include "runtime/streaming.h"

namespace rushlight {

inline constexpr int kMaxOperands = 24;
inline constexpr int kMaxRank = 64;

struct Operand {
  char* data;
  int64_t element_size;
  int64_t unit;               // the stride of elements that lie together: of pairs, 2
  int64_t strides[kMaxRank];  // in elements; 0 along broadcast dimensions
};

struct Iteration {
  int rank = 0;
  int operand_count = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxRank];
  std::array<Operand, kMaxOperands> operands;

  explicit Iteration(IntArrayRef shape);
  // Strides of `tensor` broadcast to the shape.
  void add(const TensorImpl& tensor) { add(tensor, 1); }
  // The same, complex tensors as pairs of real elements.
  void add_parts(const TensorImpl& tensor) { add(tensor, is_complex(tensor.dtype) ? 2 : 1); }
  // Orders dimensions by the strides of the operands, first operand first, and folds them. Rank
  // becomes at least 1.
  void fold();
  loop::Layout layout(int operand, int dim) const {
    int64_t stride = operands[static_cast<size_t>(operand)].strides[dim];
    return stride == 0                                             ? loop::Layout::Zero
           : stride == operands[static_cast<size_t>(operand)].unit ? loop::Layout::Unit
                                                                   : loop::Layout::Any;
  }
  // Whether one loop covers all, each operand being contiguous or a single element.
  bool flat() const;

 private:
  void add(const TensorImpl& tensor, int64_t unit);
};

// Runs a kernel on the calling thread, so that others see what it stores.
inline void run_piece(loop::KernelFunction kernel, const loop::KernelArgs& args, int64_t begin,
                      int64_t end) {
  kernel(&args, begin, end);
  if (args.streamed != 0) {
    finish_streams();
  }
}

// Runs a kernel of axes (inner) if the iteration is flat, else (outer, inner), over all dimensions;
// in parallel where it is worth it. `element_cost`: about how many cycles an element takes.
void run_iteration(const Iteration& space, loop::KernelFunction kernel, const uint64_t* scalars,
                   double element_cost = 1.0);

// A rectangle of a matrix.
struct Block {
  int64_t row;
  int64_t col;
  int64_t rows;
  int64_t cols;
};
// Whether an iteration, folded, goes over the elements of an operand as over those of a contiguous
// (rows x cols) matrix.
bool has_rows(const Iteration& space, int operand, int64_t rows, int64_t cols);
// Runs a kernel for a block of such a matrix, `cols` wide, on the calling thread.
void run_block(const Iteration& space, int64_t cols, const Block& block,
               loop::KernelFunction kernel, const uint64_t* scalars);

}  // namespace rushlight
