// Vectors of AVX-512, as far as tiles and attention need them. Include with that target set, after
// every other header.
#pragma once

// The compiler's own headers leave operands undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace rushlight::v4 {

#define RUSHLIGHT_INLINE [[gnu::always_inline]] static inline

struct F32 {
  using T = float;
  using R = __m512;
  typedef int32_t I __attribute__((vector_size(64)));
  static constexpr int kWidth = 16;

  RUSHLIGHT_INLINE R zero() { return _mm512_setzero_ps(); }
  RUSHLIGHT_INLINE R set1(T x) { return _mm512_set1_ps(x); }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return _mm512_fmadd_ps(a, b, c); }
  // Where x is NaN, so is the result.
  RUSHLIGHT_INLINE R min(R bound, R x) { return _mm512_min_ps(bound, x); }
  RUSHLIGHT_INLINE R max(R bound, R x) { return _mm512_max_ps(bound, x); }
  RUSHLIGHT_INLINE R load(const float* p) { return _mm512_loadu_ps(p); }
  RUSHLIGHT_INLINE void store(float* p, R x) { _mm512_storeu_ps(p, x); }
  RUSHLIGHT_INLINE __mmask16 first(int64_t n) {
    return static_cast<__mmask16>((uint32_t{1} << n) - 1);
  }
  RUSHLIGHT_INLINE R load_first(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(first(n), p);
  }
  RUSHLIGHT_INLINE void store_first(float* p, R x, int64_t n) {
    _mm512_mask_storeu_ps(p, first(n), x);
  }
};

struct F64 {
  using T = double;
  using R = __m512d;
  static constexpr int kWidth = 8;

  RUSHLIGHT_INLINE R zero() { return _mm512_setzero_pd(); }
  RUSHLIGHT_INLINE R set1(T x) { return _mm512_set1_pd(x); }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return _mm512_fmadd_pd(a, b, c); }
  RUSHLIGHT_INLINE R load(const double* p) { return _mm512_loadu_pd(p); }
  RUSHLIGHT_INLINE void store(double* p, R x) { _mm512_storeu_pd(p, x); }
  RUSHLIGHT_INLINE __mmask8 first(int64_t n) {
    return static_cast<__mmask8>((uint32_t{1} << n) - 1);
  }
  RUSHLIGHT_INLINE R load_first(const double* p, int64_t n) {
    return _mm512_maskz_loadu_pd(first(n), p);
  }
  RUSHLIGHT_INLINE void store_first(double* p, R x, int64_t n) {
    _mm512_mask_storeu_pd(p, first(n), x);
  }
};

#undef RUSHLIGHT_INLINE

}  // namespace rushlight::v4
