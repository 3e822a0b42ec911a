// The Tensor type, and the identity of a tensor with its Python object.
//
// Ownership: normally the Python object holds a counted handle and TensorImpl::python points back
// without counting. When the object's last reference goes while C++ still holds the tensor, an
// object that carries state (a subclass, attributes, weak references) is revived: the tensor then
// owns the object (kOwnsPython) and the object's handle no longer counts. `wrap` turns it back.
#include "tensor_type.h"

#include <array>
#include <mutex>
#include <vector>

#include "dispatch.h"
#include "module.h"
#include "ops/invocation.h"
#include "override.h"

namespace rushlight::python {

PyTypeObject* tensor_type = nullptr;
int (*traverse_autograd)(void*, visitproc, void*) = nullptr;

namespace {

PyTypeObject* meta_type = nullptr;
PyObject* constructor = nullptr;  // rushlight._tensor's legacy constructor

TensorObject* as_object(PyObject* self) {
  return reinterpret_cast<TensorObject*>(self);
}

#ifdef Py_GIL_DISABLED
// Without the interpreter's lock, one lock for a group of tensors orders wrap and dealloc.
std::mutex& identity_lock(const TensorImpl* impl) {
  static std::array<std::mutex, 64> locks;
  return locks[(reinterpret_cast<uintptr_t>(impl) >> 6) % locks.size()];
}
constexpr int kFreeObjects = 0;
#else
struct NoLock {};
NoLock identity_lock(const TensorImpl*) {
  return {};
}
constexpr int kFreeObjects = 256;
#endif

struct IdentityGuard {
#ifdef Py_GIL_DISABLED
  explicit IdentityGuard(const TensorImpl* impl) : lock(identity_lock(impl)) {}
  std::lock_guard<std::mutex> lock;
#else
  explicit IdentityGuard(const TensorImpl* impl) { (void)identity_lock(impl); }
#endif
};

// Objects of the plain type, kept for reuse; guarded by the interpreter's lock.
struct FreeList {
  TensorObject* objects[kFreeObjects + 1];
  int count = 0;
} free_list;

TensorObject* allocate(PyTypeObject* type) {
  TensorObject* object;
  if (type != tensor_type) {
    object = as_object(check(type->tp_alloc(type, 0)));
  } else if (free_list.count > 0) {
    object = free_list.objects[--free_list.count];
    PyObject_Init(reinterpret_cast<PyObject*>(object), type);
  } else {
    object = PyObject_GC_New(TensorObject, type);  // tracked once it gets a __dict__
    if (object == nullptr) {
      throw PythonError();
    }
  }
  new (&object->tensor) Tensor();
  object->dict = nullptr;
  object->weakrefs = nullptr;
  return object;
}

PyObject* attach(TensorObject* object, Tensor tensor) {
  tensor.impl()->python = object;
  object->tensor = std::move(tensor);
  return reinterpret_cast<PyObject*>(object);
}

// A new reference to the object that the tensor has already.
PyObject* existing(Tensor tensor) {
  TensorImpl* impl = tensor.impl();
  auto* object = static_cast<TensorObject*>(impl->python);
  if (impl->has(TensorImpl::kOwnsPython)) {
    impl->set(TensorImpl::kOwnsPython, false);
    tensor.release_impl();  // the object's handle counts again; the caller gets C++'s reference
    return reinterpret_cast<PyObject*>(object);
  }
  return new_ref(reinterpret_cast<PyObject*>(object));
}

bool carries_state(const TensorObject* object) {
  return Py_TYPE(object) != tensor_type || object->dict != nullptr || object->weakrefs != nullptr;
}

// At refcount 0: whether the object lives on, owned by its tensor.
bool revive(PyObject* self) {
  TensorObject* object = as_object(self);
  TensorImpl* impl = object->tensor.impl();
  if (impl == nullptr || !carries_state(object) || !Py_IsInitialized()) {
    return false;
  }
  IdentityGuard guard(impl);
  if (impl->references.load(std::memory_order_acquire) == 1 || impl->has(TensorImpl::kOwnsPython)) {
    return false;
  }
  Py_SET_REFCNT(self, 1);
  impl->set(TensorImpl::kOwnsPython, true);
  impl->references.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

// The core calls this when a tensor that owns its object is destroyed.
void release_object(TensorImpl* impl) {
  if (!Py_IsInitialized()) {
    return;
  }
  GilAcquire lock;
  auto* self = static_cast<PyObject*>(impl->python);
  TensorObject* object = as_object(self);
  impl->python = nullptr;
  object->tensor.release_impl();
  if (Py_REFCNT(self) > 1) {
    // Somebody got at the object through a weak reference: it lives on as an empty tensor.
    attach(object, make_tensor({0}, DType::Float32));
  }
  Py_DECREF(self);
}

void clear_members(PyObject* self) {
  for (PyTypeObject* type = Py_TYPE(self); type != tensor_type && type != nullptr;
       type = type->tp_base) {
    PyMemberDef* members = type->tp_members;
    for (Py_ssize_t i = 0; members != nullptr && i < Py_SIZE(type) && members[i].name; ++i) {
      constexpr int kObjectMember = 16;  // T_OBJECT_EX: what __slots__ makes
      if (members[i].type == kObjectMember && !(members[i].flags & 1)) {
        Py_CLEAR(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + members[i].offset));
      }
    }
  }
}

void drop_tensor(TensorObject* object) {
  if (TensorImpl* impl = object->tensor.impl()) {
    IdentityGuard guard(impl);
    if (impl->python == object) {
      impl->python = nullptr;
    }
  }
  object->tensor.~Tensor();
}

void dealloc_subclass(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  TensorObject* object = as_object(self);
  if (type->tp_finalize != nullptr && PyObject_CallFinalizerFromDealloc(self) < 0) {
    return;
  }
  PyObject_GC_UnTrack(self);
  if (object->weakrefs != nullptr) {
    PyObject_ClearWeakRefs(self);
  }
  clear_members(self);
  Py_CLEAR(object->dict);
  drop_tensor(object);
  type->tp_free(self);
  Py_DECREF(type);
}

void tensor_dealloc(PyObject* self) {
  if (revive(self)) {
    return;
  }
  if (Py_TYPE(self) != tensor_type) {
    dealloc_subclass(self);
    return;
  }
  TensorObject* object = as_object(self);
  // Also where the collector has taken the __dict__ that it was tracked for.
  PyObject_GC_UnTrack(self);
  if (object->dict != nullptr || object->weakrefs != nullptr) {
    if (object->weakrefs != nullptr) {
      PyObject_ClearWeakRefs(self);
    }
    Py_CLEAR(object->dict);
  }
  drop_tensor(object);
  if (free_list.count < kFreeObjects) {
    free_list.objects[free_list.count++] = object;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(tensor_type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  TensorObject* object = as_object(self);
  Py_VISIT(object->dict);
  TensorImpl* impl = object->tensor.impl();
  if (traverse_autograd != nullptr && impl != nullptr && impl->autograd != nullptr &&
      impl->references.load(std::memory_order_relaxed) == 1) {
    return traverse_autograd(impl, visit, arg);
  }
  return 0;
}

int tensor_clear(PyObject* self) {
  TensorObject* object = as_object(self);
  TensorImpl* impl = object->tensor.impl();
  if (impl != nullptr && impl->references.load(std::memory_order_relaxed) > 1) {
    return 0;  // C++ still uses it: the object will be revived with what it has
  }
  Py_CLEAR(object->dict);
  return 0;
}

// Plain tensors join the collector only when they get attributes.
void track(PyObject* self) {
  if (as_object(self)->dict != nullptr && !PyObject_GC_IsTracked(self)) {
    PyObject_GC_Track(self);
  }
}

int tensor_setattr(PyObject* self, PyObject* name, PyObject* value) {
  int result = PyObject_GenericSetAttr(self, name, value);
  track(self);
  return result;
}

PyObject* tensor_dict(PyObject* self, void* closure) {
  PyObject* dict = PyObject_GenericGetDict(self, closure);
  track(self);
  return dict;
}

// Past __torch_dispatch__: the object that is made of it is of another class.
Tensor detach_unseen(const Tensor& tensor) {
  DoorGuard unseen(0, kDispatchDoor);
  return tensor.detach();
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (constructor == nullptr) {
      Ref module = owned(PyImport_ImportModule("rushlight._tensor"));
      constructor = check(PyObject_GetAttrString(module.get(), "_construct"));
    }
    Ref data = owned(PyObject_Call(constructor, args, kwargs));
    if (!is_tensor(data.get())) {
      fail(ErrorKind::Type, "Tensor", "the constructor gave ", type_name(data.get()));
    }
    if (Py_TYPE(data.get()) == type) {
      return data.release();
    }
    return wrap_as(type, detach_unseen(tensor_of(data.get())));
  });
}

PyTypeObject* class_argument(PyObject* type) {
  if (!PyType_Check(type) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
    fail(ErrorKind::Type, "_make_subclass", "cls must be a subclass of Tensor, got ",
         type_name(type));
  }
  return reinterpret_cast<PyTypeObject*>(type);
}

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls",
                                "data",
                                "require_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "device_for_backend_keys",
                                nullptr};
  PyObject* type;
  PyObject* data;
  int requires_grad = 0;
  PyObject* ignored[4] = {};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|pOOOO", const_cast<char**>(names), &type,
                                   &data, &requires_grad, &ignored[0], &ignored[1], &ignored[2],
                                   &ignored[3])) {
    return nullptr;
  }
  return guarded([&] {
    PyTypeObject* cls = class_argument(type);
    Tensor detached = detach_unseen(require_tensor(data, "_make_subclass", "data"));
    detached.requires_grad_(requires_grad != 0);
    return wrap_as(cls, std::move(detached));
  });
}

