#include "runtime/math_helpers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "loop/special.h"
#include "runtime/math_gamma.h"

// X(name, expression of x in f64)
#define RUSHLIGHT_UNARY_HELPERS(X) \
  X(exp, std::exp(x))              \
  X(exp2, std::exp2(x))            \
  X(expm1, std::expm1(x))          \
  X(log, std::log(x))              \
  X(log2, std::log2(x))            \
  X(log10, std::log10(x))          \
  X(log1p, std::log1p(x))          \
  X(sin, std::sin(x))              \
  X(cos, std::cos(x))              \
  X(tan, std::tan(x))              \
  X(asin, std::asin(x))            \
  X(acos, std::acos(x))            \
  X(atan, std::atan(x))            \
  X(sinh, std::sinh(x))            \
  X(cosh, std::cosh(x))            \
  X(tanh, std::tanh(x))            \
  X(asinh, std::asinh(x))          \
  X(acosh, std::acosh(x))          \
  X(atanh, std::atanh(x))          \
  X(erf, std::erf(x))              \
  X(erfc, std::erfc(x))            \
  X(erfinv, loop::erfinv_f64(x))

// X(name, expression of x in f64); f32 values go to name##_values, many at a time
#define RUSHLIGHT_GAMMA_HELPERS(X) \
  X(lgamma, loop::lgamma_f64(x))   \
  X(digamma, loop::digamma_f64(x))

// X(name, expression of x and y in f64)
#define RUSHLIGHT_BINARY_HELPERS(X) \
  X(pow, std::pow(x, y))            \
  X(atan2, std::atan2(x, y))        \
  X(hypot, std::hypot(x, y))

// X(name, expression of x and y in their own type)
#define RUSHLIGHT_EXACT_HELPERS(X) X(fmod, std::fmod(x, y))

namespace rushlight {
namespace {

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    result *= (exponent & 1) != 0 ? base : 1;
    base *= base;
  }
  return result;
}

// C's nextafter without its exceptions: the bits of numbers of one sign count up with their size.
template <typename T, typename Bits>
T step_towards(T x, T y) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits sign = std::bit_cast<Bits>(y) & kSign;
  const bool grows = (x < y) == (x > 0);
  const Bits moved = x == 0 ? sign | 1 : grows ? bits + 1 : bits - 1;
  const T next = std::bit_cast<T>(moved);
  const T same = x == y ? y : next;
  return x != x || y != y ? x + y : same;
}
// Blocks of known length become vectors.
template <typename Bits, typename T>
void steps_towards(T* out, const T* a, const T* b, int64_t count) {
  constexpr int64_t kBlock = 32 / sizeof(T);
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    T made[kBlock];
    for (int64_t k = 0; k < kBlock; ++k) {
      made[k] = step_towards<T, Bits>(a[i + k], b[i + k]);
    }
    std::memcpy(out + i, made, sizeof made);
  }
  for (; i < count; ++i) {
    out[i] = step_towards<T, Bits>(a[i], b[i]);
  }
}

int64_t power(int64_t base, int64_t exponent) {
  if (exponent >= 0) {
    return static_cast<int64_t>(
        power(static_cast<uint64_t>(base), static_cast<uint64_t>(exponent)));
  }
  if (base == 1) {
    return 1;
  }
  return base != -1 ? 0 : (exponent & 1) != 0 ? -1 : 1;
}

}  // namespace

extern "C" {

#define RUSHLIGHT_UNARY_F32(name, expression)                                   \
  void rushlight_math_##name##_f32(float* out, const float* a, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) {                                       \
      double x = a[i];                                                          \
      out[i] = static_cast<float>(expression);                                  \
    }                                                                           \
  }
#define RUSHLIGHT_UNARY_F64(name, expression)                                     \
  void rushlight_math_##name##_f64(double* out, const double* a, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) {                                         \
      double x = a[i];                                                            \
      out[i] = expression;                                                        \
    }                                                                             \
  }
