// Maximum pooling over windows at random places (Graham, 2014), and its inverse.
#pragma once

#include "kernels/window.h"

namespace rushlight::kernels {

// Row-major planes. Each plane's windows, of `kernel` positions, begin at places that its numbers
// of `samples` (batch, channels, dimensions; the tensor's dtype) shift, computed in that dtype. In
// two dimensions the first number is the width's, in three the depth's.
void fractional_max_pool(const Tensor& values, const Tensor& indices, const Tensor& input,
                         const WindowSpace& space, int dims, const Tensor& samples);

// Planes of zeros with each element of `input` set at its index; of equal indices the last counts.
// Error(Runtime) where an index is outside its plane. Dense in the layout of the space.
void max_unpool(const Tensor& made, const Tensor& input, const Tensor& indices,
                const WindowSpace& space);

}  // namespace rushlight::kernels
