// Losses of margins and distances: compositions of element-wise operators and reductions.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/loss.h"
#include "ops/operator.h"
#include "ops/promotion.h"
#include "ops/wide_gradient.h"

namespace rushlight {

using loop::Expr;

namespace {

Tensor sum_along(const Tensor& x, int64_t dim) {
  return sum(x, {dim}, false, std::nullopt);
}

Tensor distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  int64_t inner = std::max(x1.dim(), x2.dim()) - 1;
  return norm(add(sub(x1, x2), Scalar(eps)), Scalar(p), {inner}, keepdim);
}

// Of halves in float: differences of near vectors and of near distances keep their digits.
Tensor pairwise(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  return rounded(distance(widened(x1), widened(x2), p, eps, keepdim), result_type(x1, x2));
}

Tensor cosine_along(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  DType dtype = result_type(x1, x2);
  if (!is_floating(dtype)) {
    fail(ErrorKind::Runtime, "cosine_similarity",
         "expected common dtype to be floating point, yet "
         "common dtype is ",
         scalar_type_name(dtype));
  }
  IntList shape = broadcast_shapes(x1.sizes(), x2.sizes(), "cosine_similarity");
  Tensor a = expand(to(x1, compute_dtype(dtype)), shape);
  Tensor b = expand(to(x2, compute_dtype(dtype)), shape);
  auto unit = [&](const Tensor& x) {
    Tensor length = linalg_vector_norm(x, Scalar(2), IntList{dim}, true, std::nullopt);
    return div(x, clamp_min(length, Scalar(eps)));
  };
  return rounded(sum_along(mul(unit(a), unit(b)), dim), dtype);
}

Tensor margin_ranking(const Tensor& input1, const Tensor& input2, const Tensor& target,
                      double margin, int64_t reduction) {
  Tensor gap = mul(neg(target), sub(input1, input2));
  return reduce_loss(clamp_min(add(gap, Scalar(margin)), Scalar(0)), reduction);
}

Tensor hinge_embedding(const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
  Tensor far = clamp_min(rsub(self, Scalar(margin)), Scalar(0));
  Tensor loss = add(where(ne(target, Scalar(1)), far, Scalar(0)),
                    where(ne(target, Scalar(-1)), self, Scalar(0)));
  return reduce_loss(loss, reduction);
}

Tensor cosine_embedding(const Tensor& input1, const Tensor& input2, const Tensor& target,
                        double margin, int64_t reduction) {
  int64_t rank = target.dim();
  if (rank > 1) {
    fail(ErrorKind::Runtime, "cosine_embedding_loss",
         "0D or 1D target tensor expected, "
         "multi-target not supported");
  }
  if (input1.dim() != rank + 1 || input2.dim() != rank + 1) {
    fail(ErrorKind::Runtime, "cosine_embedding_loss", rank, "D target tensor expects ", rank + 1,
         "D input tensors, but found inputs with sizes ", input1.sizes(), " and ", input2.sizes(),
         ".");
  }
  constexpr double kEpsilon = 1e-12;
  auto squares = [&](const Tensor& x) { return add(sum_along(mul(x, x), rank), Scalar(kEpsilon)); };
  Tensor product = sum_along(mul(input1, input2), rank);
  Tensor cosine = div(product, sqrt(mul(squares(input1), squares(input2))));
  Tensor apart = clamp_min(sub(cosine, Scalar(margin)), Scalar(0));
  Tensor loss = add(where(eq(target, Scalar(1)), rsub(cosine, Scalar(1)), Scalar(0)),
                    where(eq(target, Scalar(-1)), apart, Scalar(0)));
  return reduce_loss(loss, reduction);
}

Tensor triplet_margin(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                      double margin, double p, double eps, bool swap, int64_t reduction) {
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim()) {
    fail(ErrorKind::Runtime, "triplet_margin_loss",
         "The anchor, positive, and negative tensors are "
         "expected to have the same number of dimensions, but got: anchor ",
         anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(),
         "D inputs");
  }
  if (!(margin > 0)) {
    fail(ErrorKind::Runtime, "triplet_margin_loss", "margin must be greater than 0, got ", margin);
  }
  Promotion dtypes;
  for (const Tensor* x : {&anchor, &positive, &negative}) {
    dtypes.add(*x->impl());
  }
  const Tensor a = widened(anchor);
  const Tensor b = widened(positive);
  const Tensor c = widened(negative);
  Tensor near = distance(a, b, p, eps, false);
  Tensor far = distance(a, c, p, eps, false);
  if (swap) {
    far = minimum(far, distance(b, c, p, eps, false));
  }
  const Tensor loss = clamp_min(add(sub(near, far), Scalar(margin)), Scalar(0));
  return rounded(reduce_loss(loss, reduction), dtypes.result());
}

