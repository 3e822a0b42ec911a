// Normalisation over batches, samples and groups of channels.
#pragma once

#include <rushlight/nn/pooling.h>

namespace rushlight::nn {

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  RUSHLIGHT_ARG(int64_t, num_features);
  RUSHLIGHT_ARG(double, eps) = 1e-5;
  // Weight of the newest batch in the running statistics; absent: the plain average of all.
  RUSHLIGHT_ARG(std::optional<double>, momentum) = 0.1;
  RUSHLIGHT_ARG(bool, affine) = true;
  RUSHLIGHT_ARG(bool, track_running_stats) = true;
  RUSHLIGHT_ARG(bool, bias) = true;
};

struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  RUSHLIGHT_ARG(int64_t, num_features);
  RUSHLIGHT_ARG(double, eps) = 1e-5;
  RUSHLIGHT_ARG(std::optional<double>, momentum) = 0.1;
  RUSHLIGHT_ARG(bool, affine) = false;
  RUSHLIGHT_ARG(bool, track_running_stats) = false;
  RUSHLIGHT_ARG(bool, bias) = true;
};

// What both have: scale, shift and running statistics of each of `num_features` channels.
template <typename Options>
class RUSHLIGHT_API ChannelNormImpl : public TensorModule {
 public:
  void reset_running_stats();  // mean 0, variance 1, no batches seen
  void reset_parameters();     // scale 1, shift 0, fresh statistics
  std::string extra_repr() const override;

  Options options;
  Tensor weight;               // (C), or undefined
  Tensor bias;                 // (C), or undefined
  Tensor running_mean;         // (C), or undefined
  Tensor running_var;          // (C), or undefined
  Tensor num_batches_tracked;  // () of int64, or undefined

 protected:
  ChannelNormImpl(const char* name, const Options& given);
};
extern template class ChannelNormImpl<BatchNormOptions>;
extern template class ChannelNormImpl<InstanceNormOptions>;

// Each channel of (N, C, spatial...) over the batch; of (N, C) too for one dimension. Error(Value)
// for an input of another number of dimensions.
template <size_t D>
class BatchNormImplNd : public ChannelNormImpl<BatchNormOptions> {
 public:
  explicit BatchNormImplNd(const BatchNormOptions& options);
  explicit BatchNormImplNd(int64_t num_features)
      : BatchNormImplNd(BatchNormOptions(num_features)) {}
  Tensor forward(const Tensor& input) override;
};

// Each channel of each sample of (N, C, spatial...) or (C, spatial...).
template <size_t D>
class InstanceNormImplNd : public ChannelNormImpl<InstanceNormOptions> {
 public:
  explicit InstanceNormImplNd(const InstanceNormOptions& options);
  explicit InstanceNormImplNd(int64_t num_features)
      : InstanceNormImplNd(InstanceNormOptions(num_features)) {}
  Tensor forward(const Tensor& input) override;
};

// RUSHLIGHT_ND_LAYER for families whose options do not depend on D.
#define RUSHLIGHT_ND_NORM(Name, Family, D) \
  using Name##Options = Family##Options;   \
  using Name##Impl = Family##ImplNd<D>;    \
  extern template class Family##ImplNd<D>; \
  RUSHLIGHT_MODULE(Name)
RUSHLIGHT_ND_NORM(BatchNorm1d, BatchNorm, 1);
RUSHLIGHT_ND_NORM(BatchNorm2d, BatchNorm, 2);
RUSHLIGHT_ND_NORM(BatchNorm3d, BatchNorm, 3);
RUSHLIGHT_ND_NORM(InstanceNorm1d, InstanceNorm, 1);
RUSHLIGHT_ND_NORM(InstanceNorm2d, InstanceNorm, 2);
RUSHLIGHT_ND_NORM(InstanceNorm3d, InstanceNorm, 3);
#undef RUSHLIGHT_ND_NORM

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  RUSHLIGHT_ARG(int64_t, num_groups);
  RUSHLIGHT_ARG(int64_t, num_channels);
  RUSHLIGHT_ARG(double, eps) = 1e-5;
  RUSHLIGHT_ARG(bool, affine) = true;
  RUSHLIGHT_ARG(bool, bias) = true;
};

// Each group of channels of each sample of (N, C, ...).
class RUSHLIGHT_API GroupNormImpl : public TensorModule {
 public:
  explicit GroupNormImpl(const GroupNormOptions& options);
  GroupNormImpl(int64_t num_groups, int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  GroupNormOptions options;
  Tensor weight;  // (num_channels), or undefined
  Tensor bias;    // (num_channels), or undefined
};
RUSHLIGHT_MODULE(GroupNorm);

}  // namespace rushlight::nn
