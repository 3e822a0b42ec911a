// Element-wise functions of three operands, and of bounds.
#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"

namespace rushlight {

using loop::Expr;

namespace {

Expr clamp_to(Elementwise& e, Expr low, Expr high) {
  Expr x = e.in(0);
  if (low) {
    x = loop::max(x, low);
  }
  return high ? loop::min(x, high) : x;
}

Expr clamp_bounds(Elementwise& e, bool tensors) {
  if (!e.has(1) && !e.has(2)) {
    fail(ErrorKind::Runtime, "clamp", "At least one of 'min' or 'max' must not be None");
  }
  auto bound = [&](int at) { return !e.has(at) ? Expr{} : tensors ? e.in(at) : e.scalar(at); };
  return clamp_to(e, bound(1), bound(2));
}

// Inside the bounds, or on one, the gradient passes.
Tensor inside(const Tensor& self, const Value& low, const Value& high) {
  Tensor mask;
  auto narrow = [&](Tensor more) { mask = mask.defined() ? logical_and(mask, more) : more; };
  if (!low.is_none()) {
    narrow(low.is_number() ? ge(self, low.to_scalar()) : ge(self, low.tensor()));
  }
  if (!high.is_none()) {
    narrow(high.is_number() ? le(self, high.to_scalar()) : le(self, high.tensor()));
  }
  return mask;
}

void clamp_gradient(Gradient& g) {
  if (g.needs(0)) {
    g.set(0, where(inside(g.tensor(0), g.value(1), g.value(2)), g.grad(), Scalar(0)));
  }
}

void clamp_tensor_gradient(Gradient& g) {
  Tensor x = g.tensor(0);
  Tensor low = g.tensor(1);
  Tensor high = g.tensor(2);
  if (g.needs(0)) {
    g.set(0, where(inside(x, Value(low), Value(high)), g.grad(), Scalar(0)));
  }
  if (low.defined() && g.needs(1)) {
    Tensor below = lt(x, low);
    if (high.defined()) {
      below = logical_and(below, lt(low, high));
    }
    g.set(1, where(below, g.grad(), Scalar(0)));
  }
  if (high.defined() && g.needs(2)) {
    Tensor above = gt(x, high);
    if (low.defined()) {
      above = logical_or(above, lt(high, low));
    }
    g.set(2, where(above, g.grad(), Scalar(0)));
  }
}

// The form that is exact at both ends: from start for small weights, from end for large ones.
Expr lerp_between(Elementwise& e, Expr weight) {
  Expr a = e.in(0);
  Expr b = e.in(1);
  return loop::where(loop::abs(weight) < 0.5, a + weight * (b - a), b - (b - a) * (1.0 - weight));
}

}  // namespace

RUSHLIGHT_OPERATORS(ternary) {
  op("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
     kFunction | kMethod | kOut | kNumbers)
      .complex(ComplexRule::Own)
      .doc("self where condition holds, else other.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return loop::select(e.raw(0), e.in(1), e.in(2)); })
      .gradient("condition",
                [](Gradient& g) {
                  if (g.needs(1)) {
                    g.set(1, where(g.tensor(0), g.grad(), Scalar(0)));
                  }
                  if (g.needs(2)) {
                    g.set(2, where(g.tensor(0), Scalar(0), g.grad()));
                  }
                })
      .casts_out(false);
  op("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", kUnary)
      .doc("Limits each element to [min, max].")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_bounds(e, false); })
      .gradient("self", clamp_gradient)
      .casts_out()
      .node("ClampBackward1");
  op("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", kUnary)
      .doc("Limits each element to bounds of its own.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_bounds(e, true); })
      .gradient("self min max", clamp_tensor_gradient)
      .node("ClampBackward0");
  op("clamp_min(Tensor self, Scalar min) -> Tensor", kUnary)
      .doc("The greater of each element and min.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_to(e, e.scalar(1), {}); })
      .gradient(
          "self",
          [](Gradient& g) { g.set(0, where(ge(g.tensor(0), g.scalar(1)), g.grad(), Scalar(0))); })
      .casts_out();
  op("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", kUnary)
      .doc("The greater of each pair; NaN where either is one.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_to(e, e.in(1), {}); })
      .gradient("self min", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, where(ge(g.tensor(0), g.tensor(1)), g.grad(), Scalar(0)));
        }
        if (g.needs(1)) {
          g.set(1, where(lt(g.tensor(0), g.tensor(1)), g.grad(), Scalar(0)));
        }
      });
  op("clamp_max(Tensor self, Scalar max) -> Tensor", kUnary)
      .doc("The lesser of each element and max.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_to(e, {}, e.scalar(1)); })
      .gradient(
          "self",
          [](Gradient& g) { g.set(0, where(le(g.tensor(0), g.scalar(1)), g.grad(), Scalar(0))); })
      .casts_out();
  op("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", kUnary)
      .doc("The lesser of each pair; NaN where either is one.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_to(e, {}, e.in(1)); })
      .gradient("self max", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, where(le(g.tensor(0), g.tensor(1)), g.grad(), Scalar(0)));
        }
        if (g.needs(1)) {
          g.set(1, where(gt(g.tensor(0), g.tensor(1)), g.grad(), Scalar(0)));
        }
      });
  op("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", kUnary)
      .doc("Another name of clamp.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_bounds(e, false); })
      .gradient("self", clamp_gradient)
      .casts_out()
      .node("ClampBackward1");
  op("clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", kUnary)
      .doc("Another name of clamp.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return clamp_bounds(e, true); })
      .gradient("self min max", clamp_tensor_gradient)
      .node("ClampBackward0");
  op("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", kUnary)
      .complex()
      .doc("self + weight * (end - self).")
      .elementwise(Rule::Promote, [](Elementwise& e) { return lerp_between(e, e.scalar(2)); })
      .check(expect_one_dtype);
  op("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", kUnary)
      .complex()
      .doc("self + weight * (end - self).")
      .elementwise(Rule::Promote, [](Elementwise& e) { return lerp_between(e, e.in(2)); })
      .casts_out(false)
      .check(expect_lerp_dtypes);
  op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", kUnary)
      .complex()
      .doc("self + value * tensor1 * tensor2.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return e.in(0) + e.scalar(3) * e.in(1) * e.in(2); })
      .check(expect_not_bool);
  op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", kUnary)
      .complex()
      .doc("self + value * tensor1 / tensor2.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return e.in(0) + e.scalar(3) * (e.in(1) / e.in(2)); })
      .check(refuse_integer_division);
}

}  // namespace rushlight
