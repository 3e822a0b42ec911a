// The caching CPU allocator's statistics and controls.
//
// Freed blocks are kept and handed out again: small ones in a cache a thread, large ones in one a
// process. Blocks of 4 MiB and more are aligned to huge pages and ask for them.
#pragma once

#include <rushlight/error.h>

#include <cstddef>
#include <cstdint>

namespace rushlight::memory {

struct Statistics {
  int64_t live_bytes;          // in use by storages, rounded up to block sizes
  int64_t cached_bytes;        // kept for reuse
  int64_t peak_bytes;          // highest live_bytes since reset_peak
  int64_t allocations;         // blocks handed out
  int64_t system_allocations;  // of those, how many the system had to give
};

RUSHLIGHT_API Statistics statistics();
RUSHLIGHT_API void reset_peak();
RUSHLIGHT_API void empty_cache();  // gives cached blocks of this thread and the process back
RUSHLIGHT_API void set_limit(int64_t bytes);  // live bytes allowed; 0: no limit
RUSHLIGHT_API int64_t limit();

// A block of at least `bytes`, aligned to 64; contents undefined. Error(OutOfMemory) past the limit
// or where the system refuses. `release` takes the same `bytes`.
void* allocate(size_t bytes);
void release(void* block, size_t bytes) noexcept;

}  // namespace rushlight::memory
