// Gradient rules of half types that are carried out in float.
//
// A rule in public operators rounds every step to the half type. Where steps cancel (norms,
// softmax) little of the result is left, least of all after it has been differentiated again.
#pragma once

#include <deque>
#include <functional>

#include "ops/gradient.h"

namespace rushlight {

// A gradient whose halves are floats; what is set is converted back by the gradient behind it.
class WideGradient final : public Gradient {
 public:
  explicit WideGradient(Gradient& inner) : inner_(inner) {}

  const Tensor& grad(int i = 0) const override;
  const Operator& op() const override { return inner_.op(); }
  bool needs(int argument) const override { return inner_.needs(argument); }
  const Value& value(int argument) const override { return inner_.value(argument); }
  Tensor tensor(int argument) const override;
  Tensor result(int i = 0) const override;
  TensorList tensors(int argument) const override;
  IntArrayRef sizes(int argument) const override { return inner_.sizes(argument); }
  DType dtype(int argument) const override;
  IntArrayRef result_sizes(int i = 0) const override { return inner_.result_sizes(i); }
  DType result_dtype(int i = 0) const override;
  IntArrayRef item_sizes(int argument, int item) const override {
    return inner_.item_sizes(argument, item);
  }
  int item_count(int argument) const override { return inner_.item_count(argument); }
  DType item_dtype(int argument, int item) const override;
  void set(int argument, Tensor gradient) override { inner_.set(argument, std::move(gradient)); }
  void set_list(int argument, TensorList gradients) override {
    inner_.set_list(argument, std::move(gradients));
  }

 private:
  Gradient& inner_;
  mutable std::deque<std::pair<int, Tensor>> grads_;  // by result; those asked for are referred to
};

// Carries `rule` out in float where the gradient is of a half type.
void in_float(Gradient& g, const std::function<void(Gradient&)>& rule);

// Compositions of halves that round once: `widened` arguments, and a result that is `rounded` to
// the halves' dtype. Tensors and results of other dtypes are passed on as they are.
Tensor widened(const Tensor& x);
Tensor rounded(const Tensor& x, DType dtype);

// Whether g is of halves carried out in float: results are then those of halves, rounded.
bool is_widened(const Gradient& g);

// The rule, in float where the gradient will itself be differentiated. First-order gradients have
// kernels that round once, or steps too few to cancel.
std::function<void(Gradient&)> wide_second_order(std::function<void(Gradient&)> rule);

}  // namespace rushlight
