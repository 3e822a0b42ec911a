// How files add their part to the extension module rushlight._C and to the Tensor type.
#pragma once

#include "py.h"

namespace rushlight::python {

// One part of the extension: a namespace-scope object in the part's own source file. Parts run
// once, at import, by ascending `stage`, each given the module; they throw where they fail.
enum class Stage : int {
  Errors,
  Types,      // dtype, device, Size, Generator
  Tensor,     // the Tensor type
  Operators,  // functions and methods from the operator table
  Members,    // Tensor's other methods and properties
  Rest,
};
struct Part {
  Part(Stage stage, void (*fill)(PyObject* module));
};

// The module, for use after import (borrowed).
PyObject* extension_module();

void add_functions(PyObject* module, PyMethodDef* functions);
// Gives entries that take no argument the signature that inspect reads; returns the table, which
// must live for ever. `self`: "$module", or "$self" of methods.
PyMethodDef* describe(PyMethodDef* table, const char* self = "$self");
// Adds `object` (a new reference) under `name`.
void add_object(PyObject* module, const char* name, PyObject* object);
// A submodule of _C, made on first use (borrowed).
PyObject* submodule(PyObject* module, const char* name);

// Tensor's members. The tables must live for ever; a null name ends them. Each member passes
// through the override door: a subclass's __torch_function__ gets the call first.
void add_tensor_methods(PyMethodDef* methods);
void add_tensor_properties(PyGetSetDef* properties);

// Indexing, installed by its own part: called with self a Tensor.
extern binaryfunc subscript_hook;
extern objobjargproc assign_subscript_hook;

// Visits the Python objects that a tensor's autograd record alone holds (hooks); installed by the
// autograd part. Called only where the Python object is the tensor's sole owner.
extern int (*traverse_autograd)(void* tensor_impl, visitproc visit, void* arg);

// Runs all parts; called by the module's exec slot.
void run_parts(PyObject* module);

}  // namespace rushlight::python
