// Order: NaN, ties, every dtype's keys, selection, distinct elements, searches.
#include <gtest/gtest.h>
#include <rushlight/generated/functions.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/sort_key.h"

namespace rushlight {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor floats(std::vector<float> values) {
  Tensor made = make_tensor({static_cast<int64_t>(values.size())}, DType::Float32);
  std::copy(values.begin(), values.end(), made.data_ptr<float>());
  return made;
}

std::vector<int64_t> list(const Tensor& tensor) {
  const Tensor dense = contiguous(tensor);
  const auto* values = dense.data_ptr<int64_t>();
  return {values, values + dense.numel()};
}

TEST(SortKey, OrdersFloatsAsNumbers) {
  const float ordered[] = {-INFINITY, -2.5F, -1e-40F, 0.0F, 1e-40F, 3.0F, INFINITY, kNan};
  for (size_t i = 1; i < std::size(ordered); ++i) {
    EXPECT_LT(kernels::sort_key(ordered[i - 1]), kernels::sort_key(ordered[i]));
  }
  EXPECT_EQ(kernels::sort_key(-0.0F), kernels::sort_key(0.0F));
  EXPECT_LT(kernels::sort_key(int8_t{-1}), kernels::sort_key(int8_t{0}));
  EXPECT_LT(kernels::sort_key(to_half(-1)), kernels::sort_key(to_half(0.5)));
}

TEST(Sort, IsStableWithNanLast) {
  const Tensor x = floats({2, kNan, 1, 2, -0.0F, 0});
  EXPECT_EQ(list(std::get<1>(sort(x))), (std::vector<int64_t>{4, 5, 2, 0, 3, 1}));
  EXPECT_EQ(list(std::get<1>(sort(x, int64_t{0}, true))), (std::vector<int64_t>{1, 0, 3, 2, 4, 5}));
}

TEST(Sort, LongRowsAgreeWithShortOnes) {
  // Above 256 elements rows are sorted by digits.
  const int64_t length = 5000;
  const Tensor x = remainder(mul(arange(length), Scalar(7919)), Scalar(1000));
  const auto order = list(std::get<1>(sort(x)));
  const auto* values = x.data_ptr<int64_t>();
  for (size_t i = 1; i < order.size(); ++i) {
    const int64_t a = values[order[i - 1]];
    const int64_t b = values[order[i]];
    ASSERT_TRUE(a < b || (a == b && order[i - 1] < order[i]));
  }
}

TEST(Sort, WorksAlongAnyDimension) {
  const Tensor x = view(floats({3, 1, 2, 9, 8, 7}), {3, 2});
  EXPECT_EQ(list(std::get<1>(sort(x, int64_t{0}))), (std::vector<int64_t>{1, 0, 0, 2, 2, 1}));
  EXPECT_EQ(std::get<0>(sort(zeros({}))).dim(), 0);
  EXPECT_EQ(std::get<0>(sort(zeros({0, 3}), int64_t{0})).numel(), 0);
}

TEST(TopK, TakesTheLargestInOrder) {
  const Tensor x = floats({1, 5, 3, 5, kNan});
  EXPECT_EQ(list(std::get<1>(topk(x, 3))), (std::vector<int64_t>{4, 1, 3}));
  EXPECT_EQ(list(std::get<1>(topk(x, 2, -1, false))), (std::vector<int64_t>{0, 2}));
  EXPECT_THROW(topk(x, 6), Error);
  const Tensor many = remainder(mul(arange(4000), Scalar(7919)), Scalar(4001));
  EXPECT_EQ(list(std::get<0>(topk(many, 2))), (std::vector<int64_t>{4000, 3999}));
}

TEST(Median, IsTheLowerOneAndLetsNanThrough) {
  EXPECT_EQ(median(floats({4, 1, 3, 2})).item<float>(), 2);
  EXPECT_TRUE(std::isnan(median(floats({4, kNan, 3})).item<float>()));
  EXPECT_EQ(nanmedian(floats({4, kNan, 3})).item<float>(), 3);
  EXPECT_EQ(std::get<0>(kthvalue(floats({4, 1, 3}), 2)).item<float>(), 3);
  EXPECT_EQ(std::get<0>(mode(floats({4, 1, 4, 1}))).item<float>(), 1);
  EXPECT_THROW(kthvalue(floats({1}), 0), Error);
}

TEST(Unique, CountsAndPlaces) {
  const auto [values, inverse, counts] = _unique2(floats({3, 1, 3, 2}), true, true, true);
  EXPECT_EQ(values.numel(), 3);
  EXPECT_EQ(list(inverse), (std::vector<int64_t>{2, 0, 2, 1}));
  EXPECT_EQ(list(counts), (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(std::get<0>(unique_consecutive(floats({1, 1, 2, 1}))).numel(), 3);
  EXPECT_EQ(std::get<0>(unique_dim(view(floats({1, 2, 1, 2}), {2, 2}), 0)).size(0), 1);
}

TEST(Search, FindsBothSides) {
  const Tensor bounds = floats({1, 3, 3, 5});
  const Tensor x = floats({0, 3, 6});
  EXPECT_EQ(list(searchsorted(bounds, x)), (std::vector<int64_t>{0, 1, 4}));
  EXPECT_EQ(list(searchsorted(bounds, x, false, true)), (std::vector<int64_t>{0, 3, 4}));
  EXPECT_EQ(list(bucketize(x, bounds)), (std::vector<int64_t>{0, 1, 4}));
  EXPECT_EQ(list(bincount(to(floats({1, 2, 2}), DType::Int64))), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(isin(floats({2, kNan}), floats({kNan, 2})).data_ptr<bool>()[0]);
  EXPECT_FALSE(isin(floats({2, kNan}), floats({kNan, 2})).data_ptr<bool>()[1]);
}

}  // namespace
}  // namespace rushlight
