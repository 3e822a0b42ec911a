// Tensor's methods and properties that are plain C functions, each behind the override door.
#include <cstring>
#include <vector>

#include "module.h"
#include "override.h"

namespace rushlight::python {

binaryfunc subscript_hook = nullptr;
objobjargproc assign_subscript_hook = nullptr;

namespace {

PyTypeObject* method_type = nullptr;
PyTypeObject* property_type = nullptr;

struct MethodObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyMethodDef* definition;
};

struct PropertyObject {
  PyObject_HEAD PyGetSetDef* definition;
};

MethodObject* as_method(PyObject* self) {
  return reinterpret_cast<MethodObject*>(self);
}
PropertyObject* as_property(PyObject* self) {
  return reinterpret_cast<PropertyObject*>(self);
}

PyObject* call_with_tuple(PyMethodDef* definition, PyObject* const* args, Py_ssize_t count,
                          PyObject* keywords) {
  Ref tuple(PyTuple_New(count - 1));
  if (!tuple) {
    return nullptr;
  }
  for (Py_ssize_t i = 1; i < count; ++i) {
    PyTuple_SET_ITEM(tuple.get(), i - 1, new_ref(args[i]));
  }
  if (!(definition->ml_flags & METH_KEYWORDS)) {
    return definition->ml_meth(args[0], tuple.get());
  }
  Ref kwargs;
  Py_ssize_t extra = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  if (extra > 0) {
    kwargs = Ref(PyDict_New());
    for (Py_ssize_t i = 0; i < extra; ++i) {
      if (!kwargs ||
          PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(keywords, i), args[count + i]) < 0) {
        return nullptr;
      }
    }
  }
  auto function =
      reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(definition->ml_meth));
  return function(args[0], tuple.get(), kwargs.get());
}

// Whether a method of one argument, whose doc begins with "name(argument)", is given it by name.
bool names_only_argument(const PyMethodDef* definition, PyObject* keywords) {
  if ((definition->ml_flags & METH_O) == 0 || definition->ml_doc == nullptr ||
      PyTuple_GET_SIZE(keywords) != 1) {
    return false;
  }
  const std::string word = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, 0));
  return std::string_view(definition->ml_doc)
      .starts_with(cat(definition->ml_name, "(", word, ")\n--"));
}

PyObject* wrong_count(PyMethodDef* definition, const char* expected, Py_ssize_t given) {
  PyErr_Format(PyExc_TypeError, "%s() takes %s (%zd given)", definition->ml_name, expected, given);
  return nullptr;
}

PyObject* call_definition(PyMethodDef* definition, PyObject* const* args, Py_ssize_t count,
                          PyObject* keywords) {
  bool has_keywords = keywords != nullptr && PyTuple_GET_SIZE(keywords) > 0;
  if (has_keywords && count == 1 && names_only_argument(definition, keywords)) {
    return definition->ml_meth(args[0], args[1]);
  }
  if (has_keywords && !(definition->ml_flags & METH_KEYWORDS)) {
    PyErr_Format(PyExc_TypeError, "%s() takes no keyword arguments", definition->ml_name);
    return nullptr;
  }
  switch (definition->ml_flags & (METH_VARARGS | METH_FASTCALL | METH_NOARGS | METH_O)) {
    case METH_NOARGS:
      return count == 1 ? definition->ml_meth(args[0], nullptr)
                        : wrong_count(definition, "no arguments", count - 1);
    case METH_O:
      return count == 2 ? definition->ml_meth(args[0], args[1])
                        : wrong_count(definition, "exactly one argument", count - 1);
    case METH_FASTCALL: {
      void* raw = reinterpret_cast<void*>(definition->ml_meth);
      if (definition->ml_flags & METH_KEYWORDS) {
        using Function = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
        return reinterpret_cast<Function>(raw)(args[0], args + 1, count - 1, keywords);
      }
      using Function = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
      return reinterpret_cast<Function>(raw)(args[0], args + 1, count - 1);
    }
    default:
      return call_with_tuple(definition, args, count, keywords);
  }
}

PyObject* method_vectorcall(PyObject* self, PyObject* const* args, size_t flagged,
                            PyObject* keywords) {
  Py_ssize_t count = PyVectorcall_NARGS(flagged);
  PyMethodDef* definition = as_method(self)->definition;
  if (any_override(args, count, keywords)) {
    return call_override(self, args, count, keywords);
  }
  if (count < 1 || !is_tensor(args[0])) {
    PyErr_Format(PyExc_TypeError, "descriptor '%s' requires a 'Tensor' object",
                 definition->ml_name);
    return nullptr;
  }
  return call_definition(definition, args, count, keywords);
}

PyObject* method_bind(PyObject* self, PyObject* object, PyObject*) {
  return object == nullptr || object == Py_None ? new_ref(self) : PyMethod_New(self, object);
}

PyObject* method_repr(PyObject* self) {
  return PyUnicode_FromFormat("<method '%s' of 'rushlight.Tensor' objects>",
                              as_method(self)->definition->ml_name);
}
PyObject* method_name(PyObject* self, void*) {
  return PyUnicode_FromString(as_method(self)->definition->ml_name);
}
PyObject* method_qualname(PyObject* self, void*) {
  return PyUnicode_FromFormat("Tensor.%s", as_method(self)->definition->ml_name);
}
// The length of the signature that a doc begins with, "backward(gradient=None)\n--\n\n"; 0: none.
size_t signature_length(const PyMethodDef* definition) {
  std::string_view doc = definition->ml_doc == nullptr ? "" : definition->ml_doc;
  std::string_view name = definition->ml_name;
  size_t end = doc.find(")\n--\n\n");
  bool has = doc.substr(0, name.size()) == name && doc.substr(name.size(), 1) == "(";
  return has && end != std::string_view::npos ? end + 6 : 0;
}

