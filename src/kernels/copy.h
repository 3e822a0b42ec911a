// Moving elements between tensors: same dtype by bytes, else by a compiled conversion.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// target[...] = source, broadcast to the target's shape and converted to its dtype. Both on the
// CPU. Where both share memory the order of reads and writes is not defined, save for the same
// view. No doors, no version bump.
void copy(const Tensor& target, const Tensor& source);

// target[...] = value. Error(Runtime) where an integer dtype cannot hold the value.
void fill(const Tensor& target, Scalar value);
void zero(const Tensor& target);
// `count` zeros from element `offset` of the storage on, `stride` elements apart.
void zero_line(const Tensor& target, int64_t offset, int64_t stride, int64_t count);

// A fresh contiguous tensor with the elements of `source`, meta tensors too.
Tensor contiguous_copy(const Tensor& source);
// `source` itself where it is contiguous.
Tensor as_contiguous(const Tensor& source);
// `source` itself where it has the dtype, else a converted contiguous copy.
Tensor as_dtype(const Tensor& source, DType dtype);
// `source` itself, save where it is bool: then with bytes 0 and 1. Those of a view of another dtype
// may be any, and a C++ bool may not.
Tensor as_truths(const Tensor& source);
Tensor make_filled(IntArrayRef sizes, const Scalar& value, DType dtype, Device device = {});
Tensor make_zeros(IntArrayRef sizes, DType dtype, Device device = {});

}  // namespace rushlight::kernels
