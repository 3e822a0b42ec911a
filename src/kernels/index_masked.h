#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// target = mask ? number : self, broadcast to the target's shape. `mask` is bool, the others of one
// dtype, `number` of one element; `target` may be `self`.
void masked_fill(const Tensor& target, const Tensor& self, const Tensor& mask,
                 const Tensor& number);

}  // namespace rushlight::kernels
