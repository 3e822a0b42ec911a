#include "helpers.h"

namespace rushlight {
namespace {

using testing::expect_error;
using testing::Floats;
using testing::leaf;
using testing::tensor;
using testing::values;

TEST(Modes, NothingIsRecordedWithoutGradMode) {
  Tensor x = leaf({1});
  {
    NoGradGuard off;
    EXPECT_FALSE(mul(x, x).requires_grad());
    EnableGradGuard on;
    EXPECT_TRUE(mul(x, x).requires_grad());
  }
  EXPECT_TRUE(mul(x, x).requires_grad());
}

TEST(Modes, InferenceTensorsStayOutsideGraphs) {
  Tensor x = leaf({1, 2});
  Tensor made;
  {
    InferenceMode on;
    made = mul(x, x);
    EXPECT_TRUE(InferenceMode::is_enabled());
  }
  EXPECT_FALSE(InferenceMode::is_enabled());
  EXPECT_FALSE(made.requires_grad());
  expect_error(ErrorKind::Runtime, "Inference tensors cannot be saved for backward",
               [&] { mul(x, made); });
  expect_error(ErrorKind::Runtime,
               "Inplace update to inference tensor outside InferenceMode is not allowed",
               [&] { add_(made, Scalar(1)); });
  expect_error(ErrorKind::Runtime, "Setting requires_grad=True on inference tensor outside",
               [&] { made.requires_grad_(); });
}

TEST(Modes, InferenceTensorsMayBeWrittenInside) {
  InferenceMode on;
  Tensor made = add(tensor({1}), tensor({2}));
  add_(made, Scalar(1));
  EXPECT_EQ(values(made), (Floats{4}));
}

TEST(Modes, InferenceModeCanBeLeftInside) {
  Tensor x = leaf({1});
  InferenceMode on;
  InferenceMode off(false);
  EXPECT_TRUE(mul(x, x).requires_grad());
}

TEST(Modes, OnlyFloatingTensorsRequireGrad) {
  expect_error(ErrorKind::Runtime, "only Tensors of floating point dtype can require gradients",
               [] { make_tensor({2}, DType::Int64).requires_grad_(); });
}

TEST(Modes, OnlyLeavesChangeTheirFlag) {
  Tensor y = mul(leaf({1}), Scalar(2));
  expect_error(ErrorKind::Runtime, "you can only change requires_grad flags of leaf variables",
               [&] { y.requires_grad_(false); });
  EXPECT_FALSE(y.detach().requires_grad());
  EXPECT_TRUE(y.detach().is_leaf());
}

TEST(Modes, AssignedGradIsChecked) {
  Tensor x = leaf({1, 2});
  expect_error(ErrorKind::Runtime, "attempting to assign a gradient of size '[3]'",
               [&] { x.set_grad(tensor({1, 2, 3})); });
  expect_error(ErrorKind::Runtime, "attempting to assign a gradient with dtype",
               [&] { x.set_grad(make_tensor({2}, DType::Float64)); });
  expect_error(ErrorKind::Runtime, "attempting to assign a gradient with device type 'meta'",
               [&] { x.set_grad(make_tensor({2}, DType::Float32, DeviceType::Meta)); });
  x.set_grad(tensor({5, 6}));
  EXPECT_EQ(values(x.grad()), (Floats{5, 6}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Modes, AnomalyModeStopsAtNaN) {
  Tensor x = leaf({0});
  autograd::DetectAnomalyGuard guard;
  Tensor y = mul(sqrt(x), Scalar(0));
  expect_error(ErrorKind::Runtime,
               "Function 'SqrtBackward0' returned nan values in its 0th output.",
               [&] { y.backward(); });
}

TEST(Modes, NewDataKeepsTheLeaf) {
  Tensor x = leaf({1, 2});
  x.set_data(tensor({3, 4, 5}));
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(values(x), (Floats{3, 4, 5}));
}

}  // namespace
}  // namespace rushlight
