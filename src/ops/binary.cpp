// Element-wise arithmetic of two tensors, or of a tensor and a number.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/promotion.h"
#include "ops/reads_result.h"
#include "ops/rows.h"
#include "tensor/scalar_range.h"

namespace rushlight {

using loop::Expr;

namespace {

// Integers have no negative powers; given as a tensor they are taken, and give 0 or 1 over one.
void expect_whole_power(const Invocation& inv) {
  const Value& base = inv.arguments[0];
  const Value& exponent = inv.arguments[1];
  if (is_number(base) || !is_number(exponent) || !is_integral(base.tensor().dtype(), true)) {
    return;
  }
  if (exponent.is_tensor() && exponent.tensor().is_meta()) {
    return;  // looked at when it is computed
  }
  const Scalar power = exponent.is_tensor() ? exponent.tensor().item() : exponent.to_scalar();
  if (power.is_integral(false) && power.to_int() < 0) {
    fail(ErrorKind::Runtime, "pow", "Integers to negative integer powers are not allowed.");
  }
  if (power.is_integral(false) && base.tensor().dtype() != DType::Bool) {
    check_fits(power, base.tensor().dtype());
  }
}

bool floating(Elementwise& e) {
  return is_floating(e.dtype());
}

// Of every call, as kernels are kept for all values of alpha.
void check_alpha(const Invocation& inv) {
  const Value& given = inv.arguments[2];
  if (given.tag() == Value::Tag::Int) {
    return;
  }
  Promotion promotion;
  promotion.add(inv.arguments[0]);
  promotion.add(inv.arguments[1]);
  const DType dtype = promotion.result();
  const Scalar alpha = given.to_scalar();
  if (alpha.is_boolean() && dtype != DType::Bool) {
    fail(ErrorKind::Runtime, inv.op->name(), "Boolean alpha only supported for Boolean results.");
  }
  if (is_integral(dtype, true) && !alpha.is_integral(true)) {
    fail(ErrorKind::Runtime, inv.op->name(),
         "For integral input tensors, argument alpha must not be a floating point number.");
  }
  if (alpha.is_complex() && !is_complex(dtype)) {
    fail(ErrorKind::Runtime, inv.op->name(),
         "For non-complex input tensors, argument alpha must not be a complex number.");
  }
}

void check_difference(const Invocation& inv) {
  refuse_bool_difference(inv);
  check_alpha(inv);
}

// Bool adds as or, and multiplies as and.
Expr add_body(Elementwise& e) {
  if (e.dtype() == DType::Bool) {
    return e.in(0) | (e.in(1) & e.scalar(2));
  }
  return e.in(0) + e.in(1) * e.scalar(2);
}

Expr sub_body(Elementwise& e, int left, int right) {
  return e.in(left)-e.in(right)*e.scalar(2);
}

Expr divide(Elementwise& e, Expr a, Expr b) {
  std::string_view mode = e.has(2) ? e.text(2) : std::string_view();
  if (mode.empty()) {
    return a / b;
  }
  if (mode == "floor") {
    return loop::binary(loop::Op::FloorDiv, a, b);
  }
  if (mode == "trunc") {
    return floating(e) ? loop::trunc(a / b) : a / b;
  }
  fail(ErrorKind::Runtime, "div",
       "expected rounding_mode to be one of None, 'trunc', or 'floor' "
       "but found '",
       mode, "'");
}

// Integer division by a zero anywhere is an error, as in PyTorch; floats give inf or NaN.
void check_divisor(const Tensor& self, const Tensor& other) {
  const DType promoted = result_type(self, other);
  if (is_floating(promoted) || is_complex(promoted) || other.is_meta() || other.numel() == 0 ||
      self.numel() == 0) {
    return;
  }
  _check_all(other, "", "ZeroDivisionError");
}

// Numbers are never tracked, and stay known as such: they do not promote.
Tensor untracked(const Tensor& operand) {
  return operand.impl()->has(TensorImpl::kWrappedNumber) ? operand : detach(operand);
}

Tensor scaled(const Tensor& grad, const Scalar& alpha) {
  return alpha == Scalar(1) ? grad : mul(grad, alpha);
}

// The dimensions of `from` over which a gradient of that shape is summed for an argument of `to`.
IntList summed_dims(IntArrayRef from, IntArrayRef to) {
  IntList dims;
  const size_t lead = from.size() - to.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (d < lead || (to[d - lead] == 1 && from[d] != 1)) {
      dims.push_back(static_cast<int64_t>(d));
    }
  }
  return dims;
}

// grad * other for an argument of `sizes`: where it was broadcast, summed in the pass that
// multiplies, and rounded once. Columns of float are faster summed in a pass of their own.
Tensor product_for(const Tensor& grad, const Tensor& other, IntArrayRef sizes) {
  const IntList dims = summed_dims(grad.sizes(), sizes);
  const bool half = is_reduced_floating(grad.dtype());
  if (dims.empty() || grad.is_complex() || (!half && dims.back() + 1 != grad.dim())) {
    return mul(grad, other);
  }
  if (thread_state.grad_mode || grad.dtype() != other.dtype()) {
    return sum(_product(grad, other, true), dims, true);
  }
  return _product_sum(grad, other, dims, true);
}

void multiply_gradient(Gradient& g) {
  for (int mine : {0, 1}) {
    if (g.needs(mine)) {
      const Value& other = g.value(1 - mine);
      g.set(mine, other.is_number() ? mul(g.grad(), other.to_scalar())
                                    : product_for(g.grad(), g.tensor(1 - mine), g.sizes(mine)));
    }
  }
}

Expr power(Elementwise& e) {
  if (e.dtype() == DType::Bool) {
    if (is_number(e.attribute(1))) {  // x^1 is x, x^0 is 1
      return e.in(0) | loop::unary(loop::Op::Not, e.in(1));
    }
    fail(ErrorKind::NotImplemented, "pow", "\"pow\" not implemented for 'Bool'");
  }
  return loop::pow(e.in(0), e.in(1));
}

// A half is a float whose last bits are 0: its neighbours lie a unit of those bits away. A float16
// below 2^-14 is a multiple of 2^-24.
Expr next_after(Elementwise& e) {
  Expr from = e.in(0);
  const DType kind = e.promoted();
  if (!is_reduced_floating(kind)) {
    return loop::binary(loop::Op::NextAfter, from, e.in(1));
  }
  const bool is_float16 = kind == DType::Float16;
  const auto with_sign = [](double size, Expr sign) {
    return loop::binary(loop::Op::CopySign, loop::constant(size, DType::Float32), sign);
  };
  const double tick = is_float16 ? 0x1p-24 : 0x1p-133;
  Expr toward = loop::cast(e.in(1), kind);
  Expr away = loop::where(from > 0.0, from<toward, from> toward);
  Expr unit = loop::constant_int(is_float16 ? 0x2000 : 0x10000, DType::Int32);
  Expr bits = loop::bitcast(from, DType::Int32);
  Expr stepped = loop::bitcast(loop::select(away, bits + unit, bits - unit), DType::Float32);
  if (is_float16) {
    Expr size = loop::abs(from);
    Expr fine = (size < 0x1p-14) | ((size == 0x1p-14) & loop::unary(loop::Op::Not, away));
    Expr step = with_sign(tick, from);
    stepped = loop::where(fine, loop::where(away, from + step, from - step), stepped);
    stepped = loop::where(loop::isinf(from), with_sign(65504, from), stepped);
  }
  Expr next = loop::where(from == 0.0, with_sign(tick, toward), stepped);
  next = loop::where(from == toward, toward, next);
  return loop::where(loop::isnan(from) | loop::isnan(toward), from + toward, next);
}

Expr log_add_exp(Elementwise& e, bool base2) {
  Expr a = e.in(0);
  Expr b = e.in(1);
  if (is_complex(e.dtype())) {
    Expr first = loop::real(a) >= loop::real(b);
    Expr most = loop::where(first, a, b);
    return loop::where((a == b) & loop::isinf(a), a,
                       most + loop::log1p(loop::exp(loop::where(first, b, a) - most)));
  }
  Expr most = loop::max(a, b);
  Expr gap = -loop::abs(a - b);
  Expr sum = base2 ? most + loop::log2(1.0 + loop::exp2(gap)) : most + loop::log1p(loop::exp(gap));
  // Equal infinities have no difference.
  return loop::where(a == b, a + (base2 ? 1.0 : 0.6931471805599453), sum);
}

// Equal infinities share the gradient, as all equal arguments do.
Expr log_add_exp_share(Elementwise& e) {
  Expr a = e.in(1);
  Expr b = e.in(2);
  Expr equal = (a == b) & (loop::abs(a) == HUGE_VAL);
  Expr gap = loop::where(equal, 0.0, a - b) * e.scalar(3);
  return e.in(0) * loop::sigmoid(gap);
}

void log_add_exp_gradient(Gradient& g, double log_base) {
  for (int mine : {0, 1}) {
    if (g.needs(mine)) {
      g.set(mine, _logaddexp_share(g.grad(), g.tensor(mine), g.tensor(1 - mine), log_base));
    }
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(binary) {
  op("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", kArithmetic)
      .complex()
      .doc("self + alpha * other.")
      .elementwise(Rule::Promote, add_body)
      .gradient("",
                [](Gradient& g) {
                  g.set(0, g.grad());
                  if (g.needs(1)) {
                    g.set(1, scaled(g.grad(), g.scalar(2)));
                  }
                })
      .check(check_alpha);
  op("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", kArithmetic)
      .complex()
      .doc("self - alpha * other.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return sub_body(e, 0, 1); })
      .gradient("",
                [](Gradient& g) {
                  g.set(0, g.grad());
                  if (g.needs(1)) {
                    g.set(1, scaled(neg(g.grad()), g.scalar(2)));
                  }
                })
      .check(check_difference);
  op("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     kFunction | kMethod | kNumbers)
      .complex()
      .doc("other - alpha * self.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return sub_body(e, 1, 0); })
      .gradient("",
                [](Gradient& g) {
                  g.set(1, g.grad());
                  if (g.needs(0)) {
                    g.set(0, scaled(neg(g.grad()), g.scalar(2)));
                  }
                })
      .node([](const Invocation& inv) {
        return is_number(inv.arguments[1]) ? "RsubBackward1" : "RsubBackward0";
      })
      .check(check_difference);
  op("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     kFunction | kMethod | kInplace)
      .doc("self - alpha * other of a number, with alpha by position, too.")
      .composition([](const Tensor& self, const Scalar& other, const Scalar& alpha) -> Tensor {
        return sub(self, other, alpha);
      });
  op("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", kFunction | kMethod)
      .doc("other - alpha * self of a number, with alpha by position, too.")
      .composition([](const Tensor& self, const Scalar& other, const Scalar& alpha) -> Tensor {
        return rsub(self, other, alpha);
      });
  op("mul.Tensor(Tensor self, Tensor other) -> Tensor", kArithmetic)
      .complex()
      .doc("self * other.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     return e.dtype() == DType::Bool ? e.in(0) & e.in(1) : e.in(0) * e.in(1);
                   })
      .gradient("self:other other:self", multiply_gradient);
  op("_product(Tensor self, Tensor other, bool wide) -> Tensor", kInternal)
      .complex()
      .doc("self * other; `wide`: of halves in float.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.in(0) * e.in(1); });
  Entry product_sum =
      op("_product_sum(Tensor self, Tensor other, int[] dim, bool keepdim) -> Tensor", kInternal)
          .doc("sum(self * other) over dimensions, rounded once.");
  product_sum
      .body(Kind::Reduction,
            make_reduction(
                product_sum.entry().schema,
                {loop::Combine::Sum, [](Rows& r) -> Expr { return r.in(0) * r.in(1); }, {}}))
      .not_differentiable();
  op("div.Tensor(Tensor self, Tensor other) -> Tensor", kArithmetic)
      .complex()
      .doc("self / other; integers give floats.")
      .elementwise(Rule::Float, [](Elementwise& e) { return e.in(0) / e.in(1); });
  op("_div_rounded(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
     kInternal | kInplace | kOut | kNumbers)
      .doc("Division rounded down or toward zero, without a check for zero.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return divide(e, e.in(0), e.in(1)); })
      .gradient("",
                [](Gradient& g) {
                  for (int i : {0, 1}) {
                    if (g.needs(i)) {
                      g.set(i, zeros(g.sizes(i), g.grad().options()));
                    }
                  }
                })
      .check(expect_not_bool);
  op("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", kArithmetic)
      .doc("Division; rounding_mode None, 'trunc' (toward zero) or 'floor'.")
      .composition([](const Tensor& self, const Tensor& other,
                      std::optional<std::string_view> mode) -> Tensor {
        if (!mode) {
          return div(self, other);
        }
        check_divisor(self, other);
        return _div_rounded(self, other, mode);
      })
      .casts_out()
      .node("DivBackward2");
  op("floor_divide(Tensor self, Tensor other) -> Tensor", kArithmetic)
      .doc("Division rounded down.")
      .composition([](const Tensor& self, const Tensor& other) -> Tensor {
        check_divisor(self, other);
        // The result has no gradient, not even one of zeros.
        return _div_rounded(untracked(self), untracked(other), "floor");
      })
      .node("FloorDivideBackward0")  // seen whole: nothing inside has a gradient
      .casts_out();
  op("_remainder(Tensor self, Tensor other) -> Tensor", kInternal | kNumbers)
      .doc("self modulo other, without a check for zero.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return loop::binary(loop::Op::Mod, e.in(0), e.in(1)); })
      .check(expect_not_bool);
  op("remainder.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("self modulo other, with the sign of other.")
      .composition([](const Tensor& self, const Tensor& other) -> Tensor {
        check_divisor(self, other);
        return _remainder(self, other);
      })
      .casts_out()
      .node([](const Invocation& inv) {
        return is_number(inv.arguments[1]) ? "RemainderBackward0" : "RemainderBackward1";
      });
  op("_fmod(Tensor self, Tensor other) -> Tensor", kInternal | kNumbers)
      .doc("C's fmod, without a check for zero.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return loop::binary(loop::Op::Rem, e.in(0), e.in(1)); })
      .check(expect_not_bool);
  op("fmod.Tensor(Tensor self, Tensor other) -> Tensor", kBinary)
      .doc("Remainder with the sign of self.")
      .composition([](const Tensor& self, const Tensor& other) -> Tensor {
        check_divisor(self, other);
        return _fmod(self, other);
      })
      .casts_out()
      .node([](const Invocation& inv) {
        return is_number(inv.arguments[1]) ? "FmodBackward0" : "FmodBackward1";
      });
  keep_result(op("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", kBinaryEither)
                  .complex()
                  .doc("self to the power of exponent.")
                  .elementwise(Rule::Promote, power)
                  .node([](const Invocation& inv) {
                    if (is_number(inv.arguments[0])) {
                      return "PowBackward2";
                    }
                    return is_number(inv.arguments[1]) ? "PowBackward0" : "PowBackward1";
                  })
                  .check(expect_whole_power),
              1);
  op("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", kFunction | kOut)
      .doc("A number to the power of a tensor.")
      .composition([](Scalar self, const Tensor& exponent) -> Tensor {
        Tensor base = make_scalar_tensor(self, self.dtype());
        base.impl()->set(TensorImpl::kWrappedNumber, true);
        return pow(base, exponent);
      })
      .node("PowBackward2");
  op("maximum(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("The greater of each pair; NaN where either is.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return loop::max(e.in(0), e.in(1)); });
  op("minimum(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("The lesser of each pair; NaN where either is.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return loop::min(e.in(0), e.in(1)); });
  op("fmax(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("The greater of each pair; a number where either is one.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        return floating(e) ? loop::binary(loop::Op::FMax, e.in(0), e.in(1))
                           : loop::max(e.in(0), e.in(1));
      });
  op("fmin(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("The lesser of each pair; a number where either is one.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        return floating(e) ? loop::binary(loop::Op::FMin, e.in(0), e.in(1))
                           : loop::min(e.in(0), e.in(1));
      });
  op("atan2(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("The angle of the point (other, self), in radians.")
      .elementwise(Rule::Float,
                   [](Elementwise& e) { return loop::binary(loop::Op::Atan2, e.in(0), e.in(1)); });
  keep_result(op("hypot(Tensor self, Tensor other) -> Tensor", kUnary)
                  .doc("sqrt(self^2 + other^2) without overflow.")
                  .elementwise(Rule::Promote,
                               [](Elementwise& e) {
                                 return loop::binary(loop::Op::Hypot, e.in(0), e.in(1));
                               })
                  .check(expect_floating));
  keep_result(op("copysign.Tensor(Tensor self, Tensor other) -> Tensor", kBinary)
                  .doc("The magnitude of self with the sign of other.")
                  .elementwise(Rule::Float, [](Elementwise& e) {
                    return loop::binary(loop::Op::CopySign, e.in(0), e.in(1));
                  }));
  op("nextafter(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("The next value after self toward other.")
      .elementwise(Rule::Promote, next_after)
      .gradient("self other",
                [](Gradient& g) {
                  if (g.needs(0)) {
                    g.set(0, where(eq(g.tensor(0), g.tensor(1)), Scalar(0), g.grad()));
                  }
                  if (g.needs(1)) {
                    g.set(1, zeros(g.sizes(1), g.grad().options()));
                  }
                })
      .check(expect_floating);
  op("_logaddexp_share(Tensor grad, Tensor self, Tensor other, float log_base) -> Tensor",
     kInternal)
      .complex()
      .doc("Gradient of logaddexp by self.")
      .elementwise(Rule::Promote, log_add_exp_share);
  op("logaddexp(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .complex()
      .doc("log(exp(self) + exp(other)), without overflow.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return log_add_exp(e, false); })
      .gradient("self other", [](Gradient& g) { log_add_exp_gradient(g, 1.0); })
      .check(expect_floating);
  op("logaddexp2(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("log2(2^self + 2^other), without overflow.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return log_add_exp(e, true); })
      .gradient("self other", [](Gradient& g) { log_add_exp_gradient(g, 0.6931471805599453); })
      .check(expect_floating);
  op("xlogy.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("self * log(other); 0 where self is 0.")
      .elementwise(Rule::Float, [](Elementwise& e) {
        Expr x = e.in(0);
        Expr y = e.in(1);
        return loop::where(loop::isnan(y), y, loop::where(x == 0.0, 0.0, x * loop::log(y)));
      });
}

}  // namespace rushlight
