#include "runtime/parallel.h"

#include <gtest/gtest.h>
#include <rushlight/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rushlight {
namespace {

class ParallelTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    before_ = num_threads();
    set_num_threads(GetParam());
  }
  void TearDown() override { set_num_threads(before_); }

 private:
  int before_ = 1;
};

int64_t sum_of_range(int64_t begin, int64_t end, int64_t grain) {
  std::atomic<int64_t> sum{0};
  parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    int64_t part = 0;
    for (int64_t i = first; i < last; ++i) {
      part += i;
    }
    sum += part;
  });
  return sum;
}

TEST_P(ParallelTest, CoversEachItemOnce) {
  for (const int64_t count : {1, 2, 7, 64, 1000, 100003}) {
    for (const int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          ++hits[static_cast<size_t>(i)];
        }
      });
      for (const auto& hit : hits) {
        ASSERT_EQ(hit, 1);
      }
    }
  }
}

TEST_P(ParallelTest, PiecesStartAtMultiplesOfTheGrain) {
  std::mutex mutex;
  std::vector<int64_t> starts;
  parallel_for(5, 5 + 1003, 10, [&](int64_t first, int64_t) {
    const std::lock_guard lock(mutex);
    starts.push_back(first);
  });
  for (const int64_t start : starts) {
    EXPECT_EQ((start - 5) % 10, 0);
  }
}

// Else threads that take equal numbers of pieces would do unequal work.
TEST_P(ParallelTest, PiecesDifferByOneGrainAtMost) {
  for (const int64_t grains : {2, 9, 10, 14, 23, 1000}) {
    std::mutex mutex;
    int64_t least = INT64_MAX;
    int64_t most = 0;
    parallel_for(-20, grains * 10 - 20, 10, [&](int64_t first, int64_t last) {
      const std::lock_guard lock(mutex);
      least = std::min(least, last - first);
      most = std::max(most, last - first);
    });
    EXPECT_LE(most - least, 10) << grains;
  }
}

TEST_P(ParallelTest, EmptyRangesDoNotCall) {
  int calls = 0;
  parallel_for(0, 0, 1, [&](int64_t, int64_t) { ++calls; });
  parallel_for(3, -3, 1, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST_P(ParallelTest, NestedLoopsRunInline) {
  std::atomic<int> inner_pieces{0};
  std::atomic<int> outer_pieces{0};
  parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    ++outer_pieces;
    parallel_for(0, 1000, 1, [&](int64_t first, int64_t last) {
      ++inner_pieces;
      EXPECT_EQ(last - first, in_parallel() ? 1000 : last - first);
    });
  });
  if (num_threads() > 1) {
    EXPECT_EQ(inner_pieces, outer_pieces);
  }
  EXPECT_FALSE(in_parallel());
}

TEST_P(ParallelTest, RethrowsTheFirstException) {
  try {
    parallel_for(0, 100, 1, [](int64_t first, int64_t) {
      throw std::runtime_error("at " + std::to_string(first));
    });
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "at 0");
  }
  EXPECT_EQ(sum_of_range(0, 1000, 1), 499500);
}

TEST_P(ParallelTest, ManyThreadsMayCallAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        if (sum_of_range(0, 500 + i, 7) != (500 + i) * (499 + i) / 2) {
          ++wrong;
        }
      }
    });
  }
  for (auto& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(ParallelTest, WorksAfterFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer cannot follow threads started after a fork";
#endif
  EXPECT_EQ(sum_of_range(0, 1000, 1), 499500);
  const pid_t child = fork();
  if (child == 0) {
    _exit(sum_of_range(0, 1000, 1) == 499500 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(sum_of_range(0, 1000, 1), 499500);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelTest, ::testing::Values(1, 2, 3, 8));

TEST(Parallel, SetNumThreadsRefusesNonPositiveNumbers) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-2), Error);
}

}  // namespace
}  // namespace rushlight
