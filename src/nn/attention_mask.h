// Masks of attention in the form that is added to scores.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::nn {

// A mask of true where it hides becomes -inf there and 0 elsewhere; a floating one stays; undefined
// stays undefined. Error(Value) naming `name` for another dtype.
Tensor additive_mask(const Tensor& mask, const char* name, DType dtype);

}  // namespace rushlight::nn
