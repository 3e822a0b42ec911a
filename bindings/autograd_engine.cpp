// The module functions behind rushlight.autograd: backward, modes, saved-tensor hooks.
#include "autograd.h"
#include "autograd/meta.h"
#include "autograd/operator_node.h"
#include "core_call.h"
#include "module.h"
#include "ops/invocation.h"

namespace rushlight::python {
namespace {

using autograd::Edge;

std::vector<Edge> roots_of(PyObject* tuple) {
  std::vector<Edge> roots;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    roots.push_back(is_tensor(item) ? autograd::root_edge(tensor_of(item), static_cast<size_t>(i))
                                    : edge_of(item, "backward", "tensors"));
  }
  return roots;
}

std::vector<Edge> inputs_of(PyObject* tuple, bool accumulate) {
  std::vector<Edge> inputs;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    inputs.push_back(is_tensor(item) ? autograd::input_edge(tensor_of(item), accumulate)
                                     : edge_of(item, "grad", "inputs"));
  }
  return inputs;
}

// run_backward(tensors, gradients, retain_graph, create_graph, inputs, allow_unused, accumulate)
PyObject* run_backward(PyObject*, PyObject* args) {
  PyObject* tensors;
  PyObject* gradients;
  PyObject* inputs;
  int retain;
  int create;
  int allow_unused;
  int accumulate;
  if (!PyArg_ParseTuple(args, "O!O!ppO!pp:run_backward", &PyTuple_Type, &tensors, &PyTuple_Type,
                        &gradients, &retain, &create, &PyTuple_Type, &inputs, &allow_unused,
                        &accumulate)) {
    return nullptr;
  }
  return guarded([&] {
    if (PyTuple_GET_SIZE(tensors) != PyTuple_GET_SIZE(gradients)) {
      fail(ErrorKind::Runtime, "", "got ", static_cast<int64_t>(PyTuple_GET_SIZE(tensors)),
           " tensors and ", static_cast<int64_t>(PyTuple_GET_SIZE(gradients)), " gradients");
    }
    TensorList given;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(gradients); ++i) {
      PyObject* item = PyTuple_GET_ITEM(gradients, i);
      if (item != Py_None && !is_tensor(item)) {
        fail(ErrorKind::Type, "", "gradients can be either Tensors or None, but got ",
             type_name(item));
      }
      given.push_back(item == Py_None ? seed_of(PyTuple_GET_ITEM(tensors, i)) : tensor_of(item));
    }
    std::vector<Edge> roots = roots_of(tensors);
    std::vector<Edge> wanted = inputs_of(inputs, accumulate != 0);
    TensorList result;
    {
      GilRelease unlocked;
      result = autograd::run_graph(roots, std::move(given), wanted,
                                   {retain != 0, create != 0, accumulate != 0, allow_unused != 0});
    }
    return wrap_tuple(result);
  });
}

PyObject* queue_callback(PyObject*, PyObject* function) {
  return guarded([&] {
    SharedObject held = share_object(function);
    autograd::queue_callback([held] {
      GilAcquire lock;
      owned(PyObject_CallNoArgs(held.get()));
    });
    return py_none();
  });
}

PyObject* current_node(PyObject*, PyObject*) {
  return guarded([&] { return wrap_node(autograd::NodePtr::share(autograd::running_node())); });
}

PyObject* will_run(PyObject*, PyObject* node) {
  return guarded(
      [&] { return PyBool_FromLong(autograd::will_run(require_node(node, "_will_run"))); });
}

PyObject* task_id(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(autograd::running_task());
}

// (node, output, owner): the owner keeps alive what the context of a custom function does not.
PyObject* gradient_edge(PyObject*, PyObject* tensor) {
  return guarded([&] {
    Edge edge = autograd::gradient_edge(require_tensor(tensor, "get_gradient_edge", "tensor"));
    if (!edge) {
      fail(ErrorKind::Runtime, "",
           "It is not possible to get the gradient edge for a Tensor that does not require "
           "gradients");
    }
    Ref node = owned(wrap_node(edge.node));
    PyObject* owner = function_context(*edge.node) != nullptr ? tensor : Py_None;
    return check(Py_BuildValue("(OIO)", node.get(), edge.input, owner));
  });
}

// ---- Modes -------------------------------------------------------------------------------------

PyObject* is_grad_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(GradMode::is_enabled());
}

PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  if (!PyBool_Check(on)) {
    PyErr_Format(PyExc_TypeError, "set_grad_enabled(): argument 'enabled' must be bool, not %s",
                 Py_TYPE(on)->tp_name);
    return nullptr;
  }
  GradMode::set_enabled(on == Py_True);
  Py_RETURN_NONE;
}

PyObject* is_inference_mode_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(InferenceMode::is_enabled());
}

PyObject* enter_inference_mode(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    int enabled = check(PyObject_IsTrue(on));
    auto* mode = new InferenceMode(enabled != 0);
    return PyCapsule_New(mode, "rushlight.InferenceMode", nullptr);
  });
}

PyObject* exit_inference_mode(PyObject*, PyObject* capsule) {
  auto* mode =
      static_cast<InferenceMode*>(PyCapsule_GetPointer(capsule, "rushlight.InferenceMode"));
  if (mode == nullptr) {
    return nullptr;
  }
  PyCapsule_SetName(capsule, "left");
  delete mode;
  Py_RETURN_NONE;
}

