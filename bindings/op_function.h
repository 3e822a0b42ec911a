// The callable that a Python operator function or method is.
#pragma once

#include "arguments.h"

namespace rushlight::python {

struct OpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OverloadSet* set;
  PyObject* qualname;  // "add", "Tensor.add"
  PyObject* module;    // "rushlight", "rushlight.special"
};

// A new callable for a set that lives for ever. Methods bind to instances, functions do not.
PyObject* make_op_function(const OverloadSet* set, const std::string& qualname,
                           const std::string& module);

// Calls a set past the override door; a new reference. Throws.
PyObject* call_set(const OverloadSet& set, const Arguments& arguments);

// The methods and functions that the table gave Tensor and the module; null where there is none.
const OverloadSet* method_set(const std::string& name);
const OverloadSet* function_set(const std::string& name);

}  // namespace rushlight::python
