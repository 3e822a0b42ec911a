// Losses. `reduction` is 0 none, 1 mean, 2 sum, as in PyTorch's native functions.
#include "ops/loss.h"

#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"
#include "ops/watched.h"
#include "ops/wide_gradient.h"
#include "tensor/wrapper.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

Tensor reduce_loss(const Tensor& loss, int64_t reduction) {
  return reduction == 0 ? loss : reduction == 1 ? mean(loss) : sum(loss);
}

namespace {

// Every target must be a class, or ignore_index.
void check_targets(std::string_view op, const Tensor& target, int64_t classes, int64_t ignored) {
  if (target.is_meta() || is_wrapper(target)) {
    return;
  }
  Tensor flat = contiguous(target);
  const int64_t* values = flat.data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if ((values[i] < 0 || values[i] >= classes) && values[i] != ignored) {
      fail(ErrorKind::Index, op, "Target ", values[i],
           " is out of bounds: expected a class in [0, ", classes, ") or ignore_index ", ignored);
    }
  }
}

}  // namespace

bool is_line_of_one(const Tensor& self, const Tensor& target) {
  return self.dim() == 1 && target.dim() == 1 && target.numel() == 1;
}

ClassShape check_class_target(std::string_view op, const Tensor& self, const Tensor& target,
                              const Tensor& weight, int64_t ignored) {
  if (self.dim() == 0) {
    fail(op == "nll_loss" ? ErrorKind::Value : ErrorKind::Index, op,
         "Expected 1 or more dimensions (got 0)");
  }
  if (self.dim() == 1 && target.dim() == 1) {
    fail(ErrorKind::Value, op,
         "For 1D input, 1D target must have size 1, but got target size: ", target.numel());
  }
  if (self.dim() > 1 && target.dim() > 0 && self.sizes()[0] != target.sizes()[0]) {
    fail(ErrorKind::Value, op, "Expected input batch_size (", self.sizes()[0],
         ") to match target batch_size (", target.sizes()[0], ").");
  }
  if (target.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, op, "expected scalar type Long but found ",
         scalar_type_name(target.dtype()), " for argument 'target'");
  }
  int64_t dim = self.dim() == 1 ? 0 : 1;
  IntList expected(self.sizes());
  expected.erase(static_cast<size_t>(dim));
  if (!(target.sizes() == expected)) {
    fail(ErrorKind::Runtime, op, "Expected target size ", expected, ", got ", target.sizes());
  }
  int64_t classes = self.sizes()[static_cast<size_t>(dim)];
  if (weight.defined() && weight.dtype() != self.dtype()) {
    fail(ErrorKind::Runtime, op, "expected scalar type ", scalar_type_name(self.dtype()),
         " but found ", scalar_type_name(weight.dtype()), " for argument 'weight'");
  }
  if (weight.defined() && !(weight.dim() == 1 && weight.numel() == classes)) {
    fail(ErrorKind::Runtime, op, "weight tensor should be defined either for all ", classes,
         " classes or no classes but got weight tensor of shape: ", weight.sizes());
  }
  check_targets(op, target, classes, ignored);
  return {dim, classes, unsqueeze(target, dim)};
}

