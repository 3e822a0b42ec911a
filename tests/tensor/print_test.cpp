#include <gtest/gtest.h>
#include <rushlight/printing.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

namespace rushlight {
namespace {

template <typename T>
Tensor filled(IntArrayRef sizes, DType dtype, const std::vector<T>& values) {
  const Tensor tensor = make_tensor(sizes, dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    char* at = static_cast<char*>(tensor.data()) + i * static_cast<size_t>(tensor.element_size());
    write_element(at, dtype, Scalar(static_cast<T>(values[i])));
  }
  return tensor;
}

Tensor ramp(IntArrayRef sizes, DType dtype) {
  std::vector<int64_t> values(static_cast<size_t>(checked_numel(sizes, "ramp")));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>(i);
  }
  return filled(sizes, dtype, values);
}

TEST(Print, WholeFloatsEndInAPoint) {
  EXPECT_EQ(filled<double>({2}, DType::Float32, {1, 2}).to_string(), "tensor([1., 2.])");
}

TEST(Print, ScalarsHaveNoBrackets) {
  EXPECT_EQ(filled<double>({}, DType::Float32, {0.5}).to_string(), "tensor(0.5000)");
  EXPECT_EQ(filled<int64_t>({}, DType::Int64, {-3}).to_string(), "tensor(-3)");
}

TEST(Print, WideRangesAreScientific) {
  EXPECT_EQ(filled<double>({3}, DType::Float32, {1e-6, 1, -250.5}).to_string(),
            "tensor([ 1.0000e-06,  1.0000e+00, -2.5050e+02])");
}

TEST(Print, ZeroAndNotFiniteDoNotSetTheWidth) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(filled<double>({4}, DType::Float32, {0, nan, HUGE_VAL, 1.5}).to_string(),
            "tensor([0.0000,    nan,    inf, 1.5000])");
  EXPECT_EQ(filled<double>({2}, DType::Float32, {nan, 0}).to_string(), "tensor([nan, 0.])");
}

TEST(Print, DtypesThatNumbersDoNotShowAreNamed) {
  EXPECT_EQ(filled<int64_t>({2}, DType::Int32, {1, 20}).to_string(),
            "tensor([ 1, 20], dtype=torch.int32)");
  EXPECT_EQ(filled<bool>({2}, DType::Bool, {true, false}).to_string(), "tensor([ True, False])");
  EXPECT_EQ(filled<double>({1}, DType::BFloat16, {0.1}).to_string(),
            "tensor([0.1001], dtype=torch.bfloat16)");
  EXPECT_EQ(filled<double>({1}, DType::Float8E4M3FN, {0.1}).to_string(),
            "tensor([0.1016], dtype=torch.float8_e4m3fn)");
}

TEST(Print, ComplexPartsHaveTheirOwnStyle) {
  const std::vector<std::complex<double>> values = {{1, 2.5}, {-3, -0.25}};
  EXPECT_EQ(filled({2}, DType::Complex64, values).to_string(),
            "tensor([ 1.+2.5000j, -3.-0.2500j])");
}

TEST(Print, EmptyTensorsShowTheirShape) {
  EXPECT_EQ(make_tensor({0}, DType::Float32).to_string(), "tensor([])");
  EXPECT_EQ(make_tensor({2, 0}, DType::Int64).to_string(),
            "tensor([], size=(2, 0), dtype=torch.int64)");
}

TEST(Print, MetaTensorsHaveNoNumbers) {
  EXPECT_EQ(make_tensor({2}, DType::Float32, Device("meta")).to_string(),
            "tensor(..., device='meta', size=(2,))");
}

TEST(Print, RowsAreIndented) {
  EXPECT_EQ(ramp({2, 2, 2}, DType::Int64).to_string(),
            "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])");
}

TEST(Print, LargeTensorsAreSummarised) {
  EXPECT_EQ(ramp({1001}, DType::Int64).to_string(),
            "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
}

TEST(Print, OptionsChangeTheText) {
  PrintOptions options;
  options.precision = 2;
  options.threshold = 3;
  options.edge_items = 1;
  options.line_width = 20;
  const Tensor tensor = filled<double>({4}, DType::Float64, {0.5, 1, 2, 3.25});
  EXPECT_EQ(to_string(tensor, "Mine", options),
            "Mine([0.50,  ...,\n      3.25],\n     dtype=torch.float64)");
}

TEST(Print, LeavesThatNeedGradientsSaySo) {
  const Tensor tensor = filled<double>({1}, DType::Float32, {1});
  tensor.impl()->set(TensorImpl::kRequiresGrad, true);
  std::ostringstream text;
  text << tensor;
  EXPECT_EQ(text.str(), "tensor([1.], requires_grad=True)");
}

}  // namespace
}  // namespace rushlight
