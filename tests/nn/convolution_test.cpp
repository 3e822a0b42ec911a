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

template <typename F>
void expect_error(const std::string& text, F body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(ConvolutionTest, TwoDimensions) {
  manual_seed(5);
  nn::Conv2d layer(nn::Conv2dOptions(2, 2, 2).stride(2).padding(1));
  const Tensor x = linspace(-1, 1, 18).reshape({1, 2, 3, 3});
  expect_near(layer->forward(x), {0.1237403f, -0.0795523f, 0.4616314f, 0.2018544f, 0.0638190f,
                                  0.0481871f, -0.0440719f, 0.2241220f});
  EXPECT_EQ(layer->to_string(), "Conv2d(2, 2, kernel_size=(2, 2), stride=(2, 2), padding=(1, 1))");
}

TEST(ConvolutionTest, CircularWithoutABatch) {
  manual_seed(5);
  nn::Conv1d layer(nn::Conv1dOptions(2, 2, 3).padding("same").groups(2).padding_mode("circular"));
  const Tensor x = linspace(-1, 1, 8).reshape({2, 4});
  expect_near(layer->forward(x), {-0.3463501f, -0.6621360f, -0.5421024f, -0.9597894f, 0.5237333f,
                                  0.2192115f, 0.3368840f, 0.9604536f});
  EXPECT_EQ(layer->to_string(),
            "Conv1d(2, 2, kernel_size=(3,), stride=(1,), padding=same, groups=2, "
            "padding_mode=circular)");
}

TEST(ConvolutionTest, Transposed) {
  manual_seed(5);
  nn::ConvTranspose2d layer(nn::ConvTranspose2dOptions(1, 2, 2).stride(2).bias(false));
  const Tensor x = linspace(-1, 1, 4).reshape({1, 1, 2, 2});
  const Tensor made = layer->forward(x);
  expect_near(made.select(1, 0).select(1, 0), {-0.2335233f, 0.2643795f, -0.0778411f, 0.0881265f});
  const Tensor wider = layer->forward(x, {5, 4});
  EXPECT_TRUE(equal(wider.narrow(2, 0, 4), made));
  EXPECT_EQ(layer->to_string(),
            "ConvTranspose2d(1, 2, kernel_size=(2, 2), stride=(2, 2), bias=False)");
  expect_error("valid sizes range from 4 to 5", [&] { layer->forward(x, {6, 4}); });
}

TEST(ConvolutionTest, GradientsReachBothParameters) {
  nn::Conv3d layer(1, 2, nn::Spread{2, 2, 3});
  const Tensor x = ones({1, 1, 3, 3, 3});
  sum(layer->forward(x)).backward();
  expect_near(layer->bias.grad(), {4.0f, 4.0f});
  expect_near(layer->weight.grad().flatten(), Floats(24, 4.0f));
}

TEST(ConvolutionTest, Mistakes) {
  expect_error("in_channels must be divisible by groups",
               [] { nn::Conv2d(nn::Conv2dOptions(3, 4, 1).groups(2)); });
  expect_error("not supported for strided",
               [] { nn::Conv2d(nn::Conv2dOptions(2, 2, 3).stride(2).padding("same")); });
  expect_error("Invalid padding string 'full'",
               [] { nn::Conv2d(nn::Conv2dOptions(2, 2, 3).padding("full")); });
  expect_error("kernel_size of 2 values, got 3", [] { nn::Conv2d(2, 2, nn::Spread{1, 2, 3}); });
}

}  // namespace
}  // namespace rushlight
