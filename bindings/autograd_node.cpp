// The Python objects of graph nodes: one class a name ("MulBackward0"), made on first need.
#include <mutex>
#include <unordered_map>

#include "autograd.h"
#include "autograd/accumulate_grad.h"
#include "autograd/operator_node.h"
#include "module.h"

namespace rushlight::python {

using autograd::Node;
using autograd::NodePtr;
using autograd::OperatorNode;

namespace {

struct NodeObject {
  PyObject_HEAD NodePtr node;
  PyObject* dict;
  PyObject* weakrefs;
};

PyTypeObject* node_type = nullptr;

NodeObject* as_node_object(PyObject* self) {
  return reinterpret_cast<NodeObject*>(self);
}

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  NodeObject* object = as_node_object(self);
  PyObject_GC_UnTrack(self);
  if (object->weakrefs != nullptr) {
    PyObject_ClearWeakRefs(self);
  }
  object->node->require_extra().python = nullptr;
  Py_CLEAR(object->dict);
  object->node.~NodePtr();
  type->tp_free(self);
  Py_DECREF(type);
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_node_object(self)->dict);
  return 0;
}

int node_clear(PyObject* self) {
  Py_CLEAR(as_node_object(self)->dict);
  return 0;
}

// ---- Members of nodes and of custom functions' contexts ----------------------------------------

Node& self_node(PyObject* self, const char* attribute) {
  Node* node = node_of(self);
  if (node == nullptr) {
    fail(ErrorKind::Runtime, "", "Attribute '", attribute,
         "' is invalid for this instance of _C._FunctionBase: its call was not recorded, or its "
         "graph is gone");
  }
  return *node;
}

PyObject* node_name(PyObject* self, PyObject*) {
  return guarded([&] {
    std::string name = self_node(self, "name").name();
    return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  });
}

PyObject* node_next(PyObject* self, void*) {
  return guarded([&] {
    Node& node = self_node(self, "next_functions");
    std::vector<autograd::Edge> edges;
    if (auto* made = dynamic_cast<OperatorNode*>(&node)) {
      edges = made->outer_edges();
    } else {
      for (uint32_t i = 0; i < node.edge_count(); ++i) {
        edges.push_back(node.edge(i));
      }
    }
    Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
    for (size_t i = 0; i < edges.size(); ++i) {
      const autograd::Edge& edge = edges[i];
      Ref next = owned(wrap_node(edge.node));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       check(Py_BuildValue("(OI)", next.get(), edge.node ? edge.input : 0u)));
    }
    return tuple.release();
  });
}

PyObject* node_metadata(PyObject* self, void*) {
  return guarded([&] {
    Ref key = owned(PyUnicode_FromString("_metadata"));
    PyObject* dict = nullptr;
    if (PyObject** slot = _PyObject_GetDictPtr(self)) {
      if (*slot == nullptr) {
        *slot = check(PyDict_New());
      }
      dict = *slot;
    }
    Ref instance =
        dict != nullptr ? Ref::share(dict) : owned(PyObject_GetAttrString(self, "__dict__"));
    if (PyObject* found = PyDict_GetItemWithError(instance.get(), key.get())) {
      return new_ref(found);
    }
    Ref made = owned(PyDict_New());
    check(PyDict_SetItem(instance.get(), key.get(), made.get()));
    return made.release();
  });
}

PyObject* node_sequence(PyObject* self, PyObject*) {
  return guarded(
      [&] { return PyLong_FromUnsignedLongLong(self_node(self, "_sequence_nr").sequence()); });
}

PyObject* node_input_metadata(PyObject* self, void*) {
  return guarded([&] {
    Node& node = self_node(self, "_input_metadata");
    Ref list = owned(PyList_New(0));
    for (uint32_t i = 0; i < node.input_count(); ++i) {
      autograd::InputMetadata input = node.input(i);
      Ref shape = owned(size_object(input.sizes));
      Ref device = owned(device_object(input.device));
      Ref entry =
          owned(Py_BuildValue("(OOO)", shape.get(), dtype_object(input.dtype), device.get()));
      check(PyList_Append(list.get(), entry.get()));
    }
    return list.release();
  });
}

PyObject* node_requires_grad(PyObject*, void*) {
  Py_RETURN_TRUE;
}

