#include "autograd/engine.h"

#include <thread>

#include "autograd/meta.h"
#include "helpers.h"

namespace rushlight {
namespace {

using testing::expect_error;
using testing::Floats;
using testing::leaf;
using testing::tensor;
using testing::values;

TEST(Engine, SumsOverAllPathsToALeaf) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = add(mul(x, x), x);
  sum(y).backward();
  EXPECT_EQ(values(x.grad()), (Floats{3, 5, 7}));
}

TEST(Engine, AccumulatesIntoExistingGrad) {
  Tensor x = leaf({1, 2});
  sum(mul(x, Scalar(2))).backward();
  sum(mul(x, Scalar(3))).backward();
  EXPECT_EQ(values(x.grad()), (Floats{5, 5}));
}

TEST(Engine, SumsWhatBroadcastingSpreadOut) {
  Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_();
  Tensor row = leaf({1, 10, 100});
  Tensor scalar = tensor({2}, {}).requires_grad_();
  sum(mul(mul(x, row), scalar)).backward();
  EXPECT_EQ(values(row.grad()), (Floats{10, 14, 18}));
  EXPECT_EQ(row.grad().sizes(), row.sizes());
  EXPECT_EQ(scalar.grad().dim(), 0);
  EXPECT_EQ(values(scalar.grad()), (Floats{1 + 20 + 300 + 4 + 50 + 600}));
}

TEST(Engine, GivenGradientReplacesOne) {
  Tensor x = leaf({1, 2});
  mul(x, x).backward(tensor({10, 100}));
  EXPECT_EQ(values(x.grad()), (Floats{20, 400}));
}

TEST(Engine, GradReturnsInsteadOfAccumulating) {
  Tensor x = leaf({2, 3});
  Tensor y = mul(x, x);
  TensorList grads = autograd::grad({sum(y)}, {x, y});
  EXPECT_EQ(values(grads[0]), (Floats{4, 6}));
  EXPECT_EQ(values(grads[1]), (Floats{1, 1}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, GradRunsOnlyWhatLeadsToItsInputs) {
  Tensor x = leaf({2});
  Tensor z = leaf({5});
  Tensor y = mul(x, z);
  int runs = 0;
  autograd::register_hook(z, [&](const Tensor&) {
    ++runs;
    return Tensor();
  });
  autograd::grad({y}, {x});
  EXPECT_EQ(runs, 0);
}

TEST(Engine, BackwardIntoGivenInputsOnly) {
  Tensor x = leaf({2});
  Tensor z = leaf({5});
  Tensor y = mul(x, z);
  autograd::backward({mul(y, y)}, {}, {}, false, {x, y});
  EXPECT_EQ(values(x.grad()), (Floats{100}));
  EXPECT_EQ(values(y.grad()), (Floats{20}));
  EXPECT_FALSE(z.grad().defined());
}

TEST(Engine, DifferentiatesTwice) {
  Tensor x = leaf({3});
  Tensor y = mul(mul(x, x), x);
  Tensor first = autograd::grad({y}, {x}, {}, {}, true)[0];
  EXPECT_EQ(values(first), (Floats{27}));
  Tensor second = autograd::grad({first}, {x}, {}, {}, true)[0];
  EXPECT_EQ(values(second), (Floats{18}));
  EXPECT_EQ(values(autograd::grad({second}, {x})[0]), (Floats{6}));
}

TEST(Engine, DifferentiatesASavedResultTwice) {
  Tensor x = leaf({1});
  Tensor first = autograd::grad({exp(x)}, {x}, {}, {}, true)[0];
  Tensor second = autograd::grad({first}, {x})[0];
  EXPECT_FLOAT_EQ(values(second)[0], values(exp(x))[0]);
}

TEST(Engine, RootsThatLieBehindEachOtherAreSummed) {
  Tensor x = leaf({3});
  Tensor y = mul(x, x);
  Tensor z = mul(y, Scalar(2));
  autograd::backward({y, z, y}, {});
  EXPECT_EQ(values(x.grad()), (Floats{6 + 12 + 6}));
}

TEST(Engine, SecondWalkNeedsRetain) {
  Tensor x = leaf({3});
  Tensor y = mul(x, x);
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (Floats{12}));
  expect_error(ErrorKind::Runtime, "Trying to backward through the graph a second time",
               [&] { y.backward(); });
}

TEST(Engine, GraphsWithoutSavedTensorsMayBeWalkedAgain) {
  Tensor x = leaf({3});
  Tensor y = add(x, x);
  y.backward();
  y.backward();
  EXPECT_EQ(values(x.grad()), (Floats{4}));
}

TEST(Engine, ImplicitGradientNeedsOneElement) {
  Tensor x = leaf({1, 2});
  expect_error(ErrorKind::Runtime, "grad can be implicitly created only for scalar outputs",
               [&] { mul(x, x).backward(); });
}

TEST(Engine, RootWithoutGraphIsAnError) {
  expect_error(ErrorKind::Runtime,
               "element 0 of tensors does not require grad and does not have a grad_fn",
               [] { tensor({1}).backward(); });
}

TEST(Engine, UnusedInputIsAnErrorUnlessAllowed) {
  Tensor x = leaf({1});
  Tensor z = leaf({1});
  Tensor y = mul(x, x);
  expect_error(ErrorKind::Runtime, "appears to not have been used in the graph",
               [&] { autograd::grad({y}, {z}, {}, true); });
  EXPECT_FALSE(autograd::grad({y}, {z}, {}, {}, false, true)[0].defined());
}

TEST(Engine, GradientOfWrongShapeIsAnError) {
  Tensor x = leaf({1, 2});
  expect_error(ErrorKind::Runtime, "Mismatch in shape: grad_output[0] has a shape of",
               [&] { mul(x, x).backward(tensor({1, 2, 3})); });
}

TEST(Engine, DeepGraphsNeedNoStack) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) {
    y = add(y, x);
  }
  y.backward();
  EXPECT_EQ(values(x.grad()), (Floats{100001}));
  // And one that is dropped without being walked.
  y = x;
  for (int i = 0; i < 100000; ++i) {
    y = mul(y, x);
  }
}

