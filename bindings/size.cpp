// rushlight.Size: a tuple of integers with numel().
#include "convert.h"
#include "module.h"

namespace rushlight::python {

PyTypeObject* size_type = nullptr;

namespace {

// A Size with the items of a tuple. Takes the tuple over.
PyObject* from_tuple(PyTypeObject* type, PyObject* tuple) {
  Ref held(tuple);
  if (tuple == nullptr) {
    return nullptr;
  }
  Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  PyObject* size = type->tp_alloc(type, count);
  for (Py_ssize_t i = 0; size != nullptr && i < count; ++i) {
    PyTuple_SET_ITEM(size, i, new_ref(PyTuple_GET_ITEM(tuple, i)));
  }
  return size;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* items = nullptr;
  if (type == size_type && kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    PyErr_SetString(PyExc_TypeError, "torch.Size() takes no keyword arguments");
    return nullptr;
  }
  if (!PyArg_ParseTuple(args, "|O:Size", &items)) {
    return nullptr;
  }
  if (items == nullptr) {
    return from_tuple(type, PyTuple_New(0));
  }
  Ref tuple(PySequence_Tuple(items));
  if (!tuple) {
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (PyLong_Check(item)) {
      continue;
    }
    PyObject* index = PyIndex_Check(item) ? PyNumber_Index(item) : nullptr;
    if (index == nullptr) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   type_name(item).c_str());
      return nullptr;
    }
    // The tuple may be the caller's own: write into a copy.
    Ref list(PySequence_List(tuple.get()));
    if (!list || PyList_SetItem(list.get(), i, index) < 0) {
      return nullptr;
    }
    tuple = Ref(PyList_AsTuple(list.get()));
  }
  return from_tuple(type, tuple.release());
}

PyObject* size_repr(PyObject* self) {
  return guarded([&] {
    std::string text = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      const Ref item = owned(PyObject_Str(PyTuple_GET_ITEM(self, i)));
      text += (i > 0 ? ", " : "") + message_text(item.get());
    }
    return PyUnicode_FromString((text + "])").c_str());
  });
}

PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  PyObject* joined = PyTuple_Type.tp_as_sequence->sq_concat(a, b);
  return joined == nullptr ? nullptr : from_tuple(size_type, joined);
}

PyObject* size_repeat(PyObject* self, Py_ssize_t count) {
  PyObject* repeated = PyTuple_Type.tp_as_sequence->sq_repeat(self, count);
  return repeated == nullptr ? nullptr : from_tuple(size_type, repeated);
}

PyObject* size_subscript(PyObject* self, PyObject* index) {
  PyObject* found = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return found != nullptr && PySlice_Check(index) ? from_tuple(size_type, found) : found;
}

PyObject* size_numel(PyObject* self, PyObject*) {
  return guarded([&] {
    int64_t product = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      int64_t size = int_of(PyTuple_GET_ITEM(self, i), "numel", "size");
      product = checked_multiply(product, size, "numel");
    }
    return PyLong_FromLongLong(product);
  });
}

PyObject* size_reduce(PyObject* self, PyObject*) {
  Ref items(PySequence_List(self));
  Ref tuple(items ? PyList_AsTuple(items.get()) : nullptr);
  return tuple ? Py_BuildValue("O(O)", size_type, tuple.get()) : nullptr;
}

PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, "How many elements a tensor of this size has."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_base, &PyTuple_Type},
      {Py_tp_new, reinterpret_cast<void*>(size_new)},
      {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
      {Py_nb_add, reinterpret_cast<void*>(size_add)},
      {Py_sq_concat, reinterpret_cast<void*>(size_add)},
      {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
      {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  size_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_object(module, "Size", new_ref(reinterpret_cast<PyObject*>(size_type)));
}

const Part part(Stage::Types, fill);

}  // namespace

PyObject* size_object(IntArrayRef sizes) {
  Ref size = owned(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyTuple_SET_ITEM(size.get(), static_cast<Py_ssize_t>(i), check(PyLong_FromLongLong(sizes[i])));
  }
  return size.release();
}

}  // namespace rushlight::python
