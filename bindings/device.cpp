// rushlight.device: "cpu", "cpu:0" or "meta", as an object. The other kinds of PyTorch can be
// named, compared and stored, so that programs that choose among devices run; nothing can be put
// there.
#include <rushlight/device.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

constexpr std::array kAbsent = {
    "cuda", "ipu",  "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",
    "fpga", "maia", "xla", "lazy",   "vulkan", "mps",    "hpu",   "mtia", "privateuseone",
};

struct Named {
  Device device;                 // of an absent kind: its index
  const char* absent = nullptr;  // the kind, where there is none here
  const char* kind() const {
    return absent != nullptr ? absent : device.is_meta() ? "meta" : "cpu";
  }
  bool operator==(const Named& other) const {
    return absent == other.absent && device.type == other.device.type &&
           device.index == other.device.index;
  }
  std::string text() const {
    const std::string name = kind();
    return device.index < 0 ? name : name + ":" + std::to_string(device.index);
  }
};

struct DeviceObject {
  PyObject_HEAD Named named;
};

PyTypeObject* device_type = nullptr;

const Named& value_of(PyObject* object) {
  return reinterpret_cast<DeviceObject*>(object)->named;
}

PyObject* make_device(PyTypeObject* type, Named named) {
  auto* object = reinterpret_cast<DeviceObject*>(check(type->tp_alloc(type, 0)));
  new (&object->named) Named(named);
  return reinterpret_cast<PyObject*>(object);
}

Named parse(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(':'));
  const auto* found = std::find(kAbsent.begin(), kAbsent.end(), kind);
  if (found == kAbsent.end()) {
    return {Device(text)};
  }
  Named named{Device(), *found};
  if (kind.size() < text.size()) {
    const char* end = text.data() + text.size();
    const auto [stop, error] =
        std::from_chars(kind.data() + kind.size() + 1, end, named.device.index);
    if (error != std::errc() || stop != end || named.device.index < 0) {
      fail(ErrorKind::Runtime, "device", "Invalid device string: '", text, "'");
    }
  }
  return named;
}

// What a device object or its text names; false for other objects.
bool to_named(PyObject* object, Named* named) {
  if (Py_TYPE(object) == device_type) {
    *named = value_of(object);
    return true;
  }
  if (PyUnicode_Check(object)) {
    *named = parse(text_of(object));
    return true;
  }
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) {
      fail(ErrorKind::Value, "", "Overflow when unpacking long long: no device has such an index");
    }
    fail(ErrorKind::Runtime, "", "Cannot access accelerator device when none is available.");
  }
  return false;
}

// PyTorch without CUDA raises an AssertionError, which programs catch.
[[noreturn]] void refuse(const Named& named) {
  const std::string_view kind = named.absent;
  if (kind == "cuda" || kind == "xpu" || kind == "mtia") {
    std::string name(kind);
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c - 'a' + 'A'; });
    PyErr_Format(PyExc_AssertionError,
                 "Torch not compiled with %s enabled: there are the devices cpu and meta",
                 name.c_str());
    throw PythonError();
  }
  fail(ErrorKind::Runtime, "", "Rushlight is not linked with support for ", kind,
       " devices: there are the devices cpu and meta");
}

PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  const char* names[] = {"type", "index", nullptr};
  PyObject* kind;
  PyObject* index = Py_None;
  if (kwargs != nullptr && PyDict_GetItemString(kwargs, "device") != nullptr) {
    names[0] = "device";
    names[1] = nullptr;  // of a kind and an index, the kind is called type
  }
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, names[1] == nullptr ? "O:device" : "O|O:device",
                                   const_cast<char**>(names), &kind, &index)) {
    return nullptr;
  }
  return guarded([&] {
    Named named;
    if (!to_named(kind, &named)) {
      fail(ErrorKind::Type, "", "device(): argument 'device' must be torch.device or str, not ",
           type_name(kind));
    }
    if (index != Py_None) {
      if (named.device.index >= 0) {
        fail(ErrorKind::Runtime, "",
             "type (string) must not include an index because index was "
             "passed explicitly: ",
             named.text());
      }
      named.device.index = static_cast<int8_t>(int_of(index, "device", "index"));
    }
    return make_device(type, named);
  });
}

PyObject* device_repr(PyObject* self) {
  const Named& named = value_of(self);
  if (named.device.index < 0) {
    return PyUnicode_FromFormat("device(type='%s')", named.kind());
  }
  return PyUnicode_FromFormat("device(type='%s', index=%d)", named.kind(), named.device.index);
}

PyObject* device_str(PyObject* self) {
  return PyUnicode_FromString(value_of(self).text().c_str());
}

Py_hash_t device_hash(PyObject* self) {
  const Named& named = value_of(self);
  const auto kind = static_cast<Py_hash_t>(std::hash<std::string_view>()(named.kind()) >> 16);
  return kind << 8 | static_cast<uint8_t>(named.device.index);
}

PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != device_type || Py_TYPE(b) != device_type || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const bool same = value_of(a) == value_of(b);
  return PyBool_FromLong(same == (op == Py_EQ));
}

PyObject* device_kind(PyObject* self, void*) {
  return PyUnicode_FromString(value_of(self).kind());
}

PyObject* device_index(PyObject* self, void*) {
  const int8_t index = value_of(self).device.index;
  return index < 0 ? py_none() : PyLong_FromLong(index);
}

PyObject* device_reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(s)", device_type, value_of(self).text().c_str());
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
    {"type", device_kind, nullptr, "The kind of device: 'cpu', 'meta', or one that is not here.",
     nullptr},
    {"index", device_index, nullptr, "Which device of its kind, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

constexpr const char* kDoc =
    "device(device)\ndevice(type, index=None)\n\nWhere tensors are: 'cpu' or 'meta'.";

void fill(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(device_new)},
      {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
      {Py_tp_str, reinterpret_cast<void*>(device_str)},
      {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
      {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
      {Py_tp_methods, describe(methods)},
      {Py_tp_doc, const_cast<char*>(kDoc)},
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
  return make_device(device_type, {device});
}

bool to_device(PyObject* object, Device* device) {
  Named named;
  if (!to_named(object, &named)) {
    return false;
  }
  if (named.absent != nullptr) {
    refuse(named);
  }
  *device = named.device;
  return true;
}

}  // namespace rushlight::python
