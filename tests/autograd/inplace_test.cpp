#include "autograd/meta.h"
#include "helpers.h"

namespace rushlight {
namespace {

using testing::expect_error;
using testing::Floats;
using testing::leaf;
using testing::tensor;
using testing::values;

TEST(Inplace, ResultTakesTheNewHistory) {
  Tensor x = leaf({2});
  Tensor y = mul(x, Scalar(3));
  mul_(y, Scalar(5));
  EXPECT_EQ(autograd::grad_fn(y)->name(), "MulBackward0");
  y.backward();
  EXPECT_EQ(values(x.grad()), (Floats{15}));
}

TEST(Inplace, RuleReadsTheArgumentAsItWas) {
  Tensor x = leaf({2});
  Tensor w = leaf({7});
  Tensor y = mul(x, Scalar(3));
  mul_(y, w);  // d/dw reads what y was
  y.backward();
  EXPECT_EQ(values(w.grad()), (Floats{6}));
  EXPECT_EQ(values(x.grad()), (Floats{21}));
}

TEST(Inplace, TensorJoinsTheGraph) {
  Tensor w = leaf({2, 3});
  Tensor buffer = tensor({1, 1});
  mul_(buffer, w);
  EXPECT_TRUE(buffer.requires_grad());
  sum(buffer).backward();
  EXPECT_EQ(values(w.grad()), (Floats{1, 1}));
}

TEST(Inplace, LeafThatRequiresGradIsAnError) {
  Tensor x = leaf({2});
  expect_error(ErrorKind::Runtime,
               "a leaf Variable that requires grad is being used in an in-place operation.",
               [&] { mul_(x, Scalar(2)); });
  NoGradGuard off;
  mul_(x, Scalar(2));
  EXPECT_EQ(values(x), (Floats{4}));
}

TEST(Inplace, OutIsAnErrorWhereAnythingRequiresGrad) {
  Tensor x = leaf({2});
  Tensor out = tensor({0});
  expect_error(ErrorKind::Runtime,
               "add(): functions with out=... arguments don't support automatic differentiation, "
               "but one of the arguments requires grad.",
               [&] { add_out(out, x, x); });
  expect_error(ErrorKind::Runtime, "functions with out=... arguments",
               [&] { add_out(x, tensor({1}), tensor({1})); });
  NoGradGuard off;
  add_out(out, x, x);
  EXPECT_EQ(values(out), (Floats{4}));
}

TEST(Inplace, RetainedGradFollowsTheNewHistory) {
  Tensor x = leaf({2});
  Tensor y = mul(x, Scalar(3));
  y.retain_grad();
  mul_(y, Scalar(5));
  mul(y, Scalar(7)).backward();
  EXPECT_EQ(values(y.grad()), (Floats{7}));
}

TEST(View, WriteChangesTheBase) {
  Tensor w = leaf({5, 6});
  Tensor base = mul(leaf({0, 0, 0}), Scalar(1));
  Tensor x = leaf({1, 2, 3});
  base = mul(x, Scalar(1));
  Tensor view = narrow(base, 0, 1, 2);
  mul_(view, w);
  EXPECT_EQ(autograd::grad_fn(base)->name(), "CopySlices");
  EXPECT_EQ(autograd::grad_fn(view)->name(), "AsStridedBackward0");
  sum(mul(base, base)).backward();
  // base = (1, 2*5, 3*6)
  EXPECT_EQ(values(x.grad()), (Floats{2, 2 * 10 * 5, 2 * 18 * 6}));
  EXPECT_EQ(values(w.grad()), (Floats{2 * 10 * 2, 2 * 18 * 3}));
}

TEST(View, WriteMakesTheBaseRequireGrad) {
  Tensor w = leaf({5, 6});
  Tensor base = zeros({3});
  Tensor other = narrow(base, 0, 0, 2);
  Tensor view = narrow(base, 0, 1, 2);
  EXPECT_FALSE(other.requires_grad());
  copy_(view, w);
  EXPECT_TRUE(base.requires_grad());
  EXPECT_TRUE(other.requires_grad());
  sum(mul(other, Scalar(3))).backward();
  EXPECT_EQ(values(w.grad()), (Floats{3, 0}));
}

TEST(View, ViewsFollowWritesToTheBase) {
  Tensor x = leaf({1, 2});
  Tensor base = mul(x, Scalar(1));
  Tensor view = narrow(base, 0, 0, 1);
  mul_(base, Scalar(10));
  view.backward();
  EXPECT_EQ(values(x.grad()), (Floats{10, 0}));
}

TEST(View, ViewsOfViewsKnowTheFirstBase) {
  Tensor x = tensor({1, 2, 3, 4}, {2, 2}).requires_grad_();
  Tensor base = mul(x, Scalar(1));
  Tensor row = select(base, 0, 1);
  Tensor item = select(row, 0, 0);
  mul_(item, Scalar(7));
  EXPECT_TRUE(autograd::view_base(item).is_same(base));
  sum(base).backward();
  EXPECT_EQ(values(x.grad()), (Floats{1, 1, 7, 1}));
}

TEST(View, DifferentiatesTwiceThroughAWrite) {
  Tensor x = leaf({3, 4});
  Tensor base = mul(x, Scalar(1));
  Tensor view = narrow(base, 0, 0, 1);
  mul_(view, narrow(x, 0, 1, 1));  // base = (x0 * x1, x1)
  Tensor first = autograd::grad({sum(base)}, {x}, {}, {}, true)[0];
  EXPECT_EQ(values(first), (Floats{4, 4}));  // (x1, x0 + 1)
  EXPECT_EQ(values(autograd::grad({sum(first)}, {x})[0]), (Floats{1, 1}));
}

TEST(View, OfALeafThatRequiresGradIsAnError) {
  Tensor x = leaf({1, 2});
  expect_error(ErrorKind::Runtime,
               "a view of a leaf Variable that requires grad is being used in an in-place",
               [&] { mul_(narrow(x, 0, 0, 1), Scalar(2)); });
}

TEST(View, OneOfManyIsAnError) {
  Tensor base = mul(leaf({1, 2}), Scalar(1));
  TensorList parts = unbind(base, 0);
  expect_error(ErrorKind::Runtime,
               "Output 0 of Unbind is a view and is being modified inplace. This view is the "
               "output of a function that returns multiple views.",
               [&] { mul_(parts[0], Scalar(2)); });
}

TEST(View, OneOfManyIsAnErrorAfterAWriteToTheBase) {
  Tensor base = mul(leaf({1, 2}), Scalar(1));
  TensorList parts = unbind(base, 0);
  mul_(base, Scalar(2));
  expect_error(ErrorKind::Runtime,
               "Output 0 of Unbind is a view and its base or another view of its base has been "
               "modified inplace.",
               [&] { mul(parts[0], Scalar(2)); });
}

TEST(View, MadeWithoutGradModeIsAnError) {
  Tensor base = zeros({2});
  Tensor view;
  {
    NoGradGuard off;
    view = narrow(base, 0, 0, 1);
    mul_(view, Scalar(2));
  }
  Tensor w = leaf({1});
  expect_error(ErrorKind::Runtime,
               "A view was created in no_grad mode and is being modified inplace with grad mode "
               "enabled.",
               [&] { mul_(view, w); });
}

TEST(View, DetachedTensorsHaveNoBase) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, Scalar(1));
  Tensor apart = y.detach();
  mul_(apart, leaf({1, 1}));
  EXPECT_EQ(autograd::grad_fn(y)->name(), "MulBackward0");
  EXPECT_EQ(y.version(), 1u);
}

// Its node needs to know how the base lies, not what is in it.
TEST(View, AStridedViewSurvivesWritesToItsBase) {
  Tensor x = leaf({1, 2, 3, 4});
  Tensor y = mul(x, Scalar(2));
  Tensor view = as_strided(y, {2}, {2});
  Tensor copy = clone(view);
  mul_(y, Scalar(5));
  sum(copy).backward();
  EXPECT_EQ(values(x.grad()), (Floats{2, 0, 2, 0}));
}

TEST(View, ReshapingInPlaceKeepsTheGraph) {
  Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_();
  Tensor y = mul(x, Scalar(2));
  t_(y);
  EXPECT_EQ(y.size(0), 3);
  sum(mul(y, tensor({1, 2, 3, 4, 5, 6}, {3, 2}))).backward();
  EXPECT_EQ(values(x.grad()), (Floats{2, 6, 10, 4, 8, 12}));
}

}  // namespace
}  // namespace rushlight
