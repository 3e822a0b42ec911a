// Values are those of PyTorch 2.13 after manual_seed(5), for a matrix of 2 x 3.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <cmath>
#include <vector>

namespace rushlight {
namespace {

namespace init = nn::init;

template <typename Fill>
void expect(Fill fill, const std::vector<float>& values) {
  manual_seed(5);
  const Tensor made = fill(empty({2, 3}).requires_grad_());
  EXPECT_TRUE(made.requires_grad());
  EXPECT_TRUE(made.is_leaf());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(made.data_ptr<float>()[i], values[i], 1e-6) << "element " << i;
  }
}

TEST(Init, Distributions) {
  expect([](const Tensor& t) { return init::uniform_(t, -1, 2); },
         {1.4907556f, -0.62166727f, 1.722409f, 1.4597812f, 1.7603103f, -0.65006435f});
  expect([](const Tensor& t) { return init::normal_(t, 1, 2); },
         {0.026438499f, -0.20764318f, -0.11619246f, 2.3350487f, 0.60516983f, 4.8855672f});
  expect([](const Tensor& t) { return init::trunc_normal_(t); },
         {-0.48678076f, -0.60382158f, -0.55809623f, 0.66752428f, -0.1974151f, 1.9427835f});
}

TEST(Init, Xavier) {
  expect([](const Tensor& t) { return init::xavier_uniform_(t); },
         {0.72354561f, -0.81914997f, 0.89272141f, 0.70092505f, 0.92040056f, -0.83988827f});
  expect([](const Tensor& t) { return init::xavier_normal_(t, 2); },
         {-0.61573434f, -0.76378059f, -0.70594209f, 0.84435886f, -0.24971254f, 2.4574485f});
}

TEST(Init, Kaiming) {
  expect([](const Tensor& t) { return init::kaiming_uniform_(t, 0, "fan_out", "relu"); },
         {1.144026f, -1.2951897f, 1.4115164f, 1.1082598f, 1.4552809f, -1.3279799f});
  expect([](const Tensor& t) { return init::kaiming_normal_(t, 0.5); },
         {-0.35549441f, -0.44096893f, -0.40757585f, 0.48749083f, -0.1441716f, 1.4188085f});
}

TEST(Init, Constants) {
  expect([](const Tensor& t) { return init::ones_(t); }, std::vector<float>(6, 1));
  expect([](const Tensor& t) { return init::zeros_(t); }, std::vector<float>(6, 0));
  expect([](const Tensor& t) { return init::constant_(t, 0.5); }, std::vector<float>(6, 0.5f));
  expect([](const Tensor& t) { return init::eye_(t); }, {1, 0, 0, 0, 1, 0});
}

TEST(Init, DiracKeepsChannels) {
  const Tensor weight = init::dirac_(empty({2, 2, 3}));
  EXPECT_EQ(weight.sum().item<double>(), 2);
  EXPECT_EQ(weight[0][0][1].item<double>(), 1);
  EXPECT_EQ(weight[1][1][1].item<double>(), 1);
}

TEST(Init, TruncatedNormalsStayWithinTheirBounds) {
  manual_seed(1);
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{-0.5, 0.5}, {1, 2}}) {
    const Tensor t = init::trunc_normal_(empty({1000}), 0, 1, low, high);
    EXPECT_GE(t.min().item<double>(), low);
    EXPECT_LE(t.max().item<double>(), high);
  }
}

TEST(Init, Gains) {
  EXPECT_DOUBLE_EQ(init::calculate_gain("tanh"), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain("relu"), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::calculate_gain("leaky_relu", 0.5), std::sqrt(2.0 / 1.25));
  EXPECT_DOUBLE_EQ(init::calculate_gain("selu"), 0.75);
  EXPECT_DOUBLE_EQ(init::calculate_gain("conv2d"), 1);
}

TEST(Init, RefusesWhatHasNoFans) {
  EXPECT_THROW(init::xavier_uniform_(empty({3})), Error);
  EXPECT_THROW(init::kaiming_normal_(empty({3, 3}), 0, "fan_sideways"), Error);
  EXPECT_THROW(init::kaiming_normal_(empty({3, 3}), 0, "fan_in", "gelu"), Error);
  EXPECT_THROW(init::calculate_gain("convex"), Error);
  EXPECT_THROW(init::eye_(empty({3})), Error);
  EXPECT_THROW(init::dirac_(empty({3, 3})), Error);
  EXPECT_THROW(init::dirac_(empty({3, 3, 3}), 2), Error);
}

}  // namespace
}  // namespace rushlight