// Exchanges what two objects are tensors of; the objects keep their classes and attributes.
PyObject* swap_tensors(PyObject*, PyObject* args) {
  PyObject* one;
  PyObject* other;
  if (!PyArg_ParseTuple(args, "OO:_swap", &one, &other)) {
    return nullptr;
  }
  return guarded([&] {
    require_tensor(one, "_swap", "t1");
    require_tensor(other, "_swap", "t2");
    std::swap(as_object(one)->tensor, as_object(other)->tensor);
    as_object(one)->tensor.impl()->python = one;
    as_object(other)->tensor.impl()->python = other;
    return py_none();
  });
}

// Python gives subclasses a dealloc of its own, which could not revive; the metaclass puts ours.
// A class may have the metaclass without being a tensor's.
int meta_init(PyObject* type, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(type, args, kwargs) < 0) {
    return -1;
  }
  auto* made = reinterpret_cast<PyTypeObject*>(type);
  if (!PyType_IsSubtype(made, tensor_type)) {
    return 0;
  }
  made->tp_dealloc = tensor_dealloc;
  return guarded_int([&] {
    settle_dispatch_class(made);
    inherit_number_slots(made);
    return 0;
  });
}

PyMethodDef static_methods[] = {
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False)\n--\n\nA tensor of class cls that shares "
     "data's "
     "memory, outside its graph."},
    {"_swap", swap_tensors, METH_VARARGS | METH_STATIC,
     "_swap(t1, t2): each object becomes the tensor that the other was."},
    {nullptr, nullptr, 0, nullptr},
};

