#include <rushlight/generated/functions.h>
#include <rushlight/nn/dropout.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

const DropoutOptions& checked(const DropoutOptions& options) {
  if (!(options.p() >= 0 && options.p() <= 1)) {
    fail(ErrorKind::Value, "", "dropout probability has to be between 0 and 1, but got ",
         options.p());
  }
  return options;
}

// Zeroes channels of (N, C, ...); an input without a batch gets one for the time being.
Tensor drop_channels(const Tensor& input, const DropoutOptions& options, bool training,
                     bool batched) {
  if (!batched) {
    return squeeze(drop_channels(unsqueeze(input, 0), options, training, true), 0);
  }
  return options.inplace() ? Tensor(feature_dropout_(input, options.p(), training))
                           : feature_dropout(input, options.p(), training);
}

void warn_of_dims(const char* name, const Tensor& input, int64_t spatial) {
  const int64_t dims = input.dim();
  if (dims != spatial + 1 && dims != spatial + 2) {
    warn(cat(name, ": Received a ", dims, "-D input to ", name,
             ", which is deprecated and will result in an error in a future release. To retain the "
             "behavior and silence this warning, please use dropout instead. Note that ",
             name, " exists to provide channel-wise dropout on inputs with ", spatial,
             " spatial dimensions, a channel dimension, and an optional batch dimension (i.e. ",
             spatial + 1, "D or ", spatial + 2, "D inputs)."));
  }
}

}  // namespace

#define RUSHLIGHT_DEFINE(Name)                                                                \
  Name##Impl::Name##Impl(const Name##Options& given)                                          \
      : TensorModule(#Name), options(checked(given)) {}                                       \
  std::string Name##Impl::extra_repr() const {                                                \
    return cat("p=", python_text(options.p()), ", inplace=", python_text(options.inplace())); \
  }
RUSHLIGHT_DEFINE(Dropout1d)
RUSHLIGHT_DEFINE(Dropout2d)
RUSHLIGHT_DEFINE(Dropout3d)
RUSHLIGHT_DEFINE(AlphaDropout)
RUSHLIGHT_DEFINE(FeatureAlphaDropout)
#undef RUSHLIGHT_DEFINE

Tensor Dropout1dImpl::forward(const Tensor& input) {
  const int64_t dims = input.dim();
  if (dims != 2 && dims != 3) {
    fail(ErrorKind::Runtime, "", "dropout1d: Expected 2D or 3D input, but received a ", dims,
         "D input. Note that dropout1d exists to provide channel-wise dropout on inputs with 1 "
         "spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
         "inputs).");
  }
  return drop_channels(input, options, is_training(), dims == 3);
}

Tensor Dropout2dImpl::forward(const Tensor& input) {
  warn_of_dims("dropout2d", input, 2);
  if (input.dim() == 3) {
    warn(
        "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
        "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
        "dim. This behavior will change in a future release to interpret the input as one without "
        "a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout "
        "behavior, please switch to using dropout1d instead.");
  }
  return drop_channels(input, options, is_training(), true);
}

Tensor Dropout3dImpl::forward(const Tensor& input) {
  warn_of_dims("dropout3d", input, 3);
  return drop_channels(input, options, is_training(), input.dim() != 4);
}

// As in Python, these two compute out of place whatever `inplace` says.
Tensor AlphaDropoutImpl::forward(const Tensor& input) {
  return alpha_dropout(input, options.p(), is_training());
}

Tensor FeatureAlphaDropoutImpl::forward(const Tensor& input) {
  return feature_alpha_dropout(input, options.p(), is_training());
}

}  // namespace rushlight::nn
