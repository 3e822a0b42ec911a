// One Python object to one value of a schema type, by PyTorch's rules of what fits what.
#include <cstring>

#include "arguments.h"

namespace rushlight::python {
namespace {

bool is_plain_int(PyObject* object) {
  return PyLong_Check(object) && !PyBool_Check(object);
}

bool is_int_tensor(PyObject* object) {
  return is_tensor(object) && tensor_of(object).numel() == 1 &&
         is_integral(tensor_of(object).dtype(), false) && !tensor_of(object).requires_grad();
}

// Whether an object may stand for an int: not bool, not float.
bool fits_int(PyObject* object) {
  return is_plain_int(object) || is_int_tensor(object) ||
         (!PyBool_Check(object) && !is_tensor(object) && PyIndex_Check(object));
}

int64_t to_int(PyObject* object) {
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
      return value;
    }
    fail(ErrorKind::Value, "", "Overflow when unpacking long long");
  }
  return int_of(object, "", "");
}

// An item of a list of ints, at `position` from 1.
int64_t to_item(const OverloadSet& set, const Parameter& parameter, PyObject* object,
                Py_ssize_t position) {
  std::string problem;
  int overflow = 0;
  if (!fits_int(object)) {
    problem = "type must be tuple of ints,but got " + type_name(object);
  } else if (PyLong_Check(object)) {
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
      return value;
    }
    problem = "Overflow when unpacking long long";
  } else {
    return to_int(object);
  }
  fail(ErrorKind::Type, "", set.name, "(): argument '", message_text(parameter.name),
       "' failed to unpack the object at pos ", static_cast<int64_t>(position), " with error \"",
       problem, "\"");
}

// A number, or a 0-dim tensor outside the graph.
bool convert_scalar(PyObject* object, Scalar* scalar) {
  if (to_number(object, scalar)) {
    return true;
  }
  if (is_tensor(object) && tensor_of(object).dim() == 0 && !tensor_of(object).requires_grad()) {
    *scalar = tensor_of(object).item();
    return true;
  }
  return false;
}

bool convert_float(PyObject* object, double* real) {
  Scalar scalar;
  if (PyFloat_Check(object)) {
    *real = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (is_plain_int(object)) {  // may lie outside 64 bits
    *real = PyLong_AsDouble(object);
    if (*real == -1.0 && PyErr_Occurred()) {
      throw PythonError();
    }
    return true;
  }
  if (!convert_scalar(object, &scalar) || scalar.is_complex()) {
    return false;
  }
  *real = scalar.to_double();
  return true;
}

bool convert_bool(PyObject* object, bool* flag) {
  if (PyBool_Check(object)) {
    *flag = object == Py_True;
    return true;
  }
  Scalar scalar;
  if (PyLong_Check(object) || PyFloat_Check(object) || !convert_scalar(object, &scalar) ||
      !scalar.is_boolean()) {
    return false;
  }
  *flag = scalar.to_bool();
  return true;
}

bool convert_ints(const OverloadSet& set, const Parameter& parameter, const Items& items,
                  Frame& frame, Value& value) {
  const Py_ssize_t count = items.size();
  if (count > 0 && !fits_int(items[0].get())) {
    return false;
  }
  IntList long_list;
  int64_t* list = frame.ints(count);
  if (list == nullptr) {
    long_list.resize(static_cast<size_t>(count));
    list = long_list.data();
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    list[i] = to_item(set, parameter, items[i].get(), i + 1);
  }
  value = long_list.empty() ? Value::borrow(IntArrayRef(list, static_cast<size_t>(count)))
                            : Value(std::move(long_list));
  return true;
}

bool convert_int_list(const OverloadSet& set, const Parameter& parameter, PyObject* object,
                      Frame& frame, Value& value) {
  if (Items::are_in(object)) {
    return convert_ints(set, parameter, Items(object), frame, value);
  }
  int repeat = parameter.argument->list_size;
  if (repeat == 0 || !fits_int(object)) {
    return false;
  }
  const int64_t single = to_item(set, parameter, object, 1);
  int64_t* list = frame.ints(repeat);
  if (list == nullptr) {
    value = Value(IntList(static_cast<size_t>(repeat), single));
    return true;
  }
  std::fill_n(list, repeat, single);
  value = Value::borrow(IntArrayRef(list, static_cast<size_t>(repeat)));
  return true;
}

bool convert_tensor_list(const Parameter& parameter, PyObject* object, Value& value) {
  if (!Items::are_in(object)) {
    return false;
  }
  const Items items(object);
  bool nothing = parameter.argument->optional_items;
  TensorList list;
  list.reserve(static_cast<size_t>(items.size()));
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    const Ref item = items[i];
    if (is_tensor(item.get())) {
      list.push_back(tensor_of(item.get()));
    } else if (nothing && item.get() == Py_None) {
      list.emplace_back();
    } else if (i == 0) {
      return false;
    } else {
      fail(ErrorKind::Type, "", "expected Tensor as element ", static_cast<int64_t>(i),
           " in argument ", parameter.index, ", but got ", type_name(item.get()));
    }
  }
  value = Value(std::move(list));
  return true;
}

