#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// target += source, broadcast to the target's shape; same dtype. Complex numbers by parts; on bool
// this is "or".
void add_into(const Tensor& target, const Tensor& source);

}  // namespace rushlight::kernels