Tensor poisson_nll(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                   int64_t reduction) {
  if (reduction < 0 || reduction > 2) {
    fail(ErrorKind::Value, "poisson_nll_loss", reduction, " is not a valid value for reduction");
  }
  Tensor loss = log_input ? sub(exp(input), mul(target, input))
                          : sub(input, mul(target, log(add(input, Scalar(eps)))));
  if (full) {
    // Stirling's approximation of log(target!).
    Tensor stirling = add(sub(mul(target, log(target)), target),
                          mul(log(mul(target, Scalar(2 * std::numbers::pi))), Scalar(0.5)));
    loss = add(loss, masked_fill(stirling, le(target, Scalar(1)), Scalar(0)));
  }
  return reduce_loss(loss, reduction);
}

Tensor soft_margin(const Tensor& self, const Tensor& target, int64_t reduction) {
  if (!(self.sizes() == target.sizes())) {
    broadcast_shapes(self.sizes(), target.sizes(), "soft_margin_loss");
  }
  return reduce_loss(_soft_margin(self, target), reduction);
}

// log(1 + exp(-target * self)), without overflow.
Expr soft_margin_of(Elementwise& e) {
  Expr margin = e.in(0) * e.in(1);
  Expr zero = loop::constant(0, e.dtype());
  return loop::log1p(loop::exp(-loop::abs(margin))) - loop::min(margin, zero);
}

// By the first factor of the margin, and so, with the two exchanged, by the second.
Expr soft_margin_share(Elementwise& e) {
  return -e.in(0) * (e.in(2) * loop::sigmoid(-(e.in(1) * e.in(2))));
}

void check_rows(std::string_view op, const Tensor& self) {
  if (self.dim() > 2 || (self.dim() != 0 && self.size(-1) == 0)) {
    fail(ErrorKind::Runtime, op,
         "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
         self.sizes());
  }
}

Tensor multi_margin(const Tensor& self, const Tensor& target, Scalar p, Scalar margin,
                    const Tensor& weight, int64_t reduction) {
  constexpr const char* kName = "multi_margin_loss";
  if (!(p == Scalar(1)) && !(p == Scalar(2))) {
    fail(ErrorKind::Runtime, kName, "only p == 1 and p == 2 supported");
  }
  check_rows(kName, self);
  Tensor x = self.dim() == 2 ? self : reshape(self, {1, -1});
  int64_t rows = x.sizes()[0];
  int64_t classes = x.sizes()[1];
  if (target.dim() > 1 || target.numel() != rows) {
    fail(ErrorKind::Runtime, kName, "inconsistent target size, expected ", rows, " but got ",
         target.sizes());
  }
  if (weight.defined() && (weight.dim() > 1 || weight.numel() != classes)) {
    fail(ErrorKind::Runtime, kName, "inconsistent weight size, expected ", classes, " but got ",
         weight.sizes());
  }
  Tensor index = reshape(target, {rows, 1});
  _check_all(logical_and(ge(index, Scalar(0)), lt(index, Scalar(classes))), kName,
             cat("target out of range: expected classes in [0, ", classes, ")"));
  Tensor slack = clamp_min(add(sub(x, gather(x, 1, index)), margin), Scalar(0));
  if (p == Scalar(2)) {
    slack = mul(slack, slack);
  }
  if (weight.defined()) {
    slack = mul(slack, reshape(index_select(weight, 0, reshape(index, {-1})), {rows, 1}));
  }
  Tensor own = eq(arange(Scalar(classes)), index);
  Tensor loss =
      div(sum_along(masked_fill(slack, own, Scalar(0)), 1), Scalar(static_cast<double>(classes)));
  return reduce_loss(target.dim() == 0 ? reshape(loss, {}) : loss, reduction);
}

