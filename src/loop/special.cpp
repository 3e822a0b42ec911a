#include "loop/special.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace rushlight::loop {
namespace {

// Winitzki's closed form, good to about 2e-3.
double erfinv_guess(double x) {
  constexpr double kA = 0.147;
  double log_term = std::log1p(-x * x);
  double t = 2 / (std::numbers::pi * kA) + log_term / 2;
  return std::copysign(std::sqrt(std::sqrt(t * t - log_term / kA) - t), x);
}

}  // namespace

double erfinv_f64(double x) {
  if (std::fabs(x) == 1) {
    return std::copysign(std::numeric_limits<double>::infinity(), x);
  }
  if (!(std::fabs(x) < 1)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (std::fabs(x) < 1e-8) {
    return x * (std::sqrt(std::numbers::pi) / 2);
  }
  // Halley's method on erf(y) - |x|; erfc where erf is near 1, as 1 - |x| is exact there.
  double target = std::fabs(x);
  double y = erfinv_guess(target);
  for (int step = 0; step < 3; ++step) {
    double error = target < 0.5 ? std::erf(y) - target : (1 - target) - std::erfc(y);
    double slope = 2 / std::sqrt(std::numbers::pi) * std::exp(-y * y);
    double newton = error / slope;
    y -= newton / (1 + y * newton);
  }
  return std::copysign(y, x);
}

double digamma_f64(double x) {
  if (x == 0) {
    return std::copysign(std::numeric_limits<double>::infinity(), -x);
  }
  if (x < 0) {
    double whole;
    double fraction = std::modf(x, &whole);
    if (fraction == 0) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    // Reflection; the tangent of the fraction alone keeps its accuracy far from 0.
    return digamma_f64(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * fraction);
  }
  double sum = 0;
  for (; x < 12; ++x) {
    sum -= 1 / x;
  }
  // The asymptotic series in 1/x^2: B_2k / 2k.
  constexpr double kTerms[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  double square = 1 / (x * x);
  double series = 0;
  for (int k = 7; k >= 0; --k) {
    series = (series + kTerms[k]) * square;
  }
  return sum + std::log(x) - 0.5 / x - series;
}

double lgamma_f64(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

}  // namespace rushlight::loop
