// rushlight.dtype, layout and memory_format: one object a value, compared by identity.
#include <rushlight/dtype.h>

#include <array>
#include <cstring>
#include <string>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

struct ConstantObject {
  PyObject_HEAD int value;
};

PyTypeObject* dtype_type = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;
std::array<PyObject*, kDTypeCount> dtypes{};

// Those beyond the core's have names alone, as most of the core's: all tensors are strided.
constexpr const char* kLayoutNames[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                        "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
constexpr const char* kFormatNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                        "channels_last_3d"};
std::array<PyObject*, std::size(kLayoutNames)> layouts{};
std::array<PyObject*, 4> formats{};

int value_of(PyObject* object) {
  return reinterpret_cast<ConstantObject*>(object)->value;
}
DType dtype_value(PyObject* object) {
  return static_cast<DType>(value_of(object));
}

std::string constant_name(PyObject* object) {
  if (Py_TYPE(object) == dtype_type) {
    return std::string(dtype_name(dtype_value(object)));
  }
  return Py_TYPE(object) == layout_type ? kLayoutNames[value_of(object)]
                                        : kFormatNames[value_of(object)];
}

// "torch." as PyTorch prints it: programs compare this text.
PyObject* constant_repr(PyObject* self) {
  return PyUnicode_FromString(("torch." + constant_name(self)).c_str());
}

// Pickled by name, as an attribute of this package.
PyObject* constant_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(constant_name(self).c_str());
}

PyObject* constant_self(PyObject* self, PyObject*) {
  return new_ref(self);
}

PyMethodDef constant_methods[] = {
    {"__reduce__", constant_reduce, METH_NOARGS, nullptr},
    {"__copy__", constant_self, METH_NOARGS, nullptr},
    {"__deepcopy__", constant_self, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return new_ref(dtype_object(real_dtype(dtype_value(self))));
}

PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  DType dtype = dtype_value(self);
  if (dtype == DType::Float64) {
    return new_ref(dtype_object(DType::Complex128));
  }
  if (dtype == DType::Float32) {
    return new_ref(dtype_object(DType::Complex64));
  }
  if (is_complex(dtype)) {
    return new_ref(self);
  }
  PyErr_Format(PyExc_RuntimeError, "Unknown Complex ScalarType for %s",
               std::string(dtype_name(dtype)).c_str());
  return nullptr;
}

PyMethodDef dtype_methods[] = {
    {"__reduce__", constant_reduce, METH_NOARGS, nullptr},
    {"__copy__", constant_self, METH_NOARGS, nullptr},
    {"__deepcopy__", constant_self, METH_O, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of a complex number's parts."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype made of this one."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* dtype_is_floating(PyObject* self, void*) {
  return PyBool_FromLong(is_floating(dtype_value(self)));
}
PyObject* dtype_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(is_complex(dtype_value(self)));
}
PyObject* dtype_is_signed(PyObject* self, void*) {
  return PyBool_FromLong(is_signed(dtype_value(self)));
}
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(element_size(dtype_value(self)));
}

// As traces write dtypes: the kind in a letter or two, and the bits.
PyObject* dtype_abbreviation(PyObject* self, void*) {
  const DType dtype = dtype_value(self);
  std::string name(dtype_name(dtype));
  for (const auto& [word, letters] :
       {std::pair{"bfloat", "bf"}, std::pair{"float8_", "f8"}, std::pair{"float", "f"},
        std::pair{"complex", "c"}, std::pair{"uint", "u"}, std::pair{"int", "i"},
        std::pair{"bool", "b8"}}) {
    if (name.starts_with(word)) {
      name = letters + name.substr(std::strlen(word));
      break;
    }
  }
  return PyUnicode_FromString(name.c_str());
}

