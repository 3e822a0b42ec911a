// The iteration space of a row kernel: outer dimensions and one axis, folded.
#pragma once

#include <rushlight/tensor.h>

#include <array>
#include <vector>

#include "loop/kernel.h"

namespace rushlight {

// An operand of the full shape; results that are reduced have stride 0 along the axis.
struct RowOperand {
  char* data;
  int64_t element_size;
  IntList outer;     // strides along outer dimensions
  int64_t axis = 0;  // stride along the axis
};

inline constexpr int kMaxRowOperands = 24;

struct RowSpace {
  IntList outer;       // sizes of outer dimensions
  int64_t length = 1;  // of the axis
  std::vector<RowOperand> operands;
  int inner = -1;  // the outer dimension that is vectorised; -1: the axis is

  int64_t rows() const;
  // Folds outer dimensions and picks `inner`: a dimension along which every operand has stride 0
  // or 1, where the axis is not such itself.
  void fold();
};

// Strides of `tensor` over dimensions given by position in the full shape, 0 where broadcast.
RowOperand row_operand(const TensorImpl& tensor, IntArrayRef shape, IntArrayRef outer_dims,
                       IntArrayRef axis_dims, bool reduced, bool* axis_folds);

void run_rows(const RowSpace& space, loop::KernelFunction kernel, const uint64_t* scalars,
              double element_cost);

}  // namespace rushlight
