#include "ops/gradient_view.h"

#include <rushlight/generated/functions.h>

namespace rushlight {
namespace {

Tensor conjugate(const Tensor& x) {
  return x.defined() && x.is_complex() ? conj(x) : x;
}

}  // namespace

const Tensor& GradientView::grad(int i) const {
  for (const auto& [result, tensor] : grads_) {
    if (result == i) {
      return tensor;
    }
  }
  grads_.emplace_back(i, incoming(inner_.grad(i)));
  return grads_.back().second;
}

Tensor ConjugateGradient::incoming(const Tensor& grad) const {
  return conjugate(grad);
}

void ConjugateGradient::set(int argument, Tensor gradient) {
  inner_.set(argument, conjugate(gradient));
}

void ConjugateGradient::set_list(int argument, TensorList gradients) {
  for (Tensor& gradient : gradients) {
    gradient = conjugate(gradient);
  }
  inner_.set_list(argument, std::move(gradients));
}

}  // namespace rushlight