// grad_fn(*gradients): what the node makes of gradients of its results, without any hook.
PyObject* node_call(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&] {
    Node& node = self_node(self, "__call__");
    TensorList gradients;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* given = PyTuple_GET_ITEM(args, i);
      if (given != Py_None && !is_tensor(given)) {
        fail(ErrorKind::Type, "", node.name(), "(): argument ", static_cast<int64_t>(i),
             " must be Tensor or None, not ", type_name(given));
      }
      gradients.push_back(given == Py_None ? Tensor() : tensor_of(given));
    }
    if (gradients.size() != node.input_count()) {
      fail(ErrorKind::Type, "", node.name(), "() takes ", node.input_count(), " gradients, got ",
           gradients.size());
    }
    TensorList results = node.apply(std::move(gradients));
    return results.size() == 1 ? wrap(results[0]) : wrap_tuple(results);
  });
}

// hooks = _node_hooks(self, before); handle = RemovableHandle(hooks); hooks[handle.id] = hook
PyObject* add_hook(PyObject* self, PyObject* hook, bool before) {
  return guarded([&] {
    Ref hooks = owned(PyObject_CallMethod(extension_module(), "_node_hooks", "OO", self,
                                          before ? Py_True : Py_False));
    Ref module = owned(PyImport_ImportModule("rushlight.utils.hooks"));
    Ref handle = owned(PyObject_CallMethod(module.get(), "RemovableHandle", "O", hooks.get()));
    Ref id = owned(PyObject_GetAttrString(handle.get(), "id"));
    check(PyObject_SetItem(hooks.get(), id.get(), hook));
    return handle.release();
  });
}

PyObject* node_register_hook(PyObject* self, PyObject* hook) {
  return add_hook(self, hook, false);
}
PyObject* node_register_prehook(PyObject* self, PyObject* hook) {
  return add_hook(self, hook, true);
}

PyMethodDef methods[] = {
    {"name", node_name, METH_NOARGS, "The name of the node."},
    {"_sequence_nr", node_sequence, METH_NOARGS, "Later nodes of a thread have greater numbers."},
    {"register_hook", node_register_hook, METH_O,
     "register_hook($self, hook)\n--\n\nCalls hook(grad_inputs, grad_outputs) after the node ran."},
    {"register_prehook", node_register_prehook, METH_O,
     "register_prehook($self, hook)\n--\n\nCalls hook(grad_outputs) before the node runs."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"next_functions", node_next, nullptr, "Pairs of a node and which of its inputs.", nullptr},
    {"metadata", node_metadata, nullptr, "A dict for notes.", nullptr},
    {"requires_grad", node_requires_grad, nullptr, nullptr, nullptr},
    {"_input_metadata", node_input_metadata, nullptr,
     "Shape, dtype and device of each gradient it takes.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyGetSetDef dict_property[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- _saved_*: what an operator's node keeps ---------------------------------------------------

PyObject* tensor_list(OperatorNode& node, const autograd::ArgumentRecord& argument) {
  TensorList list;
  for (int i = 0; i < argument.count; ++i) {
    list.push_back(node.unpack_argument(argument.first + i));
  }
  return wrap_tuple(list);
}

// The value of a saved argument or result; null where the node keeps none of this name.
PyObject* saved_value(OperatorNode& node, std::string_view name) {
  const Schema& schema = node.op().schema;
  uint64_t saved = node.op().saved_arguments & ~node.op().layout_arguments;
  int position = schema.find(name);
  if (position >= 0) {
    const autograd::ArgumentRecord& argument = node.arguments()[static_cast<size_t>(position)];
    bool given = argument.count != 0 && node.argument_tensor(argument.first).given;
    if (argument.count == 0 || (argument.is_tensor() && !given)) {
      return to_python(argument.value);
    }
    if (!(saved >> position & 1)) {
      return nullptr;
    }
    return argument.is_list ? tensor_list(node, argument)
                            : wrap(node.unpack_argument(argument.first));
  }
  if (name.substr(0, 6) == "result" && name.size() <= 8) {
    const int result = name.size() == 6 ? 0 : std::atoi(std::string(name.substr(6)).c_str());
    const auto results = static_cast<int>(schema.results.size());
    if (result >= 0 && result < results && (node.op().saved_results >> result & 1)) {
      return wrap(node.unpack_result(result));
    }
  }
  return nullptr;
}

PyObject* node_getattr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
    return found;
  }
  return guarded([&]() -> PyObject* {
    const PythonError missing;  // no longer pending
    const std::string text = message_text(name);
    Node* node = as_node_object(self)->node.get();
    auto* made = dynamic_cast<OperatorNode*>(node);
    if (made != nullptr && text.starts_with("_saved_")) {
      PyObject* saved = saved_value(*made, std::string_view(text).substr(7));
      if (saved != nullptr || PyErr_Occurred() != nullptr) {
        return saved;
      }
    }
    auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(node);
    if (leaf != nullptr && text == "variable") {
      return wrap(leaf->leaf());
    }
    throw missing;
  });
}

