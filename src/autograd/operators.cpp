#include "autograd/operators.h"

#include <rushlight/generated/functions.h>

#include <cmath>
#include <cstring>

#include "ops/operator.h"

namespace rushlight::autograd::ops {

Tensor add(const Tensor& a, const Tensor& b) {
  static const Operator& op = find_operator("add.Tensor");
  return call(op, {Value::borrow(a), Value::borrow(b), Value(1)});
}

void add_(const Tensor& a, const Tensor& b) {
  static const Operator& op = find_operator("add.Tensor");
  call_inplace(op, {Value::borrow(a), Value::borrow(b), Value(1)});
}

Tensor clone(const Tensor& tensor) {
  static const Operator& op = find_operator("clone");
  return call(op, {Value::borrow(tensor), Value()});
}

void copy_(const Tensor& target, const Tensor& source) {
  static const Operator& op = find_operator("copy");
  call_inplace(op, {Value::borrow(target), Value::borrow(source), Value(false)});
}

void zero_(const Tensor& target) {
  static const Operator& op = find_operator("zero");
  call_inplace(op, {Value::borrow(target)});
}

Tensor as_strided(const Tensor& tensor, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  static const Operator& op = find_operator("as_strided");
  return call(op,
              {Value::borrow(tensor), Value::borrow(sizes), Value::borrow(strides), Value(offset)});
}

Tensor to_dtype(const Tensor& tensor, DType dtype) {
  static const Operator& op = find_operator("to.dtype");
  return call(op, {Value::borrow(tensor), Value(dtype), Value(false), Value(false), Value()});
}

Tensor real_part(const Tensor& tensor) {
  return rushlight::contiguous(rushlight::real(tensor));
}

Tensor view_as_self(const Tensor& tensor) {
  return as_strided(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

Tensor zeros(IntArrayRef sizes, DType dtype, Device device) {
  Tensor tensor = make_tensor(sizes, dtype, device);
  if (tensor.is_cpu() && tensor.numel() != 0) {
    std::memset(tensor.data(), 0, static_cast<size_t>(tensor.nbytes()));
  }
  return tensor;
}

Tensor one(IntArrayRef sizes, DType dtype, Device device) {
  if (!device.is_cpu()) {
    return make_tensor(sizes, dtype, device);
  }
  Tensor scalar = make_scalar_tensor(Scalar(1.0), dtype);
  return sizes.empty() ? scalar : make_view(scalar, sizes, contiguous_strides(sizes), 0);
}

bool is_expandable(IntArrayRef sizes, IntArrayRef target) {
  if (sizes.size() > target.size()) {
    return false;
  }
  size_t shift = target.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != target[i + shift] && sizes[i] != 1) {
      return false;
    }
  }
  return true;
}

Tensor sum_to_size(const Tensor& tensor, IntArrayRef sizes) {
  static const Operator& reshape = find_operator("reshape");
  IntList dims;
  int64_t extra = tensor.dim() - static_cast<int64_t>(sizes.size());
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (i < extra || (sizes[i - extra] == 1 && tensor.sizes()[i] != 1)) {
      dims.push_back(i);
    }
  }
  Tensor result = tensor;
  if (!dims.empty()) {
    result = rushlight::sum(tensor, IntArrayRef(dims), true);
  }
  return extra == 0 ? result : call(reshape, {Value::borrow(result), Value::borrow(sizes)});
}

bool has_nan(const Tensor& tensor) {
  if (!tensor.is_cpu() || tensor.numel() == 0) {
    return false;
  }
  // A NaN or two infinities show in the sum; only then look at each element.
  Tensor total = rushlight::sum(tensor);
  std::complex<double> value = total.item().to_complex();
  if (std::isfinite(value.real()) && std::isfinite(value.imag())) {
    return false;
  }
  Tensor nan = rushlight::isnan(tensor);
  static const Operator& any = find_operator("any");
  return call(any, {Value::borrow(nan)}).item().to_bool();
}

}  // namespace rushlight::autograd::ops
