// Orthogonal polynomials of degree n at x, by their recurrences in float or double; 0 where n < 0.
// Chebyshev's take constant time inside the interval of orthogonality, at any degree.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

template <typename T>
using Polynomial = T (*)(T x, int64_t n);

template <typename T>
T chebyshev_t(T x, int64_t n);
template <typename T>
T chebyshev_u(T x, int64_t n);
template <typename T>
T chebyshev_v(T x, int64_t n);
template <typename T>
T chebyshev_w(T x, int64_t n);
// Chebyshev's on [0, 1]: at 2 x - 1.
template <typename T>
T shifted_chebyshev_t(T x, int64_t n);
template <typename T>
T shifted_chebyshev_u(T x, int64_t n);
template <typename T>
T shifted_chebyshev_v(T x, int64_t n);
template <typename T>
T shifted_chebyshev_w(T x, int64_t n);
// Hermite's with the weights exp(-x^2) and exp(-x^2 / 2).
template <typename T>
T hermite_h(T x, int64_t n);
template <typename T>
T hermite_he(T x, int64_t n);
template <typename T>
T laguerre_l(T x, int64_t n);
template <typename T>
T legendre_p(T x, int64_t n);

}  // namespace rushlight::kernels
