#include "graph/dot.h"

#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include "graph/capture.h"
#include "graph/execute.h"

namespace rushlight::graph {
namespace {

template <typename F>
std::string drawing_of(F function) {
  std::string text;
  Settings settings;
  settings.runner = [&](Segment& segment) {
    text = to_dot(segment.graph, "a \"graph\"");
    execute(segment);
  };
  open_capture(register_settings(std::move(settings)));
  function();
  close_capture(false);
  return text;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(GraphDot, DrawsInputsNodesAndArrows) {
  Tensor x = ones({2, 3});
  std::string text = drawing_of([&] { return sum(mul(x, Scalar(2.5)), {1}); });
  EXPECT_TRUE(text.starts_with("digraph \"a \\\"graph\\\"\" {")) << text;
  EXPECT_TRUE(has(text, "input 0\\l%0: float32 [2, 3]")) << text;
  EXPECT_TRUE(has(text, "n0 [label=\"mul.Tensor(self=%0, other=2.5)\\l%1: float32 [2, 3]")) << text;
  EXPECT_TRUE(has(text, "s0 -> n0")) << text;
  EXPECT_TRUE(has(text, "n0 -> n1")) << text;
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(GraphDot, ArrowsFollowWritesThroughViews) {
  Tensor x = ones({4});
  std::string text = drawing_of([&] {
    Tensor y = add(x, Scalar(1));        // n0
    Tensor view = slice(y, 0, 0, 2, 1);  // n1, a view of it
    view.mul_(Scalar(3));                // n2 writes through the view
    return neg(y);                       // n3 reads what was written
  });
  EXPECT_TRUE(has(text, "n1 -> n2 [label=\"%2\", style=bold]")) << text;
  EXPECT_TRUE(has(text, "n2 -> n3")) << text;
  EXPECT_FALSE(has(text, "n0 -> n3")) << text;
}

}  // namespace
}  // namespace rushlight::graph
