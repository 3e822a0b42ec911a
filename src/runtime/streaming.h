// Stores past the caches, for results that are too large for them: a line that is written whole
// need not be read first, which saves a third of a copy's traffic.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rushlight {

// Smaller results are better left in the caches for whoever reads them next (measured from 1 to
// 64 MB with a reader: past the caches is slower below 4 MB and faster from 8 MB on).
inline constexpr int64_t kStreamedBytes = int64_t{16} << 20;

// Makes streamed stores of this thread visible to the others, like ordinary stores.
inline void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// memcpy past the caches; to be followed by `finish_streams`.
void stream_copy(void* to, const void* from, size_t bytes);

}  // namespace rushlight
