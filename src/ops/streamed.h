// Which operands of a kernel are stored past the caches.
#pragma once

#include <cstdint>

#include "runtime/streaming.h"

namespace rushlight {

// A bit for each operand that takes so much memory that a result there goes past the caches. None
// that is in another operand's place, whose lines are read anyway. `bytes_of(k)`: what operand k
// touches.
template <typename Operands, typename BytesOf>
uint64_t streamed_operands(const Operands& operands, int count, BytesOf bytes_of) {
  uint64_t streamed = 0;
  for (int k = 0; k < count; ++k) {
    if (bytes_of(k) < kStreamedBytes) {
      continue;
    }
    bool alone = true;
    for (int other = 0; other < count; ++other) {
      alone = alone && (other == k || operands[static_cast<size_t>(other)].data !=
                                          operands[static_cast<size_t>(k)].data);
    }
    streamed |= uint64_t{alone} << k;
  }
  return streamed;
}

}  // namespace rushlight
