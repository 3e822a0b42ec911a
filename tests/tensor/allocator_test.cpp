// The caching allocator and what is counted of it, from one thread and from many.
#include <gtest/gtest.h>
#include <rushlight/generator.h>
#include <rushlight/memory.h>
#include <rushlight/tensor.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace rushlight {
namespace {

constexpr int kThreads = 6;

template <typename Body>
void on_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&body, t] { body(t); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(Allocator, BlocksAreAlignedAndWritable) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{4096},
                             (size_t{4} << 20) - 1, (size_t{4} << 20) + 1, size_t{9} << 20}) {
    void* block = memory::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U) << bytes;
    std::memset(block, 0x5a, bytes);
    memory::release(block, bytes);
  }
}

TEST(Allocator, LargeBlocksStartOnHugePages) {
  void* block = memory::allocate(size_t{8} << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (size_t{2} << 20), 0U);
  memory::release(block, size_t{8} << 20);
}

TEST(Allocator, FreedBlocksAreUsedAgain) {
  memory::empty_cache();
  void* first = memory::allocate(size_t{6} << 20);
  memory::release(first, size_t{6} << 20);
  const int64_t before = memory::statistics().system_allocations;
  void* second = memory::allocate(size_t{6} << 20);
  EXPECT_EQ(second, first);
  EXPECT_EQ(memory::statistics().system_allocations, before);
  memory::release(second, size_t{6} << 20);
}

TEST(Allocator, CountsLiveCachedAndPeak) {
  memory::empty_cache();
  memory::reset_peak();
  const memory::Statistics before = memory::statistics();
  void* block = memory::allocate(size_t{1} << 20);
  const memory::Statistics during = memory::statistics();
  EXPECT_GE(during.live_bytes - before.live_bytes, int64_t{1} << 20);
  EXPECT_EQ(during.allocations, before.allocations + 1);
  memory::release(block, size_t{1} << 20);
  const memory::Statistics after = memory::statistics();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.peak_bytes, during.live_bytes);
  EXPECT_EQ(after.cached_bytes - before.cached_bytes, during.live_bytes - before.live_bytes);
  memory::empty_cache();
  EXPECT_EQ(memory::statistics().cached_bytes, before.cached_bytes);
}

TEST(Allocator, BlocksGoFromThreadToThread) {
  memory::empty_cache();
  const int64_t before = memory::statistics().live_bytes;
  std::mutex mutex;
  std::vector<std::pair<void*, size_t>> pool;
  on_threads([&](int t) {
    for (size_t i = 0; i < 300; ++i) {
      const size_t bytes = 1 + (i * 997 + static_cast<size_t>(t) * 131) % 100000;
      void* block = memory::allocate(bytes);
      std::memset(block, t, bytes);
      std::pair<void*, size_t> other{block, bytes};
      {
        const std::lock_guard lock(mutex);
        pool.push_back(other);
        if (pool.size() > 10) {
          std::swap(pool[i % pool.size()], pool.back());
          other = pool.back();
          pool.pop_back();
        } else {
          other.first = nullptr;
        }
      }
      if (other.first != nullptr) {
        memory::release(other.first, other.second);
      }
      if (i % 100 == 0) {
        memory::empty_cache();
      }
    }
  });
  for (const auto& [block, bytes] : pool) {
    memory::release(block, bytes);
  }
  EXPECT_EQ(memory::statistics().live_bytes, before);
}

TEST(Allocator, ThreadsCannotPassTheLimitTogether) {
  memory::empty_cache();
  const size_t block = size_t{1} << 20;
  const int64_t before = memory::statistics().live_bytes;
  memory::set_limit(before + static_cast<int64_t>(3 * block));
  std::atomic<int> held{0};
  std::vector<void*> blocks(kThreads);
  on_threads([&](int t) {
    try {
      blocks[static_cast<size_t>(t)] = memory::allocate(block);
      ++held;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    }
  });
  memory::set_limit(0);
  EXPECT_EQ(held, 3);
  for (void* held_block : blocks) {
    if (held_block != nullptr) {
      memory::release(held_block, block);
    }
  }
  EXPECT_EQ(memory::statistics().live_bytes, before);
}

TEST(Storage, IsCountedFromManyThreads) {
  const int64_t before = memory::statistics().live_bytes;
  {
    const Tensor shared = make_tensor({1000}, DType::Float32);
    on_threads([&](int) {
      for (int i = 0; i < 300; ++i) {
        const Tensor view = make_view(shared, {10}, {1}, i);
        const Tensor again = view;
        EXPECT_EQ(again.storage(), shared.storage());
      }
    });
    EXPECT_EQ(shared.storage()->references.load(), 1U);
  }
  EXPECT_EQ(memory::statistics().live_bytes, before);
}

TEST(Generator, DrawsUnderItsLock) {
  Generator generator(3);
  std::vector<uint32_t> drawn(kThreads * 500);
  on_threads([&](int t) {
    Generator handle = generator;  // handles share the state
    for (int i = 0; i < 500; ++i) {
      const std::lock_guard lock(handle.state().mutex);
      drawn[static_cast<size_t>(t * 500 + i)] = handle.state().random32();
    }
  });
  std::vector<uint32_t> expected(drawn.size());
  Generator again(3);
  again.state().fill(expected.data(), static_cast<int64_t>(expected.size()));
  std::sort(drawn.begin(), drawn.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(drawn, expected);
}

}  // namespace
}  // namespace rushlight