constexpr int kReadOnly = 1;
constexpr int kSsize = 19;  // T_PYSSIZET
PyMemberDef members[] = {
    {"__dictoffset__", kSsize, offsetof(NodeObject, dict), kReadOnly, nullptr},
    {"__weaklistoffset__", kSsize, offsetof(NodeObject, weakrefs), kReadOnly, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// The class of nodes of this name. Kept for ever: there are few names.
PyTypeObject* type_named(const std::string& name) {
  static std::unordered_map<std::string, PyTypeObject*> types;
  PyTypeObject*& slot = types[name];
  if (slot == nullptr) {
    Ref made = owned(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O){}",
                                           name.c_str(), node_type));
    Ref module = owned(PyUnicode_FromString("builtins"));
    check(PyObject_SetAttrString(made.get(), "__module__", module.get()));
    slot = reinterpret_cast<PyTypeObject*>(made.release());
  }
  return slot;
}

void fill(PyObject* module) {
  std::vector<PyGetSetDef> all;
  static PyGetSetDef getset[sizeof(properties) / sizeof(properties[0]) + 1];
  PyGetSetDef* at = getset;
  *at++ = dict_property[0];
  for (PyGetSetDef* property = properties; property->name != nullptr; ++property) {
    *at++ = *property;
  }
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
      {Py_tp_call, reinterpret_cast<void*>(node_call)},
      {Py_tp_getattro, reinterpret_cast<void*>(node_getattr)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getset},
      {Py_tp_members, members},
      {0, nullptr},
  };
  PyType_Spec spec = {"rushlight._C._Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  node_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  add_object(module, "_Node", new_ref(reinterpret_cast<PyObject*>(node_type)));
}

const Part part(Stage::Types, fill);

}  // namespace

std::pair<PyMethodDef*, PyGetSetDef*> node_members() {
  return {methods, properties};
}

Node* node_of(PyObject* object) {
  if (PyObject_TypeCheck(object, node_type)) {
    return as_node_object(object)->node.get();
  }
  return is_function_context(object) ? context_node(object) : nullptr;
}

Node& require_node(PyObject* object, const char* op) {
  Node* node = node_of(object);
  if (node == nullptr) {
    fail(ErrorKind::Type, "", op, "(): expected a node of the graph, got ", type_name(object));
  }
  return *node;
}

PyObject* wrap_node(const NodePtr& node) {
  if (!node) {
    return py_none();
  }
  if (PyObject* context = function_context(*node)) {
    return new_ref(context);
  }
  autograd::NodeExtra& extra = node->require_extra();
  if (extra.python != nullptr) {
    return new_ref(static_cast<PyObject*>(extra.python));
  }
  PyTypeObject* type = type_named(node->name());
  auto* object = as_node_object(check(type->tp_alloc(type, 0)));
  new (&object->node) NodePtr(node);
  extra.python = object;
  return reinterpret_cast<PyObject*>(object);
}

autograd::Edge edge_of(PyObject* object, const char* op, const char* argument) {
  if (is_tensor(object)) {
    return autograd::gradient_edge(tensor_of(object));
  }
  if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) >= 2) {
    if (Node* node = node_of(PyTuple_GET_ITEM(object, 0))) {
      int64_t output = int_of(PyTuple_GET_ITEM(object, 1), op, argument);
      if (output < 0 || output >= node->input_count()) {
        fail(ErrorKind::Index, "", op, "(): ", node->name(), " has ", node->input_count(),
             " outputs, got output_nr ", output);
      }
      return {NodePtr::share(node), static_cast<uint32_t>(output)};
    }
  }
  fail(ErrorKind::Type, "", op, "(): argument '", argument,
       "' must be Tensor or GradientEdge, not ", type_name(object));
}

}  // namespace rushlight::python
