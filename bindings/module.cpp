// The extension module rushlight._C: made of parts that source files register.
#include "module.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "py.h"

namespace rushlight::python {
namespace {

struct Entry {
  Stage stage;
  void (*fill)(PyObject*);
};

std::vector<Entry>& parts() {
  static std::vector<Entry> list;
  return list;
}

PyObject* module_object = nullptr;

int execute(PyObject* module) {
  return guarded_int([&] {
    // Types and the operator table's Python objects exist once a process; a second interpreter
    // would share them.
    if (module_object != nullptr) {
      PyErr_SetString(PyExc_ImportError, "rushlight can be imported into one interpreter only");
      throw PythonError();
    }
    module_object = new_ref(module);
    run_parts(module);
    return 0;
  });
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "rushlight._C",
    "The core of Rushlight.",
    0,
    nullptr,
    slots,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

Part::Part(Stage stage, void (*fill)(PyObject*)) {
  parts().push_back({stage, fill});
}

PyObject* extension_module() {
  return module_object;
}

PyMethodDef* describe(PyMethodDef* table, const char* self) {
  static std::deque<std::string> texts;  // the tables point into these
  for (PyMethodDef* entry = table; entry->ml_name != nullptr; ++entry) {
    const std::string doc = entry->ml_doc == nullptr ? "" : entry->ml_doc;
    if ((entry->ml_flags & METH_NOARGS) != 0 && doc.find(")\n--\n\n") == std::string::npos) {
      texts.push_back(std::string(entry->ml_name) + "(" + self + ")\n--\n\n" + doc);
      entry->ml_doc = texts.back().c_str();
    }
  }
  return table;
}

void add_functions(PyObject* module, PyMethodDef* functions) {
  check(PyModule_AddFunctions(module, describe(functions, "$module")));
}

void add_object(PyObject* module, const char* name, PyObject* object) {
  Ref held = owned(object);
  check(PyObject_SetAttrString(module, name, held.get()));
}

PyObject* submodule(PyObject* module, const char* name) {
  if (PyObject* found = PyObject_GetAttrString(module, name)) {
    Py_DECREF(found);
    return found;
  }
  PyErr_Clear();
  std::string full = std::string(PyModule_GetName(module)) + "." + name;
  PyObject* made = check(PyImport_AddModule(full.c_str()));
  check(PyObject_SetAttrString(module, name, made));
  return made;
}

void run_parts(PyObject* module) {
  std::vector<Entry>& list = parts();
  std::stable_sort(list.begin(), list.end(),
                   [](const Entry& a, const Entry& b) { return a.stage < b.stage; });
  for (const Entry& entry : list) {
    entry.fill(module);
  }
}

}  // namespace rushlight::python

PyMODINIT_FUNC PyInit__C() {
  return PyModuleDef_Init(&rushlight::python::definition);
}
