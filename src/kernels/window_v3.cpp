#if defined(__x86_64__)

#include <immintrin.h>
#include <rushlight/dtype.h>

#include <cstdint>
#include <type_traits>

#include "kernels/window_engine.h"

// In force to the end of the file, since templates take the target of their instantiation. Nothing
// of the standard library is instantiated below.
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define RUSHLIGHT_LEVEL v3

// clang-format off: the order matters
#include "kernels/simd_v3.h"
#include "kernels/window_lines.h"
// clang-format on

namespace rushlight::v3 {
namespace {

template <typename T>
void widen_line(float* out, const T* in, int64_t count) {
  int64_t i = 0;
  for (; i + F32::kWidth <= count; i += F32::kWidth) {
    F32::store(out + i, F32::load(in + i));
  }
  if (i < count) {
    T rest[F32::kWidth] = {};
    for (int64_t k = 0; k < count - i; ++k) {
      rest[k] = in[i + k];
    }
    F32::store_first(out + i, F32::load(rest), count - i);
  }
}

template <typename T>
void narrow_line(T* out, const float* in, int64_t count) {
  int64_t i = 0;
  for (; i + F32::kWidth <= count; i += F32::kWidth) {
    F32::store(out + i, F32::load(in + i));
  }
  if (i < count) {
    T rest[F32::kWidth];
    F32::store(rest, F32::load_first(in + i, count - i));
    for (int64_t k = 0; k < count - i; ++k) {
      out[i + k] = rest[k];
    }
  }
}

// Eight corners' elements at a time; those with a negative offset are not read.
void sample_f32(float* out, const float* in, const int32_t* offset, const float* weight,
                int64_t step, int corners, int64_t count, bool add) {
  int64_t p = 0;
  for (; p + 8 <= count; p += 8) {
    __m256 sum = add ? _mm256_loadu_ps(out + p) : _mm256_setzero_ps();
    for (int k = 0; k < corners; ++k) {
      const __m256i at =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offset + k * step + p));
      const __m256 there = _mm256_castsi256_ps(_mm256_xor_si256(at, _mm256_set1_epi32(-1)));
      const __m256 read = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), in, at, there, 4);
      const __m256 part = _mm256_mul_ps(_mm256_loadu_ps(weight + k * step + p), read);
      sum = _mm256_add_ps(sum, _mm256_blendv_ps(_mm256_setzero_ps(), part, there));
    }
    _mm256_storeu_ps(out + p, sum);
  }
  sample_singly(out, in, offset, weight, step, corners, p, count, add);
}

void sample_f64(double* out, const double* in, const int32_t* offset, const double* weight,
                int64_t step, int corners, int64_t count, bool add) {
  int64_t p = 0;
  for (; p + 4 <= count; p += 4) {
    __m256d sum = add ? _mm256_loadu_pd(out + p) : _mm256_setzero_pd();
    for (int k = 0; k < corners; ++k) {
      const __m128i at = _mm_loadu_si128(reinterpret_cast<const __m128i*>(offset + k * step + p));
      const __m256d there =
          _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_xor_si128(at, _mm_set1_epi32(-1))));
      const __m256d read = _mm256_mask_i32gather_pd(_mm256_setzero_pd(), in, at, there, 8);
      const __m256d part = _mm256_mul_pd(_mm256_loadu_pd(weight + k * step + p), read);
      sum = _mm256_add_pd(sum, _mm256_blendv_pd(_mm256_setzero_pd(), part, there));
    }
    _mm256_storeu_pd(out + p, sum);
  }
  sample_singly(out, in, offset, weight, step, corners, p, count, add);
}

}  // namespace

const GridLines<float> grid_f32{sample_f32};
const GridLines<double> grid_f64{sample_f64};
const WindowLines<float> window_f32 = kWindowLines<float>;
const WindowLines<double> window_f64 = kWindowLines<double>;
const HalfLines<Half> lines_f16{widen_line<Half>, narrow_line<Half>};
const HalfLines<BFloat16> lines_bf16{widen_line<BFloat16>, narrow_line<BFloat16>};

}  // namespace rushlight::v3

#endif
