// rushlight.device: "cpu", "cpu:0" or "meta", as an object.
#include <rushlight/device.h>

#include <string>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

struct DeviceObject {
  PyObject_HEAD Device device;
};

PyTypeObject* device_type = nullptr;

const Device& value_of(PyObject* object) {
  return reinterpret_cast<DeviceObject*>(object)->device;
}

const char* kind_name(const Device& device) {
  return device.is_meta() ? "meta" : "cpu";
}

PyObject* make_device(PyTypeObject* type, Device device) {
  auto* object = reinterpret_cast<DeviceObject*>(check(type->tp_alloc(type, 0)));
  new (&object->device) Device(device);
  return reinterpret_cast<PyObject*>(object);
}

PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject* kind;
  PyObject* index = Py_None;
  if (kwargs != nullptr && PyDict_GetItemString(kwargs, "device") != nullptr) {
    names[0] = "device";
  } else {
    names[0] = "type";
  }
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &kind,
                                   &index)) {
    return nullptr;
  }
  return guarded([&] {
    Device device;
    if (!to_device(kind, &device)) {
      fail(ErrorKind::Type, "", "device(): argument 'device' must be torch.device or str, not ",
           type_name(kind));
    }
    if (index != Py_None) {
      if (device.index >= 0) {
        fail(ErrorKind::Runtime, "",
             "type (string) must not include an index because index was "
             "passed explicitly: ",
             device.to_string());
      }
      device.index = static_cast<int8_t>(int_of(index, "device", "index"));
    }
    return make_device(type, device);
  });
}

PyObject* device_repr(PyObject* self) {
  const Device& device = value_of(self);
  if (device.index < 0) {
    return PyUnicode_FromFormat("device(type='%s')", kind_name(device));
  }
  return PyUnicode_FromFormat("device(type='%s', index=%d)", kind_name(device), device.index);
}

PyObject* device_str(PyObject* self) {
  return PyUnicode_FromString(value_of(self).to_string().c_str());
}

Py_hash_t device_hash(PyObject* self) {
  const Device& device = value_of(self);
  return (static_cast<Py_hash_t>(device.type) << 8) | static_cast<uint8_t>(device.index);
}

PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != device_type || Py_TYPE(b) != device_type || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const Device& x = value_of(a);
  const Device& y = value_of(b);
  bool same = x.type == y.type && x.index == y.index;
  return PyBool_FromLong(same == (op == Py_EQ));
}

PyObject* device_kind(PyObject* self, void*) {
  return PyUnicode_FromString(kind_name(value_of(self)));
}

PyObject* device_index(PyObject* self, void*) {
  const Device& device = value_of(self);
  return device.index < 0 ? py_none() : PyLong_FromLong(device.index);
}

PyObject* device_reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(s)", device_type, value_of(self).to_string().c_str());
}

// As a context, a device is the default of factory functions; the Python side keeps the stack.
PyObject* call_helper(PyObject* self, const char* name) {
  return guarded([&] {
    Ref module = owned(PyImport_ImportModule("rushlight._device"));
    return check(PyObject_CallMethod(module.get(), name, "O", self));
  });
}

PyObject* device_enter(PyObject* self, PyObject*) {
  return call_helper(self, "enter_device");
}
PyObject* device_exit(PyObject* self, PyObject*) {
  return call_helper(self, "exit_device");
}

PyMethodDef methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, nullptr},
    {"__exit__", device_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"type", device_kind, nullptr, "The kind of device: 'cpu' or 'meta'.", nullptr},
    {"index", device_index, nullptr, "Which device of its kind, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void fill(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(device_new)},
      {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
      {Py_tp_str, reinterpret_cast<void*>(device_str)},
      {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
      {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};
  device_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_object(module, "device", new_ref(reinterpret_cast<PyObject*>(device_type)));
}

const Part part(Stage::Types, fill);

}  // namespace

PyObject* device_object(Device device) {
  return make_device(device_type, device);
}

bool to_device(PyObject* object, Device* device) {
  if (Py_TYPE(object) == device_type) {
    *device = value_of(object);
    return true;
  }
  if (PyUnicode_Check(object)) {
    *device = Device(text_of(object));
    return true;
  }
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    fail(ErrorKind::Runtime, "", "Cannot access accelerator device when none is available.");
  }
  return false;
}

}  // namespace rushlight::python