constexpr int kReadOnly = 1;
constexpr int kSsize = 19;  // T_PYSSIZET
PyMemberDef members[] = {
    {"__dictoffset__", kSsize, offsetof(TensorObject, dict), kReadOnly, nullptr},
    {"__weaklistoffset__", kSsize, offsetof(TensorObject, weakrefs), kReadOnly, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef dict_property[] = {
    {"__dict__", tensor_dict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyTypeObject* make_meta() {
  PyType_Slot slots[] = {
      {Py_tp_init, reinterpret_cast<void*>(meta_init)},
      {0, nullptr},
  };
  // Collected as its base is: without the flag of its own it inherits type's traversal.
  PyType_Spec spec = {"rushlight._C._TensorMeta", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  spec.basicsize = static_cast<int>(PyType_Type.tp_basicsize);
  Ref bases = owned(PyTuple_Pack(1, &PyType_Type));
  return reinterpret_cast<PyTypeObject*>(check(PyType_FromSpecWithBases(&spec, bases.get())));
}

PyTypeObject* make_type() {
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattr)},
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_methods, static_methods},
      {Py_tp_members, members},
      {Py_tp_getset, dict_property},
  };
  for (auto part : {number_slots(), protocol_slots()}) {
    slots.insert(slots.end(), part.begin(), part.end());
  }
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"rushlight.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
#if PY_VERSION_HEX >= 0x030C0000
  return reinterpret_cast<PyTypeObject*>(
      check(PyType_FromMetaclass(meta_type, nullptr, &spec, nullptr)));
#else
  auto* type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  Py_SET_TYPE(type, meta_type);
  Py_INCREF(meta_type);
  return type;
#endif
}

void fill(PyObject* module) {
  meta_type = make_meta();
  tensor_type = make_type();
  tensor_type->tp_name = "Tensor";  // in error texts; __module__ is set already
  release_python_object = release_object;
  add_object(module, "_TensorMeta", new_ref(reinterpret_cast<PyObject*>(meta_type)));
  add_object(module, "TensorBase", new_ref(reinterpret_cast<PyObject*>(tensor_type)));
  add_object(module, "Tensor", new_ref(reinterpret_cast<PyObject*>(tensor_type)));
}

const Part part(Stage::Tensor, fill);

}  // namespace

PyObject* wrap(Tensor tensor) {
  if (!tensor.defined()) {
    return py_none();
  }
  IdentityGuard guard(tensor.impl());
  if (tensor.impl()->python != nullptr) {
    return existing(std::move(tensor));
  }
  return attach(allocate(tensor_type), std::move(tensor));
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  RUSHLIGHT_ASSERT(tensor.impl()->python == nullptr);
  note_dispatch_class(type);
  return attach(allocate(type), std::move(tensor));
}

PyObject* wrap_tuple(const TensorList& tensors) {
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  }
  return tuple.release();
}

const Tensor& require_tensor(PyObject* object, const char* op, const char* argument) {
  if (!is_tensor(object)) {
    fail(ErrorKind::Type, "", op, "(): argument '", argument, "' must be Tensor, not ",
         type_name(object));
  }
  return tensor_of(object);
}

}  // namespace rushlight::python
