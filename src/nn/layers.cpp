#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/layers.h>

#include <cmath>

namespace rushlight::nn {
namespace {

// As Python's repr gives a float.
std::string number(double value) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) {
      break;
    }
  }
  std::string out = text;
  if (out.find_first_of(".en") == std::string::npos) {
    out.append(".0");
  }
  return out;
}

const char* truth(bool value) {
  return value ? "True" : "False";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    out.append(cat(i == 0 ? "" : ", ", shape[i]));
  }
  return out.append(shape.size() == 1 ? ",)" : ")");
}

int64_t code(Reduction reduction) {
  return static_cast<int64_t>(reduction);
}

}  // namespace

LinearImpl::LinearImpl(const LinearOptions& options) : TensorModule("Linear"), options_(options) {
  weight = register_parameter("weight", empty({options.out_features_, options.in_features_}));
  bias = register_parameter("bias", options.bias_ ? empty({options.out_features_}) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (bias.defined() && options_.in_features_ > 0) {
    double bound = 1 / std::sqrt(static_cast<double>(options_.in_features_));
    init::uniform_(bias, -bound, bound);
  }
}

Tensor LinearImpl::forward(const Tensor& input) {
  return linear(input, weight, bias);
}

std::string LinearImpl::extra_repr() const {
  return cat("in_features=", options_.in_features_, ", out_features=", options_.out_features_,
             ", bias=", truth(bias.defined()));
}

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& options)
    : TensorModule("Embedding"), options_(options) {
  weight = register_parameter("weight", empty({options.num_embeddings_, options.embedding_dim_}));
  init::normal_(weight);
  if (options_.padding_idx_) {
    int64_t& index = *options_.padding_idx_;
    index += index < 0 ? options.num_embeddings_ : 0;
    if (index < 0 || index >= options.num_embeddings_) {
      fail(ErrorKind::Value, "Embedding", "padding_idx must be within num_embeddings, got ", index,
           " of ", options.num_embeddings_);
    }
    NoGradGuard no_grad;
    zero_(select(weight, 0, index));
  }
}

Tensor EmbeddingImpl::forward(const Tensor& input) {
  return embedding(weight, input, options_.padding_idx_.value_or(-1));
}

std::string EmbeddingImpl::extra_repr() const {
  std::string text = cat(options_.num_embeddings_, ", ", options_.embedding_dim_);
  return options_.padding_idx_ ? cat(text, ", padding_idx=", *options_.padding_idx_) : text;
}

LayerNormImpl::LayerNormImpl(LayerNormOptions options)
    : TensorModule("LayerNorm"), options_(std::move(options)) {
  IntArrayRef shape(options_.normalized_shape_.data(), options_.normalized_shape_.size());
  bool affine = options_.elementwise_affine_;
  weight = register_parameter("weight", affine ? ones(shape) : Tensor());
  bias = register_parameter("bias", affine && options_.bias_ ? zeros(shape) : Tensor());
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  IntArrayRef shape(options_.normalized_shape_.data(), options_.normalized_shape_.size());
  return layer_norm(input, shape, weight, bias, options_.eps_);
}

std::string LayerNormImpl::extra_repr() const {
  return cat(shape_text(options_.normalized_shape_), ", eps=", number(options_.eps_),
             ", elementwise_affine=", truth(options_.elementwise_affine_));
}

RMSNormImpl::RMSNormImpl(RMSNormOptions options)
    : TensorModule("RMSNorm"), options_(std::move(options)) {
  IntArrayRef shape(options_.normalized_shape_.data(), options_.normalized_shape_.size());
  weight = register_parameter("weight", options_.elementwise_affine_ ? ones(shape) : Tensor());
}

Tensor RMSNormImpl::forward(const Tensor& input) {
  IntArrayRef shape(options_.normalized_shape_.data(), options_.normalized_shape_.size());
  return rms_norm(input, shape, weight, options_.eps_);
}

std::string RMSNormImpl::extra_repr() const {
  return cat(shape_text(options_.normalized_shape_),
             ", eps=", options_.eps_ ? number(*options_.eps_) : "None",
             ", elementwise_affine=", truth(options_.elementwise_affine_));
}

DropoutImpl::DropoutImpl(double p, bool inplace)
    : TensorModule("Dropout"), p_(p), inplace_(inplace) {
  if (p < 0 || p > 1) {
    fail(ErrorKind::Value, "Dropout", "dropout probability has to be between 0 and 1, but got ", p);
  }
}

