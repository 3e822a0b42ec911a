// Tensor's autograd members.
#include "autograd.h"

#include "autograd/accumulate_grad.h"
#include "autograd/meta.h"
#include "module.h"

namespace rushlight::python {
namespace {

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    const Tensor& grad = tensor.grad();
    if (!grad.defined() && tensor.requires_grad() && !tensor.is_leaf() &&
        !autograd::meta_of(tensor)->retains_grad) {
      warn(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
          "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
          "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
          "Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
          "Tensor instead.");
    }
    return wrap(grad);
  });
}

PyObject* get_grad_quietly(PyObject* self, void*) {
  return guarded([&] { return wrap(tensor_of(self).grad()); });
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    if (value == nullptr || value == Py_None) {
      tensor_of(self).set_grad({});
    } else if (!is_tensor(value)) {
      fail(ErrorKind::Type, "",
           "assigned grad expected to be a Tensor or None but got grad of type ", type_name(value));
    } else {
      tensor_of(self).set_grad(tensor_of(value));
    }
    return 0;
  });
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    std::optional<DType> dtype = autograd::grad_dtype(tensor_of(self));
    return dtype ? new_ref(dtype_object(*dtype)) : py_none();
  });
}

int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    std::optional<DType> dtype;
    if (value != nullptr && value != Py_None) {
      if (!is_dtype(value)) {
        fail(ErrorKind::Runtime, "", "grad_dtype must be a torch.dtype or None, but got ",
             type_name(value));
      }
      dtype = dtype_of(value, "", "grad_dtype");
    }
    autograd::set_grad_dtype(tensor_of(self), dtype);
    return 0;
  });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] { return wrap_node(autograd::grad_fn(tensor_of(self))); });
}

PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(tensor_of(self).is_leaf()); });
}

PyObject* get_output_nr(PyObject* self, void*) {
  return guarded([&] {
    autograd::grad_fn(tensor_of(self));
    autograd::AutogradMetaImpl* meta = autograd::meta_of(tensor_of(self));
    return PyLong_FromUnsignedLong(meta != nullptr ? meta->output : 0);
  });
}

PyObject* get_base(PyObject* self, void*) {
  return guarded([&] { return wrap(autograd::view_base(tensor_of(self))); });
}

PyObject* get_retains_grad(PyObject* self, void*) {
  return guarded([&] {
    autograd::AutogradMetaImpl* meta = autograd::meta_of(tensor_of(self));
    return PyBool_FromLong(meta != nullptr && meta->retains_grad);
  });
}

PyObject* get_hooks(PyObject* self, void*) {
  return guarded([&] { return tensor_hooks(tensor_of(self), false); });
}

// Copying protocols set it to an empty dict.
int set_hooks(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    if (value == nullptr || value == Py_None || check(PyObject_Size(value)) == 0) {
      return 0;
    }
    Ref hooks = owned(tensor_hooks(tensor_of(self), true));
    check(PyDict_Update(hooks.get(), value));
    return 0;
  });
}

PyObject* get_accumulate_hooks(PyObject* self, void*) {
  return PyObject_CallMethod(extension_module(), "_accumulate_hooks", "OO", self, Py_False);
}

PyObject* is_view(PyObject* self, PyObject*) {
  return guarded([&] { return PyBool_FromLong(autograd::view_base(tensor_of(self)).defined()); });
}

PyObject* retain_grad(PyObject* self, PyObject*) {
  return guarded([&] {
    tensor_of(self).retain_grad();
    return py_none();
  });
}

PyObject* detach_in_place(PyObject* self, PyObject*) {
  return guarded([&] {
    autograd::detach_in_place(tensor_of(self));
    return new_ref(self);
  });
}

PyObject* add_hook(PyObject* hooks, PyObject* hook) {
  Ref dict = owned(hooks);
  Ref module = owned(PyImport_ImportModule("rushlight.utils.hooks"));
  Ref handle = owned(PyObject_CallMethod(module.get(), "RemovableHandle", "O", dict.get()));
  Ref id = owned(PyObject_GetAttrString(handle.get(), "id"));
  check(PyObject_SetItem(dict.get(), id.get(), hook));
  return handle.release();
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] { return add_hook(tensor_hooks(tensor_of(self), true), hook); });
}

