// The state of autocast, for rushlight.amp.
#include "autograd/autocast.h"

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

PyObject* state(PyObject*, PyObject*) {
  const autograd::AutocastState& now = autograd::autocast_state();
  return Py_BuildValue("(OOO)", now.enabled ? Py_True : Py_False, dtype_object(now.dtype),
                       now.caches ? Py_True : Py_False);
}

PyObject* set_state(PyObject*, PyObject* args) {
  int enabled;
  PyObject* dtype;
  int caches;
  if (!PyArg_ParseTuple(args, "pOp:_set_autocast", &enabled, &dtype, &caches)) {
    return nullptr;
  }
  return guarded([&] {
    autograd::set_autocast_dtype(dtype_of(dtype, "set_autocast_dtype", "dtype"));
    autograd::set_autocast_caches(caches != 0);
    autograd::set_autocast_enabled(enabled != 0);
    return py_none();
  });
}

PyObject* enter(PyObject*, PyObject*) {
  return PyLong_FromLong(autograd::enter_autocast());
}
PyObject* leave(PyObject*, PyObject*) {
  return PyLong_FromLong(autograd::leave_autocast());
}
PyObject* clear(PyObject*, PyObject*) {
  return guarded([&] {
    autograd::clear_autocast_cache();
    return py_none();
  });
}

PyMethodDef functions[] = {
    {"_autocast_state", state, METH_NOARGS, "(enabled, dtype, cache enabled) of this thread."},
    {"_set_autocast", set_state, METH_VARARGS, "Sets (enabled, dtype, cache enabled)."},
    {"autocast_increment_nesting", enter, METH_NOARGS, "Enters a region; how deep it is."},
    {"autocast_decrement_nesting", leave, METH_NOARGS, "Leaves a region; how deep it was in."},
    {"clear_autocast_cache", clear, METH_NOARGS, "Forgets the converted weights."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
