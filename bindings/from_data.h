// Tensors made of Python data: numbers, nested sequences, NumPy arrays, buffers.
#pragma once

#include <optional>

#include "convert.h"

namespace rushlight::python {

// What `tensor` and `as_tensor` make of data. A tensor or array with the dtype and device asked for
// is shared unless `copy`; everything else is copied. PyTorch's inference of the dtype and its
// errors; `op` stands in those that name the function.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, std::optional<Device> device,
                        bool copy);

// An index made of a sequence: bool and uint8 as they are, all else int64.
Tensor index_from_sequence(PyObject* sequence);

// Whether the object is a numpy.ndarray (or a subclass); false without NumPy.
bool is_numpy_array(PyObject* object);
// Whether it is a numpy scalar; the dtype where it has one here.
bool is_numpy_scalar(PyObject* object);
// The dtype with NumPy's name of an array's or scalar's dtype; Error(Type) where there is none.
DType numpy_dtype(PyObject* object);

// The array's memory as a tensor, shared. Errors for foreign byte order, strides that are negative
// or no multiple of the item, and dtypes that have no counterpart. `warn_read_only` warns of
// memory that must not be written.
Tensor tensor_from_array(PyObject* array, bool warn_read_only);
// The tensor's memory as an array, shared; it keeps the tensor's storage alive.
PyObject* array_from_tensor(const Tensor& tensor);

// Keeps `owner` alive until the tensor's memory is released; takes a reference of its own.
Tensor tensor_over(PyObject* owner, void* data, IntArrayRef sizes, IntArrayRef strides,
                   DType dtype);

// A copy in the dtype and device asked for, or the tensor itself where nothing changes.
Tensor converted(const Tensor& tensor, std::optional<DType> dtype, std::optional<Device> device,
                 bool copy);

}  // namespace rushlight::python
