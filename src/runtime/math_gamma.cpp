#include "runtime/math_gamma.h"

#include <bit>
#include <cstring>

#include "loop/special.h"
#include "runtime/cpu.h"

// Loops of kBlock steps over functions without branches become vectors.
#define RUSHLIGHT_INLINE [[gnu::always_inline]] static inline

namespace rushlight {
namespace {

constexpr int64_t kBlock = 8;

// Polynomials are minimax fits, relative to the function's value; errors are far below f32's.

// Coefficients lowest first.
RUSHLIGHT_INLINE double polynomial(double, double c) {
  return c;
}
template <typename... Rest>
RUSHLIGHT_INLINE double polynomial(double x, double c, Rest... rest) {
  return __builtin_fma(polynomial(x, rest...), x, c);
}

// The logarithm of a positive normal number, within 2^-32 of its value.
RUSHLIGHT_INLINE double log_positive(double x) {
  constexpr uint64_t kOne = 0x3ff0000000000000;
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr uint64_t kTwo52 = 0x4330000000000000;
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t biased = (bits + (kOne - kSqrtHalf)) >> 52;
  const double fraction = std::bit_cast<double>(bits - ((biased << 52) - kOne)) - 1;
  const double exponent = std::bit_cast<double>(biased | kTwo52) - (0x1p52 + 1023);
  return __builtin_fma(
      exponent, 0x1.62e42fefa39efp-1,
      fraction * polynomial(fraction, 0x1.ffffffffe11efp-1, -0x1.00000002869d5p-1,
                            0x1.5555560132227p-2, -0x1.fffff80e88835p-3, 0x1.9998fa13ea9a3p-3,
                            -0x1.5556c8a99b2dep-3, 0x1.24adedda9c450p-3, -0x1.ffe5a488ce5a2p-4,
                            0x1.c2c4afea25e0ep-4, -0x1.9670880a7e6b5p-4, 0x1.9af589f70b530p-4,
                            -0x1.958a5c27c27f1p-4, 0x1.b7553ffe6c789p-5));
}

// lgamma(y) is (y - 1) (y - 2) times a polynomial on [1, 3], Stirling's formula with a polynomial
// of 1 / x^2 from 3 on, and lgamma(x + 1) - log(x) below 1.
RUSHLIGHT_INLINE double lgamma_positive(double x) {
  const double log = log_positive(x);
  const double y = x < 1 ? x + 1 : x;
  // Zeros of the product are positive, as lgamma's are.
  const double slope = polynomial(
      y - 2, 0x1.b0ee607169d2ep-2, -0x1.9ae6512f5f7aep-4, 0x1.0e0ca064b3b58p-5,
      -0x1.95cd7cc0f2a6fp-7, 0x1.4795b6a9125ddp-8, -0x1.146c5535ee5b7p-9, 0x1.e04d5b5e77cddp-11,
      -0x1.a5828764613e1p-12, 0x1.7914ea1dfc2a6p-13, -0x1.80c1cf3dfbb9fp-14, 0x1.6ea214977f340p-15,
      -0x1.e8c302119dfa0p-18, 0x1.2ddd7800cf579p-19, -0x1.44b727e850d7ap-17, 0x1.471b25314ebcap-18);
  const double product = (y - 1) * (y - 2) * slope + 0.0;
  const double below = product - log;
  const double near = x < 1 ? below : product;
  const double over = 1 / x;
  const double stirling = __builtin_fma(x - 0.5, log, 0x1.d67f1c864beb5p-1 - x);
  const double far = __builtin_fma(
      over,
      polynomial(over * over, 0x1.55555553728d6p-4, -0x1.6c1651967bbccp-9, 0x1.9f9457e0bcc28p-11,
                 -0x1.29b179a0a0f78p-11, 0x1.09fb86fb6c119p-11),
      stirling);
  return x < 3 ? near : far;
}

// digamma(y) is y less its root times a polynomial on [1, 3], the asymptotic series as a polynomial
// from 3 on, and digamma(x + 1) - 1 / x below 1.
RUSHLIGHT_INLINE double digamma_positive(double x) {
  constexpr double kRoot = 0x1.762d86356be3fp+0;
  constexpr double kRootLow = 0x1.b86a722197829p-54;
  const double log = log_positive(x);
  const double over = 1 / x;
  const double y = x < 1 ? x + 1 : x;
  const double product =
      (y - kRoot - kRootLow) *
      polynomial(y - 2, 0x1.9213d462d118bp-1, -0x1.0aff26f0f9fcbp-2, 0x1.be76c3c23d0dcp-4,
                 -0x1.95ec38b48cf47p-5, 0x1.802391d65a01fp-6, -0x1.737f82564b789p-7,
                 0x1.6c8cf4a69158ep-8, -0x1.6819b7290dea3p-9, 0x1.59c760f52b088p-10,
                 -0x1.5478f7c168d6ap-11, 0x1.b348f0900a2fcp-12, -0x1.c3eae943de2cep-13,
                 -0x1.5205caef903d2p-21, 0x1.8cd59493640eap-18, 0x1.0aca3f5d84ed4p-14,
                 -0x1.172afa1cba64dp-15);
  const double below = product - over;
  const double near = x < 1 ? below : product;
  const double square = over * over;
  const double series = __builtin_fma(over, -0.5, log);
  const double far =
      __builtin_fma(-square,
                    polynomial(square, 0x1.5555554316d2fp-4, -0x1.1110005a29465p-7,
                               0x1.036bb763f26f9p-8, -0x1.fe3554eca7b23p-9, 0x1.0f5655532caf8p-8),
                    series);
  return x < 3 ? near : far;
}

// Numbers that are positive and finite go by blocks, the others one by one.
template <typename Function>
RUSHLIGHT_INLINE void map_blocks(float* out, const float* a, int64_t count, double (*other)(double),
                                 Function positive) {
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t there = count - i < kBlock ? count - i : kBlock;
    float given[kBlock];
    float made[kBlock];
    for (float& x : given) {
      x = 1;
    }
    std::memcpy(given, a + i, static_cast<size_t>(there) * sizeof(float));
    for (int64_t k = 0; k < kBlock; ++k) {
      made[k] = static_cast<float>(positive(given[k]));
    }
    for (int64_t k = 0; k < there; ++k) {
      const bool common = given[k] > 0 && given[k] < __builtin_inff();
      out[i + k] = common ? made[k] : static_cast<float>(other(given[k]));
    }
  }
}

#if defined(__x86_64__)
#define RUSHLIGHT_FUSED __attribute__((target("avx2,fma")))
#else
#define RUSHLIGHT_FUSED
#endif

RUSHLIGHT_FUSED void lgamma_fused(float* out, const float* a, int64_t count) {
  map_blocks(out, a, count, loop::lgamma_f64,
             [](double x) RUSHLIGHT_FUSED { return lgamma_positive(x); });
}

RUSHLIGHT_FUSED void digamma_fused(float* out, const float* a, int64_t count) {
  map_blocks(out, a, count, loop::digamma_f64,
             [](double x) RUSHLIGHT_FUSED { return digamma_positive(x); });
}

bool fuses() {
#if defined(__x86_64__)
  return cpu_level() >= CpuLevel::v3;
#else
  return true;
#endif
}

}  // namespace

void lgamma_values(float* out, const float* a, int64_t count) {
  if (fuses()) {
    return lgamma_fused(out, a, count);
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(loop::lgamma_f64(a[i]));
  }
}

void digamma_values(float* out, const float* a, int64_t count) {
  if (fuses()) {
    return digamma_fused(out, a, count);
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(loop::digamma_f64(a[i]));
  }
}

}  // namespace rushlight
