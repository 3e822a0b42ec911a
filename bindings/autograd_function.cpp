// _FunctionBase: the foreign half of a custom function written in Python.
//
// The context object that forward and backward get is the Python object of the function's node. The
// node holds the context; the context points back without counting, and is told when the node dies.
#include "autograd.h"
#include "autograd/engine.h"
#include "autograd/function_node.h"
#include "autograd/meta.h"
#include "module.h"

namespace rushlight::python {

using autograd::FunctionNode;
using autograd::Node;
using autograd::NodePtr;

namespace {

struct FunctionObject {
  PyObject_HEAD FunctionNode* node;  // null before apply and after the node's death
  PyObject* to_save;
  PyObject* dirty_tensors;
  PyObject* non_differentiable;
  PyObject* saved_for_forward;
  PyObject* needs_input_grad;
  char materialize_grads;
};

PyTypeObject* function_type = nullptr;

FunctionObject* as_function_object(PyObject* self) {
  return reinterpret_cast<FunctionObject*>(self);
}

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) {
    as_function_object(self)->materialize_grads = 1;
  }
  return self;
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  FunctionObject* object = as_function_object(self);
  Py_VISIT(object->to_save);
  Py_VISIT(object->dirty_tensors);
  Py_VISIT(object->non_differentiable);
  Py_VISIT(object->saved_for_forward);
  Py_VISIT(object->needs_input_grad);
  return 0;
}

int function_clear(PyObject* self) {
  FunctionObject* object = as_function_object(self);
  Py_CLEAR(object->to_save);
  Py_CLEAR(object->dirty_tensors);
  Py_CLEAR(object->non_differentiable);
  Py_CLEAR(object->saved_for_forward);
  Py_CLEAR(object->needs_input_grad);
  return 0;
}

void function_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  function_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Tensors of a tuple that the user handed to save_for_backward, mark_dirty, ...; None stays empty.
TensorList marked(PyObject* tuple, const char* what) {
  TensorList list;
  if (tuple == nullptr || tuple == Py_None) {
    return list;
  }
  if (!PyTuple_Check(tuple)) {
    fail(ErrorKind::Type, "", what, " attribute is expected to be a tuple, but is ",
         type_name(tuple));
  }
  bool saving = std::string_view(what) == "save_for_backward";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (is_tensor(item)) {
      list.push_back(tensor_of(item));
    } else if (item == Py_None && saving) {
      list.emplace_back();
    } else if (saving) {
      fail(ErrorKind::Type, "", "save_for_backward can only save variables, but argument ",
           static_cast<int64_t>(i), " is of type ", type_name(item));
    } else {
      fail(ErrorKind::Type, "", what, " can only accept variables, but argument ",
           static_cast<int64_t>(i), " is of type ", type_name(item));
    }
  }
  return list;
}

Ref call_plain(PyObject* context, const TensorList& gradients) {
  Ref arguments = owned(wrap_tuple(gradients));
  Ref method = owned(PyObject_GetAttrString(context, "apply"));
  return owned(PyObject_CallObject(method.get(), arguments.get()));
}

// With one list, which then alone holds the gradients, so that backward can free them early.
Ref call_boxed(PyObject* context, TensorList gradients) {
  Ref list = owned(PyList_New(static_cast<Py_ssize_t>(gradients.size())));
  for (size_t i = 0; i < gradients.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), wrap(std::move(gradients[i])));
  }
  gradients.clear();
  Ref method = owned(PyObject_GetAttrString(context, "apply_boxed"));
  return owned(PyObject_CallOneArg(method.get(), list.get()));
}

TensorList run_python_backward(FunctionNode& node, TensorList gradients) {
  GilAcquire lock;
  PyObject* context = static_cast<PyObject*>(node.companion.get());
  Ref boxed = owned(PyObject_GetAttrString(context, "boxed_grads_call"));
  Ref result = PyObject_IsTrue(boxed.get()) > 0 ? call_boxed(context, std::move(gradients))
                                                : call_plain(context, gradients);
  Ref tuple = PyTuple_Check(result.get()) ? result : owned(PyTuple_Pack(1, result.get()));
  TensorList returned;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (item == Py_None) {
      returned.emplace_back();
    } else if (is_tensor(item)) {
      returned.push_back(tensor_of(item));
    } else {
      fail(ErrorKind::Runtime, "", "expected Variable or None (got ", type_name(item), ")");
    }
  }
  return returned;
}

