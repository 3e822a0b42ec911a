// Normalisation of channels: over the batch, over each sample, or by running statistics.
#include "ops/normalization_batch.h"

#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/normalization_channels.h"
#include "ops/operator.h"
#include "ops/pooling.h"
#include "ops/watched.h"
#include "ops/wide_gradient.h"

namespace rushlight {
namespace {

struct Statistics {
  Tensor variance;
  Tensor mean;
};

struct Affine {
  const Tensor& weight;
  const Tensor& bias;
};

void check_channels(std::string_view op, std::string_view name, const Tensor& x, int64_t channels) {
  if (x.defined() && x.numel() != channels) {
    fail(ErrorKind::Runtime, op, name, " should contain ", channels, " elements not ", x.numel());
  }
}

int64_t check_input(std::string_view op, const Tensor& input, const Affine& affine,
                    const Tensor& running_mean, const Tensor& running_var, bool from_input) {
  bool empty = input.dim() == 1 && input.numel() == 0;  // no channels
  if (input.dim() < 2 && !empty) {
    fail(ErrorKind::Runtime, op, "expected an input of at least 2 dimensions, (N, C, ...), got ",
         input.sizes());
  }
  if (!input.is_floating_point()) {
    fail(ErrorKind::NotImplemented, op, "\"", op, "\" not implemented for '",
         scalar_type_name(input.dtype()), "': expected a floating-point input");
  }
  if (!from_input && !running_mean.defined()) {
    fail(ErrorKind::Runtime, op, "running_mean must be defined in evaluation mode");
  }
  if (!from_input && !running_var.defined()) {
    fail(ErrorKind::Runtime, op, "running_var must be defined in evaluation mode");
  }
  int64_t channels = empty ? 0 : input.sizes()[1];
  check_channels(op, "weight", affine.weight, channels);
  check_channels(op, "bias", affine.bias, channels);
  check_channels(op, "running_mean", running_mean, channels);
  check_channels(op, "running_var", running_var, channels);
  for (const Tensor* parameter : {&affine.weight, &affine.bias, &running_mean, &running_var}) {
    check_parameter_dtype(op, input.dtype(), *parameter);
  }
  return channels;
}

// (C) beside (N, C, ...).
Tensor by_channel(const Tensor& x, int64_t rank) {
  IntList shape(static_cast<size_t>(rank), 1);
  shape[1] = x.numel();
  return reshape(x, shape);
}

// running = (1 - momentum) * running + momentum * scale * now, which no gradient passes through.
void move_running(const Tensor& running, const Tensor& now, double momentum, double scale) {
  if (!running.defined()) {
    return;
  }
  Tensor target = detach(running);
  copy_(target, _moved(widened(target), detach(now), 1 - momentum, momentum * scale), false);
  running.bump_version();
}

// What the elements of a channel become; the variance with n - 1 goes into the running one.
void update_running(const Statistics& found, const Tensor& running_mean, const Tensor& running_var,
                    double momentum, int64_t count) {
  if (count == 0) {  // an empty batch says nothing
    return;
  }
  move_running(running_mean, found.mean, momentum, 1);
  double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  move_running(running_var, found.variance, momentum, unbiased);
}

// Of an input that was widened once: the gradients through it and through its statistics cancel,
// and halves would be rounded before they are summed.
Tensor normalize(const Tensor& input, const Statistics& by, const Affine& affine, double eps,
                 DType dtype) {
  Tensor scale = rsqrt(add(by.variance, Scalar(eps)));
  if (affine.weight.defined() && affine.bias.defined()) {
    return to(
        _normalized_affine(input, by.mean, scale, by_channel(widened(affine.weight), input.dim()),
                           by_channel(widened(affine.bias), input.dim())),
        dtype);
  }
  Tensor out = _normalized(input, by.mean, scale);
  if (affine.weight.defined()) {
    out = mul(out, by_channel(widened(affine.weight), input.dim()));
  }
  if (affine.bias.defined()) {
    out = add(out, by_channel(widened(affine.bias), input.dim()));
  }
  return to(out, dtype);
}

Statistics running(const Tensor& mean, const Tensor& variance, int64_t rank) {
  return {by_channel(widened(variance), rank), by_channel(widened(mean), rank)};
}

Statistics measured(const Tensor& input, const IntList& dims) {
  auto [variance, mean] = var_mean(input, dims, Scalar(0), true);
  return {variance, mean};
}

// Every dimension but the channels'.
IntList batch_dims(const Tensor& input) {
  IntList dims{0};
  for (int64_t dim = 2; dim < input.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

// Results are row-major, or channels last where the input is: what comes after may view them.
Tensor laid_out(const Tensor& input) {
  return input.is_contiguous() || pooling::is_channels_last(pooling::layout_of(input))
             ? input
             : contiguous(input);
}

Tensor batch_norm_of(const Tensor& given, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool training,
                     double momentum, double eps, bool) {
  Affine affine{weight, bias};
  int64_t channels = check_input("batch_norm", given, affine, running_mean, running_var, training);
  const Tensor input = laid_out(given);
  if (channels == 0) {
    return clone(input);
  }
  if (training && normalizes_channels(input)) {
    const ChannelsNormalized made = normalize_channels(input, weight, bias, 0, eps);
    update_running({made.variance, made.mean}, running_mean, running_var, momentum,
                   input.numel() / channels);
    return made.out;
  }
  if (!training && normalizes_channels(input) && !is_watched() && !running_mean.requires_grad() &&
      !running_var.requires_grad()) {
    return normalize_channels_by(input, running_mean, running_var, weight, bias, eps);
  }
  const Tensor wide = widened(input);
  if (!training) {
    return normalize(wide, running(running_mean, running_var, input.dim()), affine, eps,
                     input.dtype());
  }
  Statistics found = measured(wide, batch_dims(input));
  Statistics flat{reshape(found.variance, {channels}), reshape(found.mean, {channels})};
  update_running(flat, running_mean, running_var, momentum,
                 channels == 0 ? 0 : input.numel() / channels);
  return normalize(wide, found, affine, eps, input.dtype());
}

// In training it moves the running statistics, which is seen step by step.
Tensor batch_norm_seen(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, bool training,
                       double momentum, double eps, bool enabled) {
  if (training) {
    return batch_norm_of(input, weight, bias, running_mean, running_var, training, momentum, eps,
                         enabled);
  }
  return std::get<0>(
      native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

Tensor instance_norm_of(const Tensor& given, const Tensor& weight, const Tensor& bias,
                        const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                        double momentum, double eps, bool) {
  Affine affine{weight, bias};
  check_input("instance_norm", given, affine, running_mean, running_var, use_input_stats);
  const Tensor input = laid_out(given);
  if (!use_input_stats) {
    return normalize(widened(input), running(running_mean, running_var, input.dim()), affine, eps,
                     input.dtype());
  }
  IntList dims;
  int64_t count = 1;
  for (int64_t dim = 2; dim < input.dim(); ++dim) {
    dims.push_back(dim);
    count *= input.sizes()[static_cast<size_t>(dim)];
  }
  if (dims.empty()) {
    fail(ErrorKind::Runtime, "instance_norm",
         "expected an input (N, C, ...) with at least one "
         "dimension after the channels, got ",
         input.sizes());
  }
  auto over_batch = [&](const Tensor& x) {
    int64_t channels = input.sizes()[1];
    return mean(reshape(x, {input.sizes()[0], channels}), IntList{0}, false, std::nullopt);
  };
  if (normalizes_channels(input)) {
    const ChannelsNormalized made = normalize_channels(input, weight, bias, input.sizes()[1], eps);
    if (running_mean.defined() || running_var.defined()) {
      update_running({over_batch(made.variance), over_batch(made.mean)}, running_mean, running_var,
                     momentum, count);
    }
    return made.out;
  }
  const Tensor wide = widened(input);
  const Statistics found = measured(wide, dims);
  update_running({over_batch(found.variance), over_batch(found.mean)}, running_mean, running_var,
                 momentum, count);
  return normalize(wide, found, affine, eps, input.dtype());
}

}  // namespace

BatchStatistics batch_statistics(const Tensor& input) {
  const Statistics found = measured(widened(input), batch_dims(input));
  return {reshape(found.variance, {-1}), reshape(found.mean, {-1})};
}

RUSHLIGHT_OPERATORS(normalization_batch) {
  op("_normalized(Tensor self, Tensor mean, Tensor scale) -> Tensor", kInternal)
      .doc("(self - mean) * scale.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return (e.in(0) - e.in(1)) * e.in(2); });
  op("_normalized_affine(Tensor self, Tensor mean, Tensor scale, Tensor weight, Tensor bias) "
     "-> Tensor",
     kInternal)
      .doc("(self - mean) * scale * weight + bias.")
      .elementwise(Rule::Promote, [](Elementwise& e) {
        return (e.in(0) - e.in(1)) * (e.in(2) * e.in(3)) + e.in(4);
      });
  op("_moved(Tensor self, Tensor now, float kept, float added) -> Tensor", kInternal)
      .doc("self * kept + now * added.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) { return e.in(0) * e.scalar(2) + e.in(1) * e.scalar(3); });
  op("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) "
     "-> Tensor",
     kFunction)
      .doc("Normalises each channel of (N, C, ...) over the batch, or by running statistics.")
      .composition(batch_norm_of)
      .seen_as(batch_norm_seen)
      .node("NativeBatchNormBackward0");
  op("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) "
     "-> Tensor",
     kFunction)
      .doc("Normalises each channel of each sample of (N, C, ...).")
      .composition(instance_norm_of)
      .node("ViewBackward0");
}

}  // namespace rushlight
