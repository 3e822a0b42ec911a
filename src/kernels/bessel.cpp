#include "kernels/bessel.h"

#include <math.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/special.h"

namespace rushlight::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
using std::numbers::egamma;
using std::numbers::pi;

// K_v and K_(v+1) times exp(x), for |v| <= 1/2.
struct KPair {
  double at;
  double above;
};

// Temme's sum on Steed's evaluation of the continued fraction that U(v + 1/2, 2 v + 1, 2 x) obeys.
// Needs about 60 / x steps, so it is for x of 1 and more.
KPair k_fraction(double order, double x) {
  const double quarter = 0.25 - order * order;
  double b = 2 * (1 + x);
  double d = 1 / b;
  double step = d;
  double fraction = d;
  double before = 0;
  double last = 1;
  double c = quarter;
  double q = quarter;
  double a = -quarter;
  double sum = 1 + q * step;
  for (int k = 2; k < 10000; ++k) {
    a -= 2 * (k - 1);
    c = -a * c / k;
    const double next = (before - b * last) / a;
    before = last;
    last = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    step *= b * d - 1;
    fraction += step;
    const double term = q * step;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * kEpsilon / 4) {
      break;
    }
  }
  const double at = std::sqrt(pi / (2 * x)) / sum;
  return {at, at * (order + x + 0.5 - quarter * fraction) / x};
}

// The logarithm times I0 and the series with harmonic numbers, for small x.
double k0_series(double x) {
  const double square = x * x / 4;
  double term = 1;
  double harmonic = 0;
  double sum = 0;
  for (int k = 1; k < 40; ++k) {
    term *= square / (static_cast<double>(k) * k);
    harmonic += 1.0 / k;
    sum += term * harmonic;
  }
  return sum - (std::log(x / 2) + egamma) * bessel_i0(x);
}

double k1_series(double x) {
  const double square = x * x / 4;
  double term = 1;
  double digammas = 1 - 2 * egamma;  // digamma(k + 1) + digamma(k + 2)
  double sum = digammas;
  for (int k = 1; k < 40; ++k) {
    term *= square / (static_cast<double>(k) * (k + 1));
    digammas += 1.0 / k + 1.0 / (k + 1);
    sum += term * digammas;
  }
  return 1 / x + std::log(x / 2) * bessel_i1(x) - x / 4 * sum;
}

// Below this the series, above it the continued fraction.
constexpr double kSeries = 2;

// The limits that both orders share; `otherwise` for the rest.
template <typename F>
double k_at(double x, F&& otherwise) {
  if (std::isnan(x) || x < 0) {
    return kNaN;
  }
  if (x == 0) {
    return kInfinity;
  }
  return std::isinf(x) ? 0 : otherwise();
}

template <typename F>
double y_at(double x, F&& function) {
  if (std::isnan(x) || x < 0) {
    return kNaN;
  }
  return x == 0 ? -kInfinity : function(x);
}

// Ai from 0 to x by Taylor series of y'' = x y about points at most 1 apart: where x is negative
// both solutions stay bounded, so the steps lose nothing.
double airy_taylor(double x) {
  double value = 0.355028053887817239260;
  double slope = -0.258819403792806798405;
  const int steps = static_cast<int>(std::ceil(std::fabs(x)));
  if (steps == 0) {
    return value;
  }
  const double h = x / steps;
  for (int s = 0; s < steps; ++s) {
    const double at = h * s;
    // The coefficients of h^(n-1), h^n and h^(n+1), times these powers.
    double before = 0;
    double here = value;
    double next = slope * h;
    double sum = here;
    double slopes = 0;
    for (int n = 0; n < 60; ++n) {
      sum += next;
      slopes += (n + 1) * next;
      const double after = (at * here + h * before) * h * h / ((n + 1.0) * (n + 2.0));
      before = here;
      here = next;
      next = after;
    }
    value = sum;
    slope = slopes / h;
  }
  return value;
}

// Far below zero: the amplitude and phase expansions in 1 / zeta, zeta = 2/3 |x|^(3/2).
double airy_oscillating(double x) {
  const double size = -x;
  const double zeta = 2.0 / 3 * size * std::sqrt(size);
  double term = 1;
  double even = 1;
  double odd = 0;
  for (int k = 1; k < 40; ++k) {
    const double next =
        term * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216.0 * k * (2 * k - 1)) / zeta;
    if (next > term || next < kEpsilon / 8) {
      break;
    }
    term = next;
    const double sign = k / 2 % 2 == 0 ? 1 : -1;
    (k % 2 == 0 ? even : odd) += sign * term;
  }
  const double angle = zeta - pi / 4;
  return (std::cos(angle) * even + std::sin(angle) * odd) /
         (std::sqrt(pi) * std::sqrt(std::sqrt(size)));
}

}  // namespace

double bessel_j0(double x) {
  return ::j0(x);
}
double bessel_j1(double x) {
  return ::j1(x);
}
double bessel_y0(double x) {
  return y_at(x, ::y0);
}
double bessel_y1(double x) {
  return y_at(x, ::y1);
}

double bessel_k0(double x) {
  return k_at(x, [x] { return x <= kSeries ? k0_series(x) : k_fraction(0, x).at * std::exp(-x); });
}
double bessel_k0_scaled(double x) {
  return k_at(x, [x] { return x <= kSeries ? k0_series(x) * std::exp(x) : k_fraction(0, x).at; });
}
double bessel_k1(double x) {
  return k_at(x,
              [x] { return x <= kSeries ? k1_series(x) : k_fraction(0, x).above * std::exp(-x); });
}
double bessel_k1_scaled(double x) {
  return k_at(x,
              [x] { return x <= kSeries ? k1_series(x) * std::exp(x) : k_fraction(0, x).above; });
}

double spherical_bessel_j0(double x) {
  return std::isinf(x) ? 0 : x == 0 ? 1 : std::sin(x) / x;
}

double airy_ai(double x) {
  if (std::isnan(x)) {
    return x;
  }
  if (std::isinf(x)) {
    return 0;
  }
  if (x < -9) {
    return airy_oscillating(x);
  }
  if (x < 1.6) {
    return airy_taylor(x);
  }
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  return std::sqrt(x / 3) / pi * k_fraction(1.0 / 3, zeta).at * std::exp(-zeta);
}

}  // namespace rushlight::kernels
