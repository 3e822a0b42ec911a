// rushlight._C._composite_function(f): a function written in Python that asks __torch_function__ as
// a whole, before it runs. Where nobody overrides, the call goes on to `f` without a frame between.
#include "module.h"
#include "override.h"

namespace rushlight::python {
namespace {

struct CompositeFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;  // __name__, __doc__, __wrapped__ and the like
  PyObject* weakrefs;
};

PyTypeObject* composite_type = nullptr;

CompositeFunction* as_composite(PyObject* self) {
  return reinterpret_cast<CompositeFunction*>(self);
}

// rushlight.overrides decides who is asked, with arguments in the order of the signature.
PyObject* ask(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    Ref positional = owned(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(positional.get(), i, new_ref(args[i]));
    }
    Ref named = owned(PyDict_New());
    for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i) {
      check(PyDict_SetItem(named.get(), PyTuple_GET_ITEM(keywords, i), args[count + i]));
    }
    Ref module = owned(PyImport_ImportModule("rushlight.overrides"));
    return check(PyObject_CallMethod(module.get(), "_call_composite", "OOO", self, positional.get(),
                                     named.get()));
  });
}

PyObject* call(PyObject* self, PyObject* const* args, size_t flagged, PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(flagged);
  if (any_override(args, count, keywords)) {
    return ask(self, args, count, keywords);
  }
  return PyObject_Vectorcall(as_composite(self)->function, args, flagged, keywords);
}

PyObject* make(PyObject*, PyObject* function) {
  auto* made = as_composite(composite_type->tp_alloc(composite_type, 0));
  if (made == nullptr) {
    return nullptr;
  }
  made->vectorcall = call;
  made->function = new_ref(function);
  return reinterpret_cast<PyObject*>(made);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_composite(self)->function);
  Py_VISIT(as_composite(self)->dict);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_composite(self)->function);
  Py_CLEAR(as_composite(self)->dict);
  return 0;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_composite(self)->weakrefs != nullptr) {
    PyObject_ClearWeakRefs(self);
  }
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// In a class it binds, as functions do.
PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance == nullptr || instance == Py_None ? new_ref(self) : PyMethod_New(self, instance);
}

PyObject* repr(PyObject* self) {
  Ref name(PyObject_GetAttrString(self, "__name__"));
  return name ? PyUnicode_FromFormat("<function %U at %p>", name.get(), self) : nullptr;
}

PyObject* reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self, "__qualname__");
}

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

constexpr int kReadOnly = 1;
constexpr int kSsize = 19;  // T_PYSSIZET
PyMemberDef members[] = {
    {"__vectorcalloffset__", kSsize, offsetof(CompositeFunction, vectorcall), kReadOnly, nullptr},
    {"__dictoffset__", kSsize, offsetof(CompositeFunction, dict), kReadOnly, nullptr},
    {"__weaklistoffset__", kSsize, offsetof(CompositeFunction, weakrefs), kReadOnly, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef functions[] = {
    {"_composite_function", make, METH_O,
     "A function of Python that asks __torch_function__ before it runs."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_tp_members, members},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight._C.composite_function", sizeof(CompositeFunction), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  composite_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_functions(module, functions);
}

const Part part(Stage::Types, fill);

}  // namespace
}  // namespace rushlight::python
