// Hooks written in Python. Those of one place are an ordered dict, which Python's handles take
// entries out of; the core sees one hook that runs the dict.
#include "autograd.h"
#include "autograd/accumulate_grad.h"
#include "autograd/meta.h"
#include "module.h"

namespace rushlight::python {

using autograd::AccumulateGrad;
using autograd::Node;
using autograd::NodePtr;

SharedObject share_object(PyObject* object) {
  Py_INCREF(object);
  return SharedObject(object, [](PyObject* held) {
    if (Py_IsInitialized()) {
      GilAcquire lock;
      Py_DECREF(held);
    }
  });
}

namespace {

Ref ordered_dict() {
  Ref module = owned(PyImport_ImportModule("collections"));
  return owned(PyObject_CallMethod(module.get(), "OrderedDict", nullptr));
}

// The hooks at the time of the call: a hook may remove itself.
Ref hooks_now(PyObject* dict) {
  return owned(PyMapping_Values(dict));
}

std::string hook_name(PyObject* hook) {
  Ref name(PyObject_GetAttrString(hook, "__name__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return type_name(hook);
  }
  return message_text(name.get());
}

void check_same_kind(PyObject* hook, const Tensor& before, const Tensor& after) {
  if (!(before.sizes() == after.sizes())) {
    fail(ErrorKind::Runtime, "", "hook '", hook_name(hook), "' has changed the size of value");
  }
  if (before.dtype() != after.dtype()) {
    fail(ErrorKind::Runtime, "", "hook '", hook_name(hook), "' has changed the type of value (was ",
         before.dtype(), " got ", after.dtype(), ")");
  }
}

struct TensorHooks {
  SharedObject dict;
  Tensor operator()(const Tensor& gradient) const {
    GilAcquire lock;
    Tensor current = gradient;
    bool changed = false;
    Ref hooks = hooks_now(dict.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
      PyObject* hook = PyList_GET_ITEM(hooks.get(), i);
      Ref argument = owned(wrap(current));
      Ref result = owned(PyObject_CallOneArg(hook, argument.get()));
      if (result.get() == Py_None) {
        continue;
      }
      if (!is_tensor(result.get())) {
        fail(ErrorKind::Type, "", "expected Variable, but hook returned '", type_name(result.get()),
             "'");
      }
      check_same_kind(hook, current, tensor_of(result.get()));
      current = tensor_of(result.get());
      changed = true;
    }
    return changed ? current : Tensor();
  }
};

struct AccumulateHooks {
  SharedObject dict;
  void operator()(const Tensor& tensor) const {
    GilAcquire lock;
    Ref hooks = hooks_now(dict.get());
    Ref argument = owned(wrap(tensor));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
      Ref result = owned(PyObject_CallOneArg(PyList_GET_ITEM(hooks.get(), i), argument.get()));
      if (result.get() == Py_None) {
        continue;
      }
      if (!is_tensor(result.get())) {
        fail(ErrorKind::Type, "", "expected Variable, but hook returned '", type_name(result.get()),
             "'");
      }
      // What writes in place, `lambda p: p.add_(p.grad)`, gives the tensor itself.
      if (!tensor_of(result.get()).is_same(tensor)) {
        fail(ErrorKind::Runtime, "", "Tensor post accumulate grad hooks should return None.");
      }
    }
  }
};

TensorList gradients_of(PyObject* result, size_t expected) {
  Ref tuple = PyTuple_Check(result) ? Ref::share(result) : owned(PyTuple_Pack(1, result));
  auto count = static_cast<size_t>(PyTuple_GET_SIZE(tuple.get()));
  if (count != expected) {
    fail(ErrorKind::Runtime, "", "hooks returned ", count, " gradients, expected ", expected);
  }
  TensorList gradients(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i));
    if (item != Py_None && !is_tensor(item)) {
      fail(ErrorKind::Type, "", "expected Variable, but hook returned '", type_name(item), "'");
    }
    if (item != Py_None) {
      gradients[i] = tensor_of(item);
    }
  }
  return gradients;
}

struct NodePreHooks {
  SharedObject dict;
  std::optional<TensorList> operator()(const TensorList& gradients) const {
    GilAcquire lock;
    std::optional<TensorList> current;
    Ref hooks = hooks_now(dict.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
      Ref argument = owned(wrap_tuple(current ? *current : gradients));
      Ref result = owned(PyObject_CallOneArg(PyList_GET_ITEM(hooks.get(), i), argument.get()));
      if (result.get() != Py_None) {
        current = gradients_of(result.get(), gradients.size());
      }
    }
    return current;
  }
};

struct NodePostHooks {
  SharedObject dict;
  std::optional<TensorList> operator()(const TensorList& outgoing,
                                       const TensorList& incoming) const {
    GilAcquire lock;
    std::optional<TensorList> current;
    Ref hooks = hooks_now(dict.get());
    Ref inputs = owned(wrap_tuple(incoming));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i) {
      Ref outputs = owned(wrap_tuple(current ? *current : outgoing));
      Ref result = owned(PyObject_CallFunctionObjArgs(PyList_GET_ITEM(hooks.get(), i),
                                                      outputs.get(), inputs.get(), nullptr));
      if (result.get() != Py_None) {
        current = gradients_of(result.get(), outgoing.size());
      }
    }
    return current;
  }
};

template <typename Hooks, typename Entries>
PyObject* find_dict(const Entries& entries) {
  for (const auto& entry : entries) {
    if (const Hooks* hooks = entry.function.template target<Hooks>()) {
      return new_ref(hooks->dict.get());
    }
  }
  return nullptr;
}