namespace {

Expr one_hot(Rows& r, int target) {
  return r.position() == r.raw(target);
}

// The loss of a row: (1 - s) * w[t] * (lse - x[t]) + s / C * sum(w * (lse - x)).
// Arguments: self, target, weight, ignore_index, smoothing, dim, keepdim.
void cross_entropy_row(Rows& r) {
  Expr x = r.in(0);
  Expr most = r.reduce(Combine::Max, x);
  Expr lse = most + loop::log(r.sum(loop::exp(x - most)));
  Expr zero = loop::constant(0, r.dtype());
  Expr picked = one_hot(r, 1);
  Expr cost = r.has(2) ? (lse - x) * r.in(2) : lse - x;
  Expr smoothing = r.scalar(4);
  Expr hard = r.sum(loop::where(picked, cost, zero));
  Expr soft = r.sum(cost) / r.count();
  Expr ignored = r.raw(1) == loop::cast(r.scalar(3), DType::Int64);
  Expr loss = hard * (1.0 - smoothing) + loop::where(smoothing == 0.0, 0.0, soft * smoothing);
  r.store(0, loop::where(r.reduce(Combine::Or, ignored), 0.0, loss));
  r.store(1, lse);
}

// d loss / dx = g * (p * W - w * target distribution), W the total weight of the distribution.
// Arguments: self, grad, lse, target, weight, ignore_index, smoothing, dim.
void cross_entropy_backward_row(Rows& r) {
  Expr smoothing = r.scalar(6);
  Expr zero = loop::constant(0, r.dtype());
  Expr one = loop::constant(1, r.dtype());
  Expr share = smoothing / r.count();
  Expr wanted = loop::where(one_hot(r, 3), (1.0 - smoothing) * one, zero) + share;
  wanted = r.has(4) ? wanted * r.in(4) : wanted;
  Expr total = r.has(4) ? r.sum(wanted) : one;
  Expr p = loop::exp(r.in(0) - r.in(2));
  Expr ignored = r.raw(3) == loop::cast(r.scalar(5), DType::Int64);
  Expr grad = r.in(1) * (p * total - wanted);
  r.store(0, loop::where(ignored, zero, grad));
}

// The same in public operators, for double backward.
Tensor cross_entropy_gradient_open(Gradient& g, const Tensor& grad) {
  Tensor x = g.tensor(0);
  Tensor target = g.tensor(1);
  Tensor weight = g.tensor(2);
  int64_t dim = g.integer(5);
  double smoothing = g.real(4);
  int64_t classes = x.size(dim);
  Tensor ignored = eq(target, g.scalar(3));
  Tensor hot = scatter(zeros_like(x), dim, masked_fill(target, ignored, Scalar(0)), Scalar(1));
  Tensor wanted = add(mul(hot, Scalar(1 - smoothing)), Scalar(smoothing / double(classes)));
  if (weight.defined()) {
    wanted = mul(wanted, weight);
  }
  Tensor total = sum(wanted, {dim}, true, std::nullopt);
  Tensor gradient = mul(grad, sub(mul(softmax(x, dim), total), wanted));
  return masked_fill(gradient, ignored, Scalar(0));
}

Tensor cross_entropy_probabilities(const Tensor& self, const Tensor& target, const Tensor& weight,
                                   int64_t reduction, double smoothing) {
  int64_t dim = self.dim() == 1 ? 0 : 1;
  int64_t classes = self.sizes()[static_cast<size_t>(dim)];
  Tensor wanted = smoothing == 0 ? target
                                 : add(mul(target, Scalar(1 - smoothing)),
                                       Scalar(smoothing / static_cast<double>(classes)));
  Tensor cost = neg(mul(log_softmax(self, dim), wanted));
  if (weight.defined()) {
    IntList shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(dim)] = classes;
    cost = mul(cost, reshape(weight, shape));
  }
  if (reduction == 1) {
    int64_t rows = classes == 0 ? 1 : self.numel() / classes;
    return div(sum(cost), Scalar(static_cast<double>(rows)));
  }
  return reduction == 2 ? sum(cost) : sum(cost, {dim}, false, std::nullopt);
}

