// Gradients of element-wise operators, derived from their expressions.
#pragma once

#include <string_view>

#include "ops/elementwise.h"

namespace rushlight {

// The name of the attribute by which halves are returned in the dtype that is computed in.
constexpr std::string_view kWide = "wide";

// Sets op.gradient and what it saves. Each input's gradient is an element-wise operator of its own
// (named after the operator and the input), so it differentiates again.
void derive_gradient(Operator& op, Rule rule, ElementwiseFunction function);

// The operator called "mul_gradient.Tensor0": the gradient of argument 0 of mul.Tensor; null where
// there is none. Gradients have gradients.
const Operator* find_gradient_operator(std::string_view full_name);

}  // namespace rushlight
