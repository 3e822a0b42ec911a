#include "kernels/incomplete_gamma.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "loop/special.h"

namespace rushlight::kernels {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// From here on Stirling's series gives Gamma to the last bits.
constexpr double kStirling = 20;

// log(1 + u) - u, which cancels for small u.
double log1p_less(double u) {
  if (std::fabs(u) > 0.25) {
    return std::log1p(u) - u;
  }
  double power = -u;
  double sum = 0;
  for (int k = 2; k < 60; ++k) {
    power *= -u;
    const double term = -power / k;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * kEpsilon) {
      break;
    }
  }
  return sum;
}

// x^a exp(-x) / Gamma(a + 1). Of large numbers the logarithms would cancel: there it is the
// exponential of a small one over Stirling's series.
double density(double a, double x) {
  if (a < kStirling) {
    return std::exp(a * std::log(x) - x - loop::lgamma_f64(a + 1));
  }
  const double inverse = 1 / a;
  const double square = inverse * inverse;
  const double series =
      inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  const double exponent = a * log1p_less((x - a) / a) - series;
  return std::exp(exponent) / std::sqrt(2 * std::numbers::pi * a);
}

// P by its power series: density * (1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ...).
double lower_series(double a, double x) {
  double term = 1;
  double sum = 1;
  for (double k = a + 1; term > sum * kEpsilon; k += 1) {
    term *= x / k;
    sum += term;
  }
  return density(a, x) * sum;
}

// Q by Legendre's continued fraction, from above down (Lentz).
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / (std::fabs(b) < kTiny ? kTiny : b);
  double value = d;
  for (double k = 1; k < 1e6; k += 1) {
    const double numerator = k * (a - k);
    b += 2;
    d = numerator * d + b;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = b + numerator / c;
    c = std::fabs(c) < kTiny ? kTiny : c;
    value *= c * d;
    if (std::fabs(c * d - 1) < kEpsilon) {
      break;
    }
  }
  return density(a, x) * a * value;
}

// Q for small x, where 1 - P would cancel: 1 - x^a / Gamma(a + 1), and the rest of P's series.
double upper_series(double a, double x) {
  double term = 1;
  double sum = 0;
  for (int k = 1; k < 200; ++k) {
    term *= -x / k;
    const double part = term / (a + k);
    sum += part;
    if (std::fabs(part) < std::fabs(sum) * kEpsilon) {
      break;
    }
  }
  const double exponent = a * std::log(x) - loop::lgamma_f64(a + 1);
  return -std::expm1(exponent) - std::exp(exponent) * a * sum;
}

// Beyond this the distribution is normal about a - 1/3 to more digits than the series would keep.
constexpr double kHuge = 1e10;

// The Wilson-Hilferty normal approximation of Q.
double upper_normal(double a, double x) {
  const double third = std::cbrt(x / a) - (1 - 1 / (9 * a));
  return 0.5 * std::erfc(third * std::sqrt(9 * a) / std::numbers::sqrt2);
}

// The value at the edges of the domain, -1 inside it.
double lower_at_edge(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) ||
      (std::isinf(a) && std::isinf(x))) {
    return kNaN;
  }
  if (a == 0 || std::isinf(x)) {
    return 1;
  }
  return x == 0 || std::isinf(a) ? 0 : -1;
}

bool starts_below(double a, double x) {
  return x < a + 1;
}

}  // namespace

double gamma_lower(double a, double x) {
  const double edge = lower_at_edge(a, x);
  if (edge != -1) {
    return edge;
  }
  if (a > kHuge) {
    return 1 - upper_normal(a, x);
  }
  return starts_below(a, x) ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double gamma_upper(double a, double x) {
  const double edge = lower_at_edge(a, x);
  if (edge != -1) {
    return 1 - edge;
  }
  if (a > kHuge) {
    return upper_normal(a, x);
  }
  if (!starts_below(a, x)) {
    return upper_fraction(a, x);
  }
  return x < 1.1 && a < 1 ? upper_series(a, x) : 1 - lower_series(a, x);
}

}  // namespace rushlight::kernels
