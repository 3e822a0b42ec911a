// Uniform numbers and integers.
#include <algorithm>
#include <limits>

#include "kernels/random_draw.h"
#include "runtime/cpu.h"

namespace rushlight::streams {
namespace {

constexpr int64_t kBlock = 512;

// Scaling is a fused multiply-add, which PyTorch's kernels contract to.
void uniform_f64(double* out, int64_t count, double from, double to, State& state) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::fma(uniform_double(state), to - from, from);
    out[i] = value == to ? from : value;
  }
}

RUSHLIGHT_INLINE void scale_words(float* out, const uint32_t* words, int64_t count, float from,
                                  float to) {
  const float span = to - from;
  for (int64_t i = 0; i < count; ++i) {
    // The 24 bits fit an int32, whose conversion is one instruction.
    const float unit = static_cast<float>(static_cast<int32_t>(words[i] & 0xffffffu)) * 0x1p-24f;
    const float value = __builtin_fmaf(unit, span, from);
    out[i] = value == to ? from : value;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void scale_words_v3(float* out, const uint32_t* words,
                                                        int64_t count, float from, float to) {
  scale_words(out, words, count, from, to);
}
#endif

void uniform_f32(float* out, int64_t count, float from, float to, State& state) {
  uint32_t words[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    state.fill(words, size);
#if defined(__x86_64__)
    if (cpu_level() >= CpuLevel::v3) {
      scale_words_v3(out + begin, words, size, from, to);
      continue;
    }
#endif
    scale_words(out + begin, words, size, from, to);
  }
}

template <typename T>
void uniform_reduced(T* out, int64_t count, double from, double to, State& state) {
  const T low = from_double<T>(from);
  const T high = from_double<T>(to);
  const float base = static_cast<float>(from);
  const float span = static_cast<float>(to) - base;
  for (int64_t i = 0; i < count; ++i) {
    const T value = from_double<T>(std::fma(uniform_float(state.random32()), span, base));
    out[i] = value.bits == high.bits ? low : value;
  }
}

// Ranges from here on take 64 random bits, so that the remainder is not visibly uneven.
constexpr uint64_t kWideRange = uint64_t{1} << 28;

template <typename T>
void integers_as(T* out, int64_t count, uint64_t range, int64_t base, State& state) {
  const auto shifted = [&](uint64_t value) {
    return from_integer<T>(static_cast<int64_t>(value + static_cast<uint64_t>(base)));
  };
  if (range == 0) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = from_integer<T>(static_cast<int64_t>(state.random64()));
    }
  } else if (range >= kWideRange) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = shifted(state.random64() % range);
    }
  } else {
    const uint32_t narrow = static_cast<uint32_t>(range);
    for (int64_t i = 0; i < count; ++i) {
      out[i] = shifted(state.random32() % narrow);
    }
  }
}

template <typename T>
void integers_of(T* out, int64_t count, State& state) {
  if constexpr (std::is_same_v<T, bool>) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = (state.random32() & 1u) != 0;
    }
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const uint64_t span = static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t value = state.random64();
      out[i] = static_cast<T>(span == 0 ? value : value % span);
    }
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t span = static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(state.random32() % span);
    }
  } else if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<double>(state.random64() % ((uint64_t{1} << 53) + 1));
    }
  } else {
    constexpr int kDigits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = from_integer<T>(state.random32() % ((1u << kDigits) + 1));
    }
  }
}

}  // namespace

void uniform(void* out, DType dtype, int64_t count, double from, double to, State& state) {
  switch (dtype) {
    case DType::Float64:
      return uniform_f64(static_cast<double*>(out), count, from, to, state);
    case DType::Float32:
      return uniform_f32(static_cast<float*>(out), count, static_cast<float>(from),
                         static_cast<float>(to), state);
    case DType::Float16:
      return uniform_reduced(static_cast<Half*>(out), count, from, to, state);
    case DType::BFloat16:
      return uniform_reduced(static_cast<BFloat16*>(out), count, from, to, state);
    default:
      fail(ErrorKind::NotImplemented, "uniform", "\"uniform\" not implemented for '", dtype, "'");
  }
}

void integers(void* out, DType dtype, int64_t count, uint64_t range, int64_t base, State& state) {
  with_real_type(dtype, "random_", [&]<typename T>() {
    integers_as(static_cast<T*>(out), count, range, base, state);
  });
}

void integers_of_type(void* out, DType dtype, int64_t count, State& state) {
  with_real_type(dtype, "random_",
                 [&]<typename T>() { integers_of(static_cast<T*>(out), count, state); });
}

}  // namespace rushlight::streams