Tensor multilabel_margin(const Tensor& self, const Tensor& target, int64_t reduction) {
  constexpr const char* kName = "multilabel_margin_loss";
  check_rows(kName, self);
  const bool fits = self.sizes() == target.sizes() || (self.dim() < 2 && target.dim() < 2 &&
                                                       self.numel() == 1 && target.numel() == 1);
  if (!fits) {
    fail(ErrorKind::Runtime, kName, "inconsistent target size: ", target.sizes(),
         " for input of size: ", self.sizes());
  }
  Tensor x = self.dim() == 2 ? self : reshape(self, {1, -1});
  Tensor labels = reshape(target, x.sizes());
  int64_t classes = x.sizes()[1];
  // A row's labels end at its first -1.
  Tensor valid = eq(cumprod(ge(labels, Scalar(0)), 1), Scalar(1));
  Tensor index = masked_fill(labels, logical_not(valid), Scalar(0));
  Tensor counts =
      scatter_add(zeros(x.sizes(), TensorOptions(DType::Int64)), 1, index, to(valid, DType::Int64));
  Tensor wanted = gather(x, 1, index);
  Tensor slack = clamp_min(rsub(sub(unsqueeze(wanted, 2), unsqueeze(x, 1)), Scalar(1)), Scalar(0));
  Tensor counted = logical_and(unsqueeze(valid, 2), unsqueeze(eq(counts, Scalar(0)), 1));
  Tensor loss = div(sum(where(counted, slack, Scalar(0)), {1, 2}, false, std::nullopt),
                    Scalar(static_cast<double>(classes)));
  return reduce_loss(self.dim() < 2 ? reshape(loss, {}) : loss, reduction);
}

}  // namespace

RUSHLIGHT_OPERATORS(loss_margin) {
  op("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) "
     "-> Tensor",
     kFunction)
      .doc("The p-norm of x1 - x2 + eps along the last dimension.")
      .composition(pairwise)
      .node("NormBackward1");
  op("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", kFunction)
      .doc("The cosine of the angle between x1 and x2 along dim; norms are at least eps.")
      .composition(cosine_along)
      .node("SumBackward1");
  op("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
     "int reduction=1) -> Tensor",
     kFunction)
      .doc("max(0, -target * (input1 - input2) + margin).")
      .composition(margin_ranking);
  op("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) "
     "-> Tensor",
     kFunction)
      .doc("x where target is 1, max(0, margin - x) where it is -1.")
      .composition(hinge_embedding);
  op("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
     "int reduction=1) -> Tensor",
     kFunction)
      .doc("1 - cos where target is 1, max(0, cos - margin) where it is -1.")
      .composition(cosine_embedding);
  op("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
     "float p=2, float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
     kFunction)
      .doc("max(0, d(anchor, positive) - d(anchor, negative) + margin).")
      .composition(triplet_margin);
  op("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, "
     "int reduction) -> Tensor",
     kFunction)
      .doc("Negative log-likelihood of Poisson counts.")
      .composition(poisson_nll);
  op("_soft_margin_backward(Tensor grad, Tensor self, Tensor target) -> Tensor", kInternal)
      .doc("Gradient of _soft_margin by self.")
      .elementwise(Rule::Promote, soft_margin_share);
  op("_soft_margin(Tensor self, Tensor target) -> Tensor", kInternal)
      .doc("log(1 + exp(-target * self)).")
      .elementwise(Rule::Float, soft_margin_of)
      .gradient("self target", [](Gradient& g) {
        for (int mine : {0, 1}) {
          if (g.needs(mine)) {
            g.set(mine, _soft_margin_backward(g.grad(), g.tensor(mine), g.tensor(1 - mine)));
          }
        }
      });
  op("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", kNN | kOut)
      .doc("log(1 + exp(-target * x)).")
      .composition(soft_margin)
      .node("SoftMarginLossBackward0");
  op("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, "
     "Tensor? weight=None, int reduction=1) -> Tensor",
     kNN | kOut)
      .doc("Mean over the other classes of max(0, margin - x[target] + x[i])^p.")
      .composition(multi_margin)
      .node("MultiMarginLossBackward0");
  op("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", kNN | kOut)
      .doc("Sum over labels and other classes of max(0, 1 - (x[label] - x[i])), by the classes.")
      .composition(multilabel_margin)
      .node("MultilabelMarginLossBackward0");
}

}  // namespace rushlight
