// NumPy arrays and tensors over the same memory, without NumPy's headers: an array is read through
// its buffer or its `__array_interface__`, and made by `numpy.ndarray` over an object of ours.
#include <cstring>

#include "from_data.h"
#include "graph/capture.h"
#include "module.h"

namespace rushlight::python {
namespace {

// A Python object that must live as long as a storage.
void release_owner(StorageImpl* storage) {
  if (!Py_IsInitialized()) {
    return;  // the interpreter took the object with it
  }
  const GilAcquire lock;
  Py_DECREF(static_cast<PyObject*>(storage->context));
}

// A loaded numpy module's attribute (a new reference), or nothing where NumPy is not loaded.
Ref loaded_numpy(const char* name) {
  static PyObject* const text = PyUnicode_InternFromString("numpy");
  Ref module(PyImport_GetModule(text));
  if (!module) {
    PyErr_Clear();
    return Ref();
  }
  return owned(PyObject_GetAttrString(module.get(), name));
}

bool is_instance(PyObject* object, const char* name) {
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyFloat_CheckExact(object) ||
      PyLong_CheckExact(object) || PyBool_Check(object) || is_tensor(object)) {
    return false;
  }
  const Ref type = loaded_numpy(name);
  return type && check(PyObject_IsInstance(object, type.get())) != 0;
}

int64_t integer(PyObject* object) {
  const int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

IntList integers(PyObject* tuple) {
  IntList list;
  const Ref sequence = owned(PySequence_Fast(tuple, "expected a sequence"));
  const Items items(sequence.get());
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    list.push_back(integer(items[i].get()));
  }
  return list;
}

void check_byte_order(PyObject* array) {
  const Ref dtype = owned(PyObject_GetAttrString(array, "dtype"));
  const Ref native = owned(PyObject_GetAttrString(dtype.get(), "isnative"));
  if (check(PyObject_IsTrue(native.get())) == 0) {
    fail(ErrorKind::Value, "",
         "given numpy array has byte order different from the native byte order. Conversion "
         "between byte orders is currently not supported.");
  }
}

// Strides in elements, from those in bytes.
IntList element_strides(IntList strides, IntArrayRef sizes, int64_t item) {
  for (size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] % item != 0 && sizes[i] > 1) {
      fail(ErrorKind::Value, "",
           "given numpy array strides not a multiple of the element byte size. Copy the numpy "
           "array to reallocate the memory.");
    }
    strides[i] /= item;
    if (strides[i] < 0 && sizes[i] > 1) {
      fail(ErrorKind::Value, "",
           "At least one stride in the given numpy array is negative, and tensors with negative "
           "strides are not currently supported. (You can probably work around this by making a "
           "copy of your array  with array.copy().) ");
    }
    strides[i] = strides[i] < 0 ? 0 : strides[i];
  }
  return strides;
}

// The dtype of a buffer's elements in native order; false for all that tensors do not hold.
bool dtype_of_format(const Py_buffer& view, DType* dtype) {
  struct Format {
    const char* text;
    DType dtype;
  };
  static constexpr DType kLong = sizeof(long) == 8 ? DType::Int64 : DType::Int32;
  static constexpr DType kUnsignedLong = sizeof(long) == 8 ? DType::UInt64 : DType::UInt32;
  static constexpr Format kFormats[] = {
      {"?", DType::Bool},        {"b", DType::Int8},    {"B", DType::UInt8},
      {"h", DType::Int16},       {"H", DType::UInt16},  {"i", DType::Int32},
      {"I", DType::UInt32},      {"l", kLong},          {"L", kUnsignedLong},
      {"q", DType::Int64},       {"Q", DType::UInt64},  {"e", DType::Float16},
      {"f", DType::Float32},     {"d", DType::Float64}, {"Zf", DType::Complex64},
      {"Zd", DType::Complex128},
  };
  for (const Format& format : kFormats) {
    if (view.format != nullptr && std::strcmp(view.format, format.text) == 0 &&
        view.itemsize == element_size(format.dtype)) {
      *dtype = format.dtype;
      return true;
    }
  }
  return false;
}

void warn_of_read_only() {
  warn(
      "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. "
      "This means writing to this tensor will result in undefined behavior. You may want to copy "
      "the array to protect its data or make it writable before converting it to a tensor.");
}

