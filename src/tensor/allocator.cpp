#include <rushlight/memory.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace rushlight::memory {
namespace {

// To the address sanitizer a cached block is one block in use, so it is told which bytes of a block
// are: those asked for, between allocate and release.
void forbid(const void* start, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(start, bytes);
#endif
}

void allow(const void* start, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(start, bytes);
#endif
}

// Block sizes: multiples of 64 up to 256 bytes, then four to a power of two, so that a block wastes
// at most a fifth of itself.
constexpr size_t kAlignment = 64;
constexpr int kClasses = 4 + 4 * 48;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMapAt = size_t{4} << 20;         // from here on blocks come from mmap
constexpr size_t kThreadCached = size_t{1} << 16;  // larger blocks go to the shared cache
constexpr size_t kThreadBlocks = 32;               // a class, a thread

int class_of(size_t bytes) {
  if (bytes <= 256) {
    return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
  }
  int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  int quarter = static_cast<int>((bytes - 1) >> (log - 2)) & 3;
  return 4 + 4 * (log - 8) + quarter;
}

size_t class_bytes(int index) {
  if (index < 4) {
    return 64 * static_cast<size_t>(index + 1);
  }
  int log = 8 + (index - 4) / 4;
  size_t quarter = static_cast<size_t>((index - 4) % 4 + 1);
  return (size_t{1} << log) + (quarter << (log - 2));
}

struct ThreadCache;

// An addition to a counter that all threads share costs as much as finding a block, so a block that
// comes from a cache and goes back changes only `live`, which has to be exact for the peak and the
// limit. What is cached is what is held and not live.
struct Shared {
  std::mutex mutex;
  std::array<std::vector<void*>, kClasses> blocks;  // guarded by mutex
  std::vector<const ThreadCache*> threads;          // guarded by mutex
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> held{0};  // from the system
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};  // of threads that have ended
  std::atomic<int64_t> system_allocations{0};
  std::atomic<int64_t> limit{0};
};

// Never destroyed: tensors in static storage are released after everything else.
Shared& shared() {
  static Shared* instance = new Shared;
  return *instance;
}