PyObject* input_hooks(Node& node, uint32_t input) {
  autograd::NodeExtra* extra = node.extra();
  if (extra == nullptr) {
    return nullptr;
  }
  std::lock_guard guard(extra->mutex);
  for (const autograd::NodeExtra::InputHook& entry : extra->input_hooks) {
    const auto* hooks = entry.hook.function.target<TensorHooks>();
    if (hooks != nullptr && entry.input == input) {
      return new_ref(hooks->dict.get());
    }
  }
  return nullptr;
}

PyObject* node_hooks(PyObject*, PyObject* args) {
  PyObject* object;
  int before;
  if (!PyArg_ParseTuple(args, "Op:_node_hooks", &object, &before)) {
    return nullptr;
  }
  return guarded([&] {
    Node& node = require_node(object, "register_hook");
    autograd::NodeExtra& extra = node.require_extra();
    PyObject* found;
    {
      std::lock_guard guard(extra.mutex);
      found = before != 0 ? find_dict<NodePreHooks>(extra.pre_hooks)
                          : find_dict<NodePostHooks>(extra.post_hooks);
    }
    if (found != nullptr) {
      return found;
    }
    Ref dict = ordered_dict();
    if (before != 0) {
      node.add_pre_hook(NodePreHooks{share_object(dict.get())});
    } else {
      node.add_post_hook(NodePostHooks{share_object(dict.get())});
    }
    return dict.release();
  });
}

// The dict of an edge's hooks, made where there is none.
PyObject* edge_hooks(const autograd::Edge& edge) {
  if (PyObject* found = input_hooks(*edge.node, edge.input)) {
    return found;
  }
  Ref dict = ordered_dict();
  edge.node->add_input_hook(edge.input, TensorHooks{share_object(dict.get())});
  return dict.release();
}

PyObject* tensor_hooks_function(PyObject*, PyObject* object) {
  return guarded([&] {
    return is_tensor(object) ? tensor_hooks(tensor_of(object), true)
                             : edge_hooks(edge_of(object, "register_hook", "self"));
  });
}

PyObject* accumulate_hooks(PyObject*, PyObject* args) {
  PyObject* object;
  int make;
  if (!PyArg_ParseTuple(args, "Op:_accumulate_hooks", &object, &make)) {
    return nullptr;
  }
  return guarded([&] {
    const Tensor& tensor = require_tensor(object, "register_post_accumulate_grad_hook", "self");
    autograd::AutogradMetaImpl* meta = autograd::meta_of(tensor);
    AccumulateGrad* node = meta != nullptr ? meta->accumulate.load() : nullptr;
    if (node != nullptr) {
      if (PyObject* found = node->with_hooks(
              [](const auto& hooks) { return find_dict<AccumulateHooks>(hooks); })) {
        return found;
      }
    }
    if (make == 0) {
      return py_none();
    }
    Ref dict = ordered_dict();
    autograd::register_post_accumulate_grad_hook(tensor, AccumulateHooks{share_object(dict.get())});
    return dict.release();
  });
}

PyMethodDef functions[] = {
    {"_tensor_hooks", tensor_hooks_function, METH_O, "The dict of a tensor's hooks."},
    {"_accumulate_hooks", accumulate_hooks, METH_VARARGS,
     "The dict of a leaf's post-accumulate hooks, made where asked."},
    {"_node_hooks", node_hooks, METH_VARARGS, "The dict of a node's hooks before or after it."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
  traverse_autograd = traverse_tensor_hooks;
}

const Part part(Stage::Rest, fill);

}  // namespace

PyObject* tensor_hooks(const Tensor& tensor, bool make) {
  if (!tensor.requires_grad()) {
    if (!make) {
      return py_none();
    }
    fail(ErrorKind::Runtime, "",
         "cannot register a hook on a tensor that doesn't require gradient");
  }
  autograd::AutogradMetaImpl* meta = autograd::meta_of(tensor);
  bool fresh_leaf = meta == nullptr ||
                    (!meta->grad_fn && meta->accumulate.load() == nullptr && meta->view == nullptr);
  if (fresh_leaf && !make) {
    return py_none();
  }
  autograd::Edge edge = autograd::gradient_edge(tensor);
  if (make) {
    return edge_hooks(edge);
  }
  PyObject* found = input_hooks(*edge.node, edge.input);
  return found != nullptr ? found : py_none();
}

// The collector may find cycles through a leaf's hooks: where the leaf's record is the only owner
// of the dict, it is visited.
int traverse_tensor_hooks(void* impl, visitproc visit, void* arg) {
  auto* meta = static_cast<autograd::AutogradMetaImpl*>(static_cast<TensorImpl*>(impl)->autograd);
  AccumulateGrad* node = meta->accumulate.load();
  if (node == nullptr) {
    return 0;
  }
  if (autograd::NodeExtra* extra = node->extra()) {
    std::unique_lock guard(extra->mutex, std::try_to_lock);
    if (!guard.owns_lock()) {
      return 0;
    }
    for (const autograd::NodeExtra::InputHook& entry : extra->input_hooks) {
      const auto* hooks = entry.hook.function.target<TensorHooks>();
      if (hooks != nullptr && hooks->dict.use_count() == 1) {
        Py_VISIT(hooks->dict.get());
      }
    }
  }
  return 0;
}

}  // namespace rushlight::python
