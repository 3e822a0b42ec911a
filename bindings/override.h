// The override door: __torch_function__ of arguments and of modes.
#pragma once

#include <span>

#include "convert.h"

namespace rushlight::python {

// Whether a mode is on, or the object's type has a __torch_function__ that is not disabled. A plain
// Tensor costs one comparison.
bool has_override(PyObject* object);
bool modes_active();

// Lists the overriding arguments of a call (lists and tuples are looked into one level), subclasses
// before their bases, and calls their __torch_function__(func, types, args, kwargs) in turn; modes
// come first. TypeError where all return NotImplemented. Arguments as in vectorcall.
PyObject* call_override(PyObject* function, PyObject* const* args, Py_ssize_t count,
                        PyObject* keywords);

// Whether any argument of a vectorcall overrides.
bool any_override(PyObject* const* args, Py_ssize_t count, PyObject* keywords);

}  // namespace rushlight::python
