// Nested sequences and numbers: the shape, the dtype, then the elements.
#include "from_data.h"

#include <cmath>
#include <limits>

#include "ops/elementwise.h"

namespace rushlight::python {
namespace {

constexpr size_t kMostDimensions = 128;

// Strings and bytes are sequences of themselves, and never data. Tensors count as numbers.
bool is_sequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) ||
         (PySequence_Check(object) && !is_tensor(object) && !PyUnicode_Check(object) &&
          !PyBytes_Check(object) && !is_numpy_scalar(object));
}

// The items of a sequence as a list or tuple.
Ref sequence_of(PyObject* sequence) {
  return owned(PySequence_Fast(sequence, "not a sequence"));
}

void check_text(PyObject* data) {
  if (PyUnicode_Check(data) || PyBytes_Check(data)) {
    fail(ErrorKind::Type, "", "new(): invalid data type '", type_name(data), "'");
  }
}

// Sizes along the first item of each level.
IntList measure(PyObject* data) {
  IntList sizes;
  Ref level = Ref::share(data);
  while (true) {
    if (is_numpy_array(level.get())) {
      const Tensor array = tensor_from_array(level.get(), false);
      for (const int64_t size : array.sizes()) {
        sizes.push_back(size);
      }
      return sizes;
    }
    if (PyUnicode_Check(level.get()) || PyBytes_Check(level.get())) {
      fail(ErrorKind::Value, "", "too many dimensions '", type_name(level.get()), "'");
    }
    if (!is_sequence(level.get())) {
      return sizes;
    }
    const Py_ssize_t size = PySequence_Size(level.get());
    if (size < 0) {
      throw PythonError();
    }
    sizes.push_back(size);
    if (sizes.size() > kMostDimensions) {
      fail(ErrorKind::Value, "", "too many dimensions '", type_name(level.get()), "'");
    }
    if (size == 0) {
      return sizes;
    }
    level = owned(PySequence_GetItem(level.get(), 0));
  }
}

DType default_complex() {
  return default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

DType infer(PyObject* data);

DType infer_items(PyObject* sequence) {
  const Ref list = sequence_of(sequence);
  const Items items(list.get());
  if (items.size() == 0) {
    return default_dtype();
  }
  DType found = infer(items[0].get());
  PyObject* const* read = items.data();
  for (Py_ssize_t i = 1; i < items.size(); ++i) {
    PyObject* item = read[i];
    if (PyFloat_CheckExact(item) && found == DType::Float32 && default_dtype() == DType::Float32) {
      continue;
    }
    if (PyLong_CheckExact(item) && found == DType::Int64) {
      continue;
    }
    found = promote(found, infer(items[i].get()));
    read = items.data();
  }
  return found;
}

DType infer(PyObject* data) {
  if (PyFloat_CheckExact(data)) {
    return default_dtype();
  }
  if (PyBool_Check(data)) {
    return DType::Bool;
  }
  if (PyLong_CheckExact(data)) {
    return DType::Int64;
  }
  if (is_tensor(data)) {
    return tensor_of(data).dtype();
  }
  if (is_numpy_array(data) || is_numpy_scalar(data)) {
    return numpy_dtype(data);
  }
  if (PyFloat_Check(data)) {
    return default_dtype();
  }
  if (PyLong_Check(data)) {
    return DType::Int64;
  }
  if (PyComplex_Check(data)) {
    return default_complex();
  }
  check_text(data);
  if (is_sequence(data)) {
    return infer_items(data);
  }
  if (PyIndex_Check(data)) {
    return DType::Int64;
  }
  fail(ErrorKind::Runtime, "", "Could not infer dtype of ", type_name(data));
}

[[noreturn]] void overflow(DType dtype) {
  fail(ErrorKind::Runtime, "", "value cannot be converted to type ", dtype_name(dtype),
       " without overflow");
}

struct Bounds {
  double least;
  double most;
};

Bounds bounds_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return {-255, 255};  // negative numbers wrap, as they do in PyTorch
    case DType::Int8:
      return {-128, 127};
    case DType::UInt16:
      return {-65535, 65535};
    case DType::Int16:
      return {-32768, 32767};
    case DType::UInt32:
      return {-4294967295.0, 4294967295.0};
    case DType::Int32:
      return {-2147483648.0, 2147483647.0};
    default:
      return {-0x1p63, 0x1.fffffffffffffp62};
  }
}

int64_t integer_of(PyObject* item, DType dtype) {
  if (PyFloat_Check(item)) {
    const double value = PyFloat_AS_DOUBLE(item);
    const Bounds bounds = bounds_of(dtype);
    if (!(std::trunc(value) >= bounds.least && std::trunc(value) <= bounds.most)) {
      overflow(dtype);
    }
    return static_cast<int64_t>(value);
  }
  const Ref number = PyLong_Check(item) ? Ref::share(item) : owned(PyNumber_Index(item));
  if (dtype == DType::UInt64) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred()) {
      throw PythonError();
    }
    return static_cast<int64_t>(value);
  }
  int over = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.get(), &over);
  if (over != 0) {
    fail(ErrorKind::Value, "", "Overflow when unpacking long long");
  }
  const Bounds bounds = bounds_of(dtype);
  if (static_cast<double>(value) < bounds.least ||
      (dtype != DType::Int64 && static_cast<double>(value) > bounds.most)) {
    overflow(dtype);
  }
  return value;
}