Tensor DropoutImpl::forward(const Tensor& input) {
  if (inplace_) {
    return dropout_(input, p_, is_training());
  }
  return dropout(input, p_, is_training());
}

std::string DropoutImpl::extra_repr() const {
  return cat("p=", number(p_), ", inplace=", truth(inplace_));
}

#define RUSHLIGHT_DEFINE(Name, call)                \
  Tensor Name##Impl::forward(const Tensor& input) { \
    return call;                                    \
  }
RUSHLIGHT_NN_ACTIVATIONS(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE

GELUImpl::GELUImpl(std::string approximate)
    : TensorModule("GELU"), approximate_(std::move(approximate)) {}
Tensor GELUImpl::forward(const Tensor& input) {
  return gelu(input, approximate_);
}
std::string GELUImpl::extra_repr() const {
  return "approximate='" + approximate_ + "'";
}

Tensor LeakyReLUImpl::forward(const Tensor& input) {
  return leaky_relu(input, Scalar(negative_slope_));
}
std::string LeakyReLUImpl::extra_repr() const {
  return "negative_slope=" + number(negative_slope_);
}

Tensor SoftmaxImpl::forward(const Tensor& input) {
  return softmax(input, dim_);
}
std::string SoftmaxImpl::extra_repr() const {
  return cat("dim=", dim_);
}

Tensor LogSoftmaxImpl::forward(const Tensor& input) {
  return log_softmax(input, dim_);
}
std::string LogSoftmaxImpl::extra_repr() const {
  return cat("dim=", dim_);
}

Tensor FlattenImpl::forward(const Tensor& input) {
  return flatten(input, start_dim_, end_dim_);
}
std::string FlattenImpl::extra_repr() const {
  return cat("start_dim=", start_dim_, ", end_dim=", end_dim_);
}

void SequentialImpl::push_back(std::shared_ptr<TensorModule> module) {
  register_module(std::to_string(chain_.size()), std::static_pointer_cast<Module>(module));
  chain_.push_back(std::move(module));
}

Tensor SequentialImpl::forward(const Tensor& input) {
  Tensor x = input;
  for (const std::shared_ptr<TensorModule>& module : chain_) {
    x = module->forward(x);
  }
  return x;
}

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
}

CrossEntropyLossImpl::CrossEntropyLossImpl(Tensor weight, int64_t ignore_index, Reduction reduction,
                                           double label_smoothing)
    : Module("CrossEntropyLoss"),
      weight_(register_buffer("weight", std::move(weight))),
      ignore_index_(ignore_index),
      reduction_(reduction),
      label_smoothing_(label_smoothing) {}

Tensor CrossEntropyLossImpl::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy_loss(input, target, weight_, code(reduction_), ignore_index_,
                            label_smoothing_);
}

#define RUSHLIGHT_DEFINE(Name, function)                                  \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) { \
    return function(input, target, code(reduction_));                     \
  }
RUSHLIGHT_NN_LOSSES(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE

NLLLossImpl::NLLLossImpl(Tensor weight, int64_t ignore_index, Reduction reduction)
    : Module("NLLLoss"),
      weight_(register_buffer("weight", std::move(weight))),
      ignore_index_(ignore_index),
      reduction_(reduction) {}

Tensor NLLLossImpl::forward(const Tensor& input, const Tensor& target) {
  return nll_loss_nd(input, target, weight_, code(reduction_), ignore_index_);
}

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(Tensor weight, Reduction reduction, Tensor pos_weight)
    : Module("BCEWithLogitsLoss"), reduction_(reduction) {
  register_buffer("weight", std::move(weight));
  register_buffer("pos_weight", std::move(pos_weight));
}

Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  Tensor weight;
  Tensor pos_weight;
  for (const auto& [name, tensor] : named_buffers(false)) {
    (name == "weight" ? weight : pos_weight) = tensor;
  }
  return binary_cross_entropy_with_logits(input, target, weight, pos_weight, code(reduction_));
}

SmoothL1LossImpl::SmoothL1LossImpl(Reduction reduction, double beta)
    : Module("SmoothL1Loss"), reduction_(reduction), beta_(beta) {}

Tensor SmoothL1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return smooth_l1_loss(input, target, code(reduction_), beta_);
}

}  // namespace rushlight::nn
