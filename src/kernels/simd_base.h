// Vectors of 16 bytes in the compiler's own vector types: SSE2 or NEON by default.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <rushlight/dtype.h>

#include <cstdint>
#include <cstring>

namespace rushlight::base {

#define RUSHLIGHT_INLINE [[gnu::always_inline]] static inline

// What does not depend on the element type.
template <typename Element>
struct Vector {
  using T = Element;
  typedef T R __attribute__((vector_size(16)));
  static constexpr int kWidth = 16 / sizeof(T);

  RUSHLIGHT_INLINE R zero() { return R{}; }
  RUSHLIGHT_INLINE R fms(R a, R b, R c) { return a * b - c; }
  RUSHLIGHT_INLINE R set1(T x) { return x - R{}; }
  RUSHLIGHT_INLINE R min(R bound, R x) { return bound < x ? bound : x; }
  RUSHLIGHT_INLINE R max(R bound, R x) { return bound > x ? bound : x; }
  RUSHLIGHT_INLINE R load(const T* p) {
    R x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  RUSHLIGHT_INLINE void store(T* p, R x) { std::memcpy(p, &x, sizeof x); }
  RUSHLIGHT_INLINE R load_first(const T* p, int64_t n) {
    R x{};
    for (int64_t i = 0; i < n; ++i) {
      x[i] = p[i];
    }
    return x;
  }
  RUSHLIGHT_INLINE void store_first(T* p, R x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      p[i] = x[i];
    }
  }
  RUSHLIGHT_INLINE T sum(R x) {
    if constexpr (kWidth == 4) {
      return (x[0] + x[2]) + (x[1] + x[3]);
    } else {
      return x[0] + x[1];
    }
  }
  RUSHLIGHT_INLINE void transpose(R (&r)[kWidth]) {
    for (int i = 0; i < kWidth; ++i) {
      for (int j = 0; j < i; ++j) {
        const T upper = r[j][i];
        r[j][i] = r[i][j];
        r[i][j] = upper;
      }
    }
  }
};

struct F32 : Vector<float> {
  typedef int32_t I __attribute__((vector_size(16)));
  using Vector<float>::load;
  using Vector<float>::store;

#if defined(__aarch64__)
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return vfmaq_f32(c, a, b); }
#else
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return a * b + c; }
#endif
  template <typename Small>
  RUSHLIGHT_INLINE R load(const Small* p) {
    return R{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])};
  }
  RUSHLIGHT_INLINE void store(Half* p, R x) {
    for (int i = 0; i < kWidth; ++i) {
      p[i] = to_half(x[i]);
    }
  }
  RUSHLIGHT_INLINE void store(BFloat16* p, R x) {
    for (int i = 0; i < kWidth; ++i) {
      p[i] = to_bfloat16(x[i]);
    }
  }
};

struct F64 : Vector<double> {
#if defined(__aarch64__)
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return vfmaq_f64(c, a, b); }
#else
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return a * b + c; }
#endif
};

#undef RUSHLIGHT_INLINE

}  // namespace rushlight::base
