// tensor, as_tensor, from_numpy, frombuffer, and what tensors give back: tolist.
#include <cmath>
#include <vector>

#include "from_data.h"
#include "graph/capture.h"
#include "module.h"
#include "override.h"

namespace rushlight::python {
namespace {

struct Wanted {
  std::optional<DType> dtype;
  std::optional<Device> device;
};

// The dtype and device arguments; None leaves them open.
Wanted wanted_of(PyObject* dtype, PyObject* device, const char* op) {
  Wanted wanted;
  if (dtype != nullptr && dtype != Py_None) {
    wanted.dtype = dtype_of(dtype, op, "dtype");
  }
  if (device != nullptr && device != Py_None) {
    Device found;
    if (!to_device(device, &found)) {
      fail(ErrorKind::Type, "", op, "(): argument 'device' must be torch.device, not ",
           type_name(device));
    }
    wanted.device = found;
  }
  return wanted;
}

// requires_grad=, which must be a bool.
bool wants_gradient(PyObject* given, const char* op) {
  if (given != Py_False && given != Py_True) {
    fail(ErrorKind::Type, "", op, "(): argument 'requires_grad' must be bool, not ",
         type_name(given));
  }
  return given == Py_True;
}

void ask_for_gradient(const Tensor& tensor) {
  if (!is_floating(tensor.dtype()) && !is_complex(tensor.dtype())) {
    fail(ErrorKind::Runtime, "",
         "Only Tensors of floating point and complex dtype can require gradients");
  }
  tensor.requires_grad_(true);
}

// A call that a mode or an argument's __torch_function__ takes over: its result, or null with no
// error pending where none does.
PyObject* overridden(const char* name, PyObject* args, PyObject* kwargs) {
  std::vector<PyObject*> values(PySequence_Fast_ITEMS(args),
                                PySequence_Fast_ITEMS(args) + PyTuple_GET_SIZE(args));
  if (!modes_active() && (values.empty() || !has_override(values[0]))) {
    return nullptr;
  }
  return guarded([&] {
    const auto count = static_cast<Py_ssize_t>(values.size());
    const Ref keywords = owned(kwargs == nullptr ? PyTuple_New(0) : PySequence_Tuple(kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords.get()); ++i) {
      values.push_back(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(keywords.get(), i)));
    }
    const Ref function = owned(PyObject_GetAttrString(extension_module(), name));
    return check(call_override(function.get(), values.data(), count, keywords.get()));
  });
}

PyObject* make_tensor_of(PyObject*, PyObject* args, PyObject* kwargs) {
  if (PyObject* result = overridden("tensor", args, kwargs)) {
    return result;
  }
  if (PyErr_Occurred()) {
    return nullptr;
  }
  static const char* names[] = {"data",       "dtype", "device", "requires_grad",
                                "pin_memory", "names", nullptr};
  PyObject* data = nullptr;
  PyObject* dtype = nullptr;
  PyObject* device = nullptr;
  PyObject* requires_grad = Py_False;
  int pin_memory = 0;
  PyObject* dimension_names = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOpO:tensor", const_cast<char**>(names),
                                   &data, &dtype, &device, &requires_grad, &pin_memory,
                                   &dimension_names)) {
    return nullptr;
  }
  return guarded([&] {
    if (is_tensor(data)) {
      warn(
          "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
          "or sourceTensor.detach().clone().requires_grad_(True), rather than "
          "torch.tensor(sourceTensor).");
    }
    const Wanted wanted = wanted_of(dtype, device, "tensor");
    Tensor made = tensor_from_data(data, wanted.dtype, wanted.device, true);
    if (wants_gradient(requires_grad, "tensor")) {
      ask_for_gradient(made);
    }
    return wrap(std::move(made));
  });
}

PyObject* as_tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  if (PyObject* result = overridden("as_tensor", args, kwargs)) {
    return result;
  }
  if (PyErr_Occurred()) {
    return nullptr;
  }
  static const char* names[] = {"data", "dtype", "device", nullptr};
  PyObject* data = nullptr;
  PyObject* dtype = nullptr;
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:as_tensor", const_cast<char**>(names), &data,
                                   &dtype, &device)) {
    return nullptr;
  }
  return guarded([&] {
    const Wanted wanted = wanted_of(dtype, device, "as_tensor");
    if (is_tensor(data)) {
      const Tensor& tensor = tensor_of(data);
      if (wanted.dtype.value_or(tensor.dtype()) == tensor.dtype() &&
          wanted.device.value_or(tensor.device()) == tensor.device()) {
        return new_ref(data);
      }
      // The conversion is part of the graph here.
      Ref keywords = owned(PyDict_New());
      if (wanted.dtype) {
        check(PyDict_SetItemString(keywords.get(), "dtype", dtype_object(*wanted.dtype)));
      }
      if (wanted.device) {
        const Ref target(device_object(*wanted.device));
        check(PyDict_SetItemString(keywords.get(), "device", target.get()));
      }
      const Ref to = owned(PyObject_GetAttrString(data, "to"));
      const Ref none = owned(PyTuple_New(0));
      return check(PyObject_Call(to.get(), none.get(), keywords.get()));
    }
    return wrap(tensor_from_data(data, wanted.dtype, wanted.device, false));
  });
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_numpy_array(array)) {
      fail(ErrorKind::Type, "", "expected np.ndarray (got ", type_name(array), ")");
    }
    return wrap(tensor_from_array(array, true));
  });
}

// A buffer that is held until the tensor's memory is released.
struct HeldBuffer {
  Py_buffer view{};
  explicit HeldBuffer(PyObject* object) {
    if (PyObject_GetBuffer(object, &view, PyBUF_WRITABLE) < 0) {
      PyErr_Clear();
      check(PyObject_GetBuffer(object, &view, PyBUF_SIMPLE));
    }
  }
  ~HeldBuffer() { PyBuffer_Release(&view); }
  HeldBuffer(const HeldBuffer&) = delete;
};

