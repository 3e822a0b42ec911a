// Tracing a Python function of scalars into an expression, as text.
#include "convert.h"
#include "loop/kernel.h"
#include "module.h"
#include "ops/elementwise_trace.h"

namespace rushlight::python {
namespace {

// _trace_scalars(function, dtypes, first): calls the function with a symbol for each dtype, scalar
// i of the expression; gives the text of what it returns, its dtype, and the tensors that it
// captured, which are buffers from `first` on.
PyObject* trace_scalars(PyObject*, PyObject* args) {
  PyObject* function;
  PyObject* dtypes;
  int first;
  if (!PyArg_ParseTuple(args, "OO!i:_trace_scalars", &function, &PyTuple_Type, &dtypes, &first)) {
    return nullptr;
  }
  return guarded([&] {
    ElementTrace trace(first);
    const Py_ssize_t count = PyTuple_GET_SIZE(dtypes);
    const Ref arguments = owned(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      const DType dtype = dtype_of(PyTuple_GET_ITEM(dtypes, i), "_trace_scalars", "dtypes");
      Tensor symbol = trace.symbol(loop::scalar(static_cast<int>(i), compute_dtype(dtype)), dtype);
      PyTuple_SET_ITEM(arguments.get(), i, wrap(std::move(symbol)));
    }
    const Ref result = owned(PyObject_Call(function, arguments.get(), nullptr));
    if (!is_tensor(result.get())) {
      fail(ErrorKind::Value, "", "must return a Tensor, got type ", type_name(result.get()));
    }
    const Tensor& returned = tensor_of(result.get());
    if (returned.dim() != 0) {
      fail(ErrorKind::Runtime, "", "must return a scalar for scalar arguments, got a tensor of ",
           "shape ", returned.sizes());
    }
    const TracedValue value = trace.value(returned);
    const std::string text = loop::print(value.expr);
    const Ref captures = owned(PyList_New(0));
    for (const Tensor& tensor : trace.captures()) {
      const Ref item(wrap(tensor));
      if (PyList_Append(captures.get(), item.get()) < 0) {
        throw PythonError();
      }
    }
    return Py_BuildValue("s#OO", text.data(), static_cast<Py_ssize_t>(text.size()),
                         dtype_object(value.dtype), captures.get());
  });
}

PyMethodDef functions[] = {
    {"_trace_scalars", trace_scalars, METH_VARARGS,
     "Traces a function of 0-dim tensors: the text of its expression, its dtype, its captures."},
    {nullptr, nullptr, 0, nullptr},
};

const Part part(Stage::Rest, [](PyObject* module) { add_functions(module, functions); });

}  // namespace
}  // namespace rushlight::python
