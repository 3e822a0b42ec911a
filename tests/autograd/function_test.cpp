#include "autograd/function_node.h"
#include "autograd/meta.h"
#include "helpers.h"

namespace rushlight {
namespace {

using autograd::Context;
using testing::expect_error;
using testing::Floats;
using testing::leaf;
using testing::tensor;
using testing::values;

struct ScaledProduct : autograd::Function<ScaledProduct> {
  static Tensor forward(Context* context, const Tensor& a, const Tensor& b, double scale) {
    context->save_for_backward({a, b});
    context->saved_data["scale"] = scale;
    return mul(mul(a, b), Scalar(scale));
  }
  static TensorList backward(Context* context, TensorList grads) {
    TensorList saved = context->get_saved_variables();
    Scalar scale = context->saved_data["scale"].to_scalar();
    Tensor scaled = mul(grads[0], scale);
    return {mul(scaled, saved[1]), mul(scaled, saved[0]), Tensor()};
  }
};

TEST(Function, RunsItsOwnBackward) {
  Tensor a = leaf({2});
  Tensor b = leaf({3});
  Tensor y = ScaledProduct::apply(a, b, 10.0);
  EXPECT_EQ(values(y), (Floats{60}));
  EXPECT_EQ(autograd::grad_fn(y)->name(), "ScaledProductBackward");
  y.backward();
  EXPECT_EQ(values(a.grad()), (Floats{30}));
  EXPECT_EQ(values(b.grad()), (Floats{20}));
}

TEST(Function, DifferentiatesTwiceWhereBackwardIsMadeOfOperators) {
  Tensor a = leaf({2});
  Tensor b = leaf({3});
  Tensor y = ScaledProduct::apply(a, b, 10.0);
  Tensor first = autograd::grad({y}, {a}, {}, {}, true)[0];
  EXPECT_EQ(values(autograd::grad({first}, {b})[0]), (Floats{10}));
}

TEST(Function, SavedTensorsAreReleased) {
  Tensor a = leaf({2});
  Tensor y = ScaledProduct::apply(a, a, 1.0);
  y.backward();
  expect_error(ErrorKind::Runtime, "Trying to backward through the graph a second time",
               [&] { y.backward(); });
}

TEST(Function, WithoutGradNothingIsRecorded) {
  EXPECT_FALSE(ScaledProduct::apply(tensor({1}), tensor({2}), 1.0).requires_grad());
}

// The results in two places: doubled, and a mask that has no gradient.
struct DoubleAndMask : autograd::Function<DoubleAndMask> {
  static TensorList forward(Context* context, const Tensor& a) {
    Tensor mask = mul(a, Scalar(0));
    context->mark_non_differentiable({mask});
    return {mul(a, Scalar(2)), mask};
  }
  static TensorList backward(Context*, TensorList grads) {
    EXPECT_TRUE(grads[0].defined());
    return {mul(grads[0], Scalar(2))};
  }
};

TEST(Function, MarkedResultsHaveNoGradient) {
  Tensor a = leaf({2, 5});
  TensorList results = DoubleAndMask::apply(a);
  EXPECT_TRUE(results[0].requires_grad());
  EXPECT_FALSE(results[1].requires_grad());
  sum(results[0]).backward();
  EXPECT_EQ(values(a.grad()), (Floats{2, 2}));
}

struct Twins : autograd::Function<Twins> {
  static TensorList forward(Context* context, const Tensor& a, bool materialize) {
    context->set_materialize_grads(materialize);
    context->saved_data["materialize"] = materialize;
    return {mul(a, Scalar(1)), mul(a, Scalar(1))};
  }
  static TensorList backward(Context* context, TensorList grads) {
    EXPECT_EQ(grads[1].defined(), context->saved_data["materialize"].to_bool());
    return {grads[0], Tensor()};
  }
};

TEST(Function, MissingGradientsAreZerosWhereAsked) {
  for (bool materialize : {true, false}) {
    Tensor a = leaf({2});
    Twins::apply(a, materialize)[0].backward();
    EXPECT_EQ(values(a.grad()), (Floats{1}));
  }
}

struct AddOneInPlace : autograd::Function<AddOneInPlace> {
  static Tensor forward(Context* context, const Tensor& a) {
    add_(a, Scalar(1));
    context->mark_dirty({a});
    return a;
  }
  static TensorList backward(Context*, TensorList grads) { return {mul(grads[0], Scalar(3))}; }
};

TEST(Function, DirtyArgumentGetsTheNewHistory) {
  Tensor a = leaf({2});
  Tensor b = mul(a, Scalar(1));
  Tensor c = AddOneInPlace::apply(b);
  EXPECT_TRUE(c.is_same(b));
  EXPECT_EQ(autograd::grad_fn(b)->name(), "AddOneInPlaceBackward");
  b.backward();
  EXPECT_EQ(values(a.grad()), (Floats{3}));
  expect_error(ErrorKind::Runtime, "a leaf Variable that requires grad",
               [&] { AddOneInPlace::apply(a); });
}

struct Same : autograd::Function<Same> {
  static Tensor forward(Context*, const Tensor& a) { return a; }
  static TensorList backward(Context*, TensorList grads) { return {mul(grads[0], Scalar(-1))}; }
};

TEST(Function, ArgumentHandedBackBecomesAView) {
  Tensor a = leaf({2});
  Tensor b = Same::apply(a);
  EXPECT_FALSE(b.is_same(a));
  b.backward();
  EXPECT_EQ(values(a.grad()), (Floats{-1}));
}

struct WrongShape : autograd::Function<WrongShape> {
  static Tensor forward(Context*, const Tensor& a) { return mul(a, Scalar(1)); }
  static TensorList backward(Context*, TensorList) { return {tensor({1, 2, 3, 4, 5})}; }
};
struct TooMany : autograd::Function<TooMany> {
  static Tensor forward(Context*, const Tensor& a) { return mul(a, Scalar(1)); }
  static TensorList backward(Context*, TensorList grads) { return {grads[0], grads[0]}; }
};

TEST(Function, ReturnedGradientsAreChecked) {
  Tensor a = leaf({1, 2, 3});
  expect_error(ErrorKind::Runtime,
               "Function WrongShapeBackward returned an invalid gradient at index 0 - got [5] but "
               "expected shape compatible with [3]",
               [&] { sum(WrongShape::apply(a)).backward(); });
  expect_error(ErrorKind::Runtime, "returned an incorrect number of gradients (expected 1, got 2)",
               [&] { sum(TooMany::apply(a)).backward(); });
}

struct NeedsWhat : autograd::Function<NeedsWhat> {
  static Tensor forward(Context* context, const Tensor& a, const Tensor& b) {
    EXPECT_TRUE(context->needs_input_grad(0));
    EXPECT_FALSE(context->needs_input_grad(1));
    return mul(a, b);
  }
  static TensorList backward(Context* context, TensorList grads) {
    EXPECT_FALSE(context->needs_input_grad(1));
    return {grads[0], Tensor()};
  }
};

TEST(Function, KnowsWhichArgumentsNeedGrad) {
  Tensor a = leaf({1});
  NeedsWhat::apply(a, tensor({1})).backward();
}

}  // namespace
}  // namespace rushlight
