#include "ops/wide_gradient.h"

#include <rushlight/generated/functions.h>

#include "ops/invocation.h"

namespace rushlight {
namespace {

DType widened(DType dtype) {
  return is_reduced_floating(dtype) ? DType::Float32 : dtype;
}

}  // namespace

Tensor widened(const Tensor& x) {
  return x.defined() && is_reduced_floating(x.dtype()) ? to(x, DType::Float32) : x;
}

Tensor rounded(const Tensor& x, DType dtype) {
  return is_reduced_floating(dtype) ? to(x, dtype) : x;
}

Tensor WideGradient::incoming(const Tensor& grad) const {
  return widened(grad);
}

Tensor WideGradient::tensor(int argument) const {
  return widened(inner_.tensor(argument));
}

Tensor WideGradient::result(int i) const {
  return widened(inner_.result(i));
}

TensorList WideGradient::tensors(int argument) const {
  TensorList list = inner_.tensors(argument);
  for (Tensor& tensor : list) {
    tensor = widened(tensor);
  }
  return list;
}

DType WideGradient::dtype(int argument) const {
  return widened(inner_.dtype(argument));
}

DType WideGradient::result_dtype(int i) const {
  return widened(inner_.result_dtype(i));
}

DType WideGradient::item_dtype(int argument, int item) const {
  return widened(inner_.item_dtype(argument, item));
}

void in_float(Gradient& g, const std::function<void(Gradient&)>& rule) {
  if (!is_reduced_floating(g.result_dtype())) {
    rule(g);
    return;
  }
  WideGradient wide(g);
  rule(wide);
}

bool is_widened(const Gradient& g) {
  return dynamic_cast<const WideGradient*>(&g) != nullptr;
}

std::function<void(Gradient&)> wide_second_order(std::function<void(Gradient&)> rule) {
  return [rule = std::move(rule)](Gradient& g) {
    if (thread_state.grad_mode) {
      in_float(g, rule);
    } else {
      rule(g);
    }
  };
}

}  // namespace rushlight
