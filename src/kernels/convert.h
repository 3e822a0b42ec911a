#pragma once

#include <rushlight/tensor.h>

#include "loop/node.h"

namespace rushlight::kernels {

// A value in registers (no complex one), as the conversion to `dtype` gives it, there as well.
loop::Expr convert_value(loop::Expr value, DType dtype);

// target[...] = source, broadcast and converted, by a kernel compiled for the two dtypes. Floats
// become integers by truncation, anything becomes bool by comparison with zero, complex numbers
// become real ones by dropping the imaginary part.
void convert(const Tensor& target, const Tensor& source);

}  // namespace rushlight::kernels
