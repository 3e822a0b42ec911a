// rushlight.Generator and the default generator's module functions.
#include <rushlight/generator.h>

#include <cstring>

#include "convert.h"
#include "module.h"

namespace rushlight::python {
namespace {

struct GeneratorObject {
  PyObject_HEAD Generator generator;
};

PyTypeObject* generator_type = nullptr;
PyObject* default_object = nullptr;  // the default generator's

Generator& value_of(PyObject* object) {
  return reinterpret_cast<GeneratorObject*>(object)->generator;
}

PyObject* make_generator(PyTypeObject* type, Generator generator) {
  PyObject* object = check(type->tp_alloc(type, 0));
  new (&reinterpret_cast<GeneratorObject*>(object)->generator) Generator(std::move(generator));
  return object;
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* where = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                   &where)) {
    return nullptr;
  }
  return guarded([&] {
    Device device;
    if (where != Py_None && !to_device(where, &device)) {
      fail(ErrorKind::Type, "", "Generator(): argument 'device' must be torch.device, not ",
           type_name(where));
    }
    if (!device.is_cpu()) {
      fail(ErrorKind::Runtime, "Generator", "there is no generator on device ", device.to_string());
    }
    return make_generator(type, Generator());
  });
}

void generator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  value_of(self).~Generator();
  type->tp_free(self);
  Py_DECREF(type);
}

// Seeds may be negative: -1 is the largest.
uint64_t seed_of(PyObject* object) {
  Ref index = owned(PyNumber_Index(object));
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow == 0) {
    return static_cast<uint64_t>(value);
  }
  unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(index.get()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::Value, "", "Overflow when unpacking long long");
  }
  return large;
}

PyObject* state_tensor(const std::vector<uint8_t>& state) {
  Tensor tensor = make_tensor({static_cast<int64_t>(state.size())}, DType::UInt8);
  std::memcpy(tensor.data(), state.data(), state.size());
  return wrap(std::move(tensor));
}

void set_state(Generator& generator, PyObject* object) {
  const Tensor& tensor = require_tensor(object, "set_state", "new_state");
  if (tensor.dtype() != DType::UInt8 || tensor.dim() != 1 || !tensor.is_contiguous()) {
    fail(ErrorKind::Type, "", "RNG state must be a torch.ByteTensor");
  }
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  generator.set_state(std::vector<uint8_t>(bytes, bytes + tensor.numel()));
}

PyObject* method_manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    value_of(self).manual_seed(seed_of(seed));
    return new_ref(self);
  });
}
PyObject* method_seed(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(value_of(self).seed()); });
}
PyObject* method_initial_seed(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(value_of(self).initial_seed()); });
}
PyObject* method_get_state(PyObject* self, PyObject*) {
  return guarded([&] { return state_tensor(value_of(self).get_state()); });
}
PyObject* method_set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    set_state(value_of(self), state);
    return new_ref(self);
  });
}
PyObject* method_clone_state(PyObject* self, PyObject*) {
  return guarded([&] { return make_generator(generator_type, value_of(self).clone()); });
}
PyObject* method_reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref device = owned(device_object(Device()));
    Ref state = owned(state_tensor(value_of(self).get_state()));
    return check(Py_BuildValue("O(O)(KOO)", generator_type, device.get(),
                               value_of(self).initial_seed(), Py_None, state.get()));
  });
}
PyObject* method_setstate(PyObject* self, PyObject* args) {
  unsigned long long seed;
  PyObject* offset;
  PyObject* state;
  if (!PyArg_ParseTuple(args, "(KOO)", &seed, &offset, &state)) {
    return nullptr;
  }
  return guarded([&] {
    value_of(self).manual_seed(seed);
    set_state(value_of(self), state);
    return py_none();
  });
}
PyObject* no_offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CPU Generator does not use offset");
  return nullptr;
}
PyObject* no_graph_state(PyObject*, PyObject* state) {
  if (state != nullptr && !PyObject_TypeCheck(state, generator_type)) {
    PyErr_Format(PyExc_TypeError, "expected a Generator, but got %s", Py_TYPE(state)->tp_name);
    return nullptr;
  }
  PyErr_SetString(PyExc_NotImplementedError,
                  "states that are safe in graphs are not supported in this Generator: the CPU "
                  "records no graphs of work");
  return nullptr;
}
PyObject* get_device(PyObject*, void*) {
  return guarded([] { return device_object(Device()); });
}

