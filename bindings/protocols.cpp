// Tensor as a Python container and value: len, iteration, membership, hash, repr, subscripts.
#include <rushlight/printing.h>

#include "core_call.h"
#include "graph/capture.h"
#include "module.h"
#include "override.h"
#include "tensor_type.h"

namespace rushlight::python {
namespace {

PyObject* slot_function(const char* name) {
  return PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name);
}

PyObject* override_slot(const char* name, PyObject* const* args, Py_ssize_t count) {
  Ref function(slot_function(name));
  return function ? call_override(function.get(), args, count, nullptr) : nullptr;
}

Py_ssize_t length_slot(PyObject* self) {
  if (any_override(&self, 1, nullptr)) {
    Ref result(override_slot("__len__", &self, 1));
    return result ? PyLong_AsSsize_t(result.get()) : -1;
  }
  const Tensor& tensor = tensor_of(self);
  if (tensor.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(tensor.sizes()[0]);
}

PyObject* iterate_slot(PyObject* self) {
  if (any_override(&self, 1, nullptr)) {
    return override_slot("__iter__", &self, 1);
  }
  return guarded([&] {
    if (tensor_of(self).dim() == 0) {
      fail(ErrorKind::Type, "", "iteration over a 0-d tensor");
    }
    Ref parts = owned(PyObject_CallMethod(self, "unbind", "i", 0));
    return check(PyObject_GetIter(parts.get()));
  });
}

int contains_slot(PyObject* self, PyObject* item) {
  PyObject* args[] = {self, item};
  if (any_override(args, 2, nullptr)) {
    Ref result(override_slot("__contains__", args, 2));
    return result ? PyObject_IsTrue(result.get()) : -1;
  }
  Scalar number;
  return guarded_int([&] {
    if (!is_tensor(item) && !to_number(item, &number)) {
      fail(ErrorKind::Runtime, "",
           "Tensor.__contains__ only supports Tensor or scalar, but you "
           "passed in a ",
           type_name(item), ".");
    }
    Ref equal = owned(PyObject_RichCompare(self, item, Py_EQ));
    Ref any = owned(PyObject_CallMethod(equal.get(), "any", nullptr));
    return PyObject_IsTrue(any.get());
  });
}

// Tensors are equal element by element, so as keys they count by identity.
Py_hash_t hash_slot(PyObject* self) {
  auto hash = static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self));
  return hash == -1 ? -2 : hash;
}

PyObject* repr_slot(PyObject* self) {
  if (any_override(&self, 1, nullptr)) {
    return override_slot("__repr__", &self, 1);
  }
  return guarded([&] {
    // A subclass prints under its own name; a parameter is shown as the tensor that it holds.
    const std::string name = type_name(self);
    const bool plain = Py_TYPE(self) == tensor_type || name == "Parameter" || name == "Buffer";
    const graph::Reading reading("the text of a tensor");
    std::string text = to_string(tensor_of(self), plain ? "tensor" : name);
    return check(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  });
}

PyObject* subscript_slot(PyObject* self, PyObject* index) {
  PyObject* args[] = {self, index};
  if (any_override(args, 2, nullptr)) {
    return override_slot("__getitem__", args, 2);
  }
  if (subscript_hook == nullptr) {
    PyErr_SetString(PyExc_NotImplementedError, "indexing is not built in");
    return nullptr;
  }
  return subscript_hook(self, index);
}

int assign_subscript_slot(PyObject* self, PyObject* index, PyObject* value) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  PyObject* args[] = {self, index, value};
  if (any_override(args, 3, nullptr)) {
    Ref result(override_slot("__setitem__", args, 3));
    return result ? 0 : -1;
  }
  if (assign_subscript_hook == nullptr) {
    PyErr_SetString(PyExc_NotImplementedError, "indexing is not built in");
    return -1;
  }
  return assign_subscript_hook(self, index, value);
}

PyObject* method_format(PyObject* self, PyObject* spec) {
  const Tensor& tensor = tensor_of(self);
  return guarded([&] {
    if (tensor.dim() == 0 && !tensor.is_meta() && Py_TYPE(self) == tensor_type) {
      Ref item = owned(scalar_object(tensor.item()));
      return check(PyObject_Format(item.get(), spec));
    }
    if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0) {
      return check(PyObject_Str(self));
    }
    fail(ErrorKind::Type, "", "unsupported format string passed to ", type_name(self),
         ".__format__");
  });
}

PyObject* method_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    if (tensor.numel() != 1) {
      fail(ErrorKind::Value, "", "only one element tensors can be converted to Python scalars");
    }
    auto value = tensor.item().to_complex();
    return check(PyComplex_FromDoubles(value.real(), value.imag()));
  });
}

PyObject* method_reversed(PyObject* self, PyObject*) {
  return guarded([&] {
    if (tensor_of(self).dim() == 0) {
      return new_ref(self);
    }
    return check(PyObject_CallMethod(self, "flip", "(i)", 0));
  });
}

PyMethodDef methods[] = {
    {"__format__", method_format, METH_O, nullptr},
    {"__complex__", method_complex, METH_NOARGS, nullptr},
    {"__reversed__", method_reversed, METH_NOARGS, "The tensor with its first dimension flipped."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject*) {
  add_tensor_methods(methods);
}

const Part part(Stage::Members, fill);

template <typename F>
PyType_Slot slot(int id, F function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

std::span<const PyType_Slot> protocol_slots() {
  static const PyType_Slot list[] = {
      slot(Py_mp_length, length_slot),
      slot(Py_mp_subscript, subscript_slot),
      slot(Py_mp_ass_subscript, assign_subscript_slot),
      slot(Py_sq_contains, contains_slot),
      slot(Py_tp_iter, iterate_slot),
      slot(Py_tp_hash, hash_slot),
      slot(Py_tp_repr, repr_slot),
  };
  return list;
}

}  // namespace rushlight::python
