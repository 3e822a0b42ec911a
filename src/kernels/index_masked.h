#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// target = mask ? value : self, broadcast to the target's shape. `mask` is bool, the others of one
// dtype; `target` may be `self`.
void masked_fill(const Tensor& target, const Tensor& self, const Tensor& mask, Scalar value);

}  // namespace rushlight::kernels
