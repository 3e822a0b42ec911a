// Tensor's methods that ask for or change its description; the operators' come from the table.
#include "core_call.h"
#include "graph/capture.h"
#include "module.h"

namespace rushlight::python {
namespace {

using Args = PyObject* const*;

template <typename F>
PyCFunction as_function(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

// The `dim` of size(dim) and stride(dim): absent, or an int, by position or name.
bool optional_dim(const char* op, Args args, Py_ssize_t count, PyObject* keywords, int64_t* dim) {
  Py_ssize_t extra = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  if (count + extra > 1) {
    fail(ErrorKind::Type, "", op, "() takes at most 1 argument (", static_cast<int64_t>(count),
         " given)");
  }
  if (extra == 1 && text_of(PyTuple_GET_ITEM(keywords, 0)) != "dim") {
    fail(ErrorKind::Type, "", op, "() got an unexpected keyword argument '",
         text_of(PyTuple_GET_ITEM(keywords, 0)), "'");
  }
  if (count + extra == 0 || args[0] == Py_None) {
    return false;
  }
  if (PyFloat_Check(args[0]) || !PyIndex_Check(args[0])) {
    fail(ErrorKind::Type, "", op, "(): argument 'dim' (position 1) must be int, not ",
         type_name(args[0]));
  }
  *dim = int_of(args[0], op, "dim");
  return true;
}

PyObject* method_size(PyObject* self, Args args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    int64_t dim;
    return optional_dim("size", args, count, keywords, &dim)
               ? PyLong_FromLongLong(tensor_of(self).size(dim))
               : size_object(tensor_of(self).sizes());
  });
}

PyObject* method_stride(PyObject* self, Args args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    int64_t dim;
    return optional_dim("stride", args, count, keywords, &dim)
               ? PyLong_FromLongLong(tensor_of(self).stride(dim))
               : int_tuple(tensor_of(self).strides());
  });
}

PyObject* method_dim(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(tensor_of(self).dim());
}
PyObject* method_sparse_dim(PyObject*, PyObject*) {
  return PyLong_FromLong(0);
}
PyObject* method_numel(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(tensor_of(self).numel());
}
PyObject* method_element_size(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(tensor_of(self).element_size());
}
PyObject* method_storage_offset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(tensor_of(self).storage_offset());
}
PyObject* method_data_ptr(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    graph::flush_capture("Tensor.data_ptr()");
    const bool none = tensor.numel() == 0 || tensor.is_meta() || tensor.storage()->bytes == 0;
    return PyLong_FromVoidPtr(none ? nullptr : tensor.data());
  });
}
PyObject* method_get_device(PyObject*, PyObject*) {
  return PyLong_FromLong(-1);
}
PyObject* method_false(PyObject*, PyObject*) {
  Py_RETURN_FALSE;
}
PyObject* method_self(PyObject* self, PyObject*) {
  return new_ref(self);
}

PyObject* method_is_floating_point(PyObject* self, PyObject*) {
  return PyBool_FromLong(tensor_of(self).is_floating_point());
}
PyObject* method_is_complex(PyObject* self, PyObject*) {
  return PyBool_FromLong(tensor_of(self).is_complex());
}
PyObject* method_is_signed(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_signed(tensor_of(self).dtype()));
}
PyObject* method_is_inference(PyObject* self, PyObject*) {
  return PyBool_FromLong(tensor_of(self).impl()->has(TensorImpl::kInference));
}
PyObject* method_is_same_size(PyObject* self, PyObject* other) {
  return guarded([&] {
    const Tensor& tensor = require_tensor(other, "is_same_size", "other");
    return PyBool_FromLong(tensor_of(self).sizes() == tensor.sizes());
  });
}
PyObject* method_is_set_to(PyObject* self, PyObject* other) {
  return guarded([&] {
    const Tensor& a = tensor_of(self);
    const Tensor& b = require_tensor(other, "is_set_to", "tensor");
    return PyBool_FromLong(a.storage() == b.storage() && a.storage_offset() == b.storage_offset() &&
                           a.sizes() == b.sizes() && a.strides() == b.strides());
  });
}

PyObject* method_is_nonzero(PyObject* self, PyObject*) {
  int truth = PyObject_IsTrue(self);
  return truth < 0 ? nullptr : PyBool_FromLong(truth);
}