// The node's companion: the context, told of the node's death when the node drops it.
std::shared_ptr<void> make_companion(PyObject* context) {
  Py_INCREF(context);
  return std::shared_ptr<void>(static_cast<void*>(context), [](void* held) {
    if (Py_IsInitialized()) {
      GilAcquire lock;
      as_function_object(static_cast<PyObject*>(held))->node = nullptr;
      Py_DECREF(static_cast<PyObject*>(held));
    }
  });
}

struct Arguments {
  TensorList tensors;
  std::vector<bool> is_tensor;
  Ref needs_grad;  // a tuple of bool
};

Arguments read_arguments(PyObject* const* args, Py_ssize_t count) {
  Arguments read;
  read.needs_grad = owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    bool tensor = is_tensor(args[i]);
    read.is_tensor.push_back(tensor);
    bool needs = tensor && tensor_of(args[i]).requires_grad();
    PyTuple_SET_ITEM(read.needs_grad.get(), i, PyBool_FromLong(needs));
    if (tensor) {
      read.tensors.push_back(tensor_of(args[i]));
    }
  }
  return read;
}

// Whether the class defines setup_context itself, so that forward takes no context.
bool has_setup_context(PyObject* cls) {
  Ref own = owned(PyObject_GetAttrString(cls, "setup_context"));
  static PyObject* plain = nullptr;
  if (plain == nullptr) {
    Ref module = owned(PyImport_ImportModule("rushlight.autograd.function"));
    Ref base = owned(PyObject_GetAttrString(module.get(), "_SingleLevelFunction"));
    plain = check(PyObject_GetAttrString(base.get(), "setup_context"));
  }
  return own.get() != plain;
}

Ref run_forward(PyObject* cls, PyObject* context, PyObject* const* args, Py_ssize_t count) {
  AutoGradMode off(false);
  Ref forward = owned(PyObject_GetAttrString(cls, "forward"));
  if (!has_setup_context(cls)) {
    std::vector<PyObject*> all{context};
    all.insert(all.end(), args, args + count);
    return owned(PyObject_Vectorcall(forward.get(), all.data(), all.size(), nullptr));
  }
  Ref output = owned(PyObject_Vectorcall(forward.get(), args, static_cast<size_t>(count), nullptr));
  Ref inputs = owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(inputs.get(), i, new_ref(args[i]));
  }
  Ref setup = owned(PyObject_GetAttrString(cls, "setup_context"));
  owned(PyObject_CallFunctionObjArgs(setup.get(), context, inputs.get(), output.get(), nullptr));
  return output;
}

// Puts forward's results into the graph. Values other than tensors are handed on as they are.
PyObject* finish(FunctionNode& node, const TensorList& arguments, PyObject* output) {
  bool single = !PyTuple_Check(output);
  Ref tuple = single ? owned(PyTuple_Pack(1, output)) : Ref::share(output);
  Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
  TensorList results(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (is_tensor(item)) {
      results[static_cast<size_t>(i)] = tensor_of(item);
    }
  }
  results = node.finish(arguments, std::move(results));
  Ref wrapped = owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Tensor& result = results[static_cast<size_t>(i)];
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    PyTuple_SET_ITEM(wrapped.get(), i, result.defined() ? check(wrap(result)) : new_ref(item));
  }
  return single ? new_ref(PyTuple_GET_ITEM(wrapped.get(), 0)) : wrapped.release();
}

