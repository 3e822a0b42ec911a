// The gradient of operators whose results do not depend on the values of their arguments.
#pragma once

#include <rushlight/generated/functions.h>

#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {

// Zeros for every tensor argument that wants a gradient: there is one, and it is nothing, where an
// unset gradient would say that there is none.
inline void zero_gradient(Gradient& g) {
  const std::vector<Argument>& arguments = g.op().schema.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    int at = static_cast<int>(i);
    if (arguments[i].type == SchemaType::Tensor && !arguments[i].list && g.needs(at)) {
      g.set(at, zeros(g.sizes(at), TensorOptions(g.dtype(at)).device(g.grad().device())));
    }
  }
}

}  // namespace rushlight
