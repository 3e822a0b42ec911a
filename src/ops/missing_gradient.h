// The gradient of operators that have a derivative which nobody has written down.
#pragma once

#include <rushlight/error.h>

#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {

// Backward is an error: where results were said to need no gradient, it would be without them.
inline void missing_gradient(Gradient& g) {
  fail(ErrorKind::NotImplemented, "", "the derivative for '", g.op().name(),
       "' is not implemented.");
}

}  // namespace rushlight
