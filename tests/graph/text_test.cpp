#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include "graph/capture.h"
#include "graph/execute.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

// The text of what a function captured, and the bits that it gave.
template <typename F>
std::string captured_text(F function) {
  std::string text;
  Settings settings;
  settings.runner = [&](Segment& segment) {
    text = print(segment.graph);
    execute(segment);
  };
  open_capture(register_settings(std::move(settings)));
  function();
  close_capture(false);
  return text;
}

std::string round_trip(const std::string& text) {
  return print(parse(text));
}

TEST(GraphText, PrintsCallsWithTheirArguments) {
  Tensor x = ones({2, 3});
  std::string text = captured_text([&] { return sum(mul(x, Scalar(2.5)), {1}); });
  EXPECT_NE(text.find("mul.Tensor(self=%0, other=2.5)"), std::string::npos) << text;
  EXPECT_NE(text.find("dim=[1]"), std::string::npos) << text;
}

TEST(GraphText, ParsesWhatItPrints) {
  Tensor x = randn({4, 6});
  Tensor y = randn({6});
  std::string text = captured_text([&] {
    Tensor a = add(x, y);
    a.mul_(Scalar(std::numeric_limits<double>::infinity()));
    Tensor b = cat({a, transpose(x, 0, 1).reshape({4, 6})}, 0);
    Tensor c = gelu(b, "tanh");
    return topk(to(c, DType::Float64), 2);
  });
  EXPECT_EQ(round_trip(text), text);
}

TEST(GraphText, ParsesGradientsOfElementwiseOperators) {
  Tensor x = randn({5}).requires_grad_();
  std::string text = captured_text([&] { sum(div(x, cosh(x))).backward(); });
  EXPECT_NE(text.find("_gradient."), std::string::npos) << text;
  EXPECT_EQ(round_trip(text), text);
}

TEST(GraphText, NamesLineAndColumnOfAFault) {
  try {
    parse("storage 0 input 16\nvalue 0 storage 1 float32 [4] [1] at 0\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
  }
}

TEST(GraphText, RefusesWhatReachesOutOfItsStorage) {
  EXPECT_THROW(parse("storage 0 input 16\nvalue 0 storage 0 float32 [5] [1] at 0\n"), Error);
  EXPECT_THROW(parse("storage 0 input 16\nvalue 0 storage 0 float32 [4] [1] at 1\n"), Error);
  EXPECT_THROW(parse("storage 0 input 16\nvalue 0 storage 0 float32 [4] [-1] at 0\n"), Error);
}

TEST(GraphText, RefusesReadsBeforeWrites) {
  EXPECT_THROW(parse("storage 0 16\nstorage 1 16\n"
                     "value 0 storage 0 float32 [4] [1] at 0 contiguous\n"
                     "value 1 storage 1 float32 [4] [1] at 0 contiguous\n"
                     "%1 = neg(self=%0)\n"),
               Error);
}

TEST(GraphText, RefusesUnknownOperators) {
  EXPECT_THROW(parse("storage 0 input 16\nvalue 0 storage 0 float32 [4] [1] at 0\n"
                     "%0 = no_such_operator(self=%0)\n"),
               Error);
}

}  // namespace
}  // namespace rushlight::graph
