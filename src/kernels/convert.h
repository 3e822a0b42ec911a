#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// target[...] = source, broadcast and converted, by a kernel compiled for the two dtypes. Floats
// become integers by truncation, anything becomes bool by comparison with zero, complex numbers
// become real ones by dropping the imaginary part.
void convert(const Tensor& target, const Tensor& source);

}  // namespace rushlight::kernels
