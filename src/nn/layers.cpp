#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/layers.h>

#include <cmath>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

// Error(Value) where a size is negative: empty() would not say whose it is.
int64_t checked_size(const char* layer, const char* option, int64_t size) {
  if (size < 0) {
    fail(ErrorKind::Value, layer, "expected ", option, " of 0 or more, got ", size);
  }
  return size;
}

}  // namespace

LinearImpl::LinearImpl(const LinearOptions& given) : LinearImpl(given, "Linear") {}

LinearImpl::LinearImpl(const LinearOptions& given, const char* name)
    : TensorModule(name), options(given) {
  const int64_t in = checked_size("Linear", "in_features", options.in_features());
  const int64_t out = checked_size("Linear", "out_features", options.out_features());
  weight = register_parameter("weight", empty({out, in}));
  bias = register_parameter("bias", options.bias() ? empty({out}) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  if (weight.numel() > 0) {
    init::kaiming_uniform_(weight, std::sqrt(5.0));
  }
  if (bias.defined()) {
    const auto fan_in = static_cast<double>(options.in_features());
    const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
    init::uniform_(bias, -bound, bound);
  }
}

Tensor LinearImpl::forward(const Tensor& input) {
  return linear(input, weight, bias);
}

std::string LinearImpl::extra_repr() const {
  return cat("in_features=", options.in_features(), ", out_features=", options.out_features(),
             ", bias=", python_text(bias.defined()));
}

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& given)
    : TensorModule("Embedding"), options(given) {
  const int64_t count = checked_size("Embedding", "num_embeddings", options.num_embeddings());
  const int64_t size = checked_size("Embedding", "embedding_dim", options.embedding_dim());
  if (options.padding_idx()) {
    int64_t index = *options.padding_idx();
    index += index < 0 ? count : 0;
    if (index < 0 || index >= count) {
      fail(ErrorKind::Value, "Embedding", "padding_idx must be within num_embeddings, got ",
           *options.padding_idx(), " of ", count);
    }
    options.padding_idx(index);
  }
  weight = register_parameter("weight", empty({count, size}));
  reset_parameters();
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    NoGradGuard no_grad;
    zero_(select(weight, 0, *options.padding_idx()));
  }
}

Tensor EmbeddingImpl::forward(const Tensor& input) {
  if (options.max_norm()) {
    NoGradGuard no_grad;
    embedding_renorm_(weight.detach(), contiguous(input), *options.max_norm(), options.norm_type());
  }
  return embedding(weight, input, options.padding_idx().value_or(-1), options.scale_grad_by_freq(),
                   options.sparse());
}

std::string EmbeddingImpl::extra_repr() const {
  std::string text = cat(options.num_embeddings(), ", ", options.embedding_dim());
  if (options.padding_idx()) {
    text += cat(", padding_idx=", *options.padding_idx());
  }
  if (options.max_norm()) {
    text += cat(", max_norm=", python_text(*options.max_norm()));
  }
  if (options.norm_type() != 2) {
    text += cat(", norm_type=", python_text(options.norm_type()));
  }
  text += options.scale_grad_by_freq() ? ", scale_grad_by_freq=True" : "";
  text += options.sparse() ? ", sparse=True" : "";
  return text;
}

LayerNormImpl::LayerNormImpl(LayerNormOptions given)
    : TensorModule("LayerNorm"), options(std::move(given)) {
  IntArrayRef shape(options.normalized_shape_.data(), options.normalized_shape_.size());
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? empty(shape) : Tensor());
  bias = register_parameter("bias", affine && options.bias() ? empty(shape) : Tensor());
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (weight.defined()) {
    init::ones_(weight);
  }
  if (bias.defined()) {
    init::zeros_(bias);
  }
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  IntArrayRef shape(options.normalized_shape_.data(), options.normalized_shape_.size());
  return layer_norm(input, shape, weight, bias, options.eps());
}

std::string LayerNormImpl::extra_repr() const {
  return cat(python_text(options.normalized_shape()), ", eps=", python_text(options.eps()),
             ", elementwise_affine=", python_text(options.elementwise_affine()),
             ", bias=", python_text(bias.defined()));
}

RMSNormImpl::RMSNormImpl(RMSNormOptions given)
    : TensorModule("RMSNorm"), options(std::move(given)) {
  IntArrayRef shape(options.normalized_shape_.data(), options.normalized_shape_.size());
  weight = register_parameter("weight", options.elementwise_affine() ? empty(shape) : Tensor());
  reset_parameters();
}

void RMSNormImpl::reset_parameters() {
  if (weight.defined()) {
    init::ones_(weight);
  }
}

Tensor RMSNormImpl::forward(const Tensor& input) {
  IntArrayRef shape(options.normalized_shape_.data(), options.normalized_shape_.size());
  return rms_norm(input, shape, weight, options.eps());
}

std::string RMSNormImpl::extra_repr() const {
  return cat(python_text(options.normalized_shape()),
             ", eps=", options.eps() ? python_text(*options.eps()) : "None",
             ", elementwise_affine=", python_text(options.elementwise_affine()));
}

PReLUImpl::PReLUImpl(const PReLUOptions& given) : TensorModule("PReLU"), options(given) {
  weight = register_parameter(
      "weight", empty({checked_size("PReLU", "num_parameters", options.num_parameters())}));
  reset_parameters();
}

void PReLUImpl::reset_parameters() {
  init::constant_(weight, Scalar(options.init()));
}

Tensor PReLUImpl::forward(const Tensor& input) {
  return prelu(input, weight);
}

std::string PReLUImpl::extra_repr() const {
  return cat("num_parameters=", options.num_parameters());
}

DropoutImpl::DropoutImpl(const DropoutOptions& given) : TensorModule("Dropout"), options(given) {
  if (!(options.p() >= 0 && options.p() <= 1)) {
    fail(ErrorKind::Value, "Dropout", "dropout probability has to be between 0 and 1, but got ",
         options.p());
  }
}

Tensor DropoutImpl::forward(const Tensor& input) {
  if (options.inplace()) {
    return dropout_(input, options.p(), is_training());
  }
  return dropout(input, options.p(), is_training());
}

std::string DropoutImpl::extra_repr() const {
  return cat("p=", python_text(options.p()), ", inplace=", python_text(options.inplace()));
}

Tensor FlattenImpl::forward(const Tensor& input) {
  return flatten(input, options.start_dim(), options.end_dim());
}

std::string FlattenImpl::extra_repr() const {
  return cat("start_dim=", options.start_dim(), ", end_dim=", options.end_dim());
}

}  // namespace rushlight::nn
