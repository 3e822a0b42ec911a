// Tensor.to, type, cpu and the methods named after dtypes.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core_call.h"
#include "module.h"

namespace rushlight::python {
namespace {

using Args = PyObject* const*;

// What a conversion was asked for; nothing: leave as it is.
struct Wanted {
  std::optional<DType> dtype;
  std::optional<Device> device;
  std::optional<MemoryFormat> format;
  bool copy = false;
};

Tensor convert(const Tensor& self, const Wanted& wanted) {
  bool same = (!wanted.dtype || *wanted.dtype == self.dtype()) &&
              (!wanted.device || *wanted.device == self.device()) &&
              (!wanted.format || *wanted.format == MemoryFormat::Preserve ||
               self.is_contiguous(*wanted.format));
  if (same && !wanted.copy) {
    return self;
  }
  return call_named(
      "_to_copy", self,
      {{"dtype", wanted.dtype}, {"device", wanted.device}, {"memory_format", wanted.format}});
}

bool truth(PyObject* object, const char* name) {
  if (!PyBool_Check(object)) {
    fail(ErrorKind::Type, "", "to(): argument '", name, "' must be bool, not ", type_name(object));
  }
  return object == Py_True;
}

// Reads the arguments of to(): [device | dtype | other] [dtype] [non_blocking] [copy].
class ToParser {
 public:
  explicit ToParser(Wanted& wanted) : wanted_(wanted) {}

  void positional(PyObject* object, Py_ssize_t position) {
    DType dtype;
    Device device;
    if (PyBool_Check(object)) {
      flag(object);
    } else if (object == Py_None) {
      return;
    } else if (position < 2 && to_dtype(object, &dtype)) {
      wanted_.dtype = dtype;
    } else if (position == 0 && is_tensor(object)) {
      wanted_.dtype = tensor_of(object).dtype();
      wanted_.device = tensor_of(object).device();
    } else if (position == 0 && to_device(object, &device)) {
      wanted_.device = device;
    } else {
      invalid(object);
    }
  }

  void keyword(std::string_view name, PyObject* object) {
    constexpr std::array<std::string_view, 7> kNames = {
        "non_blocking", "copy", "dtype", "device", "other", "memory_format", "layout"};
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      fail(ErrorKind::Type, "", "to() got an unexpected keyword argument '", name, "'");
    }
    if ((name == "dtype" && wanted_.dtype) || (name == "device" && wanted_.device)) {
      fail(ErrorKind::Type, "", "to() got multiple values for argument '", name, "'");
    }
    if (object == Py_None) {
      return;
    }
    if (name == "non_blocking") {
      truth(object, "non_blocking");
    } else if (name == "copy") {
      wanted_.copy = truth(object, "copy");
    } else if (name == "dtype") {
      wanted_.dtype = dtype_of(object, "to", "dtype");
    } else if (name == "device" || name == "other") {
      positional(object, 0);
    } else if (name == "memory_format") {
      MemoryFormat format;
      if (!to_memory_format(object, &format)) {
        invalid(object);
      }
      wanted_.format = format;
    }
  }

 private:
  void flag(PyObject* object) {
    if (flags_++ == 1) {
      wanted_.copy = object == Py_True;
    } else if (flags_ > 2) {
      invalid(object);
    }
  }
  [[noreturn]] void invalid(PyObject* object) {
    fail(
        ErrorKind::Type, "", "to() received an invalid combination of arguments - got (",
        type_name(object),
        "), but expected one of:\n"
        " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool "
        "copy = False, *, torch.memory_format memory_format = None)\n"
        " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
        "torch.memory_format memory_format = None)\n"
        " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
        "memory_format = None)\n");
  }

  Wanted& wanted_;
  int flags_ = 0;
};

PyObject* method_to(PyObject* self, Args args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    Wanted wanted;
    ToParser parser(wanted);
    for (Py_ssize_t i = 0; i < count; ++i) {
      parser.positional(args[i], i);
    }
    Py_ssize_t extra = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; i < extra; ++i) {
      parser.keyword(text_of(PyTuple_GET_ITEM(keywords, i)), args[count + i]);
    }
    return wrap(convert(tensor_of(self), wanted));
  });
}

struct TypeName {
  const char* name;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"FloatTensor", DType::Float32},
    {"DoubleTensor", DType::Float64},
    {"HalfTensor", DType::Float16},
    {"BFloat16Tensor", DType::BFloat16},
    {"ByteTensor", DType::UInt8},
    {"CharTensor", DType::Int8},
    {"ShortTensor", DType::Int16},
    {"IntTensor", DType::Int32},
    {"LongTensor", DType::Int64},
    {"BoolTensor", DType::Bool},
    {"ComplexFloatTensor", DType::Complex64},
    {"ComplexDoubleTensor", DType::Complex128},
    {"UInt16Tensor", DType::UInt16},
    {"UInt32Tensor", DType::UInt32},
    {"UInt64Tensor", DType::UInt64},
    {"Float8_e4m3fnTensor", DType::Float8E4M3FN},
    {"Float8_e5m2Tensor", DType::Float8E5M2},
    {"Float8_e4m3fnuzTensor", DType::Float8E4M3FNUZ},
    {"Float8_e5m2fnuzTensor", DType::Float8E5M2FNUZ},
    {"Float8_e8m0fnuTensor", DType::Float8E8M0FNU},
};

