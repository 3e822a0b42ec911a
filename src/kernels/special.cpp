#include "kernels/special.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace rushlight::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using std::numbers::pi;

// The power series: all terms have one sign, so nothing cancels.
double bessel_series(int order, double x) {
  const double quarter = x * x / 4;
  double term = order == 0 ? 1 : x / 2;
  double sum = term;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

// erfc_scaled by its continued fraction, from below up.
double erfc_fraction(double x) {
  double rest = 0;
  for (int k = 60; k > 0; --k) {
    rest = k / 2.0 / (x + rest);
  }
  return 1 / ((x + rest) * std::sqrt(pi));
}

}  // namespace

double bessel_i0(double x) {
  return bessel_series(0, x);
}
double bessel_i1(double x) {
  return bessel_series(1, x);
}

double erfc_scaled(double x) {
  if (x < 3) {
    return std::exp(x * x) * std::erfc(x);
  }
  return std::isinf(x) ? 0 : erfc_fraction(x);
}

double log_normal_distribution(double x) {
  const double t = x * std::numbers::sqrt2 / 2;
  return x < -1 ? std::log(erfc_scaled(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}

double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) {
    return kNaN;
  }
  if (s == 1) {
    return kInfinity;
  }
  if (q <= 0) {
    if (q == std::floor(q)) {
      return kInfinity;
    }
    if (s != std::floor(s)) {
      return kNaN;  // a power of a negative number
    }
  }
  // Euler and Maclaurin: the first terms one by one, the rest as an integral with corrections.
  double sum = 0;
  double at = q;
  for (int k = 0; k < 12 || at <= 9; ++k) {
    const double term = std::pow(at, -s);
    sum += term;
    if (at > 0 && term < sum * 1e-17) {
      return sum;
    }
    at += 1;
  }
  const double power = std::pow(at, -s);
  sum += power * at / (s - 1) + power / 2;
  // B_2k / (2k)! times s (s + 1) ... (s + 2k - 2) at^(-s - 2k + 1).
  constexpr double kBernoulli[] = {1.0 / 12,           -1.0 / 720,
                                   1.0 / 30240,        -1.0 / 1209600,
                                   1.0 / 47900160,     -691.0 / 1307674368000,
                                   1.0 / 74724249600., -3617.0 / 10670622842880000.};
  double factor = s;
  double scale = power / at;
  for (int k = 0; k < 8; ++k) {
    const double term = kBernoulli[k] * factor * scale;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-17) {
      break;
    }
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    scale /= at * at;
  }
  return sum;
}

double polygamma(int64_t n, double x) {
  const double order = static_cast<double>(n);
  const double sign = n % 2 != 0 ? 1 : -1;
  return sign * std::exp(std::lgamma(order + 1)) * zeta(order + 1, x);
}

}  // namespace rushlight::kernels
