// Values are those of PyTorch 2.13 for the same seeds.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <string>
#include <vector>

namespace rushlight {
namespace {

using Floats = std::vector<float>;

void expect_near(const Tensor& got, const Floats& expected) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
  const Tensor row = got.detach().contiguous();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(row.data_ptr<float>()[i], expected[i], 1e-6) << "element " << i;
  }
}

const Tensor& steps() {
  static const Tensor made = linspace(-1, 1, 6).reshape({3, 1, 2});
  return made;
}

TEST(RecurrentTest, RNN) {
  manual_seed(5);
  nn::RNN layer(nn::RNNOptions(2, 2).num_layers(2).bidirectional(true));
  const auto [output, hidden] = layer->forward(steps());
  expect_near(output.select(0, 0), {0.2788239f, 0.2438292f, 0.5811660f, -0.1217999f});
  expect_near(hidden, {-0.9265107f, 0.9763611f, -0.1522900f, 0.2763317f, -0.2647419f, 0.3029473f,
                       0.5811660f, -0.1217999f});
  EXPECT_EQ(layer->to_string(), "RNN(2, 2, num_layers=2, bidirectional=True)");
}

TEST(RecurrentTest, GRU) {
  manual_seed(5);
  nn::GRU layer(nn::GRUOptions(2, 2).num_layers(2).bidirectional(true));
  const auto [output, hidden] = layer->forward(steps());
  expect_near(output.select(0, 0), {-0.1179118f, 0.0665625f, 0.0496204f, 0.0926561f});
  expect_near(hidden, {0.1751035f, 0.0023182f, -0.3929095f, 0.1271501f, -0.3437984f, -0.0356735f,
                       0.0496204f, 0.0926561f});
}

TEST(RecurrentTest, LSTM) {
  manual_seed(5);
  nn::LSTM layer(nn::LSTMOptions(2, 2).num_layers(2).bidirectional(true));
  const auto [output, state] = layer->forward(steps());
  expect_near(output.select(0, 0), {-0.0583926f, -0.3120824f, -0.1624117f, 0.1813876f});
  expect_near(std::get<1>(state), {0.5220965f, 0.0303946f, -0.0345568f, -0.1986562f, -0.1082329f,
                                   -0.7417397f, -0.9616899f, 0.2357859f});
  const auto [single, last] = layer->forward(steps().squeeze(1));
  EXPECT_TRUE(allclose(single, output.squeeze(1)));
  EXPECT_EQ(std::get<0>(last).dim(), 2);
  nn::LSTM other(
      nn::LSTMOptions(3, 4).num_layers(2).bias(false).batch_first(true).dropout(0.5).proj_size(2));
  EXPECT_EQ(other->to_string(),
            "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.5)");
}

TEST(RecurrentTest, Cells) {
  const Tensor x = tensor({0.5, -1.0}, DType::Float32);
  manual_seed(5);
  expect_near(nn::RNNCell(2, 2)->forward(x), {0.2474847f, 0.5552086f});
  manual_seed(5);
  expect_near(nn::GRUCell(2, 2)->forward(x), {-0.3471465f, -0.0485743f});
  manual_seed(5);
  expect_near(std::get<1>(nn::LSTMCell(2, 2)->forward(x)), {0.0951450f, -0.0284086f});
  EXPECT_EQ(nn::RNNCell(nn::RNNCellOptions(3, 4).nonlinearity("relu"))->to_string(),
            "RNNCell(3, 4, nonlinearity=relu)");
}

TEST(RecurrentTest, Mistakes) {
  EXPECT_THROW(nn::RNN(nn::RNNOptions(2, 2).nonlinearity("sin")), Error);
  EXPECT_THROW(nn::LSTM(nn::LSTMOptions(2, 2).proj_size(2)), Error);
  EXPECT_THROW(nn::GRU(nn::GRUOptions(2, 2).dropout(2)), Error);
  EXPECT_THROW(nn::GRUCell(2, 0), Error);
}

}  // namespace
}  // namespace rushlight
