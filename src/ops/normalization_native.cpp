// Normalisations that return the statistics they used beside what they normalised.
#include <rushlight/generated/functions.h>

#include "ops/normalization_batch.h"
#include "ops/operator.h"
#include "ops/wide_gradient.h"

namespace rushlight {
namespace {

// Statistics are kept in the dtype of the parameters, where there are some.
DType kept_dtype(const Tensor& input, const Tensor& weight, const Tensor& running) {
  return weight.defined() ? weight.dtype() : running.defined() ? running.dtype() : input.dtype();
}

// (N, C, ...) normalised over groups of channels; mean and reciprocal deviation as (N, groups).
std::tuple<Tensor, Tensor, Tensor> group_norm_statistics(const Tensor& input, const Tensor& weight,
                                                         const Tensor& bias, int64_t samples,
                                                         int64_t channels, int64_t positions,
                                                         int64_t groups, double eps) {
  if (groups <= 0 || channels % groups != 0) {
    fail(ErrorKind::Runtime, "native_group_norm",
         "Expected number of channels in input to be divisible by num_groups, but got ", channels,
         " channels and num_groups=", groups);
  }
  const bool in_order = input.is_contiguous() ||
                        (input.dim() == 4 && input.is_contiguous(MemoryFormat::ChannelsLast)) ||
                        (input.dim() == 5 && input.is_contiguous(MemoryFormat::ChannelsLast3d));
  if (!in_order) {
    fail(ErrorKind::Runtime, "native_group_norm",
         "Expected X.is_contiguous(memory_format) to be true, got an input of strides ",
         input.strides());
  }
  if (input.numel() != samples * channels * positions) {
    fail(ErrorKind::Runtime, "native_group_norm",
         "Expected an input of N * C * HxW = ", samples * channels * positions, " elements, got ",
         input.numel());
  }
  const Tensor rows = reshape(widened(input), {samples, groups, channels / groups * positions});
  const auto [variance, center] = var_mean(rows, IntList{2}, Scalar(0), true);
  const Tensor scale = rsqrt(add(variance, Scalar(eps)));
  Tensor out = reshape(mul(sub(rows, center), scale), {samples, channels, positions});
  if (weight.defined()) {
    out = mul(out, reshape(widened(weight), {1, channels, 1}));
  }
  if (bias.defined()) {
    out = add(out, reshape(widened(bias), {1, channels, 1}));
  }
  const DType kept = kept_dtype(input, weight, Tensor());
  return {to(reshape(out, input.sizes()), input.dtype()),
          to(reshape(center, {samples, groups}), kept),
          to(reshape(scale, {samples, groups}), kept)};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_statistics(const Tensor& input, const Tensor& weight,
                                                         const Tensor& bias,
                                                         const Tensor& running_mean,
                                                         const Tensor& running_var, bool training,
                                                         double momentum, double eps) {
  Tensor out =
      batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, true);
  const TensorOptions options =
      TensorOptions(kept_dtype(input, weight, running_mean)).device(input.device());
  if (!training) {
    return {out, empty({0}, options), empty({0}, options)};
  }
  const Tensor seen = detach(input);
  const BatchStatistics found = batch_statistics(seen);
  return {out, to(found.mean, options), to(rsqrt(add(found.variance, Scalar(eps))), options)};
}

// Of out=: in evaluation, where they are empty, the statistics have one dimension.
void check_statistics_out(const Invocation& inv) {
  const int training = inv.op->schema.find("training");
  const bool trains = inv.arguments[training].to_bool();
  for (int i = 1; inv.form == Form::Out && !trains && i < 3; ++i) {
    const Tensor& out = inv.results[i].tensor();
    if (out.dim() != 1) {
      fail(ErrorKind::Runtime, inv.op->name(), "expected statistics of 1 dimension in out=, got ",
           out.sizes());
    }
  }
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_alone(const Tensor& input, const Tensor& weight,
                                                    const Tensor& bias, bool training,
                                                    double momentum, double eps) {
  return batch_norm_statistics(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_running(const Tensor& input, const Tensor& weight,
                                                      const Tensor& bias, const Tensor& mean,
                                                      const Tensor& variance, double momentum,
                                                      double eps) {
  return batch_norm_statistics(input, weight, bias, mean, variance, false, momentum, eps);
}

// Mean and biased variance of each channel; moves running statistics as batch_norm does.
std::tuple<Tensor, Tensor> batch_norm_moved(const Tensor& input, const Tensor& running_mean,
                                            const Tensor& running_var, double momentum) {
  const Tensor seen = detach(input);
  batch_norm(seen, Tensor(), Tensor(), running_mean, running_var, true, momentum, 1e-5, true);
  const BatchStatistics found = batch_statistics(seen);
  const DType kept = kept_dtype(input, Tensor(), running_mean);
  return {to(found.mean, kept), to(found.variance, kept)};
}

// What other devices keep for the gradient: nothing.
Tensor no_reserve(const Tensor& input) {
  return empty({0}, TensorOptions(DType::UInt8).device(input.device()));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_update(const Tensor& input,
                                                             const Tensor& weight,
                                                             const Tensor& bias, const Tensor& mean,
                                                             const Tensor& variance,
                                                             double momentum, double eps) {
  auto [out, center, scale] =
      batch_norm_statistics(input, weight, bias, mean, variance, true, momentum, eps);
  return {out, center, scale, no_reserve(input)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_no_update(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
    const Tensor& variance, double momentum, double eps) {
  auto [out, center, scale] =
      batch_norm_statistics(input, weight, bias, mean, variance, false, momentum, eps);
  return {out, center, scale, no_reserve(input)};
}

}  // namespace

RUSHLIGHT_OPERATORS(normalization_native) {
  op("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, "
     "SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc("group_norm of (N, C, HxW) with the mean and reciprocal deviation of each group.")
      .composition(group_norm_statistics)
      .node("NativeGroupNormBackward0");
  op("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     kFunction | kOut)
      .doc(
          "batch_norm with the mean and reciprocal deviation of each channel; empty in evaluation.")
      .composition(batch_norm_statistics)
      .node("NativeBatchNormBackward0")
      .check(check_statistics_out);
  op("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, "
     "Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) "
     "-> (Tensor, Tensor, Tensor)",
     kFunction | kOut)
      .doc("native_batch_norm whose running statistics must be given.")
      .composition(batch_norm_statistics)
      .check(check_statistics_out);
  op("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, "
     "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     kFunction | kOut)
      .doc("native_batch_norm without running statistics.")
      .composition(batch_norm_alone)
      .check(check_statistics_out);
  op("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
     "Tensor running_mean, Tensor running_var, float momentum, float eps) "
     "-> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc("native_batch_norm by running statistics.")
      .composition(batch_norm_running);
  op("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, "
     "Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) "
     "-> (Tensor, Tensor, Tensor, Tensor)",
     kFunction)
      .doc("native_batch_norm in training; the last result is empty.")
      .composition(batch_norm_update);
  op("_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     kFunction)
      .doc("native_batch_norm in evaluation; the last result is empty.")
      .composition(batch_norm_no_update);
  op("batch_norm_update_stats(Tensor input, Tensor(a!)? running_mean, Tensor(b!)? running_var, "
     "float momentum) -> (Tensor, Tensor)",
     kFunction)
      .doc("Mean and biased variance of each channel; moves the running statistics.")
      .composition(batch_norm_moved);
}

}  // namespace rushlight
