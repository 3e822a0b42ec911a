// The dispatch door: __torch_dispatch__ of modes and of subclasses, asked below autograd.
#pragma once

#include <atomic>

#include "convert.h"

namespace rushlight::python {

// Whether the type is a subclass of Tensor with a __torch_dispatch__ of its own.
bool has_dispatch(PyTypeObject* type);
// Opens the door in this thread if the type has one: its tensors may turn up in any later call. To
// be told of each tensor that is made of a subclass ...
void note_dispatch_class(PyTypeObject* type);
// ... and of those that Python hands to a call, which another thread may have made.
extern std::atomic<bool> dispatch_classes_exist;
inline void meet_dispatch_class(PyTypeObject* type) {
  if (dispatch_classes_exist.load(std::memory_order_relaxed)) {
    note_dispatch_class(type);
  }
}
// Of a new class with a __torch_dispatch__ and no __torch_function__ of its own, whose tensors
// would be asked twice: the latter is disabled.
void settle_dispatch_class(PyTypeObject* type);

}  // namespace rushlight::python
