// Distributions drawn element by element, permutations and categories.
#include <algorithm>
#include <vector>

#include "kernels/random_draw.h"

namespace rushlight::streams {

void bernoulli(void* out, DType dtype, int64_t count, double p, double on, State& state) {
  // u * 2^-53 < p, in whole numbers.
  const uint64_t bound = static_cast<uint64_t>(std::ceil(p * 0x1p53));
  constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
  constexpr int64_t kBlock = 256;
  with_real_type(dtype, "bernoulli_", [&]<typename T>() {
    uint32_t words[2 * kBlock];
    const T kept = from_double<T>(on);
    const T zero = from_double<T>(0);
    T* data = static_cast<T*>(out);
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t size = std::min(kBlock, count - begin);
      state.fill(words, 2 * size);
      for (int64_t i = 0; i < size; ++i) {
        const uint64_t word = static_cast<uint64_t>(words[2 * i]) << 32 | words[2 * i + 1];
        data[begin + i] = (word & kMask) < bound ? kept : zero;
      }
    }
  });
}

void bernoulli_each(void* out, DType dtype, int64_t count, const void* p, DType p_dtype,
                    State& state) {
  if (p_dtype == DType::Float64) {
    const double* next = static_cast<const double*>(p);
    return fill_doubles(out, dtype, count, "bernoulli_",
                        [&] { return uniform_double(state) < *next++ ? 1.0 : 0.0; });
  }
  const float* next = static_cast<const float*>(p);
  fill_doubles(out, dtype, count, "bernoulli_",
               [&] { return uniform_float(state.random32()) < *next++ ? 1.0 : 0.0; });
}

void exponential(void* out, DType dtype, int64_t count, double rate, State& state) {
  fill_doubles(out, dtype, count, "exponential_",
               [&] { return -1.0 / rate * std::log1p(-uniform_double(state)); });
}

void geometric(void* out, DType dtype, int64_t count, double p, State& state) {
  fill_doubles(out, dtype, count, "geometric_",
               [&] { return std::ceil(std::log(uniform_double(state)) / std::log1p(-p)); });
}

void cauchy(void* out, DType dtype, int64_t count, double median, double sigma, State& state) {
  fill_doubles(out, dtype, count, "cauchy_", [&] {
    return median + sigma * std::tan(std::numbers::pi * (uniform_double(state) - 0.5));
  });
}

void log_normal(void* out, DType dtype, int64_t count, double mean, double std, State& state) {
  fill_doubles(out, dtype, count, "log_normal_",
               [&] { return std::exp(std::fma(normal_double(state), std, mean)); });
}

namespace {

// Rates of 10 and more: transformed rejection (W. Hörmann, 1993, algorithm PTRS).
double poisson_large(double rate, State& state) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double quick = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = uniform_double(state) - 0.5;
    const double v = uniform_double(state);
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= quick) {
      return k;
    }
    if (k < 0 || (us < 0.013 && v > us)) {
      continue;
    }
    const double accepted = -rate + k * log_rate - std::lgamma(k + 1);
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= accepted) {
      return k;
    }
  }
}

// Small rates: count the factors that keep a product of uniform numbers above exp(-rate).
double poisson_small(double rate, State& state) {
  const double bound = std::exp(-rate);
  double product = uniform_double(state);
  double count = 0;
  while (product > bound) {
    ++count;
    product *= uniform_double(state);
  }
  return count;
}

double as_double(Half value) {
  return to_float(value);
}
double as_double(BFloat16 value) {
  return to_float(value);
}
template <typename T>
double as_double(T value) {
  return static_cast<double>(value);
}

// Sums to the last category, then scaled to end at one; half types sum in f32.
template <typename T, typename Sum>
void cumulative(const T* weights, int64_t categories, std::vector<Sum>& out) {
  Sum sum = 0;
  for (int64_t j = 0; j < categories; ++j) {
    const double weight = as_double(weights[j]);
    if (!(weight >= 0)) {
      fail(ErrorKind::Runtime, "multinomial",
           "invalid multinomial distribution (encountering probability entry < 0)");
    }
    if (!std::isfinite(weight)) {
      fail(ErrorKind::Runtime, "multinomial",
           "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    }
    sum += static_cast<Sum>(weight);
    out[j] = sum;
  }
  if (!(sum > 0)) {
    fail(ErrorKind::Runtime, "multinomial",
         "invalid multinomial distribution (sum of probabilities <= 0)");
  }
  for (int64_t j = 0; j < categories; ++j) {
    out[j] /= sum;
  }
  out[categories - 1] = 1;
}

}  // namespace

void poisson(void* out, const void* rates, DType dtype, int64_t count, State& state) {
  with_real_type(dtype, "poisson", [&]<typename T>() {
    T* data = static_cast<T*>(out);
    const T* rate = static_cast<const T*>(rates);
    for (int64_t i = 0; i < count; ++i) {
      const double lambda = as_double(rate[i]);
      if (!(lambda >= 0)) {
        fail(ErrorKind::Runtime, "poisson",
             "invalid Poisson rate, expected rate to be non-negative");
      }
      data[i] = from_double<T>(lambda == 0    ? 0.0
                               : lambda >= 10 ? poisson_large(lambda, state)
                                              : poisson_small(lambda, state));
    }
  });
}

void permutation(int64_t* out, int64_t count, State& state) {
  constexpr int64_t kFew = 0xffffffffu / 20;
  if (count < kFew) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = i;
    }
    for (int64_t i = 0; i + 1 < count; ++i) {
      const int64_t other = state.random32() % static_cast<uint32_t>(count - i);
      std::swap(out[i], out[i + other]);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t other = static_cast<int64_t>(state.random64() % static_cast<uint64_t>(i + 1));
    out[i] = i;
    out[i] = out[other];
    out[other] = i;
  }
}

void multinomial(int64_t* out, const void* weights, DType dtype, int64_t rows, int64_t categories,
                 int64_t draws, State& state) {
  with_real_type(dtype, "multinomial", [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      fail(ErrorKind::Runtime, "multinomial",
           "multinomial only supports floating-point dtypes for input, got: ", dtype);
    } else {
      using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
      std::vector<Sum> sums(static_cast<size_t>(categories));
      const T* row = static_cast<const T*>(weights);
      for (int64_t r = 0; r < rows; ++r, row += categories) {
        cumulative(row, categories, sums);
        for (int64_t d = 0; d < draws; ++d) {
          const double u = uniform_double(state);
          const auto first =
              std::partition_point(sums.begin(), sums.end(), [&](Sum sum) { return sum < u; });
          *out++ = first - sums.begin();
        }
      }
    }
  });
}

}  // namespace rushlight::streams
