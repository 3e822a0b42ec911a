// What splitting into views and its gradient share.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

class Gradient;

// Views of the given lengths, one behind the other, along `dim` (not negative).
TensorList split_views(const Tensor& self, IntArrayRef lengths, int64_t dim);

// Sets the gradient of argument 0 of a split into `lengths` along `dim`: the pieces joined again,
// zeros for those without a gradient.
void split_gradient(Gradient& g, IntArrayRef lengths, int64_t dim);

}  // namespace rushlight
