// What the layers compute is compared with Python's in tests/parity/test_layers.py.
#include <rushlight/rushlight.h>

#include "expect_error.h"

namespace rushlight {
namespace {

using Factors = std::vector<double>;
using Sizes = std::vector<int64_t>;

TEST(Interpolate, AntialiasesImages) {
  const nn::UpsampleOptions half = nn::UpsampleOptions().size(Sizes{2}).mode("bilinear");
  const Tensor x = arange(16).to(DType::Float32).view({1, 1, 4, 4});
  const Tensor small = nn::interpolate(x, half, true);
  EXPECT_EQ(small.sizes(), IntArrayRef({1, 1, 2, 2}));
  EXPECT_NEAR(mean(small).item<double>(), 7.5, 1e-5);
}

TEST(Interpolate, RecomputesScales) {
  nn::UpsampleOptions options = nn::UpsampleOptions().scale_factor(Factors{1.3});
  const Tensor x = ones({1, 1, 5});
  EXPECT_EQ(nn::interpolate(x, options.recompute_scale_factor(true)).size(2), 6);
}

TEST(Interpolate, RefusesOptionsThatContradict) {
  const Tensor x = ones({1, 1, 4, 4});
  const auto run = [&](const nn::UpsampleOptions& options, bool antialias = false) {
    return [=] { nn::interpolate(x, options, antialias); };
  };
  const nn::UpsampleOptions none;
  expect_error(ErrorKind::Value, "either size or scale_factor should be defined", run(none));
  const nn::UpsampleOptions twice = nn::UpsampleOptions().scale_factor(Factors{2});
  expect_error(ErrorKind::Value, "only one of size or scale_factor should be defined",
               run(nn::UpsampleOptions(twice).size(Sizes{8})));
  expect_error(ErrorKind::Value, "align_corners option can only be set",
               run(nn::UpsampleOptions(twice).align_corners(true)));
  expect_error(ErrorKind::Value, "Anti-alias option is restricted", run(twice, true));
  expect_error(ErrorKind::NotImplemented, "got round",
               run(nn::UpsampleOptions(twice).mode("round")));
  expect_error(ErrorKind::NotImplemented, "Got 4D input, but mode linear",
               run(nn::UpsampleOptions(twice).mode("linear")));
  expect_error(ErrorKind::Value, "expected one size or 2",
               run(nn::UpsampleOptions().size(Sizes{1, 2, 3})));
  expect_error(ErrorKind::NotImplemented, "expected an input of 3, 4 or 5 dimensions, got 2",
               [&] { nn::interpolate(ones({2, 2}), twice); });
}

TEST(Pads, RefuseOtherDimensions) {
  expect_error(ErrorKind::Value, "expected 3D or 4D input (got 2D input)",
               [] { nn::CircularPad2d(1)(ones({2, 2})); });
  expect_error(ErrorKind::Value, "expected 4 numbers, got 3",
               [] { nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 2, 3})); });
}

}  // namespace
}  // namespace rushlight
