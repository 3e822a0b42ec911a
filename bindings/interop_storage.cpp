// UntypedStorage: the bytes behind tensors, as a Python object.
#include <rushlight/memory.h>

#include <cstring>
#include <new>
#include <unordered_map>

#include "convert.h"
#include "graph/capture.h"
#include "module.h"
#include "tensor/shared_memory.h"

namespace rushlight::python {
namespace {

struct StorageObject {
  PyObject_HEAD StorageImpl* storage;
};
PyTypeObject* storage_type = nullptr;

StorageImpl* storage_of(PyObject* self) {
  return reinterpret_cast<StorageObject*>(self)->storage;
}

// Storages with buffers over their memory, which stays where it is until the last of them is
// released. Guarded by the interpreter's lock.
struct Lent {
  Py_ssize_t buffers = 0;
  bool resizable = false;  // afterwards
};
std::unordered_map<StorageImpl*, Lent>& lent() {
  static auto* storages = new std::unordered_map<StorageImpl*, Lent>;
  return *storages;
}

// Takes over one reference to the storage.
PyObject* wrap_storage(PyTypeObject* type, StorageImpl* storage) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) {
    release(storage);
    throw PythonError();
  }
  reinterpret_cast<StorageObject*>(self)->storage = storage;
  return self;
}

void storage_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (storage_of(self) != nullptr) {
    release(storage_of(self));
  }
  type->tp_free(self);
  Py_DECREF(type);
}

// For those who touch the bytes past the operators: what was captured runs first.
StorageImpl* settled(PyObject* object) {
  graph::flush_capture("the bytes of a storage");
  return storage_of(object);
}

// Null: meta, or no bytes.
char* bytes_of(StorageImpl* storage) {
  return storage->device.is_meta() || storage->bytes == 0 ? nullptr : storage_data(storage);
}

int64_t checked_size(PyObject* object, const char* op) {
  const int64_t size = int_of(object, op, "size");
  if (size < 0) {
    fail(ErrorKind::Runtime, op, "negative storage size ", size);
  }
  return size;
}

// UntypedStorage(), UntypedStorage(size), UntypedStorage(sequence of bytes), device= any of them.
PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "device", nullptr};
  PyObject* size = nullptr;
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names),
                                   &size, &device)) {
    return nullptr;
  }
  return guarded([&] {
    Device where;
    if (device != nullptr && device != Py_None && !to_device(device, &where)) {
      fail(ErrorKind::Type, "", "UntypedStorage(): argument 'device' must be a device, not ",
           type_name(device));
    }
    if (size == nullptr || PyIndex_Check(size) != 0) {
      const int64_t bytes = size == nullptr ? 0 : checked_size(size, "UntypedStorage");
      return wrap_storage(type, make_storage(static_cast<size_t>(bytes), where));
    }
    const Ref bytes = owned(
        PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyBytes_Type), size, nullptr));
    const auto count = static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()));
    StorageImpl* storage = make_storage(count, where);
    if (storage_data(storage) != nullptr) {
      std::memcpy(storage_data(storage), PyBytes_AS_STRING(bytes.get()), count);
    }
    return wrap_storage(type, storage);
  });
}

PyObject* data_ptr(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromVoidPtr(bytes_of(settled(self))); });
}
PyObject* nbytes(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(storage_of(self)->bytes);
}
PyObject* resizable(PyObject* self, PyObject*) {
  return PyBool_FromLong(storage_of(self)->resizable);
}
PyObject* element_size_method(PyObject*, PyObject*) {
  return PyLong_FromLong(1);
}
PyObject* share(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    StorageImpl* storage = settled(self);
    if (lent().contains(storage) && !is_shared(storage)) {
      PyErr_SetString(PyExc_BufferError,
                      "a storage's memory cannot move while a buffer is over it");
      return nullptr;
    }
    return PyLong_FromLong(share_memory(storage));
  });
}
PyObject* shared(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_shared(storage_of(self)));
}
PyObject* from_descriptor(PyObject* type, PyObject* args) {
  int descriptor = 0;
  Py_ssize_t bytes = 0;
  if (!PyArg_ParseTuple(args, "in:_from_descriptor", &descriptor, &bytes)) {
    return nullptr;
  }
  return guarded([&] {
    return wrap_storage(reinterpret_cast<PyTypeObject*>(type),
                        open_shared(descriptor, static_cast<size_t>(bytes)));
  });
}
Py_ssize_t length(PyObject* self) {
  return static_cast<Py_ssize_t>(storage_of(self)->bytes);
}

PyObject* resize(PyObject* self, PyObject* size) {
  return guarded([&] {
    StorageImpl* storage = settled(self);
    const auto bytes = static_cast<size_t>(checked_size(size, "resize_"));
    resize_storage(storage, bytes);
    return new_ref(self);
  });
}

