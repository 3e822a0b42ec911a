// Safetensors files for Python.
#include <rushlight/safetensors.h>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

namespace st = rushlight::safetensors;

struct FileObject {
  PyObject_HEAD st::File file;
};
PyTypeObject* file_type = nullptr;

const st::File& file_of(PyObject* self) {
  return reinterpret_cast<FileObject*>(self)->file;
}

PyObject* wrap_file(st::File file) {
  PyObject* self = check(file_type->tp_alloc(file_type, 0));
  new (&reinterpret_cast<FileObject*>(self)->file) st::File(std::move(file));
  return self;
}

void file_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<FileObject*>(self)->file.~File();
  type->tp_free(self);
  Py_DECREF(type);
}

Ref text_object(std::string_view text) {
  return owned(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

PyObject* file_keys(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list = owned(PyList_New(0));
    for (const st::Entry& entry : file_of(self).entries()) {
      const Ref name = text_object(entry.name);
      check(PyList_Append(list.get(), name.get()));
    }
    return list.release();
  });
}

PyObject* file_metadata(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref dict = owned(PyDict_New());
    for (const auto& [key, value] : file_of(self).metadata()) {
      const Ref name = text_object(key);
      const Ref text = text_object(value);
      check(PyDict_SetItem(dict.get(), name.get(), text.get()));
    }
    return dict.release();
  });
}

PyObject* file_tensor(PyObject* self, PyObject* name) {
  return guarded([&] { return wrap(file_of(self).tensor(text_of(name))); });
}

// (dtype, shape)
PyObject* file_entry(PyObject* self, PyObject* name) {
  return guarded([&] {
    const st::Entry& entry = file_of(self).entry(text_of(name));
    const Ref sizes = owned(int_tuple(entry.sizes));
    return check(PyTuple_Pack(2, dtype_object(entry.dtype), sizes.get()));
  });
}

PyObject* open_file(PyObject*, PyObject* path) {
  return guarded([&] {
    const std::string name(text_of(path));
    std::optional<st::File> file;
    {
      const GilRelease unlocked;
      file.emplace(name);
    }
    return wrap_file(std::move(*file));
  });
}

// Reads a bytes object, which the tensors keep alive.
PyObject* open_bytes(PyObject*, PyObject* bytes) {
  return guarded([&] {
    if (!PyBytes_Check(bytes)) {
      fail(ErrorKind::Type, "load", "data must be bytes, not ", type_name(bytes));
    }
    // Tensors may be written to, and bytes may not: a copy of its own.
    const auto owner = std::make_shared<std::string>(PyBytes_AS_STRING(bytes),
                                                     static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
    return wrap_file(st::File(owner, owner->data(), owner->size()));
  });
}

st::NamedTensors named_tensors(PyObject* dict) {
  if (!PyDict_Check(dict)) {
    fail(ErrorKind::Type, "save", "tensors must be a dict of str to Tensor, not ", type_name(dict));
  }
  st::NamedTensors named;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value) != 0) {
    named.emplace(std::string(text_of(key)), require_tensor(value, "save", "tensors"));
  }
  return named;
}

st::Metadata metadata_of(PyObject* dict) {
  st::Metadata metadata;
  if (dict == Py_None) {
    return metadata;
  }
  if (!PyDict_Check(dict)) {
    fail(ErrorKind::Type, "save", "metadata must be a dict of str to str, not ", type_name(dict));
  }
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value) != 0) {
    metadata.emplace(std::string(text_of(key)), std::string(text_of(value)));
  }
  return metadata;
}

PyObject* save_file(PyObject*, PyObject* args) {
  PyObject* tensors = nullptr;
  const char* path = nullptr;
  PyObject* metadata = nullptr;
  if (!PyArg_ParseTuple(args, "OsO:_safetensors_save_file", &tensors, &path, &metadata)) {
    return nullptr;
  }
  return guarded([&] {
    const st::NamedTensors named = named_tensors(tensors);
    const st::Metadata notes = metadata_of(metadata);
    {
      const GilRelease unlocked;
      st::save_file(named, path, notes);
    }
    return py_none();
  });
}

PyObject* save_bytes(PyObject*, PyObject* args) {
  PyObject* tensors = nullptr;
  PyObject* metadata = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_safetensors_save", &tensors, &metadata)) {
    return nullptr;
  }
  return guarded([&] {
    const std::string bytes = st::save(named_tensors(tensors), metadata_of(metadata));
    return check(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
  });
}

PyMethodDef file_methods[] = {
    {"keys", file_keys, METH_NOARGS, "The tensors' names, in the order of their data."},
    {"metadata", file_metadata, METH_NOARGS, "The header's notes."},
    {"tensor", file_tensor, METH_O, "The tensor over the mapped bytes."},
    {"entry", file_entry, METH_O, "The tensor's dtype and shape."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef functions[] = {
    {"_safetensors_open", open_file, METH_O, nullptr},
    {"_safetensors_open_bytes", open_bytes, METH_O, nullptr},
    {"_safetensors_save_file", save_file, METH_VARARGS, nullptr},
    {"_safetensors_save", save_bytes, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(file_dealloc)},
      {Py_tp_methods, file_methods},
      {Py_tp_doc, const_cast<char*>("A safetensors file, mapped.")},
      {0, nullptr},
  };
  static PyType_Spec spec = {"rushlight._C._SafetensorsFile", sizeof(FileObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  file_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