std::string legacy_name(const Tensor& tensor) {
  for (const TypeName& row : kTypeNames) {
    if (row.dtype == tensor.dtype()) {
      return std::string(tensor.is_meta() ? "torch.meta." : "torch.") + row.name;
    }
  }
  return "torch.Tensor";
}

DType legacy_dtype(PyObject* type) {
  DType dtype;
  if (to_dtype(type, &dtype)) {
    return dtype;
  }
  if (!PyUnicode_Check(type) && !PyType_Check(type)) {
    fail(ErrorKind::Type, "", "dtype must be a type, str, or dtype object, not ", type_name(type));
  }
  Ref name =
      PyUnicode_Check(type) ? Ref::share(type) : owned(PyObject_GetAttrString(type, "__name__"));
  std::string_view text = text_of(name.get());
  size_t dot = text.rfind('.');
  std::string_view last = dot == std::string_view::npos ? text : text.substr(dot + 1);
  for (const TypeName& row : kTypeNames) {
    if (last == row.name) {
      return row.dtype;
    }
  }
  fail(ErrorKind::Value, "", "invalid type: '", text, "'");
}

PyObject* method_type(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "non_blocking", nullptr};
  PyObject* type = Py_None;
  int non_blocking = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Op:type", const_cast<char**>(names), &type,
                                   &non_blocking)) {
    return nullptr;
  }
  return guarded([&] {
    if (type == Py_None) {
      return check(PyUnicode_FromString(legacy_name(tensor_of(self)).c_str()));
    }
    Wanted wanted;
    wanted.dtype = legacy_dtype(type);
    return wrap(convert(tensor_of(self), wanted));
  });
}

// float(memory_format=...), cpu(memory_format=...): one function a target.
template <typename F>
PyObject* convert_method(PyObject* self, PyObject* args, PyObject* kwargs, F&& want) {
  static const char* names[] = {"memory_format", nullptr};
  PyObject* given = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &given)) {
    return nullptr;
  }
  return guarded([&] {
    Wanted wanted;
    MemoryFormat format;
    if (given != Py_None && to_memory_format(given, &format)) {
      wanted.format = format;
    }
    want(wanted);
    return wrap(convert(tensor_of(self), wanted));
  });
}

template <DType kDType>
PyObject* method_dtype(PyObject* self, PyObject* args, PyObject* kwargs) {
  return convert_method(self, args, kwargs, [](Wanted& wanted) { wanted.dtype = kDType; });
}

PyObject* method_cpu(PyObject* self, PyObject* args, PyObject* kwargs) {
  return convert_method(self, args, kwargs,
                        [](Wanted& wanted) { wanted.device = Device(DeviceType::CPU); });
}

template <typename F>
PyCFunction as_function(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

constexpr int kWords = METH_VARARGS | METH_KEYWORDS;

#define RUSHLIGHT_DTYPE_METHOD(name, dtype) \
  {name, as_function(method_dtype<DType::dtype>), kWords, "Converts to this dtype."}

PyMethodDef methods[] = {
    {"to", as_function(method_to), METH_FASTCALL | METH_KEYWORDS,
     "Converts to a dtype, a device, or what another tensor has; returns self where nothing "
     "changes."},
    {"type", as_function(method_type), kWords, "The legacy type name, or a conversion by it."},
    {"cpu", as_function(method_cpu), kWords, "The tensor in CPU memory."},
    RUSHLIGHT_DTYPE_METHOD("bool", Bool),
    RUSHLIGHT_DTYPE_METHOD("byte", UInt8),
    RUSHLIGHT_DTYPE_METHOD("char", Int8),
    RUSHLIGHT_DTYPE_METHOD("short", Int16),
    RUSHLIGHT_DTYPE_METHOD("int", Int32),
    RUSHLIGHT_DTYPE_METHOD("long", Int64),
    RUSHLIGHT_DTYPE_METHOD("half", Float16),
    RUSHLIGHT_DTYPE_METHOD("bfloat16", BFloat16),
    RUSHLIGHT_DTYPE_METHOD("float", Float32),
    RUSHLIGHT_DTYPE_METHOD("double", Float64),
    RUSHLIGHT_DTYPE_METHOD("cfloat", Complex64),
    RUSHLIGHT_DTYPE_METHOD("cdouble", Complex128),
    {nullptr, nullptr, 0, nullptr},
};
#undef RUSHLIGHT_DTYPE_METHOD

void fill(PyObject*) {
  add_tensor_methods(methods);
}

const Part part(Stage::Members, fill);

}  // namespace
}  // namespace rushlight::python