#define RUSHLIGHT_VALUES_F32(name, expression)                                  \
  void rushlight_math_##name##_f32(float* out, const float* a, int64_t count) { \
    name##_values(out, a, count);                                               \
  }
RUSHLIGHT_UNARY_HELPERS(RUSHLIGHT_UNARY_F32)
RUSHLIGHT_UNARY_HELPERS(RUSHLIGHT_UNARY_F64)
RUSHLIGHT_GAMMA_HELPERS(RUSHLIGHT_VALUES_F32)
RUSHLIGHT_GAMMA_HELPERS(RUSHLIGHT_UNARY_F64)
#undef RUSHLIGHT_UNARY_F32
#undef RUSHLIGHT_UNARY_F64
#undef RUSHLIGHT_VALUES_F32

#define RUSHLIGHT_BINARY(name, expression, type, work)                                 \
  void rushlight_math_##name(type* out, const type* a, const type* b, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) {                                              \
      work x = a[i];                                                                   \
      work y = b[i];                                                                   \
      out[i] = static_cast<type>(expression);                                          \
    }                                                                                  \
  }
#define RUSHLIGHT_ROUNDED(name, expression)               \
  RUSHLIGHT_BINARY(name##_f32, expression, float, double) \
  RUSHLIGHT_BINARY(name##_f64, expression, double, double)
#define RUSHLIGHT_EXACT(name, expression)                \
  RUSHLIGHT_BINARY(name##_f32, expression, float, float) \
  RUSHLIGHT_BINARY(name##_f64, expression, double, double)
RUSHLIGHT_BINARY_HELPERS(RUSHLIGHT_ROUNDED)
RUSHLIGHT_EXACT_HELPERS(RUSHLIGHT_EXACT)
void rushlight_math_nextafter_f32(float* out, const float* a, const float* b, int64_t count) {
  steps_towards<uint32_t>(out, a, b, count);
}
void rushlight_math_nextafter_f64(double* out, const double* a, const double* b, int64_t count) {
  steps_towards<uint64_t>(out, a, b, count);
}
RUSHLIGHT_BINARY(pow_i64, power(x, y), int64_t, int64_t)
RUSHLIGHT_BINARY(pow_u64, power(x, y), uint64_t, uint64_t)

}  // extern "C"

namespace {

struct Helper {
  std::string_view symbol;
  void* address;
};

// What LLVM may call of its own accord, beside our functions.
const Helper kHelpers[] = {
#define RUSHLIGHT_ROW(name) \
  {"rushlight_math_" #name, reinterpret_cast<void*>(&rushlight_math_##name)},
#define RUSHLIGHT_ROWS(name, expression) RUSHLIGHT_ROW(name##_f32) RUSHLIGHT_ROW(name##_f64)
    RUSHLIGHT_UNARY_HELPERS(RUSHLIGHT_ROWS)   //
    RUSHLIGHT_GAMMA_HELPERS(RUSHLIGHT_ROWS)   //
    RUSHLIGHT_BINARY_HELPERS(RUSHLIGHT_ROWS)  //
    RUSHLIGHT_EXACT_HELPERS(RUSHLIGHT_ROWS)   //
    RUSHLIGHT_ROWS(nextafter, )               //
    RUSHLIGHT_ROW(pow_i64) RUSHLIGHT_ROW(pow_u64)
#undef RUSHLIGHT_ROWS
#undef RUSHLIGHT_ROW
        {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
    {"memmove", reinterpret_cast<void*>(&std::memmove)},
    {"memset", reinterpret_cast<void*>(&std::memset)},
};

}  // namespace

void* find_helper(std::string_view symbol) {
  for (const Helper& helper : kHelpers) {
    if (helper.symbol == symbol) {
      return helper.address;
    }
  }
  return nullptr;
}

}  // namespace rushlight