Tensor bytes_tensor(StorageImpl* storage) {
  retain(storage);
  auto* impl = new TensorImpl;
  impl->dtype = DType::UInt8;
  impl->device = storage->device;
  impl->storage = storage;
  impl->sizes = {static_cast<int64_t>(storage->bytes)};
  impl->strides = {1};
  impl->refresh();
  return Tensor(impl);
}

PyObject* as_bytes_tensor(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(bytes_tensor(storage_of(self))); });
}

PyObject* fill_bytes(PyObject* self, PyObject* value) {
  return guarded([&] {
    StorageImpl* storage = settled(self);
    const int64_t byte = int_of(value, "fill_", "value");
    if (bytes_of(storage) != nullptr) {
      std::memset(bytes_of(storage), static_cast<int>(byte & 0xff), storage->bytes);
    }
    return new_ref(self);
  });
}

PyObject* copy_bytes(PyObject* self, PyObject* args) {
  PyObject* source = nullptr;
  PyObject* ignored = nullptr;
  if (!PyArg_ParseTuple(args, "O!|O:copy_", storage_type, &source, &ignored)) {
    return nullptr;
  }
  return guarded([&] {
    StorageImpl* to = settled(self);
    StorageImpl* from = storage_of(source);
    if (to->bytes != from->bytes) {
      fail(ErrorKind::Runtime, "copy_", "storages of ", from->bytes, " and ", to->bytes,
           " bytes: size does not match");
    }
    if (bytes_of(to) != nullptr && bytes_of(from) != nullptr) {
      std::memmove(bytes_of(to), bytes_of(from), to->bytes);
    }
    return new_ref(self);
  });
}

PyObject* clone(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl* from = settled(self);
    StorageImpl* copy = make_storage(from->bytes, from->device);
    if (bytes_of(copy) != nullptr && bytes_of(from) != nullptr) {
      std::memcpy(bytes_of(copy), bytes_of(from), from->bytes);
    }
    return wrap_storage(storage_type, copy);
  });
}

PyObject* get_device(PyObject* self, void*) {
  return guarded([&] { return device_object(storage_of(self)->device); });
}
PyObject* get_identity(PyObject* self, void*) {
  return PyLong_FromVoidPtr(storage_of(self));
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if (PyObject_TypeCheck(other, storage_type) == 0 || (operation != Py_EQ && operation != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((storage_of(self) == storage_of(other)) == (operation == Py_EQ));
}

Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(storage_of(self)) >> 4);
}

// The bytes themselves, writable, for readers of files.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing;
  view->obj = nullptr;
  return guarded_int([&] {
    StorageImpl* storage = settled(self);
    char* data = bytes_of(storage);
    if (data == nullptr && storage->bytes != 0) {
      PyErr_SetString(PyExc_BufferError, "a meta storage has no bytes");
      return -1;
    }
    check(PyBuffer_FillInfo(view, self, data == nullptr ? &nothing : data,
                            static_cast<Py_ssize_t>(storage->bytes), 0, flags));
    const auto found = lent().try_emplace(storage, Lent{0, storage->resizable}).first;
    ++found->second.buffers;
    storage->resizable = false;
    return 0;
  });
}

void release_buffer(PyObject* self, Py_buffer*) {
  const auto found = lent().find(storage_of(self));
  if (--found->second.buffers == 0) {
    found->first->resizable = found->second.resizable;
    lent().erase(found);
  }
}

PyObject* byte_at(PyObject* self, PyObject* index) {
  return guarded([&] {
    const Ref bytes = owned(PyMemoryView_FromObject(self));
    return check(PyObject_GetItem(bytes.get(), index));
  });
}

int set_byte(PyObject* self, PyObject* index, PyObject* value) {
  return guarded_int([&] {
    const Ref bytes = owned(PyMemoryView_FromObject(self));
    return check(value == nullptr ? PyObject_DelItem(bytes.get(), index)
                                  : PyObject_SetItem(bytes.get(), index, value));
  });
}

PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    const Ref bytes = owned(PyMemoryView_FromObject(self));
    return check(PySequence_List(bytes.get()));
  });
}

