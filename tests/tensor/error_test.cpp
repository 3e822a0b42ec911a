#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <vector>

namespace rushlight {
namespace {

TEST(Error, JoinsItsParts) {
  std::vector<int64_t> shape = {2, 3};
  EXPECT_EQ(cat("got ", std::span<const int64_t>(shape), " of ", DType::Float32, ", ", 1.5, ' ',
                true, " ", -7L, std::string(" end")),
            "got [2, 3] of float32, 1.5 True -7 end");
  EXPECT_EQ(cat(std::span<const int64_t>()), "[]");
}

TEST(Error, CarriesKindAndOperator) {
  try {
    fail(ErrorKind::Index, "select", "index ", 3, " is out of bounds");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_EQ(error.op(), "select");
    EXPECT_STREQ(error.what(), "select: index 3 is out of bounds");
  }
}

TEST(Error, AssertionsSayWhoseFaultItIs) {
  try {
    RUSHLIGHT_ASSERT(1 + 1 == 3);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    std::string text = error.what();
    EXPECT_NE(text.find("1 + 1 == 3"), std::string::npos);
    EXPECT_NE(text.find("fault of Rushlight"), std::string::npos);
  }
}

std::string g_warning;

TEST(Error, WarningsGoToTheHandler) {
  set_warning_handler([](const std::string& text) { g_warning = text; });
  warn("careful");
  set_warning_handler(nullptr);
  EXPECT_EQ(g_warning, "careful");
}

}  // namespace
}  // namespace rushlight