double real_of(PyObject* item) {
  if (PyFloat_CheckExact(item)) {
    return PyFloat_AS_DOUBLE(item);
  }
  const double value = PyFloat_AsDouble(item);
  if (value == -1.0 && PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

// One number into one element.
void store(char* at, DType dtype, PyObject* item) {
  if (is_tensor(item)) {
    const Tensor& tensor = tensor_of(item);
    if (tensor.numel() != 1) {
      fail(ErrorKind::Type, "", "only integer tensors of a single element can be converted to an ",
           "index");
    }
    if (is_integral(dtype, false) && !is_integral(tensor.dtype(), true)) {
      fail(ErrorKind::Type, "", "only integer tensors of a single element can be converted to an ",
           "index");
    }
    const Ref number = owned(scalar_object(tensor.item()));
    return store(at, dtype, number.get());
  }
  if (dtype == DType::Bool) {
    return write_element(at, dtype, check(PyObject_IsTrue(item)) != 0);
  }
  if (is_integral(dtype, false)) {
    return write_element(at, dtype, integer_of(item, dtype));
  }
  if (is_complex(dtype)) {
    const Py_complex value = PyComplex_AsCComplex(item);
    if (value.real == -1.0 && PyErr_Occurred()) {
      throw PythonError();
    }
    return write_element(at, dtype, std::complex<double>(value.real, value.imag));
  }
  write_element(at, dtype, real_of(item));
}

class Filler {
 public:
  explicit Filler(const Tensor& target)
      : dtype_(target.dtype()),
        item_(target.element_size()),
        sizes_(target.sizes()),
        at_(static_cast<char*>(target.data())) {}

  void fill(PyObject* data, size_t dim) {
    if (dim == sizes_.size()) {
      store(at_, dtype_, data);
      at_ += item_;
      return;
    }
    if (is_numpy_array(data)) {
      return fill_array(data, dim);
    }
    if (!is_sequence(data)) {
      fail(ErrorKind::Type, "", "not a sequence");
    }
    const Ref list = sequence_of(data);
    const Items items(list.get());
    if (items.size() != sizes_[dim]) {
      fail(ErrorKind::Value, "", "expected sequence of length ", sizes_[dim], " at dim ", dim,
           " (got ", static_cast<int64_t>(items.size()), ")");
    }
    if (dim + 1 == sizes_.size()) {
      return fill_row(items);
    }
    for (Py_ssize_t i = 0; i < items.size(); ++i) {
      fill(items[i].get(), dim + 1);
    }
  }

 private:
  void fill_row(const Items& items) {
    PyObject* const* list = items.data();
    for (Py_ssize_t i = 0; i < items.size(); ++i, at_ += item_) {
      if (dtype_ == DType::Float32 && PyFloat_CheckExact(list[i])) {
        *reinterpret_cast<float*>(at_) = static_cast<float>(PyFloat_AS_DOUBLE(list[i]));
      } else {
        store(at_, dtype_, items[i].get());
        list = items.data();
      }
    }
  }

  // An array among the items: its rows in one go.
  void fill_array(PyObject* array, size_t dim) {
    const Tensor source = tensor_from_array(array, false);
    const IntArrayRef wanted = IntArrayRef(sizes_).subspan(dim);
    if (source.sizes() != wanted) {
      fail(ErrorKind::Value, "", "expected sequence of length ", wanted[0], " at dim ", dim,
           " (got an array of shape ", source.sizes(), ")");
    }
    const Tensor target =
        make_foreign(at_, wanted, contiguous_strides(wanted), dtype_, nullptr, nullptr);
    assign(target, source);
    at_ += target.nbytes();
  }

  DType dtype_;
  int64_t item_;
  IntList sizes_;
  char* at_;
};

Tensor from_sequence(PyObject* data, std::optional<DType> wanted, Device device) {
  const IntList sizes = measure(data);
  const DType dtype = wanted ? *wanted : infer(data);
  if (device.is_meta()) {
    return make_tensor(sizes, dtype, device);
  }
  const Tensor result = make_tensor(sizes, dtype);
  if (result.numel() > 0 || sizes.size() > 1) {
    Filler(result).fill(data, 0);
  }
  return result;
}

}  // namespace

Tensor converted(const Tensor& tensor, std::optional<DType> dtype, std::optional<Device> device,
                 bool copy) {
  const DType to_dtype = dtype.value_or(tensor.dtype());
  const Device to_device = device.value_or(tensor.device());
  if (!copy && to_dtype == tensor.dtype() && to_device == tensor.device()) {
    return tensor;
  }
  const Tensor result = make_tensor(tensor.sizes(), to_dtype, to_device);
  if (to_device.is_meta()) {
    return result;
  }
  if (tensor.is_meta()) {
    fail(ErrorKind::NotImplemented, "", "Cannot copy out of meta tensor; no data!");
  }
  const GilRelease unlocked(tensor.numel() > 4096);
  assign(result, tensor);
  return result;
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, std::optional<Device> device,
                        bool copy) {
  if (is_tensor(data)) {
    return converted(tensor_of(data), dtype, device, copy);
  }
  check_text(data);
  if (is_numpy_array(data)) {
    return converted(tensor_from_array(data, false), dtype, device, copy);
  }
  return from_sequence(data, dtype, device.value_or(Device()));
}

Tensor index_from_sequence(PyObject* sequence) {
  check_text(sequence);
  if (is_numpy_array(sequence)) {
    const Tensor array = tensor_from_array(sequence, false);
    const bool mask = array.dtype() == DType::Bool || array.dtype() == DType::UInt8;
    return converted(array, mask ? array.dtype() : DType::Int64, std::nullopt, false);
  }
  const DType found = infer(sequence);
  const bool mask = found == DType::Bool || found == DType::UInt8;
  return from_sequence(sequence, mask ? found : DType::Int64, Device());
}

}  // namespace rushlight::python
