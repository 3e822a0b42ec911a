// Numbers, sequences and results between Python and the core.
#include "convert.h"

#include <rushlight/scalar.h>

#include <cstring>

namespace rushlight::python {
namespace {

Scalar integer_scalar(PyObject* object) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow > 0) {
    unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return Scalar(large);
  }
  if (overflow < 0) {
    fail(ErrorKind::Overflow, "", "int too small to convert");
  }
  if (value == -1 && PyErr_Occurred()) {
    throw PythonError();
  }
  return Scalar(static_cast<int64_t>(value));
}

bool is_numpy_scalar(PyObject* object) {
  const char* name = Py_TYPE(object)->tp_name;
  return std::strncmp(name, "numpy.", 6) == 0 && std::strcmp(name, "numpy.ndarray") != 0 &&
         PyObject_HasAttrString(object, "item");
}

[[noreturn]] void wrong_type(PyObject* object, const char* op, const char* argument,
                             const char* expected) {
  fail(ErrorKind::Type, "", op, "(): argument '", argument, "' must be ", expected, ", not ",
       type_name(object));
}

}  // namespace

void Items::fail_changed() {
  fail(ErrorKind::Runtime, "", "a list changed its size while its items were converted");
}

PyObject* scalar_object(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(scalar.to_bool());
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(scalar.to_int());
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(scalar.kernel_bits(DType::UInt64));
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(scalar.to_double());
    case Scalar::Kind::Complex:
      return PyComplex_FromDoubles(scalar.to_complex().real(), scalar.to_complex().imag());
  }
  return nullptr;
}

bool to_number(PyObject* object, Scalar* scalar) {
  if (PyFloat_Check(object)) {
    *scalar = Scalar(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (PyBool_Check(object)) {
    *scalar = Scalar(object == Py_True);
    return true;
  }
  if (PyLong_Check(object)) {
    *scalar = integer_scalar(object);
    return true;
  }
  if (PyComplex_Check(object)) {
    *scalar = Scalar(
        std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
    return true;
  }
  if (is_numpy_scalar(object)) {
    Ref item = owned(PyObject_CallMethod(object, "item", nullptr));
    return !is_numpy_scalar(item.get()) && to_number(item.get(), scalar);
  }
  return false;
}

Scalar scalar_of(PyObject* object, const char* op, const char* argument) {
  Scalar scalar;
  if (to_number(object, &scalar)) {
    return scalar;
  }
  if (is_tensor(object) && tensor_of(object).dim() == 0) {
    return tensor_of(object).item();
  }
  wrong_type(object, op, argument, "Number");
}

int64_t int_of(PyObject* object, const char* op, const char* argument) {
  if (is_tensor(object)) {
    const Tensor& tensor = tensor_of(object);
    if (tensor.numel() == 1 && is_integral(tensor.dtype(), false)) {
      return tensor.item().to_int();
    }
    wrong_type(object, op, argument, "int");
  }
  if (PyBool_Check(object) || !PyIndex_Check(object)) {
    wrong_type(object, op, argument, "int");
  }
  Ref index = owned(PyNumber_Index(object));
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow != 0) {
    fail(ErrorKind::Value, "", "Overflow when unpacking long long");
  }
  return value;
}

IntList ints_of(PyObject* object, const char* op, const char* argument) {
  IntList list;
  if (!Items::are_in(object)) {
    list.push_back(int_of(object, op, argument));
    return list;
  }
  const Items items(object);
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    list.push_back(int_of(items[i].get(), op, argument));
  }
  return list;
}

TensorList tensors_of(PyObject* object, const char* op, const char* argument) {
  if (!Items::are_in(object)) {
    wrong_type(object, op, argument, "tuple of Tensors");
  }
  const Items items(object);
  TensorList list;
  list.reserve(static_cast<size_t>(items.size()));
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    list.push_back(require_tensor(items[i].get(), op, argument));
  }
  return list;
}

PyObject* int_tuple(IntArrayRef values) {
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     check(PyLong_FromLongLong(values[i])));
  }
  return tuple.release();
}

namespace {

template <typename List, typename F>
PyObject* list_of(const List& values, F&& convert) {
  Ref list = owned(PyList_New(0));
  for (const auto& value : values) {
    Ref item = owned(convert(value));
    check(PyList_Append(list.get(), item.get()));
  }
  return list.release();
}

}  // namespace

PyObject* to_python(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::None:
      return py_none();
    case Value::Tag::Tensor:
      return wrap(value.tensor());
    case Value::Tag::Bool:
    case Value::Tag::Int:
    case Value::Tag::UInt:
    case Value::Tag::Float:
    case Value::Tag::Complex:
      return scalar_object(value.to_scalar());
    case Value::Tag::Ints:
      return list_of(value.ints(), [](int64_t v) { return PyLong_FromLongLong(v); });
    case Value::Tag::Floats:
      return list_of(value.floats(), [](double v) { return PyFloat_FromDouble(v); });
    case Value::Tag::Bools:
      return list_of(value.bools(), [](bool v) { return PyBool_FromLong(v); });
    case Value::Tag::Tensors:
      return wrap_tuple(value.tensors());
    case Value::Tag::Scalars:
      return list_of(value.scalars(), scalar_object);
    case Value::Tag::String: {
      std::string_view text = value.text();
      return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    }
    case Value::Tag::DType:
      return new_ref(dtype_object(value.dtype()));
    case Value::Tag::Device:
      return device_object(value.device());
    case Value::Tag::Layout:
      return new_ref(layout_object(value.layout()));
    case Value::Tag::MemoryFormat:
      return new_ref(memory_format_object(value.memory_format()));
    case Value::Tag::Generator:
      return generator_object(value.generator());
  }
  return py_none();
}

}  // namespace rushlight::python
