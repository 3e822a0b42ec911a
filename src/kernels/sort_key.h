#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/element_type.h"

namespace rushlight::kernels {

template <size_t bytes>
using KeyOfSize = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

template <typename T>
using Key = KeyOfSize<sizeof(T)>;

// Unsigned integers that order as the elements do; NaN is the highest.
template <typename T>
Key<T> sort_key(T value) {
  using K = Key<T>;
  constexpr K kSign = static_cast<K>(K{1} << (sizeof(T) * 8 - 1));
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return static_cast<K>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<K>(static_cast<K>(value) ^ kSign);
  } else {
    const auto number = load_value(value);
    if (number != number) {
      return static_cast<K>(~K{0});
    }
    const K bits = number == 0 ? K{0} : std::bit_cast<K>(value);
    return static_cast<K>((bits & kSign) != 0 ? ~bits : bits | kSign);
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    const auto number = load_value(value);
    return number != number;
  }
}

}  // namespace rushlight::kernels
