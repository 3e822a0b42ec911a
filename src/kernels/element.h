// Data movement does not look at values: it is written once for each element size.
#pragma once

#include <rushlight/error.h>

#include <cstdint>

namespace rushlight::kernels {

struct Bytes16 {
  uint64_t low;
  uint64_t high;
};

// Calls `function` with a value of the unsigned type that has `size` bytes.
template <typename F>
void by_element_size(int64_t size, F&& function) {
  switch (size) {
    case 1:
      return function(uint8_t{});
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    case 8:
      return function(uint64_t{});
    case 16:
      return function(Bytes16{});
    default:
      RUSHLIGHT_ASSERT(false && "element size");
  }
}

}  // namespace rushlight::kernels
