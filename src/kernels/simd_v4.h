// Vectors of AVX-512, as far as tiles and attention need them. Include with that target set, after
// every other header.
#pragma once

// The compiler's own headers leave operands undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace rushlight::v4 {

#define RUSHLIGHT_INLINE [[gnu::always_inline]] static inline

// The even, or odd, quarters of a, then those of b.
RUSHLIGHT_INLINE __m512 even_quarters(__m512 a, __m512 b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
RUSHLIGHT_INLINE __m512 odd_quarters(__m512 a, __m512 b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}
RUSHLIGHT_INLINE __m512d even_quarters(__m512d a, __m512d b) {
  return __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13);
}
RUSHLIGHT_INLINE __m512d odd_quarters(__m512d a, __m512d b) {
  return __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
}
// Within each quarter: the first, or last, halves of a and b in turn.
RUSHLIGHT_INLINE __m512 unpack_low(__m512 a, __m512 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
RUSHLIGHT_INLINE __m512 unpack_high(__m512 a, __m512 b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
RUSHLIGHT_INLINE __m512d unpack_low(__m512d a, __m512d b) {
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
}
RUSHLIGHT_INLINE __m512d unpack_high(__m512d a, __m512d b) {
  return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
// Of columns whose quarters are spread over four rows each, the rows r[i], r[i + apart], ...
template <typename R>
RUSHLIGHT_INLINE void gather_quarters(const R* t, R* r, int apart) {
  const R even_low = even_quarters(t[0], t[apart]);
  const R odd_low = odd_quarters(t[0], t[apart]);
  const R even_high = even_quarters(t[2 * apart], t[3 * apart]);
  const R odd_high = odd_quarters(t[2 * apart], t[3 * apart]);
  r[0] = even_quarters(even_low, even_high);
  r[apart] = even_quarters(odd_low, odd_high);
  r[2 * apart] = odd_quarters(even_low, even_high);
  r[3 * apart] = odd_quarters(odd_low, odd_high);
}

struct F32 {
  using T = float;
  using R = __m512;
  typedef int32_t I __attribute__((vector_size(64)));
  static constexpr int kWidth = 16;

  RUSHLIGHT_INLINE R zero() { return _mm512_setzero_ps(); }
  RUSHLIGHT_INLINE R set1(T x) { return _mm512_set1_ps(x); }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return _mm512_fmadd_ps(a, b, c); }
  // *a times b plus c by one instruction. Compilers read a factor that is used twice on its own.
  RUSHLIGHT_INLINE R fma_read(const T* a, R b, R c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
  }
  // Where x is NaN, so is the result.
  RUSHLIGHT_INLINE R min(R bound, R x) { return _mm512_min_ps(bound, x); }
  RUSHLIGHT_INLINE R max(R bound, R x) { return _mm512_max_ps(bound, x); }
  RUSHLIGHT_INLINE R fms(R a, R b, R c) { return _mm512_fmsub_ps(a, b, c); }
  RUSHLIGHT_INLINE R load(const float* p) { return _mm512_loadu_ps(p); }
  RUSHLIGHT_INLINE R load(const BFloat16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  RUSHLIGHT_INLINE R load(const Half* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
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
  RUSHLIGHT_INLINE void transpose(R (&r)[16]) {
    R t[16];
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      const __m512d low01 = reinterpret_cast<__m512d>(unpack_low(r[i], r[i + 1]));
      const __m512d high01 = reinterpret_cast<__m512d>(unpack_high(r[i], r[i + 1]));
      const __m512d low23 = reinterpret_cast<__m512d>(unpack_low(r[i + 2], r[i + 3]));
      const __m512d high23 = reinterpret_cast<__m512d>(unpack_high(r[i + 2], r[i + 3]));
      t[i] = reinterpret_cast<R>(unpack_low(low01, low23));
      t[i + 1] = reinterpret_cast<R>(unpack_high(low01, low23));
      t[i + 2] = reinterpret_cast<R>(unpack_low(high01, high23));
      t[i + 3] = reinterpret_cast<R>(unpack_high(high01, high23));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      gather_quarters(t + i, r + i, 4);
    }
  }
};

struct F64 {
  using T = double;
  using R = __m512d;
  static constexpr int kWidth = 8;

  RUSHLIGHT_INLINE R zero() { return _mm512_setzero_pd(); }
  RUSHLIGHT_INLINE R set1(T x) { return _mm512_set1_pd(x); }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return _mm512_fmadd_pd(a, b, c); }
  RUSHLIGHT_INLINE R fma_read(const T* a, R b, R c) {
    asm("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
  }
  RUSHLIGHT_INLINE R fms(R a, R b, R c) { return _mm512_fmsub_pd(a, b, c); }
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
  RUSHLIGHT_INLINE void transpose(R (&r)[8]) {
    R t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      t[i] = unpack_low(r[i], r[i + 1]);
      t[i + 1] = unpack_high(r[i], r[i + 1]);
    }
    gather_quarters(t, r, 2);
    gather_quarters(t + 1, r + 1, 2);
  }
};

#undef RUSHLIGHT_INLINE

}  // namespace rushlight::v4
