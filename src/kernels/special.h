// Functions of mathematical physics, one number at a time in double precision. NaN for NaN.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

// Modified Bessel functions of the first kind, of order 0 and 1, for |x| up to 32. Relative error
// below 1e-14.
double bessel_i0(double x);
double bessel_i1(double x);

// exp(x^2) erfc(x), which decays like 1 / (x sqrt(pi)).
double erfc_scaled(double x);
// The logarithm of the normal distribution function, exact far below zero.
double log_normal_distribution(double x);

// The Hurwitz zeta function: the sum of (q + k)^-s over k >= 0. s > 1; NaN below, infinite at 1 and
// at q = 0, -1, -2, ...
double zeta(double s, double q);
// The n-th derivative of digamma, n >= 1.
double polygamma(int64_t n, double x);

}  // namespace rushlight::kernels