PyMethodDef methods[] = {
    {"data_ptr", data_ptr, METH_NOARGS, "The address of the first byte; 0 where there is none."},
    {"nbytes", nbytes, METH_NOARGS, "How many bytes there are."},
    {"size", nbytes, METH_NOARGS, "How many bytes there are."},
    {"element_size", element_size_method, METH_NOARGS, nullptr},
    {"resizable", resizable, METH_NOARGS, "Whether the memory is its own."},
    {"resize_", resize, METH_O, "Changes the number of bytes; new ones are not set."},
    {"fill_", fill_bytes, METH_O, "Sets every byte."},
    {"copy_", copy_bytes, METH_VARARGS, "Copies the bytes of another storage of this size."},
    {"clone", clone, METH_NOARGS, "A copy of the bytes."},
    {"tolist", tolist, METH_NOARGS, "The bytes as a list of integers."},
    {"is_shared", shared, METH_NOARGS, "Whether other processes can see the bytes."},
    {"_share", share, METH_NOARGS, "Moves the bytes to shared memory; gives its descriptor."},
    {"_from_descriptor", from_descriptor, METH_VARARGS | METH_CLASS,
     "_from_descriptor(descriptor, bytes): a storage over memory that another process shares."},
    {"_as_tensor", as_bytes_tensor, METH_NOARGS, "The bytes as a uint8 tensor over them."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"device", get_device, nullptr, "Where the bytes are.", nullptr},
    {"_cdata", get_identity, nullptr, "What tells storages apart.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void make_type(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(storage_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
      {Py_tp_methods, describe(methods)},
      {Py_tp_getset, properties},
      {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
      {Py_tp_hash, reinterpret_cast<void*>(hash)},
      {Py_mp_length, reinterpret_cast<void*>(length)},
      {Py_mp_subscript, reinterpret_cast<void*>(byte_at)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(set_byte)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
      {Py_tp_doc, const_cast<char*>("The bytes behind tensors.")},
      {0, nullptr},
  };
  static PyType_Spec spec = {"rushlight._C.StorageBase", sizeof(StorageObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  storage_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_object(module, "StorageBase", new_ref(reinterpret_cast<PyObject*>(storage_type)));
}

// ---- Of tensors ------------------------------------------------------------------------------
PyTypeObject* python_storage_type = nullptr;  // rushlight.UntypedStorage, set by the package

PyObject* untyped_storage(PyObject* self, PyObject*) {
  return guarded([&] {
    StorageImpl* storage = tensor_of(self).storage();
    retain(storage);
    return wrap_storage(python_storage_type != nullptr ? python_storage_type : storage_type,
                        storage);
  });
}

PyObject* set_storage_type(PyObject*, PyObject* type) {
  return guarded([&] {
    if (!PyType_Check(type) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), storage_type)) {
      fail(ErrorKind::Type, "_set_storage_type", "expected a subclass of StorageBase");
    }
    python_storage_type = reinterpret_cast<PyTypeObject*>(new_ref(type));
    return py_none();
  });
}

// A tensor over a storage: offset, sizes and strides in elements, checked against its bytes.
PyObject* tensor_of_storage(PyObject*, PyObject* args) {
  PyObject* source = nullptr;
  PyObject* dtype = nullptr;
  long long offset = 0;
  PyObject* sizes = nullptr;
  PyObject* strides = nullptr;
  if (!PyArg_ParseTuple(args, "O!OLOO:_tensor_of_storage", storage_type, &source, &dtype, &offset,
                        &sizes, &strides)) {
    return nullptr;
  }
  return guarded([&] {
    const char* op = "_tensor_of_storage";
    StorageImpl* storage = storage_of(source);
    const DType element = dtype_of(dtype, op, "dtype");
    const IntList shape = ints_of(sizes, op, "size");
    const IntList steps = ints_of(strides, op, "stride");
    if (shape.size() != steps.size() || offset < 0) {
      fail(ErrorKind::Runtime, op, "sizes ", shape, ", strides ", steps, " and storage offset ",
           static_cast<int64_t>(offset), " do not fit each other");
    }
    int64_t last = offset;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0 || steps[i] < 0) {
        fail(ErrorKind::Runtime, op, "negative sizes or strides: ", shape, ", ", steps);
      }
      last = checked_add(last, checked_multiply(shape[i] - (shape[i] > 0), steps[i], op), op);
    }
    const bool empty = checked_numel(shape, op) == 0;
    const int64_t needed = checked_multiply(empty ? 0 : last + 1, element_size(element), op);
    if (needed > static_cast<int64_t>(storage->bytes)) {
      fail(ErrorKind::Runtime, "", "setStorage: sizes ", shape, ", strides ", steps,
           ", storage offset ", static_cast<int64_t>(offset), ", and itemsize ",
           element_size(element), " requiring a storage size of ", needed,
           " are out of bounds for storage of size ", static_cast<int64_t>(storage->bytes));
    }
    const Tensor bytes = bytes_tensor(storage);
    return wrap(make_view(bytes, shape, steps, offset, element));
  });
}

PyMethodDef functions[] = {
    {"_set_storage_type", set_storage_type, METH_O, nullptr},
    {"_tensor_of_storage", tensor_of_storage, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef tensor_methods[] = {
    {"untyped_storage", untyped_storage, METH_NOARGS, "The bytes behind the tensor."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  make_type(module);
  add_functions(module, functions);
  add_tensor_methods(tensor_methods);
}

const Part part(Stage::Members, fill);

}  // namespace

void lend_memory(StorageImpl* storage) {
  storage->resizable = false;
  const auto found = lent().find(storage);
  if (found != lent().end()) {
    found->second.resizable = false;
  }
}

}  // namespace rushlight::python
