// Pooling, sliding windows and their inverses. RUSHLIGHT_ND_LAYER(Name2d, Name, 2) makes the layer
// Name2d of the class template NameImplNd with the options NameOptions.
#pragma once

#include <rushlight/nn/expanding_array.h>
#include <rushlight/nn/module.h>

#include <optional>
#include <tuple>

namespace rushlight::nn {

#define RUSHLIGHT_ND_LAYER(Name, Family, D) \
  using Name##Options = Family##Options<D>; \
  using Name##Impl = Family##ImplNd<D>;     \
  extern template class Family##ImplNd<D>;  \
  RUSHLIGHT_MODULE(Name)

template <size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<D>, kernel_size);
  RUSHLIGHT_ARG(std::optional<ExpandingArray<D>>, stride) = std::nullopt;
  RUSHLIGHT_ARG(ExpandingArray<D>, padding) = 0;
  RUSHLIGHT_ARG(ExpandingArray<D>, dilation) = 1;
  RUSHLIGHT_ARG(bool, ceil_mode) = false;
};

// Maxima over windows of (N, C, spatial...) or (C, spatial...).
template <size_t D>
class MaxPoolImplNd : public TensorModule {
 public:
  explicit MaxPoolImplNd(const MaxPoolOptions<D>& options);
  explicit MaxPoolImplNd(ExpandingArray<D> kernel_size)
      : MaxPoolImplNd(MaxPoolOptions<D>(kernel_size)) {}
  Tensor forward(const Tensor& input) override;
  // Also where in its plane each maximum is: for MaxUnpool.
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  std::string extra_repr() const override;
  MaxPoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(MaxPool1d, MaxPool, 1);
RUSHLIGHT_ND_LAYER(MaxPool2d, MaxPool, 2);
RUSHLIGHT_ND_LAYER(MaxPool3d, MaxPool, 3);

struct AvgPool1dOptions {
  AvgPool1dOptions(ExpandingArray<1> kernel_size) : kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<1>, kernel_size);
  RUSHLIGHT_ARG(std::optional<ExpandingArray<1>>, stride) = std::nullopt;
  RUSHLIGHT_ARG(ExpandingArray<1>, padding) = 0;
  RUSHLIGHT_ARG(bool, ceil_mode) = false;
  RUSHLIGHT_ARG(bool, count_include_pad) = true;
};

// Means over windows of (N, C, L) or (C, L).
class RUSHLIGHT_API AvgPool1dImpl : public TensorModule {
 public:
  explicit AvgPool1dImpl(const AvgPool1dOptions& options);
  explicit AvgPool1dImpl(ExpandingArray<1> kernel_size)
      : AvgPool1dImpl(AvgPool1dOptions(kernel_size)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  AvgPool1dOptions options;
};
RUSHLIGHT_MODULE(AvgPool1d);

template <size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<D>, kernel_size);
  RUSHLIGHT_ARG(std::optional<ExpandingArray<D>>, stride) = std::nullopt;
  RUSHLIGHT_ARG(ExpandingArray<D>, padding) = 0;
  RUSHLIGHT_ARG(bool, ceil_mode) = false;
  RUSHLIGHT_ARG(bool, count_include_pad) = true;
  RUSHLIGHT_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};

