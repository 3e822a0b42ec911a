// Tensor's arithmetic by its names, x.__add__(other=y): methods that call the slots of
// numbers.cpp, where Python's own wrappers would take no keyword.
#include <cstddef>
#include <cstring>

#include "convert.h"
#include "module.h"
#include "tensor_type.h"

namespace rushlight::python {
namespace {

// The slots as Tensor has them: a class that sets __add__ changes its own only.
PyNumberMethods slots;

template <binaryfunc PyNumberMethods::* kSlot, bool kReflected>
PyObject* named(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"other", nullptr};
  PyObject* other = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &other)) {
    return nullptr;
  }
  return kReflected ? (slots.*kSlot)(other, self) : (slots.*kSlot)(self, other);
}

PyObject* reflected_power(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"other", nullptr};
  PyObject* other = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &other)) {
    return nullptr;
  }
  return slots.nb_power(other, self, Py_None);
}

template <typename F>
PyCFunction as_function(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

struct Row {
  size_t offset;  // of the slot
  PyMethodDef method;
};

#define RUSHLIGHT_NAMED(name, slot, reflected)                                  \
  Row {                                                                         \
    offsetof(PyNumberMethods, slot),                                            \
        {"__" name "__", as_function(named<&PyNumberMethods::slot, reflected>), \
         METH_VARARGS | METH_KEYWORDS, "__" name "__($self, other)\n--\n\n"}    \
  }
#define RUSHLIGHT_BOTH(name, slot) \
  RUSHLIGHT_NAMED(name, slot, false), RUSHLIGHT_NAMED("r" name, slot, true)
#define RUSHLIGHT_IN_PLACE(name, slot) RUSHLIGHT_NAMED("i" name, slot, false)

Row rows[] = {
    RUSHLIGHT_BOTH("add", nb_add),
    RUSHLIGHT_BOTH("sub", nb_subtract),
    RUSHLIGHT_BOTH("mul", nb_multiply),
    RUSHLIGHT_BOTH("truediv", nb_true_divide),
    RUSHLIGHT_BOTH("floordiv", nb_floor_divide),
    RUSHLIGHT_BOTH("mod", nb_remainder),
    RUSHLIGHT_BOTH("matmul", nb_matrix_multiply),
    RUSHLIGHT_BOTH("and", nb_and),
    RUSHLIGHT_BOTH("or", nb_or),
    RUSHLIGHT_BOTH("xor", nb_xor),
    RUSHLIGHT_BOTH("lshift", nb_lshift),
    RUSHLIGHT_BOTH("rshift", nb_rshift),
    {offsetof(PyNumberMethods, nb_power),
     {"__rpow__", as_function(reflected_power), METH_VARARGS | METH_KEYWORDS,
      "__rpow__($self, other)\n--\n\n"}},
    RUSHLIGHT_IN_PLACE("add", nb_inplace_add),
    RUSHLIGHT_IN_PLACE("sub", nb_inplace_subtract),
    RUSHLIGHT_IN_PLACE("mul", nb_inplace_multiply),
    RUSHLIGHT_IN_PLACE("truediv", nb_inplace_true_divide),
    RUSHLIGHT_IN_PLACE("floordiv", nb_inplace_floor_divide),
    RUSHLIGHT_IN_PLACE("mod", nb_inplace_remainder),
    RUSHLIGHT_IN_PLACE("and", nb_inplace_and),
    RUSHLIGHT_IN_PLACE("or", nb_inplace_or),
    RUSHLIGHT_IN_PLACE("xor", nb_inplace_xor),
    RUSHLIGHT_IN_PLACE("lshift", nb_inplace_lshift),
    RUSHLIGHT_IN_PLACE("rshift", nb_inplace_rshift),
};
#undef RUSHLIGHT_NAMED
#undef RUSHLIGHT_BOTH
#undef RUSHLIGHT_IN_PLACE

// What a class finds under a name along its bases (borrowed); null where nothing.
PyObject* found(PyTypeObject* type, const char* name) {
  const Ref key = owned(PyUnicode_InternFromString(name));
  return _PyType_Lookup(type, key.get());
}

void fill(PyObject*) {
  slots = *tensor_type->tp_as_number;
  for (Row& row : rows) {
    // Into the dictionary, not through setattr: that would put the slots behind these methods.
    const Ref method = owned(PyDescr_NewMethod(tensor_type, &row.method));
    check(PyDict_SetItemString(tensor_type->tp_dict, row.method.ml_name, method.get()));
  }
  PyType_Modified(tensor_type);
}

const Part part(Stage::Members, fill);

void* slot_at(PyNumberMethods* methods, size_t offset) {
  void* slot;
  std::memcpy(&slot, reinterpret_cast<char*>(methods) + offset, sizeof slot);
  return slot;
}

}  // namespace

void inherit_number_slots(PyTypeObject* type) {
  for (const Row& row : rows) {
    bool own = true;
    for (const Row& other : rows) {
      own = own && (other.offset != row.offset ||
                    found(type, other.method.ml_name) == found(tensor_type, other.method.ml_name));
    }
    own = own && (row.offset != offsetof(PyNumberMethods, nb_power) ||
                  found(type, "__pow__") == found(tensor_type, "__pow__"));
    if (own) {
      void* slot = slot_at(&slots, row.offset);
      std::memcpy(reinterpret_cast<char*>(type->tp_as_number) + row.offset, &slot, sizeof slot);
    }
  }
}

}  // namespace rushlight::python
