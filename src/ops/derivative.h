// Gradients of element-wise operators, derived from their expressions.
#pragma once

#include "ops/elementwise.h"

namespace rushlight {

// Sets op.gradient and what it saves. Each input's gradient is an element-wise operator of its own
// (named after the operator and the input), so it differentiates again.
void derive_gradient(Operator& op, Rule rule, ElementwiseFunction function);

}  // namespace rushlight
