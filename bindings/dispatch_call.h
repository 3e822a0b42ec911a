// An operator call as __torch_dispatch__ is given it, and who among its tensors is asked.
#pragma once

#include <vector>

#include "ops/operator.h"
#include "py.h"

namespace rushlight::python {

struct DispatchCall {
  PyObject* function;  // rushlight.ops.aten.add.Tensor, borrowed
  Ref args;
  Ref kwargs;
};

// Arguments at their defaults are left out: all keyword-only ones, and positional ones at the end.
DispatchCall describe(const Invocation& inv);

// Classes with a handler among the tensors of a call, subclasses before their bases, each once.
class DispatchClasses {
 public:
  void add_object(PyObject* object);
  // Looks into tuples, lists and dicts, to any depth.
  void add_all(PyObject* object);
  const std::vector<PyTypeObject*>& types() const { return types_; }
  Ref tuple() const;

 private:
  std::vector<PyTypeObject*> types_;
};

DispatchClasses classes_of(const Invocation& inv);

}  // namespace rushlight::python
