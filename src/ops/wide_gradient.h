// Gradient rules of half types that are carried out in float.
//
// A rule in public operators rounds every step to the half type. Where steps cancel (norms,
// softmax) little of the result is left, least of all after it has been differentiated again.
#pragma once

#include <functional>

#include "ops/gradient_view.h"

namespace rushlight {

// A gradient whose halves are floats; what is set is converted back by the gradient behind it.
class WideGradient final : public GradientView {
 public:
  explicit WideGradient(Gradient& inner) : GradientView(inner) {}

  Tensor tensor(int argument) const override;
  Tensor result(int i = 0) const override;
  TensorList tensors(int argument) const override;
  DType dtype(int argument) const override;
  DType result_dtype(int i = 0) const override;
  DType item_dtype(int argument, int item) const override;

 private:
  Tensor incoming(const Tensor& grad) const override;
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
