// Gamma and binomial random numbers as PyTorch's CPU generator draws them, and how gamma and beta
// numbers move with their parameters. The caller holds the state's lock.
#pragma once

#include "kernels/random.h"

namespace rushlight::streams {

// Gamma numbers of scale 1, a shape parameter an element; f32 or f64, at least the smallest normal
// number of that dtype.
void standard_gamma(void* out, const void* shapes, DType dtype, int64_t count, State& state);

// How many of counts[i] trials succeed with probability p[i]; f32 or f64.
void binomial(void* out, const void* counts, const void* p, DType dtype, int64_t count,
              State& state);

}  // namespace rushlight::streams

namespace rushlight::kernels {

// dx / d shape of a gamma number x at its fixed quantile.
double standard_gamma_slope(double shape, double x);

// dx / da of a Beta(a, total - a) number x at its fixed quantile and fixed total - a, over 1 - x.
double dirichlet_slope(double x, double a, double total);

}  // namespace rushlight::kernels
