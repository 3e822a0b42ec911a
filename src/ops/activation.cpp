// Activation functions.
#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"

namespace rushlight {

using loop::Expr;

namespace {

constexpr double kInverseSqrt2 = 0.7071067811865476;
constexpr double kSqrt2OverPi = 0.7978845608028654;
constexpr double kSeluAlpha = 1.6732632423543772;
constexpr double kSeluScale = 1.0507009873554805;

Expr zero(Elementwise& e) {
  return loop::constant(0, e.dtype());
}

Expr gelu_body(Elementwise& e) {
  Expr x = e.in(0);
  std::string_view form = e.text(1);
  if (form == "none") {
    Expr half = x * 0.5;
    return loop::fma(half, loop::erf(x * kInverseSqrt2), half);
  }
  if (form == "tanh") {
    Expr inner = (x + x * x * x * 0.044715) * kSqrt2OverPi;
    return x * 0.5 * (1.0 + loop::tanh(inner));
  }
  fail(ErrorKind::Runtime, "gelu", "approximate argument must be either none or tanh, got '", form,
       "'");
}

// softplus, linear above threshold / beta.
Expr softplus_of(Expr x, Expr beta, Expr threshold) {
  Expr scaled = x * beta;
  return loop::where(scaled > threshold, x, loop::log1p(loop::exp(scaled)) / beta);
}

Expr elu_body(Elementwise& e, Expr alpha, Expr scale, Expr input_scale) {
  Expr x = e.in(0);
  // min keeps exp from overflowing where its arm is not chosen.
  Expr below = loop::expm1(loop::min(x, zero(e)) * input_scale) * alpha;
  return loop::where(x > 0.0, x, below) * scale;
}

Tensor glu_split(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "glu", "glu does not support 0-dimensional tensors");
  }
  int64_t at = wrap_dim(dim, self.dim(), "glu");
  int64_t size = self.sizes()[static_cast<size_t>(at)];
  if (size % 2 != 0) {
    fail(ErrorKind::Runtime, "glu", "Halving dimension must be even, but dimension ", at,
         " is size ", size);
  }
  return _gated(narrow(self, at, 0, size / 2), narrow(self, at, size / 2, size / 2));
}

