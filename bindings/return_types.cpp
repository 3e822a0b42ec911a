// Named tuples for operators with several named results: rushlight.return_types.max and others.
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "module.h"
#include "signature.h"

namespace rushlight::python {
namespace {

PyObject* result_repr(PyObject* self) {
  return guarded([&] {
    std::string text = type_name(self) + "(\n";
    const Ref names =
        owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__"));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const Ref item = owned(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      text += i > 0 ? ",\n" : "";
      text += message_text(PyTuple_GET_ITEM(names.get(), i)) + "=" + message_text(item.get());
    }
    return PyUnicode_FromString((text + ")").c_str());
  });
}

PyTypeObject* make_type(const Schema& schema, bool out) {
  // The type keeps pointers into these.
  static std::deque<std::string> texts;
  static std::deque<std::vector<PyStructSequence_Field>> all_fields;
  std::vector<PyStructSequence_Field>& fields = all_fields.emplace_back();
  for (const Argument& result : schema.results) {
    fields.push_back({texts.emplace_back(result.name).c_str(), nullptr});
  }
  fields.push_back({nullptr, nullptr});
  const std::string name = out ? schema.name + "_out" : schema.name;
  PyStructSequence_Desc description = {texts.emplace_back("rushlight.return_types." + name).c_str(),
                                       nullptr, fields.data(),
                                       static_cast<int>(schema.results.size())};
  auto* type = PyStructSequence_NewType(&description);
  if (type == nullptr) {
    throw PythonError();
  }
  type->tp_repr = result_repr;
  PyType_Modified(type);
  PyObject* types = submodule(extension_module(), "_return_types");
  check(PyObject_SetAttrString(types, name.c_str(), reinterpret_cast<PyObject*>(type)));
  return type;
}

}  // namespace

PyTypeObject* return_type(const Operator& op, bool out) {
  static std::map<std::string, PyTypeObject*> types;
  static std::mutex lock;
  const Schema& schema = op.schema;
  if (schema.results.size() < 2 || schema.results[0].name.empty()) {
    return nullptr;
  }
  std::string key = out ? schema.name + "_out" : schema.name;
  for (const Argument& result : schema.results) {
    key += " " + result.name;
  }
  std::lock_guard<std::mutex> guard(lock);
  PyTypeObject*& type = types[key];
  if (type == nullptr) {
    type = make_type(schema, out);
  }
  return type;
}

}  // namespace rushlight::python
