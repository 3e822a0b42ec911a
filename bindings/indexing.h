// Python's subscripts as calls of operators.
#pragma once

#include <vector>

#include "convert.h"

namespace rushlight::python {

// A tensor after the plain parts of an index (integers, slices, None, Ellipsis), and the tensors
// that index what is left: undefined where a dimension is taken whole.
struct Subscript {
  Tensor view;
  TensorList indices;
};

// Error(Index), Error(Type) or Error(Value) with PyTorch's text where the index does not fit.
Subscript apply_subscript(const Tensor& self, PyObject* index);

}  // namespace rushlight::python