Tensor prelu_channels(const Tensor& self, const Tensor& weight) {
  if (weight.dim() > 1) {
    fail(ErrorKind::Runtime, "prelu",
         "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  }
  if (weight.numel() != 1) {
    int64_t channels = self.dim() >= 2 ? self.sizes()[1] : 1;
    if (self.dim() == 0) {
      fail(ErrorKind::Runtime, "prelu", "Not allow zero-dim input tensor.");
    }
    if (channels != weight.numel()) {
      fail(ErrorKind::Runtime, "prelu", "Mismatch of parameter numbers and input channel size. ",
           "Found parameter numbers = ", weight.numel(), " and channel size = ", channels, ".");
    }
    IntList shape(static_cast<size_t>(self.dim()), 1);
    shape[self.dim() >= 2 ? 1 : 0] = weight.numel();
    return _prelu(self, reshape(weight, shape));
  }
  return _prelu(self, self.dim() == 0 ? reshape(weight, {}) : weight);
}

// Of a backward operator: `inside` where its second argument lies between the limits.
Expr between(Elementwise& e, Expr low, Expr high, Expr inside, Expr outside) {
  return loop::select(e.in(1) > low, loop::select(e.in(1) < high, inside, outside), outside);
}

}  // namespace

RUSHLIGHT_OPERATORS(activation) {
  op("relu(Tensor self) -> Tensor", kFunction | kMethod | kInplace)
      .doc("max(x, 0).")
      .elementwise(Rule::Promote, [](Elementwise& e) { return loop::max(e.in(0), zero(e)); })
      .gradient("result",
                [](Gradient& g) { g.set(0, threshold_backward(g.grad(), g.result(), Scalar(0))); })
      .check([](const Invocation& inv) {
        if (inv.arguments[0].tensor().dtype() == DType::Bool) {
          fail(ErrorKind::Runtime, "relu", "Boolean inputs not supported for relu");
        }
      });
  op("relu6(Tensor self) -> Tensor", kNN | kInplace)
      .doc("min(max(x, 0), 6); no gradient at the bounds.")
      .composition(
          [](const Tensor& self) -> Tensor { return hardtanh(self, Scalar(0), Scalar(6)); })
      .check(expect_not_bool);
  op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
     kFunction | kInplace | kOut | kNN)
      .doc("x where x > threshold, else value.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     return loop::select(x <= e.scalar(1), e.scalar(2), x);
                   })
      .gradient(
          "self",
          [](Gradient& g) { g.set(0, threshold_backward(g.grad(), g.tensor(0), g.scalar(1))); })
      .check(expect_not_bool);
  op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
     kFunction | kOut)
      .doc("grad_output where self > threshold, else 0.")
      .elementwise(
          Rule::Promote,
          [](Elementwise& e) { return loop::select(e.in(1) <= e.scalar(2), zero(e), e.in(0)); })
      .gradient("self", [](Gradient& g) {
        g.set(0, threshold_backward(g.grad(), g.tensor(1), g.scalar(2)));
      });
  op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", kFunction | kOut)
      .complex()
      .doc("grad_output * (1 - output^2).")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return e.in(0) * (1.0 - e.in(1) * e.in(1)); });
  op("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", kFunction | kOut)
      .complex()
      .doc("grad_output * output * (1 - output).")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return e.in(0) * (1.0 - e.in(1)) * e.in(1); });
  op("gelu(Tensor self, *, str approximate='none') -> Tensor", kNN | kInplace | kOut)
      .doc("Gaussian error linear unit; approximate 'none' (erf) or 'tanh'.")
      .elementwise(Rule::Promote, gelu_body)
      .check(expect_floating);
  op("silu(Tensor self) -> Tensor", kNN | kInplace | kOut)
      .complex()
      .doc("x * sigmoid(x).")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.in(0) * loop::sigmoid(e.in(0)); })
      .check(expect_floating);
  op("mish(Tensor self) -> Tensor", kNN | kInplace | kOut)
      .doc("x * tanh(softplus(x)).")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     Expr soft = softplus_of(x, loop::constant(1, e.dtype()),
                                             loop::constant(20, e.dtype()));
                     return x * loop::tanh(soft);
                   })
      .check(expect_floating);
  op("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", kNN | kOut)
      .doc("log(1 + exp(beta x)) / beta; x itself where beta x > threshold.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return softplus_of(e.in(0), e.scalar(1), e.scalar(2)); })
      .check(expect_floating);
  op("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
     kNN | kInplace | kOut)
      .doc("scale * x above zero, scale * alpha * (exp(input_scale x) - 1) below.")
      .elementwise(
          Rule::Promote,
          [](Elementwise& e) { return elu_body(e, e.scalar(1), e.scalar(2), e.scalar(3)); })
      .check(expect_floating);
  op("selu(Tensor self) -> Tensor", kFunction | kInplace)
      .doc("Self-normalising elu.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     return elu_body(e, loop::constant(kSeluAlpha, e.dtype()),
                                     loop::constant(kSeluScale, e.dtype()),
                                     loop::constant(1, e.dtype()));
                   })
      .node("EluBackward0")
      .check(expect_floating);
  op("celu(Tensor self, Scalar alpha=1.0) -> Tensor", kFunction | kInplace)
      .doc("max(0, x) + min(0, alpha (exp(x / alpha) - 1)).")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr alpha = e.scalar(1);
                     return elu_body(e, alpha, loop::constant(1, e.dtype()), 1.0 / alpha);
                   })
      .check(expect_floating);
  op("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", kNN | kInplace | kOut)
      .doc("x above zero, negative_slope * x below.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     return loop::where(x > 0.0, x, x * e.scalar(1));
                   })
      .check(expect_floating);
  op("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", kNN | kInplace | kOut)
      .doc("Limits each element to [min_val, max_val]; no gradient at the bounds.")
      .elementwise(
          Rule::Promote,
          [](Elementwise& e) { return loop::min(loop::max(e.in(0), e.scalar(1)), e.scalar(2)); })
      .gradient("self",
                [](Gradient& g) {
                  g.set(0, hardtanh_backward(g.grad(), g.tensor(0), g.scalar(1), g.scalar(2)));
                })
      .check(expect_not_bool);
  op("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) "
     "-> Tensor",
     kInternal)
      .doc("grad_output where self is between the limits, else 0.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        return between(e, e.scalar(2), e.scalar(3), e.in(0), zero(e));
      });
  op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", kInternal)
      .doc("The gradient of hardswish.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        const Expr three = loop::constant(3, e.dtype());
        const Expr slope = e.in(0) * (e.in(1) / 3.0 + 0.5);
        const Expr above = loop::select(e.in(1) > -three, e.in(0), zero(e));
        return between(e, -three, three, slope, above);
      });
  op("hardsigmoid(Tensor self) -> Tensor", kNN | kInplace | kOut)
      .doc("clamp(x / 6 + 1 / 2, 0, 1).")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr one = loop::constant(6, e.dtype());
                     return loop::min(loop::max(e.in(0) + 3.0, zero(e)), one) / 6.0;
                   })
      .gradient("self",
                [](Gradient& g) {
                  Tensor x = g.tensor(0);
                  Tensor inside = logical_and(gt(x, Scalar(-3)), lt(x, Scalar(3)));
                  g.set(0, where(inside, div(g.grad(), Scalar(6)), Scalar(0)));
                })
      .check(expect_floating);
  op("hardswish(Tensor self) -> Tensor", kNN | kInplace | kOut)
      .doc("x * clamp(x + 3, 0, 6) / 6.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     Expr six = loop::constant(6, e.dtype());
                     return x * loop::min(loop::max(x + 3.0, zero(e)), six) / 6.0;
                   })
      .gradient("self", [](Gradient& g) { g.set(0, hardswish_backward(g.grad(), g.tensor(0))); })
      .check(expect_floating);
  op("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", kFunction | kMethod | kOut)
      .doc("x where |x| > lambd, else 0.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     Expr limit = e.scalar(1);
                     return loop::select((x >= -limit) & (x <= limit), zero(e), x);
                   })
      .check(expect_floating);
  op("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", kNN | kOut)
      .doc("x moved toward zero by lambd, 0 within.")
      .composition([](const Tensor& self, Scalar lambd) -> Tensor {
        if (!(lambd.to_double() >= 0)) {
          fail(ErrorKind::Runtime, "softshrink",
               "lambda must be greater or equal to 0, but found "
               "to be ",
               lambd.to_double(), ".");
        }
        return _softshrink(self, lambd);
      })
      .check(expect_floating);
  op("_softshrink(Tensor self, Scalar lambd) -> Tensor", kInternal)
      .doc("softshrink, without a check of lambd.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        Expr x = e.in(0);
        Expr limit = e.scalar(1);
        return loop::select(x > limit, x - limit, loop::select(x < -limit, x + limit, x * 0.0));
      });
  op("log_sigmoid(Tensor self) -> Tensor", kNN | kOut)
      .doc("log(sigmoid(x)), exact at both ends.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     return loop::min(x, zero(e)) - loop::log1p(loop::exp(-loop::abs(x)));
                   })
      .gradient("self", [](Gradient& g) { g.set(0, mul(g.grad(), sigmoid(neg(g.tensor(0))))); })
      .check(expect_floating);
  op("_gated(Tensor self, Tensor gate) -> Tensor", kInternal)
      .doc("self * sigmoid(gate).")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.in(0) * loop::sigmoid(e.in(1)); })
      .gradient("self gate", [](Gradient& g) {
        const Tensor open = sigmoid(g.tensor(1));
        if (g.needs(0)) {
          g.set(0, mul(g.grad(), open));
        }
        if (g.needs(1)) {
          g.set(1, sigmoid_backward(mul(g.grad(), g.tensor(0)), open));
        }
      });
  op("glu(Tensor self, int dim=-1) -> Tensor", kNN | kOut)
      .doc("The first half along dim times the sigmoid of the second.")
      .composition(glu_split)
      .node("GluBackward0")
      .check(expect_floating);
  op("_prelu(Tensor self, Tensor weight) -> Tensor", kInternal)
      .doc("x above zero, weight * x below.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        Expr x = e.in(0);
        return loop::where(x > 0.0, x, x * e.in(1));
      });
  op("prelu(Tensor self, Tensor weight) -> Tensor", kFunction | kMethod)
      .doc("leaky_relu with a slope for each channel, or one for all.")
      .composition(prelu_channels)
      .node("PreluKernelBackward0")
      .check(expect_one_floating_dtype);
}

}  // namespace rushlight
