// Where the tensors of a call are: all on one device.
#pragma once

#include "ops/operator.h"

namespace rushlight {

// The device of a call's tensors. CPU tensors without dimensions may stand beside those of any
// other; Error(Runtime) names the argument and both devices where two tensors differ.
inline Device common_device(const Invocation& inv) {
  const TensorImpl* deciding = nullptr;
  for (int i = 0; i < inv.argument_count; ++i) {
    const TensorImpl* impl = inv.arguments[i].impl();
    if (impl == nullptr || (impl->rank == 0 && impl->device.is_cpu())) {
      continue;
    }
    if (deciding != nullptr && !(deciding->device == impl->device)) {
      fail(ErrorKind::Runtime, inv.op->name(), "Tensor on device ", impl->device.to_string(),
           " is not on the expected device ", deciding->device.to_string(), "! It is argument '",
           inv.op->schema.arguments[static_cast<size_t>(i)].name, "'");
    }
    deciding = impl;
  }
  return deciding != nullptr ? deciding->device : Device();
}

}  // namespace rushlight