void release_buffer(StorageImpl* storage) {
  if (!Py_IsInitialized()) {
    return;
  }
  const GilAcquire lock;
  delete static_cast<HeldBuffer*>(storage->context);
}

int64_t buffer_count(int64_t length, int64_t count, int64_t offset, int64_t item) {
  if (length <= 0 || count == 0) {
    fail(ErrorKind::Value, "", "both buffer length (", length, ") and count (", count,
         ") must not be 0");
  }
  if (offset < 0 || offset >= length) {
    fail(ErrorKind::Value, "", "offset (", offset,
         " bytes) must be non-negative and no greater than buffer length (", length,
         " bytes) minus 1");
  }
  const int64_t rest = length - offset;
  if (count < 0) {
    if (rest % item != 0) {
      fail(ErrorKind::Value, "", "buffer length (", rest, " bytes) after offset (", offset,
           " bytes) must be a multiple of element size (", item, ")");
    }
    return rest / item;
  }
  if (count > rest / item) {
    fail(ErrorKind::Value, "", "requested buffer length (", count, " * ", item,
         " bytes) after offset (", offset,
         " bytes) must not be greater than actual buffer length (", length, " bytes)");
  }
  return count;
}

PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject* buffer = nullptr;
  PyObject* dtype = nullptr;
  long long count = -1;
  long long offset = 0;
  int requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(names),
                                   &buffer, &dtype, &count, &offset, &requires_grad)) {
    return nullptr;
  }
  return guarded([&] {
    if (dtype == nullptr) {
      fail(ErrorKind::Type, "", "frombuffer() missing 1 required positional arguments: \"dtype\"");
    }
    const DType wanted = dtype_of(dtype, "frombuffer", "dtype");
    if (PyObject_CheckBuffer(buffer) == 0) {
      fail(ErrorKind::Value, "", "object does not implement Python buffer protocol.");
    }
    auto held = std::make_unique<HeldBuffer>(buffer);
    if (held->view.readonly != 0) {
      warn(
          "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
          "This means you can write to the underlying (supposedly non-writable) buffer using the "
          "tensor. You may want to copy the buffer to protect its data or make it writable before "
          "converting it to a tensor.");
    }
    const int64_t item = element_size(wanted);
    const int64_t size = buffer_count(held->view.len, count, offset, item);
    char* data = static_cast<char*>(held->view.buf) + offset;
    Tensor tensor = make_foreign(data, {size}, {1}, wanted, release_buffer, held.get());
    held.release();
    if (requires_grad != 0) {
      ask_for_gradient(tensor);
    }
    return wrap(std::move(tensor));
  });
}

PyObject* nested_list(const Tensor& tensor, size_t dim, const char* at) {
  if (dim == tensor.sizes().size()) {
    return check(scalar_object(read_element(at, tensor.dtype())));
  }
  const int64_t size = tensor.sizes()[dim];
  const int64_t step = tensor.strides()[dim] * tensor.element_size();
  Ref list = owned(PyList_New(size));
  for (int64_t i = 0; i < size; ++i, at += step) {
    PyList_SET_ITEM(list.get(), i, nested_list(tensor, dim + 1, at));
  }
  return list.release();
}

PyObject* method_tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    if (tensor.is_meta()) {
      fail(ErrorKind::NotImplemented, "", "Cannot copy out of meta tensor; no data!");
    }
    const graph::Reading reading("Tensor.tolist()");
    return nested_list(tensor, 0, static_cast<const char*>(tensor.data()));
  });
}

PyObject* new_tensor(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"data",   "dtype",      "device", "requires_grad",
                                "layout", "pin_memory", nullptr};
  PyObject* data = nullptr;
  PyObject* dtype = nullptr;
  PyObject* device = nullptr;
  PyObject* layout = nullptr;
  PyObject* requires_grad = Py_False;
  int pin_memory = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOOp:new_tensor", const_cast<char**>(names),
                                   &data, &dtype, &device, &requires_grad, &layout, &pin_memory)) {
    return nullptr;
  }
  return guarded([&] {
    Wanted wanted = wanted_of(dtype, device, "new_tensor");
    const Tensor& model = tensor_of(self);
    Tensor made = tensor_from_data(data, wanted.dtype.value_or(model.dtype()),
                                   wanted.device.value_or(model.device()), true);
    if (wants_gradient(requires_grad, "new_tensor")) {
      ask_for_gradient(made);
    }
    return wrap(std::move(made));
  });
}

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

constexpr int kWords = METH_VARARGS | METH_KEYWORDS;
PyMethodDef functions[] = {
    {"tensor", with_keywords(make_tensor_of), kWords,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
     "A tensor of numbers, nested sequences or an array, copied."},
    {"as_tensor", with_keywords(as_tensor), kWords,
     "as_tensor(data, dtype=None, device=None)\n--\n\n"
     "A tensor of data; shares the memory of tensors and arrays where nothing must change."},
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray)\n--\n\nA tensor over the memory of an array."},
    {"frombuffer", with_keywords(frombuffer), kWords,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\n"
     "A one-dimensional tensor over the memory of an object with a buffer."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef methods[] = {
    {"tolist", method_tolist, METH_NOARGS, "The elements as nested lists, or as one number."},
    {"new_tensor", with_keywords(new_tensor), kWords,
     "new_tensor(data, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "A tensor of data with this tensor's dtype and device."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
  add_tensor_methods(methods);
}

const Part part(Stage::Members, fill);

}  // namespace
}  // namespace rushlight::python