PyObject* method_is_contiguous(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"memory_format", nullptr};
  PyObject* given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", const_cast<char**>(names),
                                   &given)) {
    return nullptr;
  }
  return guarded([&] {
    MemoryFormat format = MemoryFormat::Contiguous;
    if (given != nullptr && !to_memory_format(given, &format)) {
      fail(ErrorKind::Type, "",
           "is_contiguous(): argument 'memory_format' must be "
           "torch.memory_format, not ",
           type_name(given));
    }
    return PyBool_FromLong(tensor_of(self).is_contiguous(format));
  });
}

PyObject* method_item(PyObject* self, PyObject*) {
  return guarded([&] {
    const graph::Reading reading("Tensor.item()");
    return check(scalar_object(tensor_of(self).item()));
  });
}

PyObject* method_requires_grad(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"requires_grad", nullptr};
  PyObject* on = Py_True;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_", const_cast<char**>(names),
                                   &on)) {
    return nullptr;
  }
  return guarded([&] {
    if (!PyBool_Check(on)) {
      fail(ErrorKind::Type, "",
           "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
           type_name(on));
    }
    tensor_of(self).requires_grad_(on == Py_True);
    return new_ref(self);
  });
}

PyObject* method_as_subclass(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls", nullptr};
  PyObject* type = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:as_subclass", const_cast<char**>(names),
                                   &type)) {
    return nullptr;
  }
  return guarded([&] {
    if (!PyType_Check(type) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
      fail(ErrorKind::Type, "", "as_subclass(): argument 'cls' must be a subclass of Tensor");
    }
    const auto alias = [&] {
      DoorGuard unseen(0, kDispatchDoor);  // the new object is of the type asked for
      return call_named("alias", tensor_of(self));
    };
    return wrap_as(reinterpret_cast<PyTypeObject*>(type), alias());
  });
}

PyObject* method_is_pinned(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_pinned", const_cast<char**>(names),
                                   &device)) {
    return nullptr;
  }
  Py_RETURN_FALSE;
}

// How many of these memory formats the tensor is contiguous in.
int fitting_formats(const Tensor& tensor, PyObject* formats) {
  int fitting = 0;
  const Ref list = owned(PySequence_Fast(formats, "ambiguity_check must be a bool or a list"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list.get(), i);
    MemoryFormat format;
    if (!to_memory_format(item, &format)) {
      fail(ErrorKind::Type, "",
           "dim_order(): argument 'ambiguity_check' must be a bool or a list of "
           "torch.memory_format, not of ",
           type_name(item));
    }
    fitting += tensor.is_contiguous(format) ? 1 : 0;
  }
  return fitting;
}

// Whether two dimensions could change places: one of a single element, or of equal strides.
bool is_order_ambiguous(const Tensor& tensor) {
  for (size_t i = 0; i < tensor.sizes().size(); ++i) {
    for (size_t j = 0; j < tensor.sizes().size(); ++j) {
      if (i != j && (tensor.sizes()[i] == 1 || tensor.strides()[i] == tensor.strides()[j])) {
        return true;
      }
    }
  }
  return false;
}

PyObject* method_dim_order(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ambiguity_check", nullptr};
  PyObject* checked = Py_False;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:dim_order", const_cast<char**>(names),
                                   &checked)) {
    return nullptr;
  }
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    const bool unclear = PyBool_Check(checked) ? checked == Py_True && is_order_ambiguous(tensor)
                                               : fitting_formats(tensor, checked) != 1;
    if (unclear) {
      fail(ErrorKind::Runtime, "",
           "The tensor does not have unique dim order, or cannot map to exact one of the given "
           "memory formats.");
    }
    IntArrayRef strides = tensor.strides();
    IntList order;
    for (size_t i = 0; i < strides.size(); ++i) {
      size_t at = order.size();
      while (at > 0 && strides[static_cast<size_t>(order[at - 1])] < strides[i]) {
        --at;
      }
      order.insert(at, static_cast<int64_t>(i));
    }
    return int_tuple(order);
  });
}

template <const char* kKind>
PyObject* not_compiled(PyObject*, PyObject*, PyObject*) {
  PyErr_Format(PyExc_AssertionError, "Torch not compiled with %s enabled", kKind);
  return nullptr;
}
constexpr char kCuda[] = "CUDA";
constexpr char kXpu[] = "XPU";
constexpr char kMtia[] = "MTIA";

PyObject* no_ipu(PyObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Rushlight is not linked with support for ipu devices");
  return nullptr;
}

