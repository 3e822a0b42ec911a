#include "kernels/polynomial.h"

#include <cmath>

namespace rushlight::kernels {
namespace {

// From this degree on a closed form is used inside the interval of orthogonality.
constexpr int64_t kClosed = 9;

// p[0] = 1, p[1] = first, p[k + 1] = step(k, p[k], p[k - 1]). What is NaN remains it, so the
// recurrence ends there.
template <typename T, typename Step>
T recur(int64_t n, T first, Step&& step) {
  if (n <= 0) {
    return n == 0 ? T(1) : T(0);
  }
  T before = 1;
  T here = first;
  for (int64_t k = 1; k < n && !std::isnan(here); ++k) {
    const T next = step(static_cast<T>(k), here, before);
    before = here;
    here = next;
  }
  return here;
}

// The four kinds share the recurrence and differ in the polynomial of degree 1.
template <typename T>
T chebyshev(T x, int64_t n, T first) {
  return recur(n, first, [twice = x + x](T, T here, T before) { return twice * here - before; });
}

bool inside(double x, int64_t n) {
  return n >= kClosed && std::fabs(x) < 1;
}

template <typename T>
T signed_by(int64_t n, T value) {
  return n % 2 == 0 ? value : -value;
}

}  // namespace

template <typename T>
T chebyshev_t(T x, int64_t n) {
  if (inside(x, n)) {
    return std::cos(static_cast<T>(n) * std::acos(x));
  }
  if (n > 0 && std::fabs(x) == 1) {
    return x > 0 ? T(1) : signed_by(n, T(1));
  }
  return chebyshev(x, n, x);
}

template <typename T>
T chebyshev_u(T x, int64_t n) {
  const T degree = static_cast<T>(n);
  if (n > 0 && std::fabs(x) == 1) {
    return x > 0 ? degree + 1 : signed_by(n, degree + 1);
  }
  if (inside(x, n)) {
    const T angle = std::acos(x);
    return std::sin((degree + 1) * angle) / std::sin(angle);
  }
  return chebyshev(x, n, x + x);
}

template <typename T>
T chebyshev_v(T x, int64_t n) {
  const T degree = static_cast<T>(n);
  if (n > 0 && std::fabs(x) == 1) {
    return x > 0 ? T(1) : signed_by(n, degree + degree + 1);
  }
  if (inside(x, n)) {
    const T angle = std::acos(x);
    return std::cos((degree + T(0.5)) * angle) / std::cos(angle / 2);
  }
  return chebyshev(x, n, x + x - 1);
}

template <typename T>
T chebyshev_w(T x, int64_t n) {
  const T degree = static_cast<T>(n);
  if (n > 0 && std::fabs(x) == 1) {
    return x > 0 ? degree + degree + 1 : signed_by(n, T(1));
  }
  if (inside(x, n)) {
    const T angle = std::acos(x);
    return std::sin((degree + T(0.5)) * angle) / std::sin(angle / 2);
  }
  return chebyshev(x, n, x + x + 1);
}

template <typename T>
T shifted_chebyshev_t(T x, int64_t n) {
  return chebyshev_t(x + x - 1, n);
}
template <typename T>
T shifted_chebyshev_u(T x, int64_t n) {
  return chebyshev_u(x + x - 1, n);
}
template <typename T>
T shifted_chebyshev_v(T x, int64_t n) {
  return chebyshev_v(x + x - 1, n);
}
template <typename T>
T shifted_chebyshev_w(T x, int64_t n) {
  return chebyshev_w(x + x - 1, n);
}

template <typename T>
T hermite_h(T x, int64_t n) {
  return recur(n, x + x,
               [twice = x + x](T k, T here, T before) { return twice * here - (k + k) * before; });
}

template <typename T>
T hermite_he(T x, int64_t n) {
  return recur(n, x, [x](T k, T here, T before) { return x * here - k * before; });
}

template <typename T>
T laguerre_l(T x, int64_t n) {
  if (x == 0 && n > 0) {
    return 1;
  }
  return recur(n, 1 - x, [x](T k, T here, T before) {
    return ((k + k + 1 - x) * here - k * before) / (k + 1);
  });
}

template <typename T>
T legendre_p(T x, int64_t n) {
  if (n > 0 && std::fabs(x) == 1) {
    return x > 0 ? T(1) : signed_by(n, T(1));
  }
  return recur(
      n, x, [x](T k, T here, T before) { return ((k + k + 1) * x * here - k * before) / (k + 1); });
}

#define RUSHLIGHT_POLYNOMIAL(name)     \
  template float name(float, int64_t); \
  template double name(double, int64_t);

RUSHLIGHT_POLYNOMIAL(chebyshev_t)
RUSHLIGHT_POLYNOMIAL(chebyshev_u)
RUSHLIGHT_POLYNOMIAL(chebyshev_v)
RUSHLIGHT_POLYNOMIAL(chebyshev_w)
RUSHLIGHT_POLYNOMIAL(shifted_chebyshev_t)
RUSHLIGHT_POLYNOMIAL(shifted_chebyshev_u)
RUSHLIGHT_POLYNOMIAL(shifted_chebyshev_v)
RUSHLIGHT_POLYNOMIAL(shifted_chebyshev_w)
RUSHLIGHT_POLYNOMIAL(hermite_h)
RUSHLIGHT_POLYNOMIAL(hermite_he)
RUSHLIGHT_POLYNOMIAL(laguerre_l)
RUSHLIGHT_POLYNOMIAL(legendre_p)

#undef RUSHLIGHT_POLYNOMIAL

}  // namespace rushlight::kernels
