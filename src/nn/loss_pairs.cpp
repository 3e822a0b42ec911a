#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/distance.h>
#include <rushlight/nn/loss_pairs.h>

#include <cmath>
#include <numbers>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

Tensor reduced(const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::None:
      return loss;
    case Reduction::Mean:
      return mean(loss);
    default:
      return sum(loss);
  }
}

void need_positive_margin(const char* name, double margin) {
  if (!(margin > 0)) {
    fail(ErrorKind::Value, "", name, ": expected margin to be greater than 0, got ", margin,
         " instead");
  }
}

// The variances in a shape that goes with the input's.
Tensor fitted(const Tensor& var, const Tensor& input) {
  if (var.sizes() == input.sizes()) {
    return var;
  }
  const IntArrayRef wanted = input.sizes();
  if (input.dim() > 0 && var.sizes() == IntArrayRef(wanted.data(), wanted.size() - 1)) {
    return unsqueeze(var, -1);
  }
  int64_t others = var.dim() == input.dim() ? 0 : 2;
  for (int64_t dim = 0; others < 2 && dim < input.dim(); ++dim) {
    if (var.size(dim) != input.size(dim)) {
      others += var.size(dim) == 1 ? 1 : 2;
    }
  }
  if (others != 1) {
    fail(ErrorKind::Value, "", "var is of incorrect size");
  }
  return var;
}

}  // namespace

CosineEmbeddingLossImpl::CosineEmbeddingLossImpl(const CosineEmbeddingLossOptions& given)
    : Module("CosineEmbeddingLoss"), options(given) {}

Tensor CosineEmbeddingLossImpl::forward(const Tensor& input1, const Tensor& input2,
                                        const Tensor& target) {
  return cosine_embedding_loss(input1, input2, target, options.margin(), code(options.reduction()));
}

MarginRankingLossImpl::MarginRankingLossImpl(const MarginRankingLossOptions& given)
    : Module("MarginRankingLoss"), options(given) {}

Tensor MarginRankingLossImpl::forward(const Tensor& input1, const Tensor& input2,
                                      const Tensor& target) {
  if (input1.dim() != input2.dim() || input1.dim() != target.dim()) {
    fail(ErrorKind::Runtime, "",
         "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
         "input1: ",
         input1.sizes(), ", input2: ", input2.sizes(), ", target: ", target.sizes(), " ");
  }
  return margin_ranking_loss(input1, input2, target, options.margin(), code(options.reduction()));
}

MultiMarginLossImpl::MultiMarginLossImpl(MultiMarginLossOptions given)
    : Module("MultiMarginLoss"), options(std::move(given)) {
  if (options.p() != 1 && options.p() != 2) {
    fail(ErrorKind::Value, "", "only p == 1 and p == 2 supported");
  }
  if (options.weight().defined() && options.weight().dim() != 1) {
    fail(ErrorKind::Value, "", "MultiMarginLoss: expected weight to be None or 1D tensor, got ",
         options.weight().dim(), "D instead");
  }
  weight = register_buffer("weight", options.weight());
}

Tensor MultiMarginLossImpl::forward(const Tensor& input, const Tensor& target) {
  return multi_margin_loss(input, target, Scalar(options.p()), Scalar(options.margin()), weight,
                           code(options.reduction()));
}

MultiLabelSoftMarginLossImpl::MultiLabelSoftMarginLossImpl(MultiLabelSoftMarginLossOptions given)
    : Module("MultiLabelSoftMarginLoss"), options(std::move(given)) {
  weight = register_buffer("weight", options.weight());
}

Tensor MultiLabelSoftMarginLossImpl::forward(const Tensor& input, const Tensor& target) {
  const Tensor right = mul(target, log_sigmoid(input));
  const Tensor wrong = mul(rsub(target, Scalar(1)), log_sigmoid(neg(input)));
  Tensor loss = neg(add(right, wrong));
  if (weight.defined()) {
    loss = mul(loss, weight);
  }
  const int64_t last = input.dim() - 1;
  loss = div(sum(loss, {last}), Scalar(input.size(last)));
  return reduced(loss, options.reduction());
}

PoissonNLLLossImpl::PoissonNLLLossImpl(const PoissonNLLLossOptions& given)
    : Module("PoissonNLLLoss"), options(given) {}

Tensor PoissonNLLLossImpl::forward(const Tensor& log_input, const Tensor& target) {
  return poisson_nll_loss(log_input, target, options.log_input(), options.full(), options.eps(),
                          code(options.reduction()));
}

GaussianNLLLossImpl::GaussianNLLLossImpl(const GaussianNLLLossOptions& given)
    : Module("GaussianNLLLoss"), options(given) {}

Tensor GaussianNLLLossImpl::forward(const Tensor& input, const Tensor& target, const Tensor& var) {
  if (any(lt(var, Scalar(0))).item<bool>()) {
    fail(ErrorKind::Value, "", "var has negative entry/entries");
  }
  const Tensor variance = clone(fitted(var, input));
  {
    NoGradGuard no_grad;
    clamp_(variance, Scalar(options.eps()));
  }
  const DType dtype = input.dtype();
  const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
  const auto wide = [half](const Tensor& x) { return half ? rushlight::to(x, DType::Float32) : x; };
  const Tensor spread = wide(variance);  // the terms cancel
  const Tensor error = sub(wide(input), wide(target));
  Tensor loss = mul(add(log(spread), div(mul(error, error), spread)), Scalar(0.5));
  if (options.full()) {
    loss = add(loss, Scalar(0.5 * std::log(2 * std::numbers::pi)));
  }
  loss = reduced(loss, options.reduction());
  return half ? rushlight::to(loss, dtype) : loss;
}

TripletMarginLossImpl::TripletMarginLossImpl(const TripletMarginLossOptions& given)
    : Module("TripletMarginLoss"), options(given) {
  need_positive_margin("TripletMarginLoss", options.margin());
}

Tensor TripletMarginLossImpl::forward(const Tensor& anchor, const Tensor& positive,
                                      const Tensor& negative) {
  return triplet_margin_loss(anchor, positive, negative, options.margin(), options.p(),
                             options.eps(), options.swap(), code(options.reduction()));
}

TripletMarginWithDistanceLossImpl::TripletMarginWithDistanceLossImpl(
    TripletMarginWithDistanceLossOptions given)
    : Module("TripletMarginWithDistanceLoss"), options(std::move(given)) {
  need_positive_margin("TripletMarginWithDistanceLoss", options.margin());
  if (!options.distance_function()) {
    options.distance_function(register_module("distance_function", PairwiseDistance()));
  }
}

Tensor TripletMarginWithDistanceLossImpl::forward(const Tensor& anchor, const Tensor& positive,
                                                  const Tensor& negative) {
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim()) {
    fail(ErrorKind::Runtime, "",
         "The anchor, positive, and negative tensors are expected to have the same number of "
         "dimensions, but got: anchor ",
         anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(),
         "D inputs");
  }
  const Tensor near = options.distance_function()(anchor, positive);
  Tensor far = options.distance_function()(anchor, negative);
  if (options.swap()) {
    far = minimum(far, options.distance_function()(positive, negative));
  }
  const Tensor loss = clamp_min(add(sub(near, far), Scalar(options.margin())), Scalar(0));
  return reduced(loss, options.reduction());
}

}  // namespace rushlight::nn
