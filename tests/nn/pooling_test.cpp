// Values are PyTorch 2.13's.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <vector>

namespace rushlight {
namespace {

Tensor numbers(IntArrayRef sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    count *= size;
  }
  return reshape(arange(Scalar(count), TensorOptions(DType::Float32)), sizes);
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  const Tensor dense = contiguous(tensor.detach());
  const T* data = dense.data_ptr<T>();
  return {data, data + dense.numel()};
}

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TEST(MaxPool2d, FindsMaximaAndPlaces) {
  nn::MaxPool2d pool(2);
  const Tensor x = numbers({1, 1, 4, 4});
  EXPECT_EQ(values<float>(pool(x)), (Floats{5, 7, 13, 15}));
  const auto [maxima, places] = pool->forward_with_indices(x);
  EXPECT_EQ(values<int64_t>(places), (Longs{5, 7, 13, 15}));
  nn::MaxUnpool2d back(2);
  EXPECT_EQ(values<float>(back(maxima, places))[5], 5);
  EXPECT_EQ(pool->to_string(),
            "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1), "
            "ceil_mode=False)");
}

TEST(AvgPool, Averages) {
  nn::AvgPool2d pool(nn::AvgPool2dOptions({2, 4}).stride(2).divisor_override(4));
  EXPECT_EQ(values<float>(pool(numbers({1, 4, 4}))), (Floats{7, 23}));
  nn::AvgPool1d line(3);
  EXPECT_EQ(values<float>(line(numbers({1, 6}))), (Floats{1, 4}));
}

TEST(AdaptivePool, KeepsAbsentSizes) {
  nn::AdaptiveAvgPool2d pool(nn::AdaptiveAvgPool2dOptions({std::nullopt, 1}));
  EXPECT_EQ(values<float>(pool(numbers({1, 2, 4}))), (Floats{1.5, 5.5}));
  nn::AdaptiveMaxPool1d line(2);
  EXPECT_EQ(values<float>(line(numbers({1, 1, 5}))), (Floats{2, 4}));
}

TEST(LPPool1d, TakesNorms) {
  nn::LPPool1d pool(2.0, 2);
  EXPECT_NEAR(values<float>(pool(numbers({1, 1, 4})))[1], 3.6055512f, 1e-6);
}

TEST(FractionalMaxPool2d, DrawsAsPython) {
  manual_seed(3);
  nn::FractionalMaxPool2d pool(
      nn::FractionalMaxPool2dOptions(3).output_ratio(nn::ExpandingArray<2, double>(0.5)));
  const auto places = std::get<1>(pool->forward_with_indices(numbers({1, 10, 10})));
  const Longs first{22, 23, 25, 27, 29};
  const Longs all = values<int64_t>(places);
  EXPECT_EQ(Longs(all.begin(), all.begin() + 5), first);
}

TEST(Fold, AddsWhatUnfoldTook) {
  nn::Unfold unfold(2);
  nn::Fold fold(3, 2);
  const Tensor columns = unfold(numbers({1, 1, 3, 3}));
  EXPECT_EQ(values<float>(fold(columns)), (Floats{0, 2, 2, 6, 16, 10, 6, 14, 8}));
}

TEST(EmbeddingBag, AveragesRows) {
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(3, 2).mode("sum"));
  bag->weight.set_data(numbers({3, 2}));
  const Tensor rows = reshape(to(numbers({4}), DType::Int64), {2, 2});
  EXPECT_EQ(values<float>(bag(clamp(rows, Scalar(0), Scalar(2)))), (Floats{2, 4, 8, 10}));
}

TEST(CTCLoss, OneLabelOneStep) {
  nn::CTCLoss loss;
  const Tensor scores = log_softmax(zeros({1, 1, 4}), 2);
  const Tensor one = ones({1}, TensorOptions(DType::Int64));
  EXPECT_NEAR(loss(scores, ones({1, 1}, TensorOptions(DType::Int64)), one, one).item<float>(),
              1.3862944f, 1e-6);
}

TEST(LocalResponseNorm, Divides) {
  nn::LocalResponseNorm norm(2);
  EXPECT_NEAR(values<float>(norm(numbers({1, 2, 3})))[3], 2.9989879f, 1e-5);
}

}  // namespace
}  // namespace rushlight
