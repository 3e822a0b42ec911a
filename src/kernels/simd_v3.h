// Vectors of AVX2 and FMA. Include with that target set, after every other header.
#pragma once

namespace rushlight::v3 {

#define RUSHLIGHT_INLINE [[gnu::always_inline]] static inline

struct F32 {
  using T = float;
  using R = __m256;
  typedef int32_t I __attribute__((vector_size(32)));
  static constexpr int kWidth = 8;

  RUSHLIGHT_INLINE R zero() { return _mm256_setzero_ps(); }
  RUSHLIGHT_INLINE R set1(T x) { return _mm256_set1_ps(x); }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return _mm256_fmadd_ps(a, b, c); }
  RUSHLIGHT_INLINE R fms(R a, R b, R c) { return _mm256_fmsub_ps(a, b, c); }
  // Where x is NaN, so is the result.
  RUSHLIGHT_INLINE R min(R bound, R x) { return _mm256_min_ps(bound, x); }
  RUSHLIGHT_INLINE R max(R bound, R x) { return _mm256_max_ps(bound, x); }
  RUSHLIGHT_INLINE R load(const float* p) { return _mm256_loadu_ps(p); }
  RUSHLIGHT_INLINE R load(const BFloat16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  RUSHLIGHT_INLINE R load(const Half* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  RUSHLIGHT_INLINE void store(float* p, R x) { _mm256_storeu_ps(p, x); }
  RUSHLIGHT_INLINE void store(Half* p, R x) {
    const __m128i bits = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bits);
  }
  RUSHLIGHT_INLINE void store(BFloat16* p, R x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
  }
  RUSHLIGHT_INLINE R load_first(const float* p, int64_t n) {
    alignas(32) static constexpr int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const auto* mask = reinterpret_cast<const __m256i*>(kMask + 8 - n);
    return _mm256_maskload_ps(p, _mm256_loadu_si256(mask));
  }
  // Not maskstore, which AMD cores execute in microcode.
  RUSHLIGHT_INLINE void store_first(float* p, R x, int64_t n) {
    __m128 part = _mm256_castps256_ps128(x);
    if (n >= 8) {
      return store(p, x);
    }
    if (n & 4) {
      _mm_storeu_ps(p, part);
      part = _mm256_extractf128_ps(x, 1);
      p += 4;
    }
    if (n & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
      part = _mm_movehl_ps(part, part);
      p += 2;
    }
    if (n & 1) {
      _mm_store_ss(p, part);
    }
  }
  RUSHLIGHT_INLINE T sum(R x) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
  RUSHLIGHT_INLINE void transpose(R (&r)[8]) {
    R t[8];
    for (int i = 0; i < 8; i += 4) {
      const R lo01 = _mm256_unpacklo_ps(r[i], r[i + 1]);
      const R hi01 = _mm256_unpackhi_ps(r[i], r[i + 1]);
      const R lo23 = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
      const R hi23 = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
      t[i] = _mm256_shuffle_ps(lo01, lo23, 0x44);
      t[i + 1] = _mm256_shuffle_ps(lo01, lo23, 0xee);
      t[i + 2] = _mm256_shuffle_ps(hi01, hi23, 0x44);
      t[i + 3] = _mm256_shuffle_ps(hi01, hi23, 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
      r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
  }
};

struct F64 {
  using T = double;
  using R = __m256d;
  static constexpr int kWidth = 4;

  RUSHLIGHT_INLINE R zero() { return _mm256_setzero_pd(); }
  RUSHLIGHT_INLINE R set1(T x) { return _mm256_set1_pd(x); }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return _mm256_fmadd_pd(a, b, c); }
  RUSHLIGHT_INLINE R fms(R a, R b, R c) { return _mm256_fmsub_pd(a, b, c); }
  RUSHLIGHT_INLINE R load(const double* p) { return _mm256_loadu_pd(p); }
  RUSHLIGHT_INLINE void store(double* p, R x) { _mm256_storeu_pd(p, x); }
  RUSHLIGHT_INLINE R load_first(const double* p, int64_t n) {
    alignas(32) static constexpr int64_t kMask[8] = {-1, -1, -1, -1};
    const auto* mask = reinterpret_cast<const __m256i*>(kMask + 4 - n);
    return _mm256_maskload_pd(p, _mm256_loadu_si256(mask));
  }
  RUSHLIGHT_INLINE void store_first(double* p, R x, int64_t n) {
    __m128d part = _mm256_castpd256_pd128(x);
    if (n >= 4) {
      return store(p, x);
    }
    if (n & 2) {
      _mm_storeu_pd(p, part);
      part = _mm256_extractf128_pd(x, 1);
      p += 2;
    }
    if (n & 1) {
      _mm_store_sd(p, part);
    }
  }
  RUSHLIGHT_INLINE T sum(R x) {
    const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
  }
  RUSHLIGHT_INLINE void transpose(R (&r)[4]) {
    const R lo01 = _mm256_unpacklo_pd(r[0], r[1]);
    const R hi01 = _mm256_unpackhi_pd(r[0], r[1]);
    const R lo23 = _mm256_unpacklo_pd(r[2], r[3]);
    const R hi23 = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(lo01, lo23, 0x20);
    r[1] = _mm256_permute2f128_pd(hi01, hi23, 0x20);
    r[2] = _mm256_permute2f128_pd(lo01, lo23, 0x31);
    r[3] = _mm256_permute2f128_pd(hi01, hi23, 0x31);
  }
};

#undef RUSHLIGHT_INLINE

}  // namespace rushlight::v3
