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
    // Without branches, so that loops over keys become vectors.
    constexpr K kInfinity = static_cast<K>(sizeof(T) == 8                ? 0x7ff0000000000000
                                           : sizeof(T) == 4              ? 0x7f800000
                                           : std::is_same_v<T, BFloat16> ? 0x7f80
                                                                         : 0x7c00);
    const K bits = std::bit_cast<K>(value);
    const K size = static_cast<K>(bits & ~kSign);
    const K turned = static_cast<K>((bits & kSign) != 0 ? ~bits : bits | kSign);
    const K number = size == 0 ? kSign : turned;
    return size > kInfinity ? static_cast<K>(~K{0}) : number;
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
