// The few operators that the tape itself needs, past their C++ faces.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::autograd::ops {

Tensor add(const Tensor& a, const Tensor& b);
void add_(const Tensor& a, const Tensor& b);
Tensor clone(const Tensor& tensor);
void copy_(const Tensor& target, const Tensor& source);
void zero_(const Tensor& target);
Tensor as_strided(const Tensor& tensor, IntArrayRef sizes, IntArrayRef strides, int64_t offset);
Tensor to_dtype(const Tensor& tensor, DType dtype);
// The real parts, as a contiguous tensor.
Tensor real_part(const Tensor& tensor);
// The tensor again, as a view.
Tensor view_as_self(const Tensor& tensor);

Tensor zeros(IntArrayRef sizes, DType dtype, Device device);
// One element, one: of any rank.
Tensor one(IntArrayRef sizes, DType dtype, Device device);

// Whether `sizes` can be broadcast to `target`.
bool is_expandable(IntArrayRef sizes, IntArrayRef target);
// Adds up what broadcasting spread out: the inverse of expanding `sizes` to the tensor's shape.
Tensor sum_to_size(const Tensor& tensor, IntArrayRef sizes);
bool has_nan(const Tensor& tensor);

}  // namespace rushlight::autograd::ops