// An array's buffer, held for a scope.
struct ArrayView {
  Py_buffer view{};
  bool valid;
  explicit ArrayView(PyObject* array)
      : valid(PyObject_GetBuffer(array, &view, PyBUF_RECORDS_RO) == 0) {
    if (!valid) {
      PyErr_Clear();
    }
  }
  ~ArrayView() {
    if (valid) {
      PyBuffer_Release(&view);
    }
  }
  ArrayView(const ArrayView&) = delete;
};

// ---- The object whose buffer a made array looks at -------------------------------------------
struct MemoryObject {
  PyObject_HEAD Tensor tensor;
};
PyTypeObject* memory_type = nullptr;

// Bytes from the first element to the end of the last.
int64_t spanned_bytes(const Tensor& tensor) {
  if (tensor.numel() == 0) {
    return 0;
  }
  int64_t last = 0;
  for (size_t i = 0; i < tensor.sizes().size(); ++i) {
    last += (tensor.sizes()[i] - 1) * tensor.strides()[i];
  }
  return (last + 1) * tensor.element_size();
}

void memory_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<MemoryObject*>(self)->tensor.~Tensor();
  type->tp_free(self);
  Py_DECREF(type);
}

int memory_buffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing;
  view->obj = nullptr;
  return guarded_int([&] {
    const Tensor& tensor = reinterpret_cast<MemoryObject*>(self)->tensor;
    void* data = tensor.numel() == 0 ? &nothing : tensor.data();
    return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(spanned_bytes(tensor)), 0,
                             flags);
  });
}

Ref memory_of(const Tensor& tensor) {
  graph::flush_capture("an array over a tensor's memory");  // who is lent the memory may write it
  if (tensor.numel() != 0) {
    tensor.data();  // of an emptied storage there is nothing to lend
  }
  lend_memory(tensor.storage());
  Ref object = owned(memory_type->tp_alloc(memory_type, 0));
  new (&reinterpret_cast<MemoryObject*>(object.get())->tensor) Tensor(tensor);
  return object;
}

void make_memory_type(PyObject*) {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(memory_dealloc)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(memory_buffer)},
      {Py_tp_doc, const_cast<char*>("A tensor's memory, kept alive for an array over it.")},
      {0, nullptr},
  };
  static PyType_Spec spec = {"rushlight._C._Memory", sizeof(MemoryObject), 0, Py_TPFLAGS_DEFAULT,
                             slots};
  memory_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
}

Ref numpy_module() {
  Ref module(PyImport_ImportModule("numpy"));
  if (!module) {
    PyErr_Clear();
    fail(ErrorKind::Runtime, "", "Numpy is not available");
  }
  return module;
}

// ---- Tensor.numpy, Tensor.__array__ -----------------------------------------------------------
void check_exportable(const Tensor& tensor) {
  if (tensor.is_meta()) {
    fail(ErrorKind::Type, "",
         "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
         "host memory first.");
  }
  if (tensor.requires_grad() && thread_state.grad_mode) {
    fail(ErrorKind::Runtime, "",
         "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  }
}

PyObject* method_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"force", nullptr};
  int force = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", const_cast<char**>(names), &force)) {
    return nullptr;
  }
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    if (force != 0 && tensor.requires_grad()) {
      return array_from_tensor(tensor.detach());
    }
    check_exportable(tensor);
    return array_from_tensor(tensor);
  });
}

PyObject* method_array(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject* dtype = Py_None;
  PyObject* copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype,
                                   &copy)) {
    return nullptr;
  }
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    check_exportable(tensor);
    Ref array(array_from_tensor(tensor));
    if (dtype != Py_None) {
      array = owned(PyObject_CallMethod(array.get(), "astype", "OssOO", dtype, "K", "unsafe",
                                        Py_True, Py_False));
    }
    if (copy == Py_True) {
      array = owned(PyObject_CallMethod(array.get(), "copy", nullptr));
    }
    return array.release();
  });
}

// What NumPy's functions call with their result when the argument was a tensor.
PyObject* method_array_wrap(PyObject*, PyObject* args) {
  PyObject* array = nullptr;
  PyObject* context = nullptr;
  PyObject* scalar = nullptr;
  if (!PyArg_ParseTuple(args, "O|OO:__array_wrap__", &array, &context, &scalar)) {
    return nullptr;
  }
  return guarded([&] { return wrap(tensor_from_data(array, std::nullopt, std::nullopt, false)); });
}

