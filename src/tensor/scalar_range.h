// Which numbers a dtype holds.
#pragma once

#include <rushlight/scalar.h>

namespace rushlight {

// Error(Runtime) where an integer dtype, or f32 or f64, cannot hold the number; infinities are held
// by floats. Negative integers wrap around in unsigned dtypes as long as they are above -2^bits.
void check_fits(const Scalar& value, DType dtype);

}  // namespace rushlight