// Means over windows of (N, C, spatial...) or (C, spatial...).
template <size_t D>
class AvgPoolImplNd : public TensorModule {
 public:
  explicit AvgPoolImplNd(const AvgPoolOptions<D>& options);
  explicit AvgPoolImplNd(ExpandingArray<D> kernel_size)
      : AvgPoolImplNd(AvgPoolOptions<D>(kernel_size)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  AvgPoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(AvgPool2d, AvgPool, 2);
RUSHLIGHT_ND_LAYER(AvgPool3d, AvgPool, 3);

// std::nullopt keeps the size of the input.
template <size_t D>
using OutputSize = ExpandingArray<D, std::optional<int64_t>>;

template <size_t D>
struct AdaptiveAvgPoolOptions {
  AdaptiveAvgPoolOptions(OutputSize<D> output_size) : output_size_(output_size) {}
  AdaptiveAvgPoolOptions(int64_t all) : output_size_(std::optional<int64_t>(all)) {}
  RUSHLIGHT_ARG(OutputSize<D>, output_size);
};

// Means of a grid of regions of (N, C, spatial...) or (C, spatial...).
template <size_t D>
class AdaptiveAvgPoolImplNd : public TensorModule {
 public:
  explicit AdaptiveAvgPoolImplNd(const AdaptiveAvgPoolOptions<D>& options);
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  AdaptiveAvgPoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(AdaptiveAvgPool1d, AdaptiveAvgPool, 1);
RUSHLIGHT_ND_LAYER(AdaptiveAvgPool2d, AdaptiveAvgPool, 2);
RUSHLIGHT_ND_LAYER(AdaptiveAvgPool3d, AdaptiveAvgPool, 3);

template <size_t D>
struct AdaptiveMaxPoolOptions {
  AdaptiveMaxPoolOptions(OutputSize<D> output_size) : output_size_(output_size) {}
  AdaptiveMaxPoolOptions(int64_t all) : output_size_(std::optional<int64_t>(all)) {}
  RUSHLIGHT_ARG(OutputSize<D>, output_size);
};

// Maxima of a grid of regions of (N, C, spatial...) or (C, spatial...).
template <size_t D>
class AdaptiveMaxPoolImplNd : public TensorModule {
 public:
  explicit AdaptiveMaxPoolImplNd(const AdaptiveMaxPoolOptions<D>& options);
  Tensor forward(const Tensor& input) override;
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  std::string extra_repr() const override;
  AdaptiveMaxPoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(AdaptiveMaxPool1d, AdaptiveMaxPool, 1);
RUSHLIGHT_ND_LAYER(AdaptiveMaxPool2d, AdaptiveMaxPool, 2);
RUSHLIGHT_ND_LAYER(AdaptiveMaxPool3d, AdaptiveMaxPool, 3);

template <size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(double, norm_type);
  RUSHLIGHT_ARG(ExpandingArray<D>, kernel_size);
  RUSHLIGHT_ARG(std::optional<ExpandingArray<D>>, stride) = std::nullopt;
  RUSHLIGHT_ARG(bool, ceil_mode) = false;
};

// The p-norm over windows of (N, C, spatial...) or (C, spatial...).
template <size_t D>
class LPPoolImplNd : public TensorModule {
 public:
  explicit LPPoolImplNd(const LPPoolOptions<D>& options);
  LPPoolImplNd(double norm_type, ExpandingArray<D> kernel_size)
      : LPPoolImplNd(LPPoolOptions<D>(norm_type, kernel_size)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  LPPoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(LPPool1d, LPPool, 1);
RUSHLIGHT_ND_LAYER(LPPool2d, LPPool, 2);
RUSHLIGHT_ND_LAYER(LPPool3d, LPPool, 3);

template <size_t D>
struct FractionalMaxPoolOptions {
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<D>, kernel_size);
  RUSHLIGHT_ARG(std::optional<ExpandingArray<D>>, output_size) = std::nullopt;
  using Ratio = ExpandingArray<D, double>;
  RUSHLIGHT_ARG(std::optional<Ratio>, output_ratio) = std::nullopt;
};

// Maxima over windows at random places; one of output_size and output_ratio, in (0, 1), is given.
template <size_t D>
class FractionalMaxPoolImplNd : public TensorModule {
 public:
  explicit FractionalMaxPoolImplNd(const FractionalMaxPoolOptions<D>& options);
  Tensor forward(const Tensor& input) override;
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  FractionalMaxPoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(FractionalMaxPool2d, FractionalMaxPool, 2);
RUSHLIGHT_ND_LAYER(FractionalMaxPool3d, FractionalMaxPool, 3);

template <size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<D>, kernel_size);
  RUSHLIGHT_ARG(std::optional<ExpandingArray<D>>, stride) = std::nullopt;
  RUSHLIGHT_ARG(ExpandingArray<D>, padding) = 0;
};

// The inverse of MaxPool: maxima at their places among zeros. `output_size` chooses among the sizes
// that pool to the same; its batch and channels may be given too.
template <size_t D>
class MaxUnpoolImplNd : public Module {
 public:
  explicit MaxUnpoolImplNd(const MaxUnpoolOptions<D>& options);
  explicit MaxUnpoolImplNd(ExpandingArray<D> kernel_size)
      : MaxUnpoolImplNd(MaxUnpoolOptions<D>(kernel_size)) {}
  Tensor forward(const Tensor& input, const Tensor& indices,
                 const std::optional<std::vector<int64_t>>& output_size = std::nullopt);
  std::string extra_repr() const override;
  MaxUnpoolOptions<D> options;
};
RUSHLIGHT_ND_LAYER(MaxUnpool1d, MaxUnpool, 1);
RUSHLIGHT_ND_LAYER(MaxUnpool2d, MaxUnpool, 2);
RUSHLIGHT_ND_LAYER(MaxUnpool3d, MaxUnpool, 3);

struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<2>, kernel_size);
  RUSHLIGHT_ARG(ExpandingArray<2>, dilation) = 1;
  RUSHLIGHT_ARG(ExpandingArray<2>, padding) = 0;
  RUSHLIGHT_ARG(ExpandingArray<2>, stride) = 1;
};

// The patches of (N, C, H, W) under a sliding window, as columns (N, C kh kw, L).
class RUSHLIGHT_API UnfoldImpl : public TensorModule {
 public:
  explicit UnfoldImpl(const UnfoldOptions& options);
  explicit UnfoldImpl(ExpandingArray<2> kernel_size) : UnfoldImpl(UnfoldOptions(kernel_size)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  UnfoldOptions options;
};
RUSHLIGHT_MODULE(Unfold);

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  RUSHLIGHT_ARG(ExpandingArray<2>, output_size);
  RUSHLIGHT_ARG(ExpandingArray<2>, kernel_size);
  RUSHLIGHT_ARG(ExpandingArray<2>, dilation) = 1;
  RUSHLIGHT_ARG(ExpandingArray<2>, padding) = 0;
  RUSHLIGHT_ARG(ExpandingArray<2>, stride) = 1;
};

// Adds columns (N, C kh kw, L) back to where their patches were.
class RUSHLIGHT_API FoldImpl : public TensorModule {
 public:
  explicit FoldImpl(const FoldOptions& options);
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  FoldOptions options;
};
RUSHLIGHT_MODULE(Fold);

struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  RUSHLIGHT_ARG(int64_t, size);
  RUSHLIGHT_ARG(double, alpha) = 0.0001;
  RUSHLIGHT_ARG(double, beta) = 0.75;
  RUSHLIGHT_ARG(double, k) = 1.0;
};

