#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// Positions of the elements that are not zero, in row-major order: int64, one row an element.
Tensor nonzero(const Tensor& self);

// How many elements are not zero.
int64_t count_nonzero(const Tensor& self);

}  // namespace rushlight::kernels
