// The rules of differentiate(): what each operator passes on to its operands.
#pragma once

#include "loop/node.h"

namespace rushlight::loop {

// A part of a gradient: `value` where `guard` holds (always, where it is null) and 0 elsewhere.
// Guards stay apart from values until the end, so that a factor that is not finite on the other
// side of a Select does no harm.
struct Part {
  Expr value;
  Expr guard;
};

// Appends to `parts` what `node`, whose own gradient is `grad`, passes to operand number `input`.
// Appends nothing where the derivative is zero everywhere. Error(Internal) for Reduce and Scan.
void derivative(Expr node, size_t input, Expr grad, std::vector<Part>& parts);

// Where `node` is the root of a form that has a better derivative than its parts have (sigmoid,
// softplus): sets `inner` to the form's argument and `result` to what it passes there.
bool form_derivative(Expr node, Expr grad, Expr* inner, Expr* result);

}  // namespace rushlight::loop