PyMethodDef methods[] = {
    {"numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_numpy)),
     METH_VARARGS | METH_KEYWORDS,
     "numpy(*, force=False)\n--\n\nThe tensor as a numpy.ndarray over the same memory."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_array)),
     METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None)\n--\n\nThe elements as a numpy.ndarray, as NumPy asks for "
     "them."},
    {"__array_wrap__", method_array_wrap, METH_VARARGS,
     "__array_wrap__(array)\n--\n\nA tensor of what a function of NumPy made of this one."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void fill(PyObject* module) {
  make_memory_type(module);
  add_tensor_methods(methods);
  add_tensor_properties(properties);
}

const Part part(Stage::Members, fill);

}  // namespace

bool is_numpy_array(PyObject* object) {
  return is_instance(object, "ndarray");
}

bool is_numpy_scalar(PyObject* object) {
  return is_instance(object, "generic");
}

DType numpy_dtype(PyObject* object) {
  const Ref dtype = owned(PyObject_GetAttrString(object, "dtype"));
  const Ref name = owned(PyObject_GetAttrString(dtype.get(), "name"));
  DType found;
  if (parse_dtype(text_of(name.get()), &found) && text_of(name.get()) == dtype_name(found) &&
      found != DType::BFloat16 && !is_float8(found)) {
    return found;
  }
  const Ref type = owned(PyObject_GetAttrString(dtype.get(), "type"));
  const Ref type_text = owned(PyObject_GetAttrString(type.get(), "__name__"));
  fail(ErrorKind::Type, "", "can't convert np.ndarray of type numpy.",
       message_text(type_text.get()),
       ". The only supported types are: float64, float32, float16, complex64, complex128, int64, "
       "int32, int16, int8, uint64, uint32, uint16, uint8, and bool.");
}

Tensor tensor_over(PyObject* owner, void* data, IntArrayRef sizes, IntArrayRef strides,
                   DType dtype) {
  const Tensor tensor = make_foreign(data, sizes, strides, dtype, release_owner, owner);
  Py_INCREF(owner);
  return tensor;
}

Tensor tensor_from_array(PyObject* array, bool warn_read_only) {
  const ArrayView buffer(array);
  DType element;
  if (buffer.valid && dtype_of_format(buffer.view, &element)) {
    const auto rank = static_cast<size_t>(buffer.view.ndim);
    const IntArrayRef sizes(reinterpret_cast<const int64_t*>(buffer.view.shape), rank);
    const IntArrayRef steps(reinterpret_cast<const int64_t*>(buffer.view.strides), rank);
    const IntList strides = element_strides(IntList(steps), sizes, element_size(element));
    if (warn_read_only && buffer.view.readonly != 0) {
      warn_of_read_only();
    }
    return tensor_over(array, buffer.view.buf, sizes, strides, element);
  }
  // What has no buffer that fits: the array's own words for the error, or its interface.
  const DType dtype = numpy_dtype(array);
  check_byte_order(array);
  const Ref interface = owned(PyObject_GetAttrString(array, "__array_interface__"));
  PyObject* data = PyDict_GetItemString(interface.get(), "data");
  const Ref byte_strides = owned(PyObject_GetAttrString(array, "strides"));
  if (data == nullptr || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2) {
    fail(ErrorKind::Type, "from_numpy", "the array does not tell where its memory is");
  }
  if (warn_read_only && PyTuple_GET_ITEM(data, 1) == Py_True) {
    warn_of_read_only();
  }
  const Ref shape = owned(PyObject_GetAttrString(array, "shape"));
  const IntList sizes = integers(shape.get());
  const IntList strides = element_strides(integers(byte_strides.get()), sizes, element_size(dtype));
  void* address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
  if (address == nullptr && PyErr_Occurred()) {
    throw PythonError();
  }
  return tensor_over(array, address, sizes, strides, dtype);
}

PyObject* array_from_tensor(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::BFloat16 || is_float8(dtype)) {
    fail(ErrorKind::Type, "", "Got unsupported ScalarType ", scalar_type_name(dtype));
  }
  const Ref numpy = numpy_module();
  const Ref memory = memory_of(tensor);
  IntList strides(tensor.strides());
  for (int64_t& stride : strides) {
    stride *= tensor.element_size();
  }
  const Ref shape = owned(int_tuple(tensor.sizes()));
  const Ref byte_strides = owned(int_tuple(strides));
  const std::string name(dtype_name(dtype));
  return check(PyObject_CallMethod(numpy.get(), "ndarray", "OsOiO", shape.get(), name.c_str(),
                                   memory.get(), 0, byte_strides.get()));
}

}  // namespace rushlight::python