Tensor cross_entropy_of(const Tensor& self, const Tensor& target, const Tensor& weight,
                        int64_t reduction, int64_t ignore_index, double smoothing) {
  if (smoothing < 0 || smoothing > 1) {
    fail(ErrorKind::Runtime, "cross_entropy_loss", "label_smoothing must be between 0.0 and 1.0. ",
         "Got: ", smoothing);
  }
  if (self.sizes() == target.sizes() && target.is_floating_point()) {
    if (ignore_index >= 0) {
      fail(ErrorKind::Runtime, "cross_entropy_loss",
           "ignore_index is not supported for floating point target, got ", ignore_index);
    }
    return cross_entropy_probabilities(self, target, weight, reduction, smoothing);
  }
  if (is_line_of_one(self, target)) {
    return cross_entropy_of(self, reshape(target, {}), weight, reduction, ignore_index, smoothing);
  }
  ClassShape shape = check_class_target("cross_entropy_loss", self, target, weight, ignore_index);
  Tensor weights;
  if (weight.defined()) {
    IntList sizes(static_cast<size_t>(self.dim()), 1);
    sizes[static_cast<size_t>(shape.dim)] = shape.classes;
    weights = reshape(weight, sizes);
  }
  Tensor loss = std::get<0>(_cross_entropy(self, shape.target, weights, Scalar(ignore_index),
                                           smoothing, shape.dim, false));
  if (reduction != 1) {
    return reduction == 2 ? sum(loss) : loss;
  }
  if (weight.defined()) {
    Tensor counted = ne(target, Scalar(ignore_index));
    Tensor index = masked_fill(target, logical_not(counted), Scalar(0));
    Tensor taken = mul(index_select(weight, 0, reshape(index, {-1})), reshape(counted, {-1}));
    return div(sum(loss), sum(taken));
  }
  if (target.is_meta()) {
    return mean(loss);
  }
  Tensor counted = sum(ne(target, Scalar(ignore_index)));
  if (is_watched()) {
    return div(sum(loss), counted);
  }
  return div(sum(loss), Scalar(counted.item().to_double()));
}

Tensor bce_of(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
  if (!(self.sizes() == target.sizes())) {
    fail(ErrorKind::Value, "binary_cross_entropy", "Using a target size (", target.sizes(),
         ") that is different to the input size (", self.sizes(),
         ") is deprecated. Please ensure they have the same size.");
  }
  if (!self.is_meta() && self.numel() != 0) {
    _check_all(logical_and(ge(self, Scalar(0)), le(self, Scalar(1))), "binary_cross_entropy",
               "all elements of input should be between 0 and 1");
  }
  Tensor loss = _binary_cross_entropy(self, target);
  return reduce_loss(weight.defined() ? mul(loss, weight) : loss, reduction);
}

// Logits and targets of two floating dtypes are taken together; the loss has that of the targets.
void check_bce_with_logits(const Invocation& inv) {
  const DType logits = inv.arguments[0].impl()->dtype;
  const DType targets = inv.arguments[1].impl()->dtype;
  if (!is_floating(logits)) {
    fail(ErrorKind::NotImplemented, "", "\"log_sigmoid_cpu\" not implemented for '",
         scalar_type_name(logits), "': binary_cross_entropy_with_logits expects floating logits");
  }
  if (!is_floating(targets)) {
    fail(ErrorKind::Runtime, "binary_cross_entropy_with_logits", "result type ",
         scalar_type_name(logits), " can't be cast to the desired output type ",
         scalar_type_name(targets), ": expected floating targets");
  }
}

Tensor bce_with_logits_of(const Tensor& self, const Tensor& target, const Tensor& weight,
                          const Tensor& pos_weight, int64_t reduction) {
  if (self.dtype() != target.dtype()) {
    const DType common = promote(self.dtype(), target.dtype());
    const Tensor made = binary_cross_entropy_with_logits(to(self, common), to(target, common),
                                                         weight, pos_weight, reduction);
    return to(made, target.dtype());
  }
  if (!weight.defined() && !pos_weight.defined()) {
    return reduce_loss(_bce_with_logits(self, target), reduction);
  }
  const Tensor x = widened(self);
  const Tensor wanted = widened(target);
  Tensor loss;
  if (pos_weight.defined()) {
    Tensor scale = add(mul(sub(widened(pos_weight), Scalar(1)), wanted), Scalar(1));
    loss = sub(mul(rsub(wanted, Scalar(1)), x), mul(scale, log_sigmoid(x)));
  } else {
    loss = _bce_with_logits(x, wanted);
  }
  if (weight.defined()) {
    loss = mul(loss, widened(weight));
  }
  return rounded(reduce_loss(loss, reduction), self.dtype());
}