PyObject* function_apply(PyObject* cls, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    Ref backward_class = owned(PyObject_GetAttrString(cls, "_backward_cls"));
    Ref context = owned(PyObject_CallNoArgs(backward_class.get()));
    if (!is_function_context(context.get())) {
      fail(ErrorKind::Type, "", "_backward_cls of ", type_name(cls), " must make a context");
    }
    FunctionObject* object = as_function_object(context.get());
    Arguments read = read_arguments(args, count);
    auto* node = new FunctionNode(type_name(context.get()), run_python_backward);
    NodePtr owner(node);
    node->companion = make_companion(context.get());
    object->node = node;
    Py_XSETREF(object->needs_input_grad, read.needs_grad.release());
    node->begin(read.tensors, std::move(read.is_tensor));
    Ref output = run_forward(cls, context.get(), args, count);
    node->context.set_materialize_grads(object->materialize_grads != 0);
    node->context.mark_dirty(marked(object->dirty_tensors, "mark_dirty"));
    node->context.mark_non_differentiable(
        marked(object->non_differentiable, "mark_non_differentiable"));
    if (node->records()) {
      node->context.save_for_backward(marked(object->to_save, "save_for_backward"));
    }
    PyObject* results = finish(*node, read.tensors, output.get());
    Py_CLEAR(object->to_save);
    Py_CLEAR(object->dirty_tensors);
    Py_CLEAR(object->non_differentiable);
    return results;
  });
}

PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&] {
    FunctionNode* node = as_function_object(self)->node;
    return node != nullptr ? wrap_tuple(node->saved_tensors()) : check(PyTuple_New(0));
  });
}

PyObject* maybe_clear_saved_tensors(PyObject* self, PyObject*) {
  return guarded([&] {
    FunctionNode* node = as_function_object(self)->node;
    if (node != nullptr && !autograd::keeps_graph()) {
      node->release_saved();
    }
    return py_none();
  });
}

PyMethodDef own_methods[] = {
    {"maybe_clear_saved_tensors", maybe_clear_saved_tensors, METH_NOARGS,
     "maybe_clear_saved_tensors($self)\n--\n\n"
     "Frees what save_for_backward kept, unless the running backward keeps the graph."},
    {"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function_apply)),
     METH_FASTCALL | METH_CLASS, "Runs forward and records the call."},
};

PyGetSetDef own_properties[] = {
    {"saved_tensors", saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
    {"saved_variables", saved_tensors, nullptr, "The same as saved_tensors.", nullptr},
};

constexpr int kObject = 6;  // T_OBJECT
constexpr int kBool = 14;   // T_BOOL
PyMemberDef members[] = {
    {"to_save", kObject, offsetof(FunctionObject, to_save), 0, nullptr},
    {"dirty_tensors", kObject, offsetof(FunctionObject, dirty_tensors), 0, nullptr},
    {"non_differentiable", kObject, offsetof(FunctionObject, non_differentiable), 0, nullptr},
    {"saved_for_forward", kObject, offsetof(FunctionObject, saved_for_forward), 0, nullptr},
    {"needs_input_grad", kObject, offsetof(FunctionObject, needs_input_grad), 0, nullptr},
    {"materialize_grads", kBool, offsetof(FunctionObject, materialize_grads), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

void fill(PyObject* module) {
  static std::vector<PyMethodDef> methods;
  static std::vector<PyGetSetDef> properties;
  auto [node_methods, node_properties] = node_members();
  methods.assign(std::begin(own_methods), std::end(own_methods));
  properties.assign(std::begin(own_properties), std::end(own_properties));
  for (; node_methods->ml_name != nullptr; ++node_methods) {
    methods.push_back(*node_methods);
  }
  for (; node_properties->name != nullptr; ++node_properties) {
    properties.push_back(*node_properties);
  }
  methods.push_back({nullptr, nullptr, 0, nullptr});
  properties.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(function_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
      {Py_tp_methods, methods.data()},
      {Py_tp_getset, properties.data()},
      {Py_tp_members, members},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight._C._FunctionBase", sizeof(FunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  function_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_object(module, "_FunctionBase", new_ref(reinterpret_cast<PyObject*>(function_type)));
}

const Part part(Stage::Types, fill);

}  // namespace

bool is_function_context(PyObject* object) {
  return PyObject_TypeCheck(object, function_type);
}

Node* context_node(PyObject* object) {
  return as_function_object(object)->node;
}

PyObject* function_context(const Node& node) {
  auto* function = dynamic_cast<const FunctionNode*>(&node);
  // Functions written in C++ have no companion.
  return function != nullptr ? static_cast<PyObject*>(function->companion.get()) : nullptr;
}

}  // namespace rushlight::python
