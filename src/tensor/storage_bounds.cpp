#include "tensor/storage_bounds.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace rushlight {
namespace {

bool asked_for() {
  const char* value = std::getenv("RUSHLIGHT_CHECK_BOUNDS");
  return value != nullptr && *value != 0 && std::strcmp(value, "0") != 0;
}

struct List {
  std::mutex mutex;
  std::multimap<uintptr_t, size_t> ranges;  // by first byte
};

// Never destroyed: tensors in static storage are released after everything else.
List& list() {
  static List* instance = new List;
  return *instance;
}

}  // namespace

bool checks_bounds = asked_for();

void list_memory(const void* data, size_t bytes) {
  if (bytes != 0) {
    const std::lock_guard lock(list().mutex);
    list().ranges.emplace(reinterpret_cast<uintptr_t>(data), bytes);
  }
}

void unlist_memory(const void* data, size_t bytes) {
  const std::lock_guard lock(list().mutex);
  const auto [first, last] = list().ranges.equal_range(reinterpret_cast<uintptr_t>(data));
  for (auto at = first; at != last; ++at) {
    if (at->second == bytes) {
      list().ranges.erase(at);
      return;
    }
  }
}

MemoryRange listed_memory(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(list().mutex);
  MemoryRange found;
  for (auto at = list().ranges.upper_bound(wanted); at != list().ranges.begin();) {
    --at;
    if (wanted - at->first < at->second && at->second > found.bytes) {
      found = {reinterpret_cast<const char*>(at->first), at->second};
    }
  }
  return found;
}

}  // namespace rushlight
