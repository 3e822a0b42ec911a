#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/normalization.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

// Where the statistics of a channel would come from one value alone.
void need_values(int64_t count, const Tensor& input, const char* what) {
  if (count == 1) {
    fail(ErrorKind::Value, "", "Expected more than 1 ", what, " when training, got input size ",
         input.sizes());
  }
}

int64_t points(const Tensor& input) {
  int64_t count = 1;
  for (int64_t dim = 2; dim < input.dim(); ++dim) {
    count *= input.size(dim);
  }
  return count;
}

void check_dims(const Tensor& input, int64_t low, int64_t high) {
  const int64_t dims = input.dim();
  if (dims == low || dims == high) {
    return;
  }
  const std::string expected = low == high ? cat(low, "D") : cat(low, "D or ", high, "D");
  fail(ErrorKind::Value, "", "expected ", expected, " input (got ", dims, "D input)");
}

std::string python_text(const std::optional<double>& value) {
  return value ? nn::python_text(*value) : "None";
}

template <size_t D>
const char* numbered(const char* one, const char* two, const char* three) {
  return D == 1 ? one : D == 2 ? two : three;
}

}  // namespace

template <typename Options>
ChannelNormImpl<Options>::ChannelNormImpl(const char* name, const Options& given)
    : TensorModule(name), options(given) {
  const int64_t count = options.num_features();
  if (count < 0) {
    fail(ErrorKind::Value, name, "expected num_features of 0 or more, got ", count);
  }
  const bool affine = options.affine();
  weight = register_parameter("weight", affine ? empty({count}) : Tensor());
  bias = register_parameter("bias", affine && options.bias() ? empty({count}) : Tensor());
  const bool track = options.track_running_stats();
  running_mean = register_buffer("running_mean", track ? empty({count}) : Tensor());
  running_var = register_buffer("running_var", track ? empty({count}) : Tensor());
  num_batches_tracked = register_buffer("num_batches_tracked",
                                        track ? zeros({}, TensorOptions(DType::Int64)) : Tensor());
  reset_parameters();
}

template <typename Options>
void ChannelNormImpl<Options>::reset_running_stats() {
  if (running_mean.defined()) {
    zero_(running_mean);
    fill_(running_var, Scalar(1));
    zero_(num_batches_tracked);
  }
}

template <typename Options>
void ChannelNormImpl<Options>::reset_parameters() {
  reset_running_stats();
  if (weight.defined()) {
    init::ones_(weight);
  }
  if (bias.defined()) {
    init::zeros_(bias);
  }
}

template <typename Options>
std::string ChannelNormImpl<Options>::extra_repr() const {
  return cat(options.num_features(), ", eps=", nn::python_text(options.eps()),
             ", momentum=", python_text(options.momentum()),
             ", affine=", nn::python_text(options.affine()),
             ", bias=", nn::python_text(bias.defined()),
             ", track_running_stats=", nn::python_text(options.track_running_stats()));
}

template <size_t D>
BatchNormImplNd<D>::BatchNormImplNd(const BatchNormOptions& given)
    : ChannelNormImpl(numbered<D>("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), given) {}

template <size_t D>
Tensor BatchNormImplNd<D>::forward(const Tensor& input) {
  constexpr auto kDims = static_cast<int64_t>(D) + 2;
  check_dims(input, D == 1 ? 2 : kDims, kDims);
  double factor = options.momentum().value_or(0.0);
  if (is_training() && num_batches_tracked.defined()) {
    NoGradGuard no_grad;
    add_(num_batches_tracked, Scalar(1));
    if (!options.momentum()) {
      factor = 1.0 / num_batches_tracked.item().to_double();
    }
  }
  const bool use_batch = is_training() || !running_mean.defined();
  if (use_batch ? !(options.eps() > 0) : options.eps() < 0) {
    fail(ErrorKind::Value, "", "batch_norm eps must be ",
         use_batch ? "positive during training" : "non-negative", ", but got ", options.eps());
  }
  if (use_batch) {
    need_values(input.size(0) * points(input), input, "value per channel");
  }
  return batch_norm(input, weight, bias, running_mean, running_var, use_batch, factor,
                    options.eps(), false);
}

template <size_t D>
InstanceNormImplNd<D>::InstanceNormImplNd(const InstanceNormOptions& given)
    : ChannelNormImpl(numbered<D>("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), given) {}

template <size_t D>
Tensor InstanceNormImplNd<D>::forward(const Tensor& input) {
  constexpr auto kDims = static_cast<int64_t>(D) + 1;
  check_dims(input, kDims, kDims + 1);
  const bool batched = input.dim() > kDims;
  const int64_t channels = input.size(batched ? 1 : 0);
  if (channels != options.num_features()) {
    if (options.affine()) {
      fail(ErrorKind::Value, "", "expected input's size at dim=", batched ? 1 : 0,
           " to match num_features (", options.num_features(), "), but got: ", channels, ".");
    }
    warn(cat("input's size at dim=", batched ? 1 : 0,
             " does not match num_features. You can silence this warning by not passing in "
             "num_features, which is not used because affine=False"));
  }
  const Tensor samples = batched ? input : unsqueeze(input, 0);
  const bool use_input = is_training() || !options.track_running_stats();
  if (use_input) {
    need_values(points(samples), samples, "spatial element");
  }
  const Tensor normalised =
      instance_norm(samples, weight, bias, running_mean, running_var, use_input,
                    options.momentum().value_or(0.0), options.eps(), false);
  return batched ? normalised : squeeze(normalised, 0);
}

template class ChannelNormImpl<BatchNormOptions>;
template class ChannelNormImpl<InstanceNormOptions>;
template class BatchNormImplNd<1>;
template class BatchNormImplNd<2>;
template class BatchNormImplNd<3>;
template class InstanceNormImplNd<1>;
template class InstanceNormImplNd<2>;
template class InstanceNormImplNd<3>;

GroupNormImpl::GroupNormImpl(const GroupNormOptions& given)
    : TensorModule("GroupNorm"), options(given) {
  const int64_t channels = options.num_channels();
  const int64_t groups = options.num_groups();
  if (channels < 0 || groups <= 0) {
    fail(ErrorKind::Value, "GroupNorm", "expected positive num_groups and num_channels of 0 or ",
         "more, got ", groups, " and ", channels);
  }
  if (channels % groups != 0) {
    fail(ErrorKind::Value, "", "num_channels (", channels, ") must be divisible by num_groups (",
         groups, ")");
  }
  const bool affine = options.affine();
  weight = register_parameter("weight", affine ? empty({channels}) : Tensor());
  bias = register_parameter("bias", affine && options.bias() ? empty({channels}) : Tensor());
  reset_parameters();
}

void GroupNormImpl::reset_parameters() {
  if (weight.defined()) {
    init::ones_(weight);
  }
  if (bias.defined()) {
    init::zeros_(bias);
  }
}

Tensor GroupNormImpl::forward(const Tensor& input) {
  if (input.dim() < 2) {
    fail(ErrorKind::Runtime, "", "Expected at least 2 dimensions for input tensor but received ",
         input.dim());
  }
  const int64_t of_group = input.size(0) * input.size(1) / options.num_groups();
  need_values(of_group * points(input), input, "value per channel");
  return group_norm(input, options.num_groups(), weight, bias, options.eps());
}

std::string GroupNormImpl::extra_repr() const {
  return cat(
      options.num_groups(), ", ", options.num_channels(), ", eps=", nn::python_text(options.eps()),
      ", affine=", nn::python_text(options.affine()), ", bias=", nn::python_text(bias.defined()));
}

}  // namespace rushlight::nn
