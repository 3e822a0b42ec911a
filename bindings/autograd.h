// What the autograd files of the extension share.
#pragma once

#include <functional>
#include <memory>

#include "autograd/engine.h"
#include "autograd/node.h"
#include "convert.h"

namespace rushlight::python {

// A counted Python object that C++ holds: copied and dropped on any thread.
using SharedObject = std::shared_ptr<PyObject>;
SharedObject share_object(PyObject* object);

// The node's object: for a custom function its context, else a wrapper. None for no node. New.
PyObject* wrap_node(const autograd::NodePtr& node);
// The node of such an object; null where the object is none, or its function is gone.
autograd::Node* node_of(PyObject* object);
// The same, with an Error(Type) for other objects.
autograd::Node& require_node(PyObject* object, const char* op);
// Adds name, next_functions, hooks, ... to a type whose objects node_of knows.
std::pair<PyMethodDef*, PyGetSetDef*> node_members();

// The context object of a custom function's node; null for others. Borrowed.
PyObject* function_context(const autograd::Node& node);
// The node that a context object belongs to; null where it is gone.
autograd::Node* context_node(PyObject* object);
bool is_function_context(PyObject* object);

// A tensor or a GradientEdge (node, output).
autograd::Edge edge_of(PyObject* object, const char* op, const char* argument);

// The dict of hooks of a tensor or node, made where `make`; a new reference, or None.
PyObject* tensor_hooks(const Tensor& tensor, bool make);
int traverse_tensor_hooks(void* impl, visitproc visit, void* arg);

// The gradient of a root that was given none, as an operator's result where dispatch modes or
// classes watch. Undefined: the engine makes it.
Tensor seed_of(PyObject* root);

}  // namespace rushlight::python