PyObject* no_accelerator(PyObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Cannot access accelerator device when none is available.");
  return nullptr;
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
constexpr int kWords = METH_VARARGS | METH_KEYWORDS;

#define RUSHLIGHT_TO_DEVICE(name)                                                       \
  name "(device=None, non_blocking=False, memory_format=torch.preserve_format)\n--\n\n" \
       "An error: there is no such device."

PyMethodDef methods[] = {
    {"size", as_function(method_size), kFast, "size(dim=None)\n--\n\nAll sizes, or one."},
    {"stride", as_function(method_stride), kFast, "stride(dim=None)\n--\n\nAll strides, or one."},
    {"dim", method_dim, METH_NOARGS, "How many dimensions there are."},
    {"ndimension", method_dim, METH_NOARGS, "The same as dim()."},
    {"dense_dim", method_dim, METH_NOARGS, "How many dimensions there are: all are dense."},
    {"sparse_dim", method_sparse_dim, METH_NOARGS, "0: no dimension is sparse."},
    {"numel", method_numel, METH_NOARGS, "How many elements there are."},
    {"nelement", method_numel, METH_NOARGS, "The same as numel()."},
    {"element_size", method_element_size, METH_NOARGS, "Bytes an element."},
    {"storage_offset", method_storage_offset, METH_NOARGS, "Where it starts in its storage."},
    {"data_ptr", method_data_ptr, METH_NOARGS, "The address of the first element; 0 for none."},
    {"get_device", method_get_device, METH_NOARGS, "The accelerator's index: -1 on the CPU."},
    {"is_floating_point", method_is_floating_point, METH_NOARGS, nullptr},
    {"is_complex", method_is_complex, METH_NOARGS, nullptr},
    {"is_signed", method_is_signed, METH_NOARGS, nullptr},
    {"is_inference", method_is_inference, METH_NOARGS, "Whether inference mode made it."},
    {"is_same_size", method_is_same_size, METH_O,
     "is_same_size(other)\n--\n\nWhether sizes agree."},
    {"is_set_to", method_is_set_to, METH_O,
     "is_set_to(tensor)\n--\n\nWhether both describe the same memory alike."},
    {"is_nonzero", method_is_nonzero, METH_NOARGS, nullptr},
    {"is_contiguous", as_function(method_is_contiguous), kWords,
     "is_contiguous(memory_format=torch.contiguous_format)\n--\n\nWhether elements lie in order."},
    {"is_pinned", as_function(method_is_pinned), kWords,
     "is_pinned(device=None)\n--\n\nFalse: nothing here is pinned for an accelerator."},
    {"is_shared", method_false, METH_NOARGS, nullptr},
    {"is_distributed", method_false, METH_NOARGS, nullptr},
    {"is_coalesced", method_false, METH_NOARGS, nullptr},
    {"is_conj", method_false, METH_NOARGS, nullptr},
    {"is_neg", method_false, METH_NOARGS, nullptr},
    {"has_names", method_false, METH_NOARGS, nullptr},
    {"resolve_conj", method_self, METH_NOARGS, nullptr},
    {"resolve_neg", method_self, METH_NOARGS, nullptr},
    {"share_memory_", method_self, METH_NOARGS, nullptr},
    {"item", method_item, METH_NOARGS, "The one element as a Python number."},
    {"requires_grad_", as_function(method_requires_grad), kWords,
     "requires_grad_(requires_grad=True)\n--\n\nAsks for gradients; returns self."},
    {"dim_order", as_function(method_dim_order), kWords,
     "dim_order(*, ambiguity_check=False)\n--\n\nDimensions from the largest stride down. An error "
     "where `ambiguity_check` is true and several orders would do; with a list of memory formats, "
     "where not exactly one of them fits."},
    {"cuda", as_function(not_compiled<kCuda>), kWords, RUSHLIGHT_TO_DEVICE("cuda")},
    {"xpu", as_function(not_compiled<kXpu>), kWords, RUSHLIGHT_TO_DEVICE("xpu")},
    {"mtia", as_function(not_compiled<kMtia>), kWords, RUSHLIGHT_TO_DEVICE("mtia")},
    {"ipu", as_function(no_ipu), kWords, RUSHLIGHT_TO_DEVICE("ipu")},
    {"pin_memory", as_function(no_accelerator), kWords, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
#undef RUSHLIGHT_TO_DEVICE

// Past the override door: what it gives has the class that was asked for.
PyMethodDef as_subclass = {
    "as_subclass", as_function(method_as_subclass), kWords,
    "as_subclass($self, cls)\n--\n\nThe same tensor as an object of class cls."};

void fill(PyObject*) {
  add_tensor_methods(methods);
  add_object(reinterpret_cast<PyObject*>(tensor_type), as_subclass.ml_name,
             check(PyDescr_NewMethod(tensor_type, &as_subclass)));
}

const Part part(Stage::Members, fill);

}  // namespace
}  // namespace rushlight::python
