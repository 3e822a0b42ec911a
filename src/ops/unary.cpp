// Element-wise functions of one tensor.
#include <rushlight/generated/functions.h>

#include <cmath>
#include <limits>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"

namespace rushlight {

using loop::Expr;

namespace {

// A constant of the body's dtype.
Expr number(Elementwise& e, double value) {
  return loop::constant(value, e.dtype());
}

bool floating(Elementwise& e) {
  return is_floating(e.dtype()) || is_complex(e.dtype());
}

// Functions that leave integers as they are.
template <Expr (*F)(Expr)>
Expr keep_integers(Elementwise& e) {
  return floating(e) ? F(e.in(0)) : e.in(0);
}

Expr sign_body(Elementwise& e) {
  Expr x = e.in(0);
  if (e.dtype() == DType::Bool) {
    return x;
  }
  Expr zero = loop::constant(0, e.dtype());
  Expr one = loop::constant(1, e.dtype());
  Expr up = loop::where(x > zero, one, zero);
  if (!is_signed(e.dtype())) {
    return up;
  }
  // NaN compares false twice: 0, as PyTorch's sign gives.
  return up - loop::where(x < zero, one, zero);
}

// At zero, which the other arm excludes, a complex magnitude has no slope, and gives 0.
Expr abs_body(Elementwise& e) {
  if (is_complex(e.dtype())) {
    Expr size = loop::abs(e.in(0));
    return loop::where(size == 0.0, 0.0, size);
  }
  return is_signed(e.dtype()) ? loop::abs(e.in(0)) : e.in(0);
}

void check_abs(const Invocation& inv) {
  expect_not_bool(inv);
  const TensorImpl* self = inv.arguments[0].impl();
  if (inv.form == Form::Inplace && self != nullptr && is_complex(self->dtype)) {
    fail(ErrorKind::Runtime, "", "In-place abs is not supported for complex tensors.");
  }
}

Expr sgn_body(Elementwise& e) {
  if (!is_complex(e.dtype())) {
    return sign_body(e);
  }
  Expr z = e.in(0);
  Expr size = loop::abs(z);
  return loop::where(size == 0.0, 0.0, z / loop::cast(size, e.dtype()));
}

Expr round_decimals(Elementwise& e) {
  Expr x = e.in(0);
  int64_t decimals = e.attribute(1).to_int();
  if (decimals == 0) {
    return floating(e) ? loop::round(x) : x;
  }
  if (!floating(e)) {
    return x;
  }
  double scale = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
  return decimals > 0 ? loop::round(x * scale) / scale : loop::round(x / scale) * scale;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return std::numeric_limits<double>::max();
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

Expr nan_to_num_body(Elementwise& e) {
  Expr x = e.in(0);
  if (!floating(e)) {
    return x;
  }
  const double most = largest_finite(e.promoted());
  auto or_default = [&](int argument, double value) {
    return e.has(argument) ? e.scalar(argument) : number(e, value);
  };
  Expr infinity = number(e, HUGE_VAL);
  Expr finite = loop::where(x == infinity, or_default(2, most),
                            loop::where(x == -infinity, or_default(3, -most), x));
  return loop::where(loop::isnan(x), or_default(1, 0.0), finite);
}

}  // namespace

RUSHLIGHT_OPERATORS(unary) {
  op("exp(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("e to the power of each element.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::exp(e.in(0)); })
      .gradient("result", [](Gradient& g) { g.set(0, mul(g.grad(), g.result())); });
  op("exp2(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("2 to the power of each element.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::exp2(e.in(0)); })
      .gradient("result", [](Gradient& g) {
        g.set(0, mul(mul(g.grad(), g.result()), Scalar(std::numbers::ln2)));
      });
  op("expm1(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("exp(x) - 1, exact near zero.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::expm1(e.in(0)); })
      .gradient("result", [](Gradient& g) { g.set(0, mul(g.grad(), add(g.result(), Scalar(1)))); });
  op("log(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Natural logarithm.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::log(e.in(0)); });
  op("log2(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Logarithm to base 2.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::log2(e.in(0)); });
  op("log10(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Logarithm to base 10.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::log10(e.in(0)); });
  op("log1p(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("log(1 + x), exact near zero.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::log1p(e.in(0)); });
  op("sqrt(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Square root; NaN below zero.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::sqrt(e.in(0)); })
      .gradient("result", [](Gradient& g) { g.set(0, div(g.grad(), mul(g.result(), Scalar(2)))); });
  op("rsqrt(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("1 / sqrt(x).")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::rsqrt(e.in(0)); })
      .gradient("result", [](Gradient& g) {
        Tensor cube = mul(g.result(), mul(g.result(), g.result()));
        g.set(0, mul(mul(g.grad(), cube), Scalar(-0.5)));
      });
  op("sin(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Sine, in radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::sin(e.in(0)); });
  op("cos(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Cosine, in radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::cos(e.in(0)); });
  op("tan(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Tangent, in radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::tan(e.in(0)); })
      .gradient("result",
                [](Gradient& g) { g.set(0, mul(g.grad(), add(square(g.result()), Scalar(1)))); });
  op("asin(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Inverse sine, in radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::asin(e.in(0)); });
  op("acos(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Inverse cosine, in radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::acos(e.in(0)); });
  op("atan(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Inverse tangent, in radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::atan(e.in(0)); });
  op("sinh(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Hyperbolic sine.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::sinh(e.in(0)); });
  op("cosh(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Hyperbolic cosine.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::cosh(e.in(0)); });
  op("tanh(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Hyperbolic tangent.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::tanh(e.in(0)); })
      .gradient("result", [](Gradient& g) { g.set(0, tanh_backward(g.grad(), g.result())); });
  op("asinh(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Inverse hyperbolic sine.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::asinh(e.in(0)); });
  op("acosh(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Inverse hyperbolic cosine; NaN below 1.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::acosh(e.in(0)); });
  op("atanh(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("Inverse hyperbolic tangent; infinite at -1 and 1.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::atanh(e.in(0)); });
  op("erf(Tensor self) -> Tensor", kUnary)
      .doc("Error function.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::erf(e.in(0)); });
  op("erfc(Tensor self) -> Tensor", kUnary)
      .doc("1 - erf(x), exact far from zero.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::erfc(e.in(0)); });
  op("erfinv(Tensor self) -> Tensor", kUnary)
      .doc("Inverse of the error function.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::erfinv(e.in(0)); });
  op("lgamma(Tensor self) -> Tensor", kUnary)
      .doc("Logarithm of the absolute value of the gamma function.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::lgamma(e.in(0)); });
  op("digamma(Tensor self) -> Tensor", kUnary)
      .doc("Derivative of lgamma.")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::digamma(e.in(0)); })
      .gradient("self", [](Gradient& g) { g.set(0, mul(g.grad(), polygamma(1, g.tensor(0)))); });
  op("sigmoid(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("1 / (1 + exp(-x)).")
      .elementwise(Rule::Float, [](Elementwise& e) { return loop::sigmoid(e.in(0)); })
      .gradient("result", [](Gradient& g) { g.set(0, sigmoid_backward(g.grad(), g.result())); });
  op("logit(Tensor self, float? eps=None) -> Tensor", kUnary)
      .doc("log(x / (1 - x)), x clamped to [eps, 1 - eps] where eps is given.")
      .elementwise(Rule::Float, [](Elementwise& e) {
        Expr x = e.in(0);
        if (e.has(1)) {
          Expr eps = e.scalar(1);
          x = loop::min(loop::max(x, eps), 1.0 - eps);
        }
        return loop::log(x / (1.0 - x));
      });
  op("reciprocal(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("1 / x.")
      .elementwise(Rule::Float, [](Elementwise& e) { return 1.0 / e.in(0); })
      .gradient("result",
                [](Gradient& g) { g.set(0, neg(mul(g.grad(), mul(g.result(), g.result())))); });
  op("_square(Tensor self) -> Tensor", kInternal)
      .complex()
      .doc("square of numbers.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.in(0) * e.in(0); });
  op("square(Tensor self) -> Tensor", kUnary)
      .doc("x * x; truth values give integers.")
      .composition([](const Tensor& self) -> Tensor {
        return _square(self.dtype() == DType::Bool ? to(self, DType::Int64) : self);
      })
      .casts_out()
      .node("PowBackward0");
  op("neg(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("-x.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return -e.in(0); })
      .check([](const Invocation& inv) {
        if (inv.arguments[0].tensor().dtype() == DType::Bool) {
          fail(ErrorKind::Runtime, "neg",
               "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
               "to invert a mask, use the `~` or `logical_not()` operator instead.");
        }
      });
  op("abs(Tensor self) -> Tensor", kUnary)
      .doc("Absolute value.")
      .real_of_complex()
      .elementwise(Rule::Promote, abs_body)
      .check(check_abs);
  op("sign(Tensor self) -> Tensor", kUnary)
      .doc("-1, 0 or 1 by the sign of each element.")
      .elementwise(Rule::Promote, sign_body);
  op("sgn(Tensor self) -> Tensor", kUnary)
      .doc("sign for real numbers; z / |z| for complex ones, 0 at zero.")
      .complex(ComplexRule::Own)
      .elementwise(Rule::Promote, sgn_body);
  op("floor(Tensor self) -> Tensor", kUnary)
      .doc("The largest integer not above each element.")
      .elementwise(Rule::Promote, keep_integers<loop::floor>)
      .check(expect_not_bool);
  op("ceil(Tensor self) -> Tensor", kUnary)
      .doc("The smallest integer not below each element.")
      .elementwise(Rule::Promote, keep_integers<loop::ceil>)
      .check(expect_not_bool);
  op("trunc(Tensor self) -> Tensor", kUnary)
      .doc("The integer part of each element.")
      .elementwise(Rule::Promote, keep_integers<loop::trunc>)
      .check(expect_not_bool);
  op("fix(Tensor self) -> Tensor", kUnary)
      .doc("Another name of trunc.")
      .elementwise(Rule::Promote, keep_integers<loop::trunc>);
  op("round(Tensor self) -> Tensor", kUnary)
      .doc("The nearest integer; halves go to the even one.")
      .elementwise(Rule::Promote, keep_integers<loop::round>)
      .check(expect_not_bool);
  op("round.decimals(Tensor self, *, int decimals) -> Tensor", kUnary)
      .doc("Rounds to this many decimal places; halves go to the even digit.")
      .elementwise(Rule::Promote, round_decimals)
      .check(expect_not_bool);
  op("frac(Tensor self) -> Tensor", kUnary)
      .doc("x - trunc(x).")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.in(0) - loop::trunc(e.in(0)); })
      .gradient("", [](Gradient& g) { g.set(0, g.grad()); })
      .check(expect_floating);
  op("deg2rad(Tensor self) -> Tensor", kUnary)
      .doc("Degrees to radians.")
      .elementwise(Rule::Float, [](Elementwise& e) { return e.in(0) * 0.017453292519943295; });
  op("rad2deg(Tensor self) -> Tensor", kUnary)
      .doc("Radians to degrees.")
      .elementwise(Rule::Float, [](Elementwise& e) { return e.in(0) * 57.29577951308232; });
  op("sinc(Tensor self) -> Tensor", kUnary)
      .complex()
      .doc("sin(pi x) / (pi x), 1 at zero.")
      .elementwise(Rule::Float, [](Elementwise& e) {
        Expr scaled = e.in(0) * 3.141592653589793;
        return loop::where(scaled == 0.0, 1.0, loop::sin(scaled) / scaled);
      });
  op("positive(Tensor(a) self) -> Tensor(a)", kFunction | kMethod)
      .doc("The tensor itself.")
      .composition([](const Tensor& self) -> Tensor {
        if (self.dtype() == DType::Bool) {
          fail(ErrorKind::Runtime, "positive",
               "The `+` operator, on a bool tensor is not supported.");
        }
        return self;
      });
  op("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
     kUnary)
      .by_parts()
      .doc("Replaces NaN by `nan` (0) and infinities by `posinf`, `neginf` (the largest values).")
      .elementwise(Rule::Promote, nan_to_num_body);
  op("isnan(Tensor self) -> Tensor", kFunction | kMethod)
      .complex(ComplexRule::Own)
      .doc("Whether each element is NaN.")
      .elementwise(Rule::Compare, [](Elementwise& e) {
        return floating(e) ? loop::isnan(e.in(0)) : loop::constant_int(0, DType::Bool);
      });
  op("isinf(Tensor self) -> Tensor", kFunction | kMethod)
      .complex(ComplexRule::Own)
      .doc("Whether each element is infinite.")
      .elementwise(Rule::Compare, [](Elementwise& e) {
        return floating(e) ? loop::isinf(e.in(0)) : loop::constant_int(0, DType::Bool);
      });
  op("isfinite(Tensor self) -> Tensor", kFunction | kMethod)
      .complex(ComplexRule::Own)
      .doc("Whether each element is neither infinite nor NaN.")
      .elementwise(Rule::Compare, [](Elementwise& e) {
        return floating(e) ? ~(loop::isinf(e.in(0)) | loop::isnan(e.in(0)))
                           : loop::constant_int(1, DType::Bool);
      });
  op("isposinf(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Whether each element is positive infinity.")
      .elementwise(Rule::Compare, [](Elementwise& e) {
        return floating(e) ? (e.in(0) == HUGE_VAL) : loop::constant_int(0, DType::Bool);
      });
  op("isneginf(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Whether each element is negative infinity.")
      .elementwise(Rule::Compare, [](Elementwise& e) {
        return floating(e) ? (e.in(0) == -HUGE_VAL) : loop::constant_int(0, DType::Bool);
      });
  op("signbit(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Whether the sign bit of each element is set, that of -0.0 too.")
      .elementwise(Rule::Compare, [](Elementwise& e) -> Expr {
        if (!is_signed(e.dtype())) {
          return loop::constant_int(0, DType::Bool);
        }
        if (!floating(e)) {
          return e.in(0) < 0.0;
        }
        DType bits = e.dtype() == DType::Float64 ? DType::Int64 : DType::Int32;
        return loop::bitcast(e.in(0), bits) < 0.0;
      });
  op("bitwise_not(Tensor self) -> Tensor", kUnary)
      .doc("Inverts each bit; logical not for bool.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) -> Expr {
                     if (floating(e)) {
                       fail(ErrorKind::NotImplemented, "bitwise_not",
                            "\"bitwise_not\" not implemented for '", scalar_type_name(e.dtype()),
                            "': expected a bool or integer tensor");
                     }
                     return ~e.in(0);
                   })
      .not_differentiable();
  op("logical_not(Tensor self) -> Tensor", kUnary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Whether each element is zero.")
      .elementwise(Rule::Logical, [](Elementwise& e) { return ~e.in(0); });
}

}  // namespace rushlight