template <typename Item, typename F>
bool convert_items(PyObject* object, Value& value, F&& convert) {
  if (!Items::are_in(object)) {
    return false;
  }
  const Items items(object);
  std::vector<Item> list;
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    Item item{};
    if (!convert(items[i].get(), &item)) {
      return false;
    }
    list.push_back(item);
  }
  value = Value(std::move(list));
  return true;
}

bool convert_list(const OverloadSet& set, const Parameter& parameter, PyObject* object,
                  Frame& frame, Value& value) {
  switch (parameter.argument->type) {
    case SchemaType::Int:
      return convert_int_list(set, parameter, object, frame, value);
    case SchemaType::Tensor:
      return convert_tensor_list(parameter, object, value);
    case SchemaType::Float:
      return convert_items<double>(object, value, convert_float);
    case SchemaType::Scalar:
      return convert_items<Scalar>(object, value, convert_scalar);
    case SchemaType::Bool:
      return convert_items<bool>(object, value, convert_bool);
    default:
      return false;
  }
}

// Numbers stand for tensors where the operator takes them, but cannot be written to.
bool convert_tensor(const Parameter& parameter, bool written, PyObject* object, Value& value) {
  if (is_tensor(object)) {
    value = Value::borrow(tensor_of(object));
    return true;
  }
  Scalar scalar;
  if (!parameter.numbers || (written && parameter.index == 0) || !to_number(object, &scalar)) {
    return false;
  }
  if (parameter.index > 0) {
    value = Value(scalar);
    return true;
  }
  // The first argument decides where the call goes: it must be a tensor, weak in promotion.
  Tensor tensor = make_scalar_tensor(scalar, scalar.dtype());
  tensor.impl()->set(TensorImpl::kWrappedNumber, true);
  value = Value(std::move(tensor));
  return true;
}

template <typename T, bool (*kConvert)(PyObject*, T*)>
bool convert_simple(PyObject* object, Value& value) {
  T result{};
  if (!kConvert(object, &result)) {
    return false;
  }
  value = Value(std::move(result));
  return true;
}

bool convert_generator(PyObject* object, Value& value) {
  Generator generator = default_generator();
  if (!to_generator(object, &generator)) {
    return false;
  }
  value = Value(std::move(generator));
  return true;
}

}  // namespace

bool convert_argument(const OverloadSet& set, const Parameter& parameter, PyObject* object,
                      Frame& frame, Value& value) {
  const Argument& argument = *parameter.argument;
  if (object == Py_None) {
    // None stands for an empty list, too: amax(dim=None), max_pool2d(stride=None).
    const bool absent = argument.list && argument.type == SchemaType::Int && argument.has_default &&
                        argument.default_value.tag() == Value::Tag::Ints &&
                        argument.default_value.ints().empty();
    value = absent ? Value::borrow(argument.default_value.ints()) : Value();
    return argument.optional || absent;
  }
  if (argument.list) {
    return convert_list(set, parameter, object, frame, value);
  }
  switch (argument.type) {
    case SchemaType::Tensor:
      return convert_tensor(parameter, set.method && set.name.ends_with('_'), object, value);
    case SchemaType::Scalar:
      return convert_simple<Scalar, convert_scalar>(object, value);
    case SchemaType::Int:
      if (!fits_int(object)) {
        return false;
      }
      value = Value(to_int(object));
      return true;
    case SchemaType::Float:
      return convert_simple<double, convert_float>(object, value);
    case SchemaType::Bool:
      return convert_simple<bool, convert_bool>(object, value);
    case SchemaType::String:
      if (!PyUnicode_Check(object)) {
        return false;
      }
      value = Value::borrow(text_of(object));
      return true;
    case SchemaType::DType:
      return convert_simple<DType, to_dtype>(object, value);
    case SchemaType::Device:
      return convert_simple<Device, to_device>(object, value);
    case SchemaType::Layout:
      return convert_simple<LayoutKind, to_layout>(object, value);
    case SchemaType::MemoryFormat:
      return convert_simple<MemoryFormat, to_memory_format>(object, value);
    case SchemaType::Generator:
      return convert_generator(object, value);
  }
  return false;
}

}  // namespace rushlight::python
