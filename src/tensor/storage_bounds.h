// A debugging aid: with RUSHLIGHT_CHECK_BOUNDS=1 every kernel runs by the interpreter, which checks
// each load and store against the memory of the storage that the buffer lies in. For that, storages
// are listed by address here. Switched off, it costs the test of a variable a storage.
#pragma once

#include <rushlight/error.h>

#include <cstddef>

namespace rushlight {

// Read from the environment when the library is loaded. Tests may set it while no tensor lives.
RUSHLIGHT_API extern bool checks_bounds;

// List a storage's memory, and take it off again with the same arguments. Empty memory is no
// matter.
void list_memory(const void* data, size_t bytes);
void unlist_memory(const void* data, size_t bytes);

struct MemoryRange {
  const char* begin = nullptr;  // null: memory that is no storage's, of which nothing is known
  size_t bytes = 0;
};

// The listed memory around `address`; the widest, where several overlap.
MemoryRange listed_memory(const void* address);

}  // namespace rushlight