PyMethodDef methods[] = {
    {"manual_seed", method_manual_seed, METH_O,
     "manual_seed($self, seed)\n--\n\nStarts the stream of this seed; returns self."},
    {"seed", method_seed, METH_NOARGS, "Seeds from the system and returns the seed."},
    {"initial_seed", method_initial_seed, METH_NOARGS, "The seed the stream started from."},
    {"get_state", method_get_state, METH_NOARGS, "The state, as a uint8 tensor."},
    {"set_state", method_set_state, METH_O,
     "set_state($self, _new_state)\n--\n\nGoes on from a state that get_state gave."},
    {"get_offset", no_offset, METH_NOARGS, "An error: the CPU's streams have no offset."},
    {"set_offset", no_offset, METH_O,
     "set_offset($self, offset)\n--\n\nAn error: the CPU's streams have no offset."},
    {"graphsafe_get_state", no_graph_state, METH_NOARGS,
     "An error: the CPU records no graphs of work."},
    {"graphsafe_set_state", no_graph_state, METH_O,
     "graphsafe_set_state($self, _new_state)\n--\n\nAn error: the CPU records no graphs of work."},
    {"clone_state", method_clone_state, METH_NOARGS, "A generator of its own in this state."},
    {"__reduce__", method_reduce, METH_NOARGS, nullptr},
    {"__setstate__", method_setstate, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"device", get_device, nullptr, "The device it draws on.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* module_manual_seed(PyObject*, PyObject* seed) {
  return guarded([&] {
    Ref whole = owned(PyNumber_Long(seed));  // PyTorch takes what int() takes, "12" and 3.7 too
    default_generator().manual_seed(seed_of(whole.get()));
    return new_ref(default_object);
  });
}
PyObject* module_seed(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromUnsignedLongLong(default_generator().seed()); });
}
PyObject* module_initial_seed(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromUnsignedLongLong(default_generator().initial_seed()); });
}
PyObject* module_get_state(PyObject*, PyObject*) {
  return guarded([] { return state_tensor(default_generator().get_state()); });
}
PyObject* module_set_state(PyObject*, PyObject* state) {
  return guarded([&] {
    set_state(default_generator(), state);
    return py_none();
  });
}

PyMethodDef functions[] = {
    {"manual_seed", module_manual_seed, METH_O,
     "manual_seed(seed)\n--\n\nSeeds the default generator and returns it."},
    {"seed", module_seed, METH_NOARGS, "Seeds the default generator from the system."},
    {"initial_seed", module_initial_seed, METH_NOARGS, "The default generator's seed."},
    {"get_rng_state", module_get_state, METH_NOARGS, "The default generator's state."},
    {"set_rng_state", module_set_state, METH_O,
     "set_rng_state(new_state)\n--\n\nSets the default generator's state."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(generator_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
      {Py_tp_methods, describe(methods)},
      {Py_tp_doc, const_cast<char*>("Generator(device=None)\n--\n\nA stream of random numbers.")},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight._C.Generator", sizeof(GeneratorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  generator_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_object(module, "Generator", new_ref(reinterpret_cast<PyObject*>(generator_type)));
  default_object = generator_object(default_generator());
  add_object(module, "default_generator", new_ref(default_object));
  add_functions(module, functions);
}

const Part part(Stage::Types, fill);

}  // namespace

PyObject* generator_object(Generator generator) {
  return make_generator(generator_type, std::move(generator));
}

bool to_generator(PyObject* object, Generator* generator) {
  if (!PyObject_TypeCheck(object, generator_type)) {
    return false;
  }
  *generator = value_of(object);
  return true;
}

}  // namespace rushlight::python
