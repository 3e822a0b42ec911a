// The regularised incomplete gamma functions, in double precision.
#pragma once

namespace rushlight::kernels {

// P(a, x), the integral of t^(a - 1) exp(-t) / Gamma(a) from 0 to x, and Q(a, x) = 1 - P(a, x),
// each exact to about 1e-13 of itself where it is not below 1e-300. NaN for negative arguments and
// where there is no limit: (0, 0) and (inf, inf).
double gamma_lower(double a, double x);
double gamma_upper(double a, double x);

}  // namespace rushlight::kernels
