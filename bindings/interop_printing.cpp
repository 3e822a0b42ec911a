// Print options, and the text of tensors under the name of their class.
#include <rushlight/printing.h>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

// (precision, threshold, edgeitems, linewidth, sci_mode); sci_mode None leaves the choice open.
PyObject* set_options(PyObject*, PyObject* args) {
  PrintOptions options;
  long long threshold = 0;
  long long edge_items = 0;
  long long line_width = 0;
  PyObject* scientific = Py_None;
  if (!PyArg_ParseTuple(args, "iLLLO:_set_print_options", &options.precision, &threshold,
                        &edge_items, &line_width, &scientific)) {
    return nullptr;
  }
  return guarded([&] {
    if (options.precision < 0 || threshold < 0 || edge_items < 0 || line_width < 0) {
      fail(ErrorKind::Value, "set_printoptions", "options must not be negative");
    }
    options.threshold = threshold;
    options.edge_items = edge_items;
    options.line_width = line_width;
    if (scientific != Py_None) {
      options.scientific = check(PyObject_IsTrue(scientific)) != 0;
    }
    set_print_options(options);
    return py_none();
  });
}

// text(tensor, name)
PyObject* text(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "Os:_tensor_text", &tensor, &name)) {
    return nullptr;
  }
  return guarded([&] {
    const std::string shown = to_string(require_tensor(tensor, "_tensor_text", "tensor"), name);
    return check(PyUnicode_FromStringAndSize(shown.data(), static_cast<Py_ssize_t>(shown.size())));
  });
}

PyMethodDef functions[] = {
    {"_set_print_options", set_options, METH_VARARGS, nullptr},
    {"_tensor_text", text, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