void* system_allocate(size_t bytes) {
  if (bytes < kMapAt) {
    return std::aligned_alloc(kAlignment, bytes);
  }
  // Over-map by a huge page and trim, so that the block starts on one.
  size_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  char* start = static_cast<char*>(mmap(nullptr, mapped + kHugePage, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (start == MAP_FAILED) {
    return nullptr;
  }
  auto address = reinterpret_cast<uintptr_t>(start);
  size_t lead = (kHugePage - address % kHugePage) % kHugePage;
  if (lead != 0) {
    munmap(start, lead);
  }
  munmap(start + lead + mapped, kHugePage - lead);
  madvise(start + lead, mapped, MADV_HUGEPAGE);
  return start + lead;
}

void system_release(void* block, size_t bytes) {
  allow(block, bytes);
  if (bytes < kMapAt) {
    std::free(block);
  } else {
    munmap(block, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  }
}

void release_shared_cache() {
  Shared& all = shared();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (int index = 0; index < kClasses; ++index) {
    for (void* block : all.blocks[index]) {
      system_release(block, class_bytes(index));
      all.held.fetch_sub(static_cast<int64_t>(class_bytes(index)), std::memory_order_relaxed);
    }
    all.blocks[index].clear();
  }
}

constexpr int kThreadClasses = 4 + 4 * 8;  // those of up to 64 KiB

struct ThreadCache {
  std::array<std::array<void*, kThreadBlocks>, kThreadClasses> blocks;
  std::array<uint8_t, kThreadClasses> counts{};
  std::atomic<int64_t> allocations{0};  // written by its own thread only

  ThreadCache() {
    Shared& all = shared();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.threads.push_back(this);
  }
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  void flush() {
    Shared& all = shared();
    std::lock_guard<std::mutex> lock(all.mutex);
    for (int index = 0; index < kThreadClasses; ++index) {
      for (int i = 0; i < counts[index]; ++i) {
        all.blocks[index].push_back(blocks[index][i]);
      }
      counts[index] = 0;
    }
  }
  ~ThreadCache() {
    flush();
    Shared& all = shared();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.threads.erase(std::find(all.threads.begin(), all.threads.end(), this));
    all.allocations.fetch_add(allocations.load(std::memory_order_relaxed));
  }
};

// On the heap: thread-local space of a library that is loaded late is scarce. Both have no
// destructors, so that blocks which outlive this thread's, as those of static tensors do, find what
// the owner leaves here; a compiler drops what a destructor writes to its own object.
thread_local ThreadCache* own_cache __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local bool cache_ended __attribute__((tls_model("initial-exec"))) = false;

struct ThreadCacheOwner {
  ~ThreadCacheOwner() {
    delete own_cache;
    own_cache = nullptr;
    cache_ended = true;
  }
};

// Null once this thread's destructors have run.
ThreadCache* thread_cache() {
  if (own_cache == nullptr && !cache_ended) {
    thread_local ThreadCacheOwner owner;
    static_cast<void>(owner);
    own_cache = new ThreadCache;
  }
  return own_cache;
}

void* take_cached(int index) {
  if (index < kThreadClasses) {
    ThreadCache* cache = thread_cache();
    if (cache != nullptr && cache->counts[index] > 0) {
      return cache->blocks[index][--cache->counts[index]];
    }
  }
  Shared& all = shared();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<void*>& blocks = all.blocks[index];
  if (blocks.empty()) {
    return nullptr;
  }
  void* block = blocks.back();
  blocks.pop_back();
  return block;
}

[[noreturn]] void out_of_memory(size_t bytes, std::string_view why) {
  Statistics now = statistics();
  fail(ErrorKind::OutOfMemory, "", "not enough memory: tried to allocate ", bytes, " bytes; ", why,
       " (live ", now.live_bytes, " bytes, cached ", now.cached_bytes, ", limit ", limit(), ")");
}

// Counts a block as live before it is looked for, so that threads cannot pass the limit together.
void reserve(size_t size, size_t requested) {
  Shared& all = shared();
  auto need = static_cast<int64_t>(size);
  int64_t live = all.live.fetch_add(need, std::memory_order_relaxed) + need;
  int64_t most = all.limit.load(std::memory_order_relaxed);
  if (most == 0) {
    return;
  }
  if (live > most) {
    all.live.fetch_sub(need, std::memory_order_relaxed);
    out_of_memory(requested, "that is above the limit that was set");
  }
  if (all.held.load(std::memory_order_relaxed) + need > most) {
    empty_cache();
  }
}

void* system_block(size_t size, size_t requested) {
  Shared& all = shared();
  void* block = system_allocate(size);
  if (block == nullptr) {
    empty_cache();
    block = system_allocate(size);
  }
  if (block == nullptr) {
    all.live.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
    out_of_memory(requested, "the system refused");
  }
  all.held.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  all.system_allocations.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void count_allocation() {
  Shared& all = shared();
  if (ThreadCache* cache = thread_cache()) {
    const int64_t count = cache->allocations.load(std::memory_order_relaxed);
    cache->allocations.store(count + 1, std::memory_order_relaxed);
  } else {
    all.allocations.fetch_add(1, std::memory_order_relaxed);
  }
  int64_t live = all.live.load(std::memory_order_relaxed);
  int64_t peak = all.peak.load(std::memory_order_relaxed);
  while (live > peak && !all.peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

}  // namespace

Statistics statistics() {
  Shared& all = shared();
  std::lock_guard<std::mutex> lock(all.mutex);
  int64_t allocations = all.allocations.load();
  for (const ThreadCache* cache : all.threads) {
    allocations += cache->allocations.load(std::memory_order_relaxed);
  }
  // A thread that asks for a block has it counted as live before it is there.
  const int64_t live = all.live.load();
  const int64_t cached = std::max<int64_t>(all.held.load() - live, 0);
  return {live, cached, all.peak.load(), allocations, all.system_allocations.load()};
}

void reset_peak() {
  shared().peak.store(shared().live.load());
}

void empty_cache() {
  if (ThreadCache* cache = thread_cache()) {
    cache->flush();
  }
  release_shared_cache();
}

void set_limit(int64_t bytes) {
  if (bytes < 0) {
    fail(ErrorKind::Value, "set_limit", "expected a limit of 0 (none) or more bytes, got ", bytes);
  }
  shared().limit.store(bytes);
}

int64_t limit() {
  return shared().limit.load();
}

void* allocate(size_t bytes) {
  if (bytes > (size_t{1} << 46)) {
    out_of_memory(bytes, "no machine has as much");
  }
  int index = class_of(bytes);
  size_t size = class_bytes(index);
  reserve(size, bytes);
  void* block = take_cached(index);
  if (block == nullptr) {
    block = system_block(size, bytes);
  }
  count_allocation();
  allow(block, bytes);
  forbid(static_cast<char*>(block) + bytes, size - bytes);
  return block;
}

void release(void* block, size_t bytes) noexcept {
  int index = class_of(bytes);
  auto size = static_cast<int64_t>(class_bytes(index));
  Shared& all = shared();
  all.live.fetch_sub(size, std::memory_order_relaxed);
  forbid(block, static_cast<size_t>(size));
  if (index < kThreadClasses) {
    ThreadCache* cache = thread_cache();
    if (cache != nullptr && cache->counts[index] < kThreadBlocks) {
      cache->blocks[index][cache->counts[index]++] = block;
      return;
    }
  }
  std::lock_guard<std::mutex> lock(all.mutex);
  all.blocks[index].push_back(block);
}

}  // namespace rushlight::memory
