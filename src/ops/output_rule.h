// Compositions that ask something of their own of the tensors that they write.
#pragma once

#include <memory>

#include "ops/operator.h"

namespace rushlight {

// What an operator asks of a given result, results[0], beyond the common checks, which follow;
// `made` is what is written there.
using OutputRule = void (*)(const Invocation& inv, const Tensor& made);

// A body for Kind::Composition with a rule for its out= and in-place forms.
std::unique_ptr<Body> ruled_body(BoxedFunction function, OutputRule rule);

}  // namespace rushlight
