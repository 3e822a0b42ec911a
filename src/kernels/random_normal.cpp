// Normal numbers by Box-Muller, in blocks of 16.
//
// The f32 block evaluates log, sin and cos by the Cephes polynomials, with fused multiply-adds at
// fixed places: the bits then agree with PyTorch's AVX2 kernel on any machine.
#include <algorithm>
#include <bit>

#include "kernels/random_draw.h"
#include "runtime/cpu.h"

namespace rushlight::streams {
namespace {

constexpr int kHalfBlock = 8;
constexpr int kBlock = 16;

RUSHLIGHT_INLINE float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

// Natural logarithm of a positive number (Cephes logf).
RUSHLIGHT_INLINE float log_polynomial(float x) {
  x = x < 0x1p-126f ? 0x1p-126f : x;
  const int32_t bits = std::bit_cast<int32_t>(x);
  float exponent = static_cast<float>((bits >> 23) - 0x7f) + 1.0f;
  x = std::bit_cast<float>((bits & ~0x7f800000) | 0x3f000000);
  const bool below = x < 0.707106781186547524f;
  const float extra = below ? x : 0.0f;
  x = x - 1.0f;
  exponent = exponent - (below ? 1.0f : 0.0f);
  x = x + extra;
  const float square = x * x;
  float y = 7.0376836292e-2f;
  y = fused(y, x, -1.1514610310e-1f);
  y = fused(y, x, 1.1676998740e-1f);
  y = fused(y, x, -1.2420140846e-1f);
  y = fused(y, x, 1.4249322787e-1f);
  y = fused(y, x, -1.6668057665e-1f);
  y = fused(y, x, 2.0000714765e-1f);
  y = fused(y, x, -2.4999993993e-1f);
  y = fused(y, x, 3.3333331174e-1f);
  y = y * x;
  y = fused(y, square, exponent * -2.12194440e-4f);
  y = fused(-0.5f, square, y);
  x = x + y;
  return fused(exponent, 0.693359375f, x);
}

// Sine and cosine of an angle in [0, 2 pi] (Cephes sinf and cosf).
RUSHLIGHT_INLINE void sine_cosine(float x, float& sine, float& cosine) {
  float y = x * 1.27323954473516f;
  const int32_t octant = (static_cast<int32_t>(y) + 1) & ~1;
  y = static_cast<float>(octant);
  const int32_t sine_sign = (octant & 4) << 29;
  const int32_t cosine_sign = (~(octant - 2) & 4) << 29;
  x = fused(y, -0.78515625f, x);
  x = fused(y, -2.4187564849853515625e-4f, x);
  x = fused(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float even = 2.443315711809948e-5f;
  even = fused(even, z, -1.388731625493765e-3f);
  even = fused(even, z, 4.166664568298827e-2f);
  even = even * z;
  even = fused(even, z, -(z * 0.5f));
  even = even + 1.0f;
  float odd = -1.9515295891e-4f;
  odd = fused(odd, z, 8.3321608736e-3f);
  odd = fused(odd, z, -1.6666654611e-1f);
  odd = odd * z;
  odd = fused(odd, x, x);
  const bool plain = (octant & 2) == 0;
  sine = std::bit_cast<float>(std::bit_cast<int32_t>(plain ? odd : even) ^ sine_sign);
  cosine = std::bit_cast<float>(std::bit_cast<int32_t>(plain ? even : odd) ^ cosine_sign);
}

// Turns blocks of eight radii and eight angles, uniform in [0, 1), into normal numbers.
RUSHLIGHT_INLINE void transform_blocks(float* data, int64_t blocks, float mean, float std) {
  for (int64_t b = 0; b < blocks; ++b, data += kBlock) {
    for (int j = 0; j < kHalfBlock; ++j) {
      const float radius = __builtin_sqrtf(-2.0f * log_polynomial(1.0f - data[j]));
      float sine;
      float cosine;
      sine_cosine(static_cast<float>(2.0 * std::numbers::pi) * data[j + kHalfBlock], sine, cosine);
      data[j] = fused(radius * cosine, std, mean);
      data[j + kHalfBlock] = fused(radius * sine, std, mean);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void transform_v3(float* data, int64_t blocks, float mean,
                                                      float std) {
  transform_blocks(data, blocks, mean, std);
}
#endif

void transform(float* data, int64_t blocks, float mean, float std) {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return transform_v3(data, blocks, mean, std);
  }
#endif
  transform_blocks(data, blocks, mean, std);
}

void transform(double* data, int64_t blocks, double mean, double std) {
  for (int64_t b = 0; b < blocks; ++b, data += kBlock) {
    for (int j = 0; j < kHalfBlock; ++j) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - data[j]));
      const double angle = 2.0 * std::numbers::pi * data[j + kHalfBlock];
      data[j] = std::fma(radius * std::cos(angle), std, mean);
      data[j + kHalfBlock] = std::fma(radius * std::sin(angle), std, mean);
    }
  }
}

// All uniform numbers are drawn first; a tail that is no whole block redraws the last 16.
template <typename T>
void normal_blocks(T* out, DType dtype, int64_t count, T mean, T std, State& state) {
  uniform(out, dtype, count, 0, 1, state);
  transform(out, count / kBlock, mean, std);
  if (count % kBlock != 0) {
    T* tail = out + count - kBlock;
    uniform(tail, dtype, kBlock, 0, 1, state);
    transform(tail, 1, mean, std);
  }
}

// Half types: block by block through f32, the tail redrawing the last 16 here too.
template <typename T>
void normal_blocks_reduced(T* out, int64_t count, float mean, float std, State& state) {
  float block[kBlock];
  const auto fill = [&](T* to) {
    uniform(block, DType::Float32, kBlock, 0, 1, state);
    transform(block, 1, mean, std);
    for (int j = 0; j < kBlock; ++j) {
      to[j] = from_double<T>(block[j]);
    }
  };
  for (int64_t i = 0; i + kBlock <= count; i += kBlock) {
    fill(out + i);
  }
  if (count % kBlock != 0) {
    fill(out + count - kBlock);
  }
}

}  // namespace

void normal(void* out, DType dtype, int64_t count, double mean, double std, bool blocks,
            State& state) {
  const DType real = real_dtype(dtype);
  if (!is_floating(real) || is_float8(real)) {
    fail(ErrorKind::NotImplemented, "normal", "\"normal\" not implemented for '", dtype, "'");
  }
  if (count < kBlock || !blocks) {
    return fill_doubles(out, real, count, "normal",
                        [&] { return std::fma(normal_double(state), std, mean); });
  }
  switch (real) {
    case DType::Float64:
      return normal_blocks(static_cast<double*>(out), real, count, mean, std, state);
    case DType::Float16:
      return normal_blocks_reduced(static_cast<Half*>(out), count, static_cast<float>(mean),
                                   static_cast<float>(std), state);
    case DType::BFloat16:
      return normal_blocks_reduced(static_cast<BFloat16*>(out), count, static_cast<float>(mean),
                                   static_cast<float>(std), state);
    default:
      return normal_blocks(static_cast<float*>(out), real, count, static_cast<float>(mean),
                           static_cast<float>(std), state);
  }
}

}  // namespace rushlight::streams
