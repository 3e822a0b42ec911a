#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

namespace rushlight {
namespace {

TEST(Profiler, RecordsOperatorsAndRangesNested) {
  Tensor x = ones({4, 4});
  profiler::start({true, true});
  {
    profiler::Range range("outer");
    add(x, x);
  }
  std::vector<profiler::Event> events = profiler::stop();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0].name, "outer");
  EXPECT_FALSE(events[0].is_operator);
  EXPECT_EQ(events[1].name, "add");
  EXPECT_EQ(events[1].depth, 1);
  ASSERT_EQ(events[1].shapes.size(), 2u);
  EXPECT_EQ(events[1].shapes[0], (IntList{4, 4}));
  EXPECT_LE(events[0].start, events[1].start);
  EXPECT_GE(events[0].end, events[1].end);
}

TEST(Profiler, RecordsNothingOutside) {
  profiler::start();
  profiler::stop();
  EXPECT_FALSE(profiler::is_on());
  ones({2});
  EXPECT_TRUE(profiler::stop().empty());
}

TEST(Profiler, RefusesASecondStart) {
  profiler::start();
  EXPECT_THROW(profiler::start(), Error);
  profiler::stop();
}

}  // namespace
}  // namespace rushlight
