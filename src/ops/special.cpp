// Special functions.
#include "kernels/special.h"

#include <rushlight/generated/functions.h>

#include <cmath>
#include <numbers>

#include "kernels/copy.h"
#include "loop/derivatives.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/promotion.h"
#include "ops/special_expression.h"

namespace rushlight {

using loop::Expr;

namespace {

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;

DType float_of(DType dtype) {
  return is_integral(dtype, true) ? default_dtype() : dtype;
}

// The function of each element, in double precision.
template <typename F>
Tensor each(const Tensor& self, std::string_view op, F&& function) {
  if (self.is_complex()) {
    fail(ErrorKind::NotImplemented, "", "\"", op, "\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  const Tensor wide = contiguous(to(self, DType::Float64));
  const Tensor made = make_tensor(self.sizes(), DType::Float64, self.device());
  if (!self.is_meta()) {
    const auto* from = static_cast<const double*>(wide.data());
    auto* into = static_cast<double*>(made.data());
    for (int64_t i = 0; i < self.numel(); ++i) {
      into[i] = function(from[i]);
    }
  }
  return kernels::as_dtype(made, float_of(self.dtype()));
}

template <double (*F)(double)>
Tensor mapped(const Tensor& self) {
  return each(self, "special", F);
}

Tensor zeta_of(const Tensor& self, const Tensor& other) {
  DType dtype = float_of(result_type(self, other));
  const IntList shape = broadcast_shapes(self.sizes(), other.sizes(), "special_zeta");
  const Tensor s = contiguous(to(expand(self, shape), DType::Float64));
  const Tensor q = contiguous(to(expand(other, shape), DType::Float64));
  const Tensor made = make_tensor(shape, DType::Float64, self.device());
  for (int64_t i = 0; !made.is_meta() && i < made.numel(); ++i) {
    static_cast<double*>(made.data())[i] = kernels::zeta(static_cast<const double*>(s.data())[i],
                                                         static_cast<const double*>(q.data())[i]);
  }
  return kernels::as_dtype(made, dtype);
}

Tensor polygamma_of(int64_t n, const Tensor& self) {
  if (n < 0) {
    fail(ErrorKind::Runtime, "", "polygamma(n, x) does not support negative n.");
  }
  return n == 0 ? digamma(self) : n == 1 ? _trigamma(self) : _polygamma(self, n);
}

Tensor mvlgamma_of(const Tensor& self, int64_t p) {
  if (p < 1) {
    fail(ErrorKind::Runtime, "", "p has to be greater than or equal to 1");
  }
  const Tensor x = to(self, float_of(self.dtype()));
  const double dims = static_cast<double>(p);
  const Tensor steps =
      mul(arange(Scalar(p), x.options()), Scalar(-0.5));  // 0, -1/2, ..., -(p - 1) / 2
  const Tensor total = sum(lgamma(add(unsqueeze(x, -1), steps)), {-1});
  return add(total, Scalar(dims * (dims - 1) * std::log(std::numbers::pi) / 4));
}

Tensor sign_of(const Tensor& x) {
  return sgn(x);
}

}  // namespace

RUSHLIGHT_OPERATORS(special) {
  op("special_entr(Tensor self) -> Tensor", kFunction | kOut)
      .doc("-x log(x); 0 at zero, -inf below.")
      .elementwise(Rule::Float,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     Expr zero = loop::constant(0, e.dtype());
                     Expr below = loop::where(x == 0.0, zero, -HUGE_VAL);
                     Expr inside = loop::select(x > 0.0, -x * loop::log(x), below);
                     return loop::select(loop::isnan(x), x, inside);
                   })
      .gradient("self", [](Gradient& g) {
        g.set(0, mul(g.grad(), sub(neg(log(g.tensor(0))), Scalar(1))));
      });
  op("special_ndtr(Tensor self) -> Tensor", kFunction | kOut)
      .doc("The distribution function of the normal distribution.")
      .elementwise(Rule::Float,
                   [](Elementwise& e) { return loop::erfc(e.in(0) * -kSqrtHalf) * 0.5; })
      .node("MulBackward1");
  op("special_log_ndtr(Tensor self) -> Tensor", kFunction | kOut)
      .doc("The logarithm of special.ndtr, exact far below zero.")
      .kernel(mapped<kernels::log_normal_distribution>)
      .gradient("self",
                [](Gradient& g) {
                  // The density over the distribution function, both scaled by exp(x^2 / 2).
                  const Tensor scaled = special_erfcx(mul(g.tensor(0), Scalar(-kSqrtHalf)));
                  const double factor = std::sqrt(2 / std::numbers::pi);
                  g.set(0, div(mul(g.grad(), Scalar(factor)), scaled));
                })
      .casts_out();
  op("special_ndtri(Tensor self) -> Tensor", kFunction | kOut)
      .doc("The inverse of special.ndtr.")
      .elementwise(Rule::Float, [](Elementwise& e) { return special::normal_quantile(e.in(0)); })
      .gradient("result", [](Gradient& g) {
        const Tensor density = exp(mul(square(g.result()), Scalar(0.5)));
        g.set(0, mul(g.grad(), mul(density, Scalar(std::sqrt(2 * std::numbers::pi)))));
      });
  op("special_erfcx(Tensor self) -> Tensor", kFunction | kOut)
      .doc("exp(x^2) erfc(x).")
      .kernel(mapped<kernels::erfc_scaled>)
      .gradient("self result",
                [](Gradient& g) {
                  const Tensor slope = mul(mul(g.tensor(0), g.result()), Scalar(2));
                  g.set(0, mul(g.grad(), sub(slope, Scalar(2 * std::numbers::inv_sqrtpi))));
                })
      .casts_out();
  op("special_xlog1py.Tensor(Tensor self, Tensor other) -> Tensor",
     kFunction | kOut | kNumbers | kNumberFirst)
      .doc("self * log(1 + other); 0 where self is 0.")
      .elementwise(Rule::Float, [](Elementwise& e) {
        Expr x = e.in(0);
        Expr y = e.in(1);
        return loop::where(loop::isnan(y), y, loop::where(x == 0.0, 0.0, x * loop::log1p(y)));
      });
  op("i0(Tensor self) -> Tensor", kUnary)
      .doc("The modified Bessel function of order 0.")
      .elementwise(Rule::Float, [](Elementwise& e) { return special::bessel(0, e.in(0)); })
      .gradient("self", [](Gradient& g) { g.set(0, mul(g.grad(), special_i1(g.tensor(0)))); });
  op("special_i0e(Tensor self) -> Tensor", kFunction | kOut)
      .doc("exp(-|x|) I0(x).")
      .elementwise(Rule::Float, [](Elementwise& e) { return special::bessel_scaled(0, e.in(0)); })
      .gradient("self result", [](Gradient& g) {
        const Tensor x = g.tensor(0);
        g.set(0, mul(g.grad(), sub(special_i1e(x), mul(sign_of(x), g.result()))));
      });
  op("special_i1(Tensor self) -> Tensor", kFunction | kOut)
      .doc("The modified Bessel function of order 1.")
      .elementwise(Rule::Float, [](Elementwise& e) { return special::bessel(1, e.in(0)); })
      .gradient("self result", [](Gradient& g) {
        const Tensor x = g.tensor(0);
        const Tensor zero = eq(x, Scalar(0));
        const Tensor safe = masked_fill(x, zero, Scalar(1));
        const Tensor slope = sub(i0(safe), div(g.result(), safe));
        g.set(0, mul(g.grad(), masked_fill(slope, zero, Scalar(0.5))));
      });
  op("special_i1e(Tensor self) -> Tensor", kFunction | kOut)
      .doc("exp(-|x|) I1(x).")
      .elementwise(Rule::Float, [](Elementwise& e) { return special::bessel_scaled(1, e.in(0)); })
      .gradient("self result", [](Gradient& g) {
        const Tensor x = g.tensor(0);
        const Tensor zero = eq(x, Scalar(0));
        const Tensor safe = masked_fill(x, zero, Scalar(1));
        const Tensor shrink = mul(g.result(), add(sign_of(safe), reciprocal(safe)));
        g.set(0, mul(g.grad(), masked_fill(sub(special_i0e(safe), shrink), zero, Scalar(0.5))));
      });
  op("special_zeta(Tensor self, Tensor other) -> Tensor",
     kFunction | kOut | kNumbers | kNumberFirst)
      .doc("The Hurwitz zeta function: the sum of (other + k)^-self over k >= 0.")
      .kernel(zeta_of)
      .gradient("self other",
                [](Gradient& g) {
                  if (g.needs(0)) {
                    fail(ErrorKind::Runtime, "", "the derivative for 'self' is not implemented");
                  }
                  const Tensor s = g.tensor(0);
                  const Tensor slope = neg(mul(s, special_zeta(add(s, Scalar(1)), g.tensor(1))));
                  g.set(1, mul(g.grad(), slope));
                })
      .casts_out();
  op("_trigamma(Tensor self) -> Tensor", kInternal)
      .doc("The derivative of digamma.")
      .elementwise(Rule::Float,
                   [](Elementwise& e) {
                     std::vector<loop::Part> parts;
                     loop::derivative(loop::digamma(e.in(0)), 0, loop::constant(1, e.dtype()),
                                      parts);
                     return parts.front().value;
                   })
      .gradient("self", [](Gradient& g) { g.set(0, mul(g.grad(), _polygamma(g.tensor(0), 2))); });
  op("_polygamma(Tensor self, int n) -> Tensor", kInternal)
      .doc("The n-th derivative of digamma, n >= 1.")
      .kernel([](const Tensor& self, int64_t n) -> Tensor {
        return each(self, "polygamma", [n](double x) { return kernels::polygamma(n, x); });
      })
      .gradient("self", [](Gradient& g) {
        g.set(0, mul(g.grad(), _polygamma(g.tensor(0), g.integer(1) + 1)));
      });
  op("polygamma(int n, Tensor self) -> Tensor", kFunction | kOut)
      .doc("The n-th derivative of digamma.")
      .composition(polygamma_of)
      .casts_out()
      .node("PolygammaBackward0");
  op("mvlgamma(Tensor self, int p) -> Tensor", kUnary)
      .doc("The logarithm of the multivariate gamma function of dimension p.")
      .composition(mvlgamma_of)
      .casts_out()
      .node("MvlgammaBackward0");
}

}  // namespace rushlight
