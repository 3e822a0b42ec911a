// Single draws and conversions that the files of random streams share.
#pragma once

#include <cmath>
#include <numbers>
#include <optional>

#include "kernels/random.h"

#define RUSHLIGHT_INLINE inline __attribute__((always_inline))

namespace rushlight::streams {

inline float uniform_float(uint32_t word) {
  return static_cast<float>(word & 0xffffffu) * 0x1p-24f;
}
inline double uniform_double(State& state) {
  return static_cast<double>(state.random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

// One of a pair; the other is kept for the next call.
inline double normal_double(State& state) {
  if (state.next_double_normal) {
    const double kept = *state.next_double_normal;
    state.next_double_normal.reset();
    return kept;
  }
  const double u1 = uniform_double(state);
  const double u2 = uniform_double(state);
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double angle = 2.0 * std::numbers::pi * u1;
  state.next_double_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

template <typename T>
inline T from_double(double value) {
  return static_cast<T>(value);
}
template <>
inline Half from_double<Half>(double value) {
  return to_half(static_cast<float>(value));
}
template <>
inline BFloat16 from_double<BFloat16>(double value) {
  return to_bfloat16(static_cast<float>(value));
}

template <typename T>
inline T from_integer(int64_t value) {
  return static_cast<T>(value);
}
template <>
inline Half from_integer<Half>(int64_t value) {
  return to_half(static_cast<float>(value));
}
template <>
inline BFloat16 from_integer<BFloat16>(int64_t value) {
  return to_bfloat16(static_cast<float>(value));
}

// Calls `body.template operator()<T>()` with the C++ type of a real dtype.
template <typename Body>
void with_real_type(DType dtype, const char* op, Body&& body) {
  switch (dtype) {
    case DType::Bool:
      return body.template operator()<bool>();
    case DType::UInt8:
      return body.template operator()<uint8_t>();
    case DType::Int8:
      return body.template operator()<int8_t>();
    case DType::UInt16:
      return body.template operator()<uint16_t>();
    case DType::Int16:
      return body.template operator()<int16_t>();
    case DType::UInt32:
      return body.template operator()<uint32_t>();
    case DType::Int32:
      return body.template operator()<int32_t>();
    case DType::UInt64:
      return body.template operator()<uint64_t>();
    case DType::Int64:
      return body.template operator()<int64_t>();
    case DType::Float16:
      return body.template operator()<Half>();
    case DType::BFloat16:
      return body.template operator()<BFloat16>();
    case DType::Float32:
      return body.template operator()<float>();
    case DType::Float64:
      return body.template operator()<double>();
    default:
      fail(ErrorKind::NotImplemented, op, "\"", op, "\" not implemented for '", dtype, "'");
  }
}

// Stores `draw()`, a double, `count` times.
template <typename Draw>
void fill_doubles(void* out, DType dtype, int64_t count, const char* op, Draw&& draw) {
  with_real_type(dtype, op, [&]<typename T>() {
    T* data = static_cast<T*>(out);
    for (int64_t i = 0; i < count; ++i) {
      data[i] = from_double<T>(draw());
    }
  });
}

}  // namespace rushlight::streams
