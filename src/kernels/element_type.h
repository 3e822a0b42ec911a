// Work on values, for hand kernels that serve every dtype.
#pragma once

#include <rushlight/dtype.h>
#include <rushlight/error.h>

#include <type_traits>

namespace rushlight::kernels {

template <typename T>
inline constexpr bool is_small_float =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>
#define RUSHLIGHT_SAME(type, convert) || std::is_same_v<T, type>
                                   RUSHLIGHT_FLOAT8(RUSHLIGHT_SAME)
#undef RUSHLIGHT_SAME
    ;

// What values of T are computed in.
template <typename T>
using Compute = std::conditional_t<is_small_float<T>, float, T>;

template <typename T>
Compute<T> load_value(T stored) {
  if constexpr (is_small_float<T>) {
    return to_float(stored);
  } else {
    return stored;
  }
}

template <typename T>
T store_value(Compute<T> value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
#define RUSHLIGHT_STORE(type, convert)          \
  }                                             \
  else if constexpr (std::is_same_v<T, type>) { \
    return convert(value);
    RUSHLIGHT_FLOAT8(RUSHLIGHT_STORE)
#undef RUSHLIGHT_STORE
  } else {
    return value;
  }
}

// Calls `function` with a value of the C++ type of a float dtype that arithmetic is offered in; for
// others Error(NotImplemented) names `op`.
template <typename F>
void by_floating_dtype(DType dtype, std::string_view op, F&& function) {
  switch (dtype) {
    case DType::Float32:
      return function(float{});
    case DType::Float64:
      return function(double{});
    case DType::Float16:
      return function(Half{});
    case DType::BFloat16:
      return function(BFloat16{});
    default:
      fail(ErrorKind::NotImplemented, "", "\"", op, "\" not implemented for '",
           scalar_type_name(dtype), "'");
  }
}

// Calls `function` with a value of the C++ type of `dtype`; every dtype but complex ones, for
// which Error(NotImplemented) names `op`.
template <typename F>
void by_real_dtype(DType dtype, std::string_view op, F&& function) {
  switch (dtype) {
#define RUSHLIGHT_CASE(name, type, text, alias, ir, category)          \
  case DType::name:                                                    \
    if constexpr (DTypeCategory::category != DTypeCategory::Complex) { \
      return function(type{});                                         \
    }                                                                  \
    break;
    RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
  }
  fail(ErrorKind::NotImplemented, op, "not implemented for '", dtype, "'");
}

}  // namespace rushlight::kernels
