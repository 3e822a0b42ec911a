// What the losses share.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// `reduction`: 0 none, 1 mean, 2 sum, as in PyTorch's native functions.
Tensor reduce_loss(const Tensor& loss, int64_t reduction);

}  // namespace rushlight