PyObject* is_anomaly_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(autograd::anomaly_enabled());
}
PyObject* is_anomaly_check_nan_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(autograd::anomaly_checks_nan());
}

PyObject* set_anomaly_enabled(PyObject*, PyObject* args) {
  int on;
  int check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p:set_anomaly_enabled", &on, &check_nan)) {
    return nullptr;
  }
  autograd::set_anomaly(on != 0, check_nan != 0);
  Py_RETURN_NONE;
}

// Where the forward call was made, as Python prints stacks.
std::string python_stack() {
  if (!Py_IsInitialized()) {
    return {};
  }
  GilAcquire lock;
  Ref module = owned(PyImport_ImportModule("traceback"));
  Ref lines = owned(PyObject_CallMethod(module.get(), "format_stack", nullptr));
  Ref empty = owned(PyUnicode_FromString(""));
  Ref text = owned(PyUnicode_Join(empty.get(), lines.get()));
  return message_text(text.get());
}

// ---- Saved tensors -----------------------------------------------------------------------------

autograd::SavedTensorHooks hooks_of(PyObject* pack, PyObject* unpack) {
  SharedObject pack_function = share_object(pack);
  SharedObject unpack_function = share_object(unpack);
  autograd::SavedTensorHooks hooks;
  hooks.pack = [pack_function](const Tensor& tensor) -> std::shared_ptr<void> {
    GilAcquire lock;
    Ref argument = owned(wrap(tensor));
    Ref packed = owned(PyObject_CallOneArg(pack_function.get(), argument.get()));
    return share_object(packed.get());
  };
  hooks.unpack = [unpack_function](const std::shared_ptr<void>& packed) {
    GilAcquire lock;
    Ref result =
        owned(PyObject_CallOneArg(unpack_function.get(), static_cast<PyObject*>(packed.get())));
    if (!is_tensor(result.get())) {
      fail(ErrorKind::Type, "",
           "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
           type_name(result.get()));
    }
    return tensor_of(result.get());
  };
  return hooks;
}

PyObject* push_hooks(PyObject*, PyObject* args) {
  PyObject* pack;
  PyObject* unpack;
  if (!PyArg_ParseTuple(args, "OO:_push_saved_tensors_default_hooks", &pack, &unpack)) {
    return nullptr;
  }
  return guarded([&] {
    autograd::push_saved_tensor_hooks(hooks_of(pack, unpack));
    return py_none();
  });
}

PyObject* pop_hooks(PyObject*, PyObject*) {
  autograd::pop_saved_tensor_hooks();
  Py_RETURN_NONE;
}

// Disables hooks with this message, or enables them for None; gives what held before.
PyObject* disable_hooks(PyObject*, PyObject* message) {
  return guarded([&] {
    std::string text = message == Py_None ? "" : std::string(text_of(message));
    std::string before = autograd::disable_saved_tensor_hooks(std::move(text));
    return before.empty() ? py_none() : check(PyUnicode_FromString(before.c_str()));
  });
}

PyObject* increment_version(PyObject*, PyObject* tensor) {
  return guarded([&] {
    require_tensor(tensor, "increment_version", "tensor").bump_version();
    return py_none();
  });
}

PyObject* set_version(PyObject*, PyObject* args) {
  PyObject* tensor;
  unsigned int version;
  if (!PyArg_ParseTuple(args, "OI:_set_version", &tensor, &version)) {
    return nullptr;
  }
  return guarded([&] {
    require_tensor(tensor, "_set_version", "tensor").storage()->version = version;
    return py_none();
  });
}

PyMethodDef functions[] = {
    {"_run_backward", run_backward, METH_VARARGS, "Runs the engine."},
    {"_queue_callback", queue_callback, METH_O, "Calls a function when the running task ends."},
    {"_current_autograd_node", current_node, METH_NOARGS, "The node that this thread runs."},
    {"_will_run", will_run, METH_O, "Whether the running task will run a node."},
    {"_task_id", task_id, METH_NOARGS, "A number for the running task; 0 outside backward."},
    {"_gradient_edge", gradient_edge, METH_O, "(node, output, owner) of a tensor."},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operators are recorded."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, "Turns recording on or off."},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "Whether inference mode is on."},
    {"_enter_inference_mode", enter_inference_mode, METH_O, nullptr},
    {"_exit_inference_mode", exit_inference_mode, METH_O, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS, nullptr},
    {"set_anomaly_enabled", set_anomaly_enabled, METH_VARARGS, nullptr},
    {"_push_saved_tensors_default_hooks", push_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_default_hooks", pop_hooks, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_disable", disable_hooks, METH_O, nullptr},
    {"_increment_version", increment_version, METH_O, nullptr},
    {"_set_version", set_version, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
  autograd::forward_trace_text = python_stack;
}

const Part part(Stage::Rest, fill);

}  // namespace

Tensor seed_of(PyObject* root) {
  if ((thread_state.doors & kDispatchDoor) == 0 || !is_tensor(root)) {
    return {};
  }
  const Tensor& tensor = tensor_of(root);
  bool fits = tensor.numel() == 1 && is_floating(tensor.dtype());
  return fits ? call_named("ones_like", tensor) : Tensor();
}

}  // namespace rushlight::python
