// Bessel and Airy functions, one number at a time in double precision. NaN for NaN; at infinity the
// limit.
#pragma once

namespace rushlight::kernels {

// Bessel functions of the first kind, of order 0 and 1.
double bessel_j0(double x);
double bessel_j1(double x);
// Of the second kind: -infinity at 0, NaN below.
double bessel_y0(double x);
double bessel_y1(double x);

// Modified Bessel functions of the second kind: infinite at 0, NaN below. The scaled forms are
// times exp(x). Relative error below 1e-14.
double bessel_k0(double x);
double bessel_k0_scaled(double x);
double bessel_k1(double x);
double bessel_k1_scaled(double x);

// sin(x) / x.
double spherical_bessel_j0(double x);

// The Airy function Ai.
double airy_ai(double x);

}  // namespace rushlight::kernels
