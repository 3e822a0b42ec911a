#include <rushlight/generated/functions.h>
#include <rushlight/nn/loss.h>

#include "nn/text.h"

namespace rushlight::nn {

// (input, target, reduction, ...): the call's further arguments are given.
#define RUSHLIGHT_DEFINE(Name, function, ...)                                             \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {                 \
    return function(input, target, code(options.reduction()) __VA_OPT__(, ) __VA_ARGS__); \
  }
RUSHLIGHT_DEFINE(MSELoss, mse_loss)
RUSHLIGHT_DEFINE(L1Loss, l1_loss)
RUSHLIGHT_DEFINE(SoftMarginLoss, soft_margin_loss)
RUSHLIGHT_DEFINE(MultiLabelMarginLoss, multilabel_margin_loss)
RUSHLIGHT_DEFINE(SmoothL1Loss, smooth_l1_loss, options.beta())
RUSHLIGHT_DEFINE(HuberLoss, huber_loss, options.delta())
RUSHLIGHT_DEFINE(KLDivLoss, kl_div, options.log_target())
#undef RUSHLIGHT_DEFINE

Tensor HingeEmbeddingLossImpl::forward(const Tensor& input, const Tensor& target) {
  return hinge_embedding_loss(input, target, options.margin(), code(options.reduction()));
}

CrossEntropyLossImpl::CrossEntropyLossImpl(CrossEntropyLossOptions given)
    : Module("CrossEntropyLoss"), options(std::move(given)) {
  weight = register_buffer("weight", options.weight());
}

Tensor CrossEntropyLossImpl::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy_loss(input, target, weight, code(options.reduction()),
                            options.ignore_index(), options.label_smoothing());
}

LinearCrossEntropyLossImpl::LinearCrossEntropyLossImpl(LinearCrossEntropyLossOptions given)
    : Module("LinearCrossEntropyLoss"), options(std::move(given)), linear(nullptr) {
  constexpr const char* kName = "LinearCrossEntropyLoss";
  int64_t rows = options.num_classes();
  for (int64_t size : options.out_features()) {
    rows = checked_multiply(rows, size, kName);
  }
  const Tensor& given_weight = options.weight();
  if (given_weight.defined() && !(given_weight.sizes() == IntArrayRef({options.num_classes()}))) {
    fail(ErrorKind::Runtime, kName, "expected weight shape to be [", options.num_classes(),
         "], got ", given_weight.sizes());
  }
  weight = register_buffer("weight", given_weight);
  linear = register_module("linear",
                           Linear(LinearOptions(options.in_features(), rows).bias(options.bias())));
}

Tensor LinearCrossEntropyLossImpl::forward(const Tensor& input, const Tensor& target) {
  IntList shape{options.num_classes()};
  for (int64_t size : options.out_features()) {
    shape.push_back(size);
  }
  const Tensor bias = linear->bias.defined() ? reshape(linear->bias, shape) : Tensor();
  shape.push_back(options.in_features());
  return linear_cross_entropy(input, reshape(linear->weight, shape), target, bias, weight,
                              code(options.reduction()), options.ignore_index(),
                              options.label_smoothing(), options.z_loss());
}

NLLLossImpl::NLLLossImpl(NLLLossOptions given) : Module("NLLLoss"), options(std::move(given)) {
  weight = register_buffer("weight", options.weight());
}

Tensor NLLLossImpl::forward(const Tensor& input, const Tensor& target) {
  return nll_loss_nd(input, target, weight, code(options.reduction()), options.ignore_index());
}

BCELossImpl::BCELossImpl(BCELossOptions given) : Module("BCELoss"), options(std::move(given)) {
  weight = register_buffer("weight", options.weight());
}

Tensor BCELossImpl::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy(input, target, weight, code(options.reduction()));
}

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(BCEWithLogitsLossOptions given)
    : Module("BCEWithLogitsLoss"), options(std::move(given)) {
  weight = register_buffer("weight", options.weight());
  pos_weight = register_buffer("pos_weight", options.pos_weight());
}

Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, target, weight, pos_weight,
                                          code(options.reduction()));
}

}  // namespace rushlight::nn
