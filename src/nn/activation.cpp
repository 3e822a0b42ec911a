#include <rushlight/generated/functions.h>
#include <rushlight/nn/activation.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

const char* suffix(bool inplace) {
  return inplace ? ", inplace=True" : "";
}

int64_t chosen_dim(std::optional<int64_t> dim, const char* name, const Tensor& input) {
  if (dim) {
    return *dim;
  }
  warn(cat("Implicit dimension choice for ", name,
           " has been deprecated. Change the call to include dim=X as an argument."));
  return input.dim() == 0 || input.dim() == 1 || input.dim() == 3 ? 0 : 1;
}

}  // namespace

// Activations without arguments but `inplace`.
#define RUSHLIGHT_DEFINE(Name, function)                                     \
  Tensor Name##Impl::forward(const Tensor& input) {                          \
    return options.inplace() ? Tensor(function##_(input)) : function(input); \
  }                                                                          \
  std::string Name##Impl::extra_repr() const {                               \
    return options.inplace() ? "inplace=True" : "";                          \
  }
RUSHLIGHT_DEFINE(ReLU, relu)
RUSHLIGHT_DEFINE(ReLU6, relu6)
RUSHLIGHT_DEFINE(SiLU, silu)
RUSHLIGHT_DEFINE(Mish, mish)
RUSHLIGHT_DEFINE(SELU, selu)
#undef RUSHLIGHT_DEFINE

// The same, whose repr does not show it.
#define RUSHLIGHT_DEFINE(Name, function)                                     \
  Tensor Name##Impl::forward(const Tensor& input) {                          \
    return options.inplace() ? Tensor(function##_(input)) : function(input); \
  }                                                                          \
  std::string Name##Impl::extra_repr() const {                               \
    return "";                                                               \
  }
RUSHLIGHT_DEFINE(Hardsigmoid, hardsigmoid)
RUSHLIGHT_DEFINE(Hardswish, hardswish)
#undef RUSHLIGHT_DEFINE

// With one number and `inplace`.
#define RUSHLIGHT_DEFINE(Name, function, option)                                           \
  Tensor Name##Impl::forward(const Tensor& input) {                                        \
    const Scalar value(options.option());                                                  \
    return options.inplace() ? Tensor(function##_(input, value)) : function(input, value); \
  }                                                                                        \
  std::string Name##Impl::extra_repr() const {                                             \
    return cat(#option "=", python_text(options.option()), suffix(options.inplace()));     \
  }
RUSHLIGHT_DEFINE(ELU, elu, alpha)
RUSHLIGHT_DEFINE(CELU, celu, alpha)
RUSHLIGHT_DEFINE(LeakyReLU, leaky_relu, negative_slope)
#undef RUSHLIGHT_DEFINE

Tensor SigmoidImpl::forward(const Tensor& input) {
  return sigmoid(input);
}

Tensor TanhImpl::forward(const Tensor& input) {
  return tanh(input);
}

Tensor LogSigmoidImpl::forward(const Tensor& input) {
  return log_sigmoid(input);
}

Tensor SoftsignImpl::forward(const Tensor& input) {
  return div(input, add(abs(input), Scalar(1)));
}

Tensor TanhshrinkImpl::forward(const Tensor& input) {
  return sub(input, tanh(input));
}

Tensor GELUImpl::forward(const Tensor& input) {
  return gelu(input, options.approximate());
}

std::string GELUImpl::extra_repr() const {
  return cat("approximate='", options.approximate(), "'");
}

Tensor GLUImpl::forward(const Tensor& input) {
  return glu(input, options.dim());
}

std::string GLUImpl::extra_repr() const {
  return cat("dim=", options.dim());
}

Tensor HardshrinkImpl::forward(const Tensor& input) {
  return hardshrink(input, Scalar(options.lambd()));
}

std::string HardshrinkImpl::extra_repr() const {
  return python_text(options.lambd());
}

Tensor SoftshrinkImpl::forward(const Tensor& input) {
  return softshrink(input, Scalar(options.lambd()));
}

std::string SoftshrinkImpl::extra_repr() const {
  return python_text(options.lambd());
}

Tensor SoftplusImpl::forward(const Tensor& input) {
  return softplus(input, Scalar(options.beta()), Scalar(options.threshold()));
}

std::string SoftplusImpl::extra_repr() const {
  return cat("beta=", python_text(options.beta()),
             ", threshold=", python_text(options.threshold()));
}

#define RUSHLIGHT_DEFINE(Name, call, text)                           \
  Tensor Name##Impl::forward(const Tensor& input) {                  \
    const int64_t dim = chosen_dim(options.dim(), text, input);      \
    return call;                                                     \
  }                                                                  \
  std::string Name##Impl::extra_repr() const {                       \
    return options.dim() ? cat("dim=", *options.dim()) : "dim=None"; \
  }
RUSHLIGHT_DEFINE(Softmax, softmax(input, dim), "softmax")
RUSHLIGHT_DEFINE(LogSoftmax, log_softmax(input, dim), "log_softmax")
RUSHLIGHT_DEFINE(Softmin, softmax(neg(input), dim), "softmin")
#undef RUSHLIGHT_DEFINE

HardtanhImpl::HardtanhImpl(HardtanhOptions given) : TensorModule("Hardtanh"), options(given) {
  if (!(options.max_val() > options.min_val())) {
    fail(ErrorKind::Value, "Hardtanh", "max_val must be larger than min_val, got ",
         options.max_val(), " and ", options.min_val());
  }
}

Tensor HardtanhImpl::forward(const Tensor& input) {
  const Scalar low(options.min_val());
  const Scalar high(options.max_val());
  return options.inplace() ? Tensor(hardtanh_(input, low, high)) : hardtanh(input, low, high);
}

std::string HardtanhImpl::extra_repr() const {
  return cat("min_val=", python_text(options.min_val()),
             ", max_val=", python_text(options.max_val()), suffix(options.inplace()));
}

Tensor RReLUImpl::forward(const Tensor& input) {
  const Scalar lower(options.lower()), upper(options.upper());
  return options.inplace() ? Tensor(rrelu_(input, lower, upper, is_training()))
                           : rrelu(input, lower, upper, is_training());
}

std::string RReLUImpl::extra_repr() const {
  return cat("lower=", python_text(options.lower()), ", upper=", python_text(options.upper()),
             suffix(options.inplace()));
}

Tensor Softmax2dImpl::forward(const Tensor& input) {
  if (input.dim() != 3 && input.dim() != 4) {
    fail(ErrorKind::Value, "", "Softmax2d: expected input to be 3D or 4D, got ", input.dim(),
         "D instead");
  }
  return softmax(input, -3);
}

Tensor ThresholdImpl::forward(const Tensor& input) {
  const Scalar limit(options.threshold());
  const Scalar value(options.value());
  return options.inplace() ? Tensor(threshold_(input, limit, value))
                           : threshold(input, limit, value);
}

std::string ThresholdImpl::extra_repr() const {
  return cat("threshold=", python_text(options.threshold()),
             ", value=", python_text(options.value()), suffix(options.inplace()));
}

}  // namespace rushlight::nn