PyGetSetDef dtype_properties[] = {
    {"abbr", dtype_abbreviation, nullptr, "Its name in traces: f32, i64, b8.", nullptr},
    {"is_floating_point", dtype_is_floating, nullptr, "Whether it is a floating-point type.",
     nullptr},
    {"is_complex", dtype_is_complex, nullptr, "Whether it is a complex type.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "Whether it has negative values.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes an element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyTypeObject* make_constant_type(const char* name, PyMethodDef* methods, PyGetSetDef* properties) {
  PyType_Slot slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(constant_repr)},
      {Py_tp_methods, methods},
      {properties != nullptr ? Py_tp_getset : 0, properties},
      {0, nullptr},
  };
  PyType_Spec spec = {name, sizeof(ConstantObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
}

PyObject* make_constant(PyTypeObject* type, int value) {
  auto* object = PyObject_New(ConstantObject, type);
  if (object == nullptr) {
    throw PythonError();
  }
  object->value = value;
  return reinterpret_cast<PyObject*>(object);
}

bool constant_value(PyObject* object, PyTypeObject* type, int* value) {
  if (Py_TYPE(object) != type) {
    return false;
  }
  *value = value_of(object);
  return true;
}

template <size_t N>
void add_constants(PyObject* module, PyTypeObject* type, const char* const (&names)[N],
                   std::array<PyObject*, N>& objects) {
  for (size_t i = 0; i < N; ++i) {
    objects[i] = make_constant(type, static_cast<int>(i));
    add_object(module, names[i], new_ref(objects[i]));
  }
}

void fill(PyObject* module) {
  dtype_type = make_constant_type("rushlight.dtype", dtype_methods, dtype_properties);
  layout_type = make_constant_type("rushlight.layout", constant_methods, nullptr);
  memory_format_type = make_constant_type("rushlight.memory_format", constant_methods, nullptr);
  add_object(module, "dtype", new_ref(reinterpret_cast<PyObject*>(dtype_type)));
  add_object(module, "layout", new_ref(reinterpret_cast<PyObject*>(layout_type)));
  add_object(module, "memory_format", new_ref(reinterpret_cast<PyObject*>(memory_format_type)));
  for (int i = 0; i < kDTypeCount; ++i) {
    dtypes[i] = make_constant(dtype_type, i);
    const DTypeInfo& row = kDTypeTable[i];
    add_object(module, std::string(row.name).c_str(), new_ref(dtypes[i]));
    if (!row.alias.empty()) {
      add_object(module, std::string(row.alias).c_str(), new_ref(dtypes[i]));
    }
  }
  add_constants(module, layout_type, kLayoutNames, layouts);
  add_constants(module, memory_format_type, kFormatNames, formats);
  add_object(module, "legacy_contiguous_format", new_ref(formats[0]));
}

const Part part(Stage::Types, fill);

}  // namespace

PyObject* dtype_object(DType dtype) {
  return dtypes[static_cast<int>(dtype)];
}

bool is_dtype(PyObject* object) {
  return Py_TYPE(object) == dtype_type;
}

bool to_dtype(PyObject* object, DType* dtype) {
  if (is_dtype(object)) {
    *dtype = dtype_value(object);
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *dtype = DType::Float64;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *dtype = DType::Int64;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *dtype = DType::Bool;
  } else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *dtype = DType::Complex128;
  } else {
    return false;
  }
  return true;
}

DType dtype_of(PyObject* object, const char* op, const char* argument) {
  DType dtype;
  if (!to_dtype(object, &dtype)) {
    fail(ErrorKind::Type, "", op, "(): argument '", argument, "' must be torch.dtype, not ",
         type_name(object));
  }
  return dtype;
}

PyObject* layout_object(LayoutKind layout) {
  return layouts[static_cast<int>(layout)];
}

PyObject* memory_format_object(MemoryFormat format) {
  return formats[static_cast<int>(format)];
}

bool to_layout(PyObject* object, LayoutKind* layout) {
  int value;
  if (!constant_value(object, layout_type, &value)) {
    return false;
  }
  *layout = static_cast<LayoutKind>(value);
  return true;
}

bool to_memory_format(PyObject* object, MemoryFormat* format) {
  int value;
  if (!constant_value(object, memory_format_type, &value)) {
    return false;
  }
  *format = static_cast<MemoryFormat>(value);
  return true;
}

}  // namespace rushlight::python
