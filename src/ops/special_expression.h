// Special functions as expressions, for element-wise bodies. They take f32 or f64 and compute in
// f64; for f32 as far as f32 shows.
#pragma once

#include "loop/node.h"

namespace rushlight::special {

// The modified Bessel function of the first kind of order 0 or 1, times exp(-|x|). Relative error
// below 1e-14.
loop::Expr bessel_scaled(int order, loop::Expr x);
// The same without that factor.
loop::Expr bessel(int order, loop::Expr x);
// The inverse of the normal distribution function: infinite at 0 and 1, NaN outside.
loop::Expr normal_quantile(loop::Expr p);

}  // namespace rushlight::special
