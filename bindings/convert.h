// Python objects <-> core values. Every function needs the lock.
#pragma once

#include <rushlight/tensor.h>
#include <rushlight/value.h>

#include "py.h"

namespace rushlight::python {

// ---- Tensor -----------------------------------------------------------------------------------
// A tensor has at most one Python object, kept for as long as either side is alive where it carries
// state (a subclass, attributes, weak references).
struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* tensor_type;  // rushlight.Tensor

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// Unchecked: for objects known to be tensors.
inline const Tensor& tensor_of(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->tensor;
}
// Error(Type) naming `op` and `argument` where the object is no tensor.
const Tensor& require_tensor(PyObject* object, const char* op, const char* argument);
// The tensor's object, or a new one; None for an undefined tensor. A new reference.
PyObject* wrap(Tensor tensor);
// A new object of this type (Tensor or a subclass) for a tensor that has none yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);
// A tuple of wrapped tensors.
PyObject* wrap_tuple(const TensorList& tensors);

// ---- dtype, device, layout, memory format ------------------------------------------------------
PyObject* dtype_object(DType dtype);  // borrowed: there is one a dtype
bool is_dtype(PyObject* object);
// A dtype, or the types float, int, bool, complex. False where it is something else.
bool to_dtype(PyObject* object, DType* dtype);
DType dtype_of(PyObject* object, const char* op, const char* argument);  // Error(Type)

PyObject* device_object(Device device);  // new
// A device, or its name. False where it is something else; Error(Runtime) for an unknown name.
bool to_device(PyObject* object, Device* device);

PyObject* layout_object(LayoutKind layout);           // borrowed
PyObject* memory_format_object(MemoryFormat format);  // borrowed
bool to_layout(PyObject* object, LayoutKind* layout);
bool to_memory_format(PyObject* object, MemoryFormat* format);

// ---- Size, Generator ---------------------------------------------------------------------------
extern PyTypeObject* size_type;
PyObject* size_object(IntArrayRef sizes);  // new
PyObject* int_tuple(IntArrayRef values);   // new, a plain tuple

PyObject* generator_object(Generator generator);  // new
bool to_generator(PyObject* object, Generator* generator);

// ---- Memory ------------------------------------------------------------------------------------
// Lends a storage's memory to somebody who will not say when it is over: it stays where it is.
void lend_memory(StorageImpl* storage);

// ---- Sequences ---------------------------------------------------------------------------------
// The items of a list or tuple, which it must outlive. Converting one may run a program's code, and
// that may change the list: an item is held while it is used, and one that has gone is an
// Error(Runtime).
class Items {
 public:
  explicit Items(PyObject* sequence)
      : sequence_(sequence), size_(PySequence_Fast_GET_SIZE(sequence)) {}
  // False where it is neither.
  static bool are_in(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }
  Py_ssize_t size() const { return size_; }
  Ref operator[](Py_ssize_t i) const { return Ref::share(data()[i]); }
  // Not held: good until a program's code may run.
  PyObject* const* data() const {
    if (PySequence_Fast_GET_SIZE(sequence_) != size_) {
      fail_changed();
    }
    return PySequence_Fast_ITEMS(sequence_);
  }

 private:
  [[noreturn]] static void fail_changed();
  PyObject* sequence_;
  Py_ssize_t size_;
};

// ---- Numbers -----------------------------------------------------------------------------------
PyObject* scalar_object(const Scalar& scalar);  // bool, int, float or complex; new
// A Python or NumPy number (not a tensor). False where it is something else.
bool to_number(PyObject* object, Scalar* scalar);
// As to_number, and 0-dim tensors; Error(Type) naming op and argument.
Scalar scalar_of(PyObject* object, const char* op, const char* argument);
int64_t int_of(PyObject* object, const char* op, const char* argument);
// A sequence of integers, or one integer.
IntList ints_of(PyObject* object, const char* op, const char* argument);
TensorList tensors_of(PyObject* object, const char* op, const char* argument);

// Any result of an operator: a new reference.
PyObject* to_python(const Value& value);

}  // namespace rushlight::python