TEST(Engine, IntegerResultsDoNotRequireGrad) {
  Tensor x = leaf({3, 1});
  EXPECT_FALSE(argmax(x).requires_grad());
  EXPECT_FALSE(gt(x, Scalar(1)).requires_grad());
  EXPECT_TRUE(mul(x, Scalar(1)).requires_grad());
}

TEST(Engine, NodesAreNamedAfterOperators) {
  Tensor x = leaf({3, 1});
  EXPECT_EQ(autograd::grad_fn(mul(x, x))->name(), "MulBackward0");
  Tensor y = exp(x);
  autograd::NodePtr node = autograd::grad_fn(y);
  EXPECT_EQ(node->name(), "ExpBackward0");
  EXPECT_EQ(node->edge(0).node->name(), "AccumulateGrad");
}

TEST(Engine, ThreadsMayShareALeaf) {
  Tensor x = leaf({1, 2, 3});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([x] {
      for (int i = 0; i < 200; ++i) {
        sum(mul(x, Scalar(2))).backward();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(values(x.grad()), (Floats{1600, 1600, 1600}));
}

TEST(Engine, ThreadsMayShareARetainedGraph) {
  Tensor x = leaf({1, 2});
  Tensor y = sum(mul(exp(x), x));
  std::vector<float> expected = values(autograd::grad({y}, {x}, {}, true)[0]);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(values(autograd::grad({y}, {x}, {}, true)[0]), expected);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(Engine, BackwardInsideAHook) {
  Tensor x = leaf({2});
  Tensor z = leaf({3});
  Tensor y = mul(x, x);
  autograd::register_hook(y, [&](const Tensor&) {
    EnableGradGuard on;
    mul(z, z).backward();
    return Tensor();
  });
  y.backward();
  EXPECT_EQ(values(x.grad()), (Floats{4}));
  EXPECT_EQ(values(z.grad()), (Floats{6}));
}

Tensor nest(const Tensor& x, int levels) {
  Tensor y = mul(x, Scalar(1));
  if (levels > 0) {
    autograd::register_hook(y, [x, levels](const Tensor&) {
      EnableGradGuard on;
      nest(x, levels - 1).backward();
      return Tensor();
    });
  }
  return y;
}

TEST(Engine, BackwardInsideBackwardManyLevelsDeep) {
  Tensor x = leaf({1});
  nest(x, 300).backward();
  EXPECT_EQ(values(x.grad()), (Floats{301}));
}

TEST(Engine, ErrorsInHooksReachTheCaller) {
  Tensor x = leaf({2});
  Tensor y = mul(x, x);
  autograd::register_hook(y, [](const Tensor&) -> Tensor { throw std::domain_error("mine"); });
  EXPECT_THROW(y.backward(), std::domain_error);
  EXPECT_TRUE(GradMode::is_enabled());
  EXPECT_EQ(autograd::running_node(), nullptr);
}

TEST(Engine, CallbacksRunAtTheEnd) {
  Tensor x = leaf({2});
  Tensor y = mul(x, x);
  bool had_grad = false;
  autograd::register_hook(y, [&](const Tensor&) {
    autograd::queue_callback([&] { had_grad = x.grad().defined(); });
    return Tensor();
  });
  y.backward();
  EXPECT_TRUE(had_grad);
}

}  // namespace
}  // namespace rushlight
