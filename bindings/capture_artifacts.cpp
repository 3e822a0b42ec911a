// Compiled kernels as bytes, for torch.compiler.save_cache_artifacts and load_cache_artifacts.
#include "convert.h"
#include "module.h"
#include "runtime/kernel_files.h"

namespace rushlight::python {
namespace {

Ref name_list(const std::vector<std::string>& names) {
  Ref list = owned(PyList_New(0));
  for (const std::string& name : names) {
    Ref text =
        owned(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    check(PyList_Append(list.get(), text.get()));
  }
  return list;
}

PyObject* save(PyObject*, PyObject*) {
  return guarded([&] {
    std::vector<std::string> names;
    std::string bytes = save_kernel_artifacts(&names);
    return check(Py_BuildValue("(y#O)", bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                               name_list(names).get()));
  });
}

// None where the bytes are damaged.
PyObject* load(PyObject*, PyObject* bytes) {
  return guarded([&] {
    char* data = nullptr;
    Py_ssize_t size = 0;
    check(PyBytes_AsStringAndSize(bytes, &data, &size));
    std::vector<std::string> names;
    return load_kernel_artifacts({data, static_cast<size_t>(size)}, &names)
               ? name_list(names).release()
               : py_none();
  });
}

PyMethodDef functions[] = {
    {"_save_kernel_artifacts", save, METH_NOARGS, nullptr},
    {"_load_kernel_artifacts", load, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
