// Tensor's attributes that read or change its description.
#include "core_call.h"
#include "dispatch.h"
#include "module.h"

namespace rushlight::python {
namespace {

template <typename F>
PyObject* reading(PyObject* self, F&& function) {
  return guarded([&] { return check(function(tensor_of(self))); });
}

PyObject* get_shape(PyObject* self, void*) {
  return reading(self, [](const Tensor& t) { return size_object(t.sizes()); });
}
PyObject* get_dtype(PyObject* self, void*) {
  return new_ref(dtype_object(tensor_of(self).dtype()));
}
PyObject* get_device(PyObject* self, void*) {
  return reading(self, [](const Tensor& t) { return device_object(t.device()); });
}
PyObject* get_layout(PyObject*, void*) {
  return new_ref(layout_object(LayoutKind::Strided));
}
PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromLongLong(tensor_of(self).dim());
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(tensor_of(self).element_size());
}
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(tensor_of(self).nbytes());
}
PyObject* get_is_cpu(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).is_cpu());
}
PyObject* get_is_meta(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).is_meta());
}
PyObject* get_false(PyObject*, void*) {
  Py_RETURN_FALSE;
}

PyObject* get_version(PyObject* self, void*) {
  return reading(self, [](const Tensor& t) {
    if (t.impl()->has(TensorImpl::kInference)) {
      fail(ErrorKind::Runtime, "", "Inference tensors do not track version counter.");
    }
    return PyLong_FromUnsignedLong(t.version());
  });
}

// T, mT, H, mH: the operator's name is the closure.
PyObject* get_transposed(PyObject* self, void* op) {
  return reading(
      self, [&](const Tensor& t) { return wrap(call_named(static_cast<const char*>(op), t)); });
}

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).requires_grad());
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    if (value == nullptr || !PyBool_Check(value)) {
      fail(ErrorKind::Runtime, "", "requires_grad must be a bool");
    }
    tensor_of(self).requires_grad_(value == Py_True);
    return 0;
  });
}

PyObject* get_data(PyObject* self, void*) {
  return reading(self, [self](const Tensor& t) {
    if (has_dispatch(Py_TYPE(self))) {
      return wrap(call_named("detach", t));  // the class says what that is
    }
    Tensor apart = t.detach();
    apart.impl()->set(TensorImpl::kUnversioned, true);
    return wrap(std::move(apart));
  });
}

int set_data(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    if (value == nullptr) {
      fail(ErrorKind::Runtime, "", "Deleting tensor data is not allowed. Delete tensor instead!");
    }
    if (!is_tensor(value)) {
      fail(ErrorKind::Type, "", "Variable data has to be a tensor, but got ", type_name(value));
    }
    tensor_of(self).set_data(tensor_of(value));
    return 0;
  });
}

template <size_t N>
void* closure(const char (&text)[N]) {
  return const_cast<char*>(text);
}

PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr, "The size of each dimension.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the memory is.", nullptr},
    {"layout", get_layout, nullptr, "How the memory is laid out: strided.", nullptr},
    {"ndim", get_ndim, nullptr, "How many dimensions there are.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes an element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes all elements take.", nullptr},
    {"is_cpu", get_is_cpu, nullptr, nullptr, nullptr},
    {"is_meta", get_is_meta, nullptr, nullptr, nullptr},
    {"is_cuda", get_false, nullptr, nullptr, nullptr},
    {"is_mps", get_false, nullptr, nullptr, nullptr},
    {"is_xpu", get_false, nullptr, nullptr, nullptr},
    {"is_xla", get_false, nullptr, nullptr, nullptr},
    {"is_hpu", get_false, nullptr, nullptr, nullptr},
    {"is_mkldnn", get_false, nullptr, nullptr, nullptr},
    {"is_sparse", get_false, nullptr, nullptr, nullptr},
    {"is_sparse_csr", get_false, nullptr, nullptr, nullptr},
    {"is_quantized", get_false, nullptr, nullptr, nullptr},
    {"is_nested", get_false, nullptr, nullptr, nullptr},
    {"_version", get_version, nullptr, "How often the memory was written in place.", nullptr},
    {"T", get_transposed, nullptr, "The tensor with its dimensions reversed.", closure("numpy_T")},
    {"mT", get_transposed, nullptr, "The last two dimensions swapped.", closure("mT")},
    {"H", get_transposed, nullptr, "The conjugate transpose of a matrix.", closure("matrix_H")},
    {"mH", get_transposed, nullptr, "The conjugate transpose of the last two dimensions.",
     closure("mH")},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are wanted.",
     nullptr},
    {"data", get_data, set_data, "The same memory, outside the graph.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void fill(PyObject*) {
  add_tensor_properties(properties);
}

const Part part(Stage::Members, fill);

}  // namespace
}  // namespace rushlight::python
