#include "kernels/random_gamma.h"

#include <algorithm>
#include <limits>

#include "kernels/random_draw.h"
#include "loop/special.h"

namespace rushlight::streams {
namespace {

// Marsaglia and Tsang: a transformed normal number, accepted by a uniform one. Shapes below 1 draw
// with one more and scale down.
double gamma_number(double shape, State& state) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) {
      return 0;
    }
    scale = std::pow(1 - uniform_double(state), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    double x;
    double y;
    do {
      x = normal_double(state);
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y;
    const double u = 1 - uniform_double(state);
    const double square = x * x;
    if (u < 1 - 0.0331 * square * square ||
        std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) {
      return scale * d * v;
    }
  }
}

// log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
double stirling_tail(double k) {
  constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) {
    return kFirst[static_cast<int>(k)];
  }
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Hoermann's transformed rejection with squeeze, for count * p of 10 and more, p at most 1/2.
double binomial_large(double count, double p, State& state) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5;
  const double quick = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  while (true) {
    const double u = uniform_double(state) - 0.5;
    const double v = uniform_double(state);
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= quick) {
      return k;
    }
    if (k < 0 || k > count) {
      continue;
    }
    const double rest = count - mode + 1;
    const double accepted = (mode + 0.5) * std::log((mode + 1) / (odds * rest)) +
                            (count + 1) * std::log(rest / (count - k + 1)) +
                            (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
                            stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) -
                            stirling_tail(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= accepted) {
      return k;
    }
  }
}

// Counts how many gaps between successes fit into the trials.
double binomial_small(double count, double p, State& state) {
  const double log_failure = std::log1p(-p);
  double trials = 0;
  double successes = 0;
  while (true) {
    trials += std::ceil(std::log(uniform_double(state)) / log_failure);
    if (trials > count) {
      return successes;
    }
    ++successes;
  }
}

double binomial_number(double count, double p, State& state) {
  if (count <= 0 || p <= 0) {
    return 0;
  }
  if (p >= 1) {
    return count;
  }
  if (std::isnan(p)) {
    return p;
  }
  const double q = std::min(p, 1 - p);
  const double k =
      count * q >= 10 ? binomial_large(count, q, state) : binomial_small(count, q, state);
  return p <= 0.5 ? k : count - k;
}

template <typename Body>
void with_float_type(DType dtype, Body&& body) {
  if (dtype == DType::Float32) {
    return body.template operator()<float>();
  }
  body.template operator()<double>();
}

}  // namespace

void standard_gamma(void* out, const void* shapes, DType dtype, int64_t count, State& state) {
  with_float_type(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      const double drawn = gamma_number(static_cast<const T*>(shapes)[i], state);
      static_cast<T*>(out)[i] = std::max(std::numeric_limits<T>::min(), static_cast<T>(drawn));
    }
  });
}

void binomial(void* out, const void* counts, const void* p, DType dtype, int64_t count,
              State& state) {
  with_float_type(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      static_cast<T*>(out)[i] = static_cast<T>(
          binomial_number(static_cast<const T*>(counts)[i], static_cast<const T*>(p)[i], state));
    }
  });
}

}  // namespace rushlight::streams

namespace rushlight::kernels {
namespace {

constexpr int kTerms = 1000000;
constexpr double kSmall = 1e-17;

// The series 1 + ratio(0) + ratio(0) ratio(1) + ..., and its derivative where the logarithm of
// ratio(n) has the derivative slope(n).
struct Series {
  double sum = 1;
  double slope = 0;
};
template <typename Ratio, typename Slope>
Series sum_series(Ratio&& ratio, Slope&& slope) {
  Series series;
  double term = 1;
  double log_slope = 0;
  for (int n = 0; n < kTerms && term > series.sum * kSmall; ++n) {
    log_slope += slope(n);
    term *= ratio(n);
    series.sum += term;
    series.slope += term * log_slope;
  }
  return series;
}

}  // namespace

// The quantile is fixed, so dx / da = -(dF / da) / density. The distribution function over the
// density is x / a times a series of positive terms.
double standard_gamma_slope(double a, double x) {
  const Series series =
      sum_series([=](int n) { return x / (a + 1 + n); }, [=](int n) { return -1 / (a + 1 + n); });
  const double factor = std::log(x) - loop::digamma_f64(a) - 1 / a;
  return -x / a * (series.sum * factor + series.slope);
}

double dirichlet_slope(double x, double a, double total) {
  const double b = total - a;
  const double common = std::log(x) - loop::digamma_f64(a) + loop::digamma_f64(total);
  if (x <= (a + 1) / (total + 2)) {
    const Series series = sum_series([=](int n) { return (total + n) / (a + 1 + n) * x; },
                                     [=](int n) { return 1 / (total + n) - 1 / (a + 1 + n); });
    return -x / a * (series.sum * (common - 1 / a) + series.slope);
  }
  // From the other end, where the series converges fast.
  const double y = 1 - x;
  const Series series = sum_series([=](int n) { return (total + n) / (b + 1 + n) * y; },
                                   [=](int n) { return 1 / (total + n); });
  return x / b * (series.sum * common + series.slope);
}

}  // namespace rushlight::kernels
