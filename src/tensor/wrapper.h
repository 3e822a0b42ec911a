// Tensors of classes that answer for them: their numbers, and whether they have elements at all.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// Asked by Tensor::item() first, where it is set: true where it gave the number. Dispatch modes and
// classes answer here (bindings/dispatch.cpp), so that numbers which compositions read are seen
// too.
extern bool (*item_hook)(const Tensor& tensor, Scalar* number);

// Whether a tensor of such a class has a shape and a device alone: there is nothing to read.
inline bool is_wrapper(const Tensor& tensor) {
  return !(tensor.device() == tensor.storage()->device);
}

}  // namespace rushlight