PyObject* method_doc(PyObject* self, void*) {
  const PyMethodDef* definition = as_method(self)->definition;
  const char* doc = definition->ml_doc;
  return doc == nullptr ? py_none() : PyUnicode_FromString(doc + signature_length(definition));
}

// As built-in methods have it, for inspect.signature.
PyObject* method_text_signature(PyObject* self, void*) {
  const PyMethodDef* definition = as_method(self)->definition;
  size_t length = signature_length(definition);
  if (length == 0) {
    return (definition->ml_flags & METH_NOARGS) != 0 ? PyUnicode_FromString("($self)") : py_none();
  }
  std::string_view doc(definition->ml_doc, length - 5);
  std::string_view arguments = doc.substr(std::strlen(definition->ml_name) + 1);
  return PyUnicode_FromString(cat("($self", arguments == ")" ? "" : ", ", arguments).c_str());
}

PyObject* property_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) {
    return new_ref(self);
  }
  if (any_override(&object, 1, nullptr)) {
    Ref getter(PyObject_GetAttrString(self, "__get__"));
    return getter ? call_override(getter.get(), &object, 1, nullptr) : nullptr;
  }
  if (!is_tensor(object)) {
    PyErr_Format(PyExc_TypeError, "descriptor '%s' requires a 'Tensor' object",
                 as_property(self)->definition->name);
    return nullptr;
  }
  PyGetSetDef* definition = as_property(self)->definition;
  return definition->get(object, definition->closure);
}

int property_set(PyObject* self, PyObject* object, PyObject* value) {
  PyGetSetDef* definition = as_property(self)->definition;
  if (definition->set == nullptr) {
    PyErr_Format(PyExc_AttributeError,
                 "attribute '%s' of 'torch._C.TensorBase' objects is not writable",
                 definition->name);
    return -1;
  }
  PyObject* args[] = {object, value};
  if (any_override(args, value != nullptr ? 2 : 1, nullptr)) {
    Ref setter(PyObject_GetAttrString(self, value != nullptr ? "__set__" : "__delete__"));
    Ref result(setter ? call_override(setter.get(), args, value != nullptr ? 2 : 1, nullptr)
                      : nullptr);
    return result ? 0 : -1;
  }
  if (!is_tensor(object)) {
    PyErr_Format(PyExc_TypeError, "descriptor '%s' requires a 'Tensor' object", definition->name);
    return -1;
  }
  return definition->set(object, value, definition->closure);
}

PyObject* property_repr(PyObject* self) {
  return PyUnicode_FromFormat("<attribute '%s' of 'rushlight.Tensor' objects>",
                              as_property(self)->definition->name);
}
PyObject* property_name(PyObject* self, void*) {
  return PyUnicode_FromString(as_property(self)->definition->name);
}
PyObject* property_doc(PyObject* self, void*) {
  const char* doc = as_property(self)->definition->doc;
  return doc != nullptr ? PyUnicode_FromString(doc) : py_none();
}

PyObject* reduce_method(PyObject* self, PyObject*) {
  return method_qualname(self, nullptr);
}

PyMethodDef method_methods[] = {
    {"__reduce__", reduce_method, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef method_properties[] = {
    {"__name__", method_name, nullptr, nullptr, nullptr},
    {"__qualname__", method_qualname, nullptr, nullptr, nullptr},
    {"__doc__", method_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", method_text_signature, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef method_members[] = {
    {"__vectorcalloffset__", 19 /* T_PYSSIZET */, offsetof(MethodObject, vectorcall), 1, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef property_properties[] = {
    {"__name__", property_name, nullptr, nullptr, nullptr},
    {"__doc__", property_doc, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void fill(PyObject*) {
  PyType_Slot method_slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(method_bind)},
      {Py_tp_repr, reinterpret_cast<void*>(method_repr)},
      {Py_tp_methods, method_methods},
      {Py_tp_getset, method_properties},
      {Py_tp_members, method_members},
      {0, nullptr},
  };
  PyType_Spec method_spec = {"rushlight._C.tensor_method", sizeof(MethodObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             method_slots};
  method_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&method_spec)));
  PyType_Slot property_slots[] = {
      {Py_tp_descr_get, reinterpret_cast<void*>(property_get)},
      {Py_tp_descr_set, reinterpret_cast<void*>(property_set)},
      {Py_tp_repr, reinterpret_cast<void*>(property_repr)},
      {Py_tp_getset, property_properties},
      {0, nullptr},
  };
  PyType_Spec property_spec = {"rushlight._C.tensor_property", sizeof(PropertyObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               property_slots};
  property_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&property_spec)));
}

const Part part(Stage::Types, fill);

template <typename Object>
Object* make(PyTypeObject* type) {
  Object* object = PyObject_New(Object, type);
  if (object == nullptr) {
    throw PythonError();
  }
  return object;
}

}  // namespace

void add_tensor_methods(PyMethodDef* methods) {
  for (; methods->ml_name != nullptr; ++methods) {
    auto* object = make<MethodObject>(method_type);
    object->vectorcall = method_vectorcall;
    object->definition = methods;
    add_object(reinterpret_cast<PyObject*>(tensor_type), methods->ml_name,
               reinterpret_cast<PyObject*>(object));
  }
}

void add_tensor_properties(PyGetSetDef* properties) {
  for (; properties->name != nullptr; ++properties) {
    auto* object = make<PropertyObject>(property_type);
    object->definition = properties;
    add_object(reinterpret_cast<PyObject*>(tensor_type), properties->name,
               reinterpret_cast<PyObject*>(object));
  }
}

}  // namespace rushlight::python