Expr huber(Elementwise& e, Expr delta) {
  Expr gap = e.in(0) - e.in(1);
  Expr size = loop::abs(gap);
  // Not the square of the size, which has no second derivative at zero.
  return loop::where(size < delta, gap * gap * 0.5, delta * (size - delta * 0.5));
}

const char* cross_entropy_node(const Invocation& inv) {
  const Tensor& input = inv.arguments[0].tensor();
  if (inv.arguments[1].tensor().is_floating_point()) {
    constexpr int64_t kMean = 1;
    return inv.arguments[3].to_int() == kMean ? "DivBackward1" : "NegBackward0";
  }
  if (inv.arguments[5].to_scalar().to_double() != 0) {
    return "AddBackward0";
  }
  return input.dim() > 2 ? "NllLoss2DBackward0" : "NllLossBackward0";
}

}  // namespace

RUSHLIGHT_OPERATORS(loss) {
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };
  rows(op("_cross_entropy(Tensor self, Tensor target, Tensor? weight, Scalar ignore_index, "
          "float smoothing, int dim, bool keepdim) -> (Tensor, Tensor)",
          kInternal)
           .doc("The cross entropy of each row, and its logsumexp."),
       {{{RowShape::Reduced, RowType::Same}, {RowShape::Reduced, RowType::Compute}},
        cross_entropy_row})
      .gradient("self target weight result1", [](Gradient& g) {
        if (!g.has_grad(0)) {
          return;
        }
        int64_t dim = g.integer(5);
        Tensor grad = unsqueeze(g.grad(0), dim);
        if (thread_state.grad_mode) {
          g.set(0, cross_entropy_gradient_open(g, grad));
          return;
        }
        g.set(0, _cross_entropy_backward(g.tensor(0), grad, unsqueeze(g.result(1), dim),
                                         g.tensor(1), g.tensor(2), g.scalar(3), g.real(4), dim));
      });
  rows(op("_cross_entropy_backward(Tensor self, Tensor grad, Tensor lse, Tensor target, "
          "Tensor? weight, Scalar ignore_index, float smoothing, int dim) -> Tensor",
          kInternal)
           .doc("Gradient of cross entropy by its input."),
       {{{RowShape::Full, RowType::Same}}, cross_entropy_backward_row})
      .not_differentiable();
  op("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
     "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
     kNN)
      .doc(
          "Cross entropy of logits (N, C, ...) with classes (N, ...) or probabilities (N, C, ...).")
      .composition(cross_entropy_of)
      .node(cross_entropy_node)
      .check(expect_floating);
  op("_squared_error(Tensor self, Tensor target) -> Tensor", kInternal)
      .doc("(self - target)^2.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        Expr gap = e.in(0) - e.in(1);
        return gap * gap;
      });
  op("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", kNN | kOut)
      .doc("Mean squared error.")
      .composition([](const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
        return reduce_loss(_squared_error(self, target), reduction);
      })
      .node("MseLossBackward0")
      .check(expect_floating);
  op("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", kNN)
      .doc("Mean absolute error.")
      .composition([](const Tensor& self, const Tensor& target, int64_t reduction) -> Tensor {
        return reduce_loss(abs(sub(self, target)), reduction);
      });
  op("_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor", kInternal)
      .doc("Squared below beta, absolute above.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        Expr beta = e.scalar(2);
        Expr gap = e.in(0) - e.in(1);
        Expr size = loop::abs(gap);
        // Not the square of the size, which has no second derivative at zero.
        return loop::where(size < beta, gap * gap * 0.5 / beta, size - beta * 0.5);
      });
  op("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
     kNN | kOut)
      .doc("Squared error below beta, absolute error above.")
      .composition(
          [](const Tensor& self, const Tensor& target, int64_t reduction, double beta) -> Tensor {
            if (beta < 0) {
              fail(ErrorKind::Runtime, "smooth_l1_loss",
                   "smooth_l1_loss does not support negative values for beta, got ", beta);
            }
            return beta == 0 ? l1_loss(self, target, reduction)
                             : reduce_loss(_smooth_l1(self, target, beta), reduction);
          })
      .node("SmoothL1LossBackward0")
      .check(expect_floating);
  op("_huber(Tensor self, Tensor target, float delta) -> Tensor", kInternal)
      .doc("Squared below delta, linear above.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return huber(e, e.scalar(2)); });
  op("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
     kNN | kOut)
      .doc("Squared error below delta, delta times absolute error above.")
      .composition(
          [](const Tensor& self, const Tensor& target, int64_t reduction, double delta) -> Tensor {
            if (delta <= 0) {
              fail(ErrorKind::Runtime, "huber_loss",
                   "huber_loss does not support non-positive values for delta, got ", delta);
            }
            return reduce_loss(_huber(self, target, delta), reduction);
          })
      .node("HuberLossBackward0")
      .check(expect_floating);
  op("_binary_cross_entropy(Tensor self, Tensor target) -> Tensor", kInternal)
      .doc("-(t log x + (1 - t) log(1 - x)), logarithms limited to -100.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     Expr t = e.in(1);
                     Expr least = loop::constant(-100, e.dtype());
                     return (t - 1.0) * loop::max(loop::log1p(-x), least) -
                            t * loop::max(loop::log(x), least);
                   })
      .gradient("self target", [](Gradient& g) {
        Tensor x = g.tensor(0);
        if (g.needs(0)) {
          Tensor spread = clamp_min(mul(rsub(x, Scalar(1)), x), Scalar(1e-12));
          g.set(0, div(mul(g.grad(), sub(x, g.tensor(1))), spread));
        }
        if (g.needs(1)) {
          g.set(1, mul(g.grad(), sub(log1p(neg(x)), log(x))));
        }
      });
  op("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) "
     "-> Tensor",
     kNN | kOut)
      .doc("Cross entropy of probabilities with targets in [0, 1].")
      .composition(bce_of)
      .node("BinaryCrossEntropyBackward0")
      .check(expect_one_floating_dtype);
  op("_bce_with_logits_backward(Tensor grad, Tensor self, Tensor target) -> Tensor", kInternal)
      .doc("Gradient of _bce_with_logits by self.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return e.in(0) * (loop::sigmoid(e.in(1)) - e.in(2)); });
  op("_bce_with_logits(Tensor self, Tensor target) -> Tensor", kInternal)
      .doc("(1 - t) x - log_sigmoid(x).")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     Expr zero = loop::constant(0, e.dtype());
                     Expr log_sigmoid = loop::min(x, zero) - loop::log1p(loop::exp(-loop::abs(x)));
                     return (1.0 - e.in(1)) * x - log_sigmoid;
                   })
      .gradient("self target", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, _bce_with_logits_backward(g.grad(), g.tensor(0), g.tensor(1)));
        }
        if (g.needs(1)) {
          g.set(1, neg(mul(g.grad(), g.tensor(0))));
        }
      });
  op("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
     "Tensor? pos_weight=None, int reduction=1) -> Tensor",
     kFunction)
      .doc("Binary cross entropy of logits, exact far from zero.")
      .composition(bce_with_logits_of)
      .node("BinaryCrossEntropyWithLogitsBackward0")
      .check(check_bce_with_logits);
  op("_kl_div(Tensor self, Tensor target, bool log_target) -> Tensor", kInternal)
      .doc("target * (log(target) - self).")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        Expr x = e.in(0);
        Expr t = e.in(1);
        if (e.flag(2)) {
          return loop::exp(t) * (t - x);
        }
        return loop::where(t == 0.0, t * 0.0, t * loop::log(t)) - t * x;
      });
  op("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
     kFunction)
      .doc("Kullback-Leibler divergence of log-probabilities from targets.")
      .composition([](const Tensor& self, const Tensor& target, int64_t reduction,
                      bool log_target) -> Tensor {
        if (is_integral(self.dtype(), true) || is_integral(target.dtype(), true)) {
          fail(ErrorKind::Runtime, "kl_div", "Integral inputs not supported.");
        }
        return reduce_loss(_kl_div(self, target, log_target), reduction);
      });
}

}  // namespace rushlight
