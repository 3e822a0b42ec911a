#include "autograd/accumulate_grad.h"
#include "autograd/meta.h"
#include "helpers.h"

namespace rushlight {
namespace {

using testing::expect_error;
using testing::Floats;
using testing::leaf;
using testing::tensor;
using testing::values;

TEST(Hooks, TensorHookReplacesTheGradient) {
  Tensor x = leaf({1, 2});
  Tensor y = mul(x, Scalar(3));
  autograd::register_hook(y, [](const Tensor& g) { return mul(g, Scalar(10)); });
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (Floats{30, 30}));
}

TEST(Hooks, LeafHookSeesTheSummedGradient) {
  Tensor x = leaf({1});
  Floats seen;
  autograd::register_hook(x, [&](const Tensor& g) {
    seen = values(g);
    return Tensor();
  });
  add(mul(x, Scalar(2)), mul(x, Scalar(3))).backward();
  EXPECT_EQ(seen, (Floats{5}));
}

TEST(Hooks, RemovedHookDoesNotRun) {
  Tensor x = leaf({1});
  int runs = 0;
  autograd::HookHandle handle = autograd::register_hook(x, [&](const Tensor&) {
    ++runs;
    return Tensor();
  });
  mul(x, x).backward();
  handle.remove();
  mul(x, x).backward();
  EXPECT_EQ(runs, 1);
}

TEST(Hooks, TensorWithoutGradTakesNone) {
  expect_error(ErrorKind::Runtime, "cannot register a hook on a tensor that doesn't require",
               [] { autograd::register_hook(tensor({1}), [](const Tensor& g) { return g; }); });
}

TEST(Hooks, PostAccumulateHookSeesTheGrad) {
  Tensor x = leaf({1});
  Floats seen;
  autograd::register_post_accumulate_grad_hook(x,
                                               [&](const Tensor& t) { seen = values(t.grad()); });
  mul(x, Scalar(4)).backward();
  EXPECT_EQ(seen, (Floats{4}));
  expect_error(ErrorKind::Runtime, "non-leaf", [&] {
    autograd::register_post_accumulate_grad_hook(mul(x, x), [](const Tensor&) {});
  });
}

TEST(Hooks, NodeHooksSeeAndReplaceBothSides) {
  Tensor x = leaf({1});
  Tensor y = mul(x, Scalar(2));
  autograd::NodePtr node = autograd::grad_fn(y);
  node->add_pre_hook([](const TensorList& in) { return TensorList{mul(in[0], Scalar(5))}; });
  Floats before;
  Floats after;
  node->add_post_hook([&](const TensorList& out, const TensorList& in) {
    before = values(in[0]);
    after = values(out[0]);
    TensorList changed = out;
    changed[0] = mul(out[0], Scalar(7));
    return changed;
  });
  y.backward();
  EXPECT_EQ(before, (Floats{5}));
  EXPECT_EQ(after, (Floats{10}));
  EXPECT_EQ(values(x.grad()), (Floats{70}));
}

TEST(Hooks, RetainedGradOfAResult) {
  Tensor x = leaf({3});
  Tensor y = mul(x, x);
  y.retain_grad();
  mul(y, y).backward();
  EXPECT_EQ(values(y.grad()), (Floats{18}));
  expect_error(ErrorKind::Runtime, "can't retain_grad on Tensor that has requires_grad=False",
               [] { tensor({1}).retain_grad(); });
}

TEST(Hooks, RetainedGradMayOutliveItsTensor) {
  Tensor x = leaf({3});
  Tensor z;
  {
    Tensor y = mul(x, x);
    y.retain_grad();
    z = mul(y, y);
  }
  z.backward();
  EXPECT_EQ(values(x.grad()), (Floats{108}));
}

TEST(Hooks, RetainedGradSeesWhatHooksMade) {
  Tensor x = leaf({3});
  Tensor y = mul(x, Scalar(1));
  y.retain_grad();
  autograd::register_hook(y, [](const Tensor& g) { return mul(g, Scalar(2)); });
  y.backward();
  EXPECT_EQ(values(y.grad()), (Floats{2}));
}

}  // namespace
}  // namespace rushlight
