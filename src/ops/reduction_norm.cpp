// Norms of vectors.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"
#include "ops/wide_gradient.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

namespace {

void refuse_empty(const Tensor& x, double p, const IntList& dims) {
  for (int64_t dim : dims) {
    if (x.dim() != 0 && x.size(dim) == 0) {
      fail(ErrorKind::Runtime, "", "linalg.vector_norm cannot compute the ", p,
           " norm on the dimension ", dim,
           " because this dimension is empty and the operation does not have an identity");
    }
  }
}

// The p-norm's element, by the kind of p: 0 counts, 1 and 2 need no pow.
Tensor vector_norm(const Tensor& self, Scalar ord, std::optional<IntArrayRef> dim, bool keepdim,
                   std::optional<DType> dtype) {
  if (ord.is_complex()) {
    fail(ErrorKind::Runtime, "",
         "linalg.vector_norm: Expected a non-complex scalar as the order of norm, got ",
         ord.to_string());
  }
  if (is_integral(self.dtype(), true)) {
    fail(ErrorKind::Runtime, "linalg.vector_norm",
         "Expected a floating point or complex tensor as input. Got ",
         scalar_type_name(self.dtype()));
  }
  check_norm_dtype("linalg.vector_norm", self.dtype(), dtype);
  Tensor x = dtype ? to(self, *dtype) : self;
  if (x.is_complex()) {
    x = abs(x);
  }
  double p = ord.to_double();
  IntList dims = reduced_dims(dim ? Value(IntList(*dim)) : Value(), x.dim(), "linalg.vector_norm");
  if (p < 0 || std::isinf(p)) {
    refuse_empty(x, p, dims);
  }
  if (p == 0) {
    return _norm0(x, dims, keepdim);
  }
  if (p == 1) {
    return sum(abs(x), dims, keepdim, std::nullopt);
  }
  if (p == 2) {
    return _norm2(x, dims, keepdim);
  }
  if (std::isinf(p)) {
    return p > 0 ? amax(abs(x), dims, keepdim) : amin(abs(x), dims, keepdim);
  }
  return _normp(x, ord, dims, keepdim);
}

// d |x|_p / dx = sign(x) (|x| / |x|_p)^(p - 1); 0 where it has no limit. As one expression: each of
// the powers alone may leave the range of a half.
Expr norm_share(Elementwise& e) {
  Expr x = e.in(1);
  Expr norm = e.in(2);
  Expr size = loop::pow(loop::abs(x) / norm, e.scalar(3) - 1.0);
  Expr sign = loop::where(x < 0.0, loop::constant(-1, e.dtype()), 1.0);
  Expr none = (x == 0.0) | (norm == 0.0);
  return loop::where(none, 0.0, e.in(0) * (sign * size));
}

// The norm that a gradient divides by, its reduced dimensions restored. That of a half is rounded:
// where the gradient is differentiated again, in float, the terms that cancel want the exact one.
Tensor norm_for_gradient(Gradient& g, const Tensor& x, double p, int dims) {
  const Tensor norm =
      is_widened(g) ? linalg_vector_norm(x, Scalar(p), g.ints(dims), g.flag(dims + 1), std::nullopt)
                    : g.result();
  return restore_dims(norm, g.value(dims), g.flag(dims + 1), x.dim());
}

void norm_gradient(Gradient& g) {
  const Tensor x = g.tensor(0);
  const double p = g.real(1);
  const Tensor grad = restore_dims(g.grad(), g.value(2), g.flag(3), x.dim());
  g.set(0, _norm_share(grad, x, norm_for_gradient(g, x, p, 2), p));
}

void norm2_gradient(Gradient& g) {
  const Tensor x = g.tensor(0);
  const Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), x.dim());
  const Tensor result = norm_for_gradient(g, x, 2, 1);
  // Not divided by zero even where that is masked: the quotient's own gradient would be NaN.
  const Tensor none = eq(result, Scalar(0));
  const Tensor quotient = div(grad, masked_fill(result, none, Scalar(1)));
  g.set(0, mul(x, masked_fill(quotient, none, Scalar(0))));
}

Tensor norm_default(const Tensor& self, Scalar p) {
  return vector_norm(self, p, std::nullopt, false, std::nullopt);
}
Tensor norm_dims(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                 bool keepdim) {
  return vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, std::nullopt);
}

}  // namespace

RUSHLIGHT_OPERATORS(reduction_norm) {
  auto reduction = [](Entry entry, ReduceSpec spec) {
    entry.body(Kind::Reduction, make_reduction(entry.entry().schema, std::move(spec)));
    return entry;
  };
  reduction(op("_norm2(Tensor self, int[1] dim, bool keepdim) -> Tensor", kInternal)
                .doc("Euclidean norm over dimensions."),
            {Combine::Sum,
             [](Rows& r) {
               Expr x = r.in(0);
               return x * x;
             },
             [](Rows&, Expr total) { return loop::sqrt(total); }})
      .gradient("self result", wide_second_order(norm2_gradient));
  reduction(op("_norm0(Tensor self, int[1] dim, bool keepdim) -> Tensor", kInternal)
                .doc("How many elements are not zero, as a float."),
            {Combine::Sum,
             [](Rows& r) {
               Expr zero = loop::constant(0, r.dtype());
               return loop::where(r.in(0) == zero, zero, loop::constant(1, r.dtype()));
             },
             {}})
      .gradient("", [](Gradient&) {});
  op("_norm_share(Tensor grad, Tensor self, Tensor norm, float p) -> Tensor", kInternal)
      .doc("Gradient of the p-norm.")
      .elementwise(Rule::Promote, norm_share);
  reduction(op("_normp(Tensor self, Scalar p, int[1] dim, bool keepdim) -> Tensor", kInternal)
                .doc("The p-norm over dimensions, for p that has no shorter form."),
            {Combine::Sum, [](Rows& r) { return loop::pow(loop::abs(r.in(0)), r.scalar(1)); },
             [](Rows& r, Expr total) { return loop::pow(total, 1.0 / r.scalar(1)); }})
      .gradient("self result", wide_second_order(norm_gradient));
  op("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     kFunction | kOut)
      .doc("The ord-norm of the elements over dimensions.")
      .composition(vector_norm)
      .node("LinalgVectorNormBackward0");
  op("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", kFunction | kMethod)
      .doc("The p-norm of all elements.")
      .composition(norm_default)
      .node("LinalgVectorNormBackward0");
  op("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The p-norm over dimensions.")
      .composition(norm_dims)
      .node("LinalgVectorNormBackward0");
}

}  // namespace rushlight