PyObject* register_post_accumulate_grad_hook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    return add_hook(
        PyObject_CallMethod(extension_module(), "_accumulate_hooks", "OO", self, Py_True), hook);
  });
}

bool truth(PyObject* object, bool absent) {
  if (object == nullptr || object == Py_None) {
    return absent;
  }
  return check(PyObject_IsTrue(object)) != 0;
}

PyObject* backward(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
  PyObject* gradient = nullptr;
  PyObject* retain = nullptr;
  PyObject* create = nullptr;
  PyObject* inputs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO:backward", const_cast<char**>(names),
                                   &gradient, &retain, &create, &inputs)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    if (inputs != nullptr && inputs != Py_None) {
      Ref module = owned(PyImport_ImportModule("rushlight.autograd"));
      Ref function = owned(PyObject_GetAttrString(module.get(), "backward"));
      Ref rest = owned(Py_BuildValue("(OOOO)", self, gradient != nullptr ? gradient : Py_None,
                                     retain != nullptr ? retain : Py_None,
                                     create != nullptr ? create : Py_False));
      Ref named = owned(Py_BuildValue("{sO}", "inputs", inputs));
      return PyObject_Call(function.get(), rest.get(), named.get());
    }
    Tensor given;
    if (gradient != nullptr && gradient != Py_None) {
      given = require_tensor(gradient, "backward", "gradient");
    } else {
      given = seed_of(self);
    }
    Tensor tensor = tensor_of(self);
    bool create_graph = truth(create, false);
    bool retain_graph = truth(retain, create_graph);
    {
      GilRelease unlocked;
      autograd::run_backward({tensor}, {given}, {}, {retain_graph, create_graph, true, true});
    }
    return py_none();
  });
}

PyGetSetDef properties[] = {
    {"grad", get_grad, set_grad, "The gradient that backward accumulated, or None.", nullptr},
    {"_grad", get_grad_quietly, set_grad, "grad, without a warning.", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype, "What dtype a leaf's grad has; None: any.",
     nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node that made the tensor; None for leaves.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether no recorded operator made it.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of grad_fn it is.", nullptr},
    {"_base", get_base, nullptr, "The tensor it is a view of.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether a non-leaf keeps its grad.", nullptr},
    {"_backward_hooks", get_hooks, set_hooks, "Its hooks by handle id, or None.", nullptr},
    {"_post_accumulate_grad_hooks", get_accumulate_hooks, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(backward)),
     METH_VARARGS | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Accumulates gradients into the leaves of the graph that made this tensor."},
    {"register_hook", register_hook, METH_O,
     "register_hook(hook)\n--\n\nCalls hook(grad) with its gradient; returns a handle."},
    {"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, METH_O,
     "register_post_accumulate_grad_hook(hook)\n--\n\nCalls hook(tensor) after a leaf's grad was "
     "accumulated."},
    {"retain_grad", retain_grad, METH_NOARGS, "Keeps the grad of a non-leaf."},
    {"detach_", detach_in_place, METH_NOARGS, "Makes the tensor a leaf that requires no grad."},
    {"_is_view", is_view, METH_NOARGS, "Whether it is a tracked view of another tensor."},
    {nullptr, nullptr, 0, nullptr},
};

// Gives what it was before.
PyObject* set_layout_enforced(PyObject*, PyObject* on) {
  const bool before = autograd::grad_layout_enforced();
  autograd::set_grad_layout_enforced(on == Py_True);
  return PyBool_FromLong(before);
}

PyMethodDef functions[] = {
    {"_set_grad_layout_enforced", set_layout_enforced, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
  add_tensor_methods(methods);
  add_tensor_properties(properties);
}

const Part part(Stage::Members, fill);

}  // namespace
}  // namespace rushlight::python