// Divides by (k + alpha times the mean of the squares of `size` neighbouring channels) ** beta.
class RUSHLIGHT_API LocalResponseNormImpl : public TensorModule {
 public:
  explicit LocalResponseNormImpl(const LocalResponseNormOptions& options);
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  LocalResponseNormOptions options;
};
RUSHLIGHT_MODULE(LocalResponseNorm);

struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  RUSHLIGHT_ARG(int64_t, num_embeddings);
  RUSHLIGHT_ARG(int64_t, embedding_dim);
  RUSHLIGHT_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSHLIGHT_ARG(double, norm_type) = 2.0;
  RUSHLIGHT_ARG(bool, scale_grad_by_freq) = false;
  RUSHLIGHT_ARG(std::string, mode) = "mean";
  RUSHLIGHT_ARG(bool, sparse) = false;
  RUSHLIGHT_ARG(bool, include_last_offset) = false;
  RUSHLIGHT_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

// Sums, means or maxima of bags of rows: (B, N) of indices, or (N) with the offsets of the bags.
class RUSHLIGHT_API EmbeddingBagImpl : public Module {
 public:
  explicit EmbeddingBagImpl(const EmbeddingBagOptions& options);
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {});
  std::string extra_repr() const override;

  EmbeddingBagOptions options;
  Tensor weight;  // (num_embeddings, embedding_dim)
};
RUSHLIGHT_MODULE(EmbeddingBag);

struct CTCLossOptions {
  RUSHLIGHT_ARG(int64_t, blank) = 0;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
  RUSHLIGHT_ARG(bool, zero_infinity) = false;
};

// The connectionist temporal classification loss of log probabilities (T, N, C) or (T, C).
class RUSHLIGHT_API CTCLossImpl : public Module {
 public:
  explicit CTCLossImpl(const CTCLossOptions& options = {});
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
  CTCLossOptions options;
};
RUSHLIGHT_MODULE(CTCLoss);

}  // namespace rushlight::nn
