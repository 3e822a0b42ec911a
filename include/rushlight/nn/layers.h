// Layers with parameters, dropout and changes of shape. Constructors draw the same random numbers
// as Python's, in the same order.
#pragma once

#include <rushlight/nn/module.h>

#include <optional>

namespace rushlight::nn {

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  RUSHLIGHT_ARG(int64_t, in_features);
  RUSHLIGHT_ARG(int64_t, out_features);
  RUSHLIGHT_ARG(bool, bias) = true;
};

// y = x weight^T + bias: (..., in_features) to (..., out_features).
class RUSHLIGHT_API LinearImpl : public TensorModule {
 public:
  explicit LinearImpl(const LinearOptions& options);
  LinearImpl(int64_t in_features, int64_t out_features, bool bias = true)
      : LinearImpl(LinearOptions(in_features, out_features).bias(bias)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  LinearOptions options;
  Tensor weight;  // (out_features, in_features)
  Tensor bias;    // (out_features), or undefined

 protected:
  LinearImpl(const LinearOptions& options, const char* name);
};
RUSHLIGHT_MODULE(Linear);

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  RUSHLIGHT_ARG(int64_t, num_embeddings);
  RUSHLIGHT_ARG(int64_t, embedding_dim);
  RUSHLIGHT_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RUSHLIGHT_ARG(std::optional<double>, max_norm) = std::nullopt;
  RUSHLIGHT_ARG(double, norm_type) = 2.0;
  RUSHLIGHT_ARG(bool, scale_grad_by_freq) = false;
  RUSHLIGHT_ARG(bool, sparse) = false;
};

// Rows of a table by index: (...) of int64 to (..., embedding_dim). Rows that are read are first
// scaled to a norm of at most max_norm, where one is set; the row padding_idx gets no gradient.
class RUSHLIGHT_API EmbeddingImpl : public TensorModule {
 public:
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  EmbeddingOptions options;
  Tensor weight;  // (num_embeddings, embedding_dim)
};
RUSHLIGHT_MODULE(Embedding);

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  RUSHLIGHT_ARG(std::vector<int64_t>, normalized_shape);
  RUSHLIGHT_ARG(double, eps) = 1e-5;
  RUSHLIGHT_ARG(bool, elementwise_affine) = true;
  RUSHLIGHT_ARG(bool, bias) = true;
};

// (x - mean) / sqrt(variance + eps) over the last dimensions, times weight, plus bias.
class RUSHLIGHT_API LayerNormImpl : public TensorModule {
 public:
  explicit LayerNormImpl(LayerNormOptions options);
  explicit LayerNormImpl(int64_t size) : LayerNormImpl(LayerNormOptions({size})) {}
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  LayerNormOptions options;
  Tensor weight;
  Tensor bias;
};
RUSHLIGHT_MODULE(LayerNorm);

struct RMSNormOptions {
  RMSNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  RUSHLIGHT_ARG(std::vector<int64_t>, normalized_shape);
  RUSHLIGHT_ARG(std::optional<double>, eps) = std::nullopt;  // absent: the dtype's epsilon
  RUSHLIGHT_ARG(bool, elementwise_affine) = true;
};

// x / sqrt(mean(x^2) + eps) over the last dimensions, times weight.
class RUSHLIGHT_API RMSNormImpl : public TensorModule {
 public:
  explicit RMSNormImpl(RMSNormOptions options);
  explicit RMSNormImpl(int64_t size) : RMSNormImpl(RMSNormOptions({size})) {}
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  RMSNormOptions options;
  Tensor weight;
};
RUSHLIGHT_MODULE(RMSNorm);

struct PReLUOptions {
  explicit PReLUOptions(int64_t num_parameters = 1) : num_parameters_(num_parameters) {}
  RUSHLIGHT_ARG(int64_t, num_parameters) = 1;
  RUSHLIGHT_ARG(double, init) = 0.25;
};

// Leaky ReLU with a learned slope, one for all channels or one for each.
class RUSHLIGHT_API PReLUImpl : public TensorModule {
 public:
  explicit PReLUImpl(const PReLUOptions& options = PReLUOptions());
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  PReLUOptions options;
  Tensor weight;
};
RUSHLIGHT_MODULE(PReLU);

struct DropoutOptions {
  explicit DropoutOptions(double p = 0.5) : p_(p) {}
  RUSHLIGHT_ARG(double, p) = 0.5;
  RUSHLIGHT_ARG(bool, inplace) = false;
};

// In training, zeroes each element with probability p and scales the rest by 1 / (1 - p).
class RUSHLIGHT_API DropoutImpl : public TensorModule {
 public:
  explicit DropoutImpl(const DropoutOptions& options);
  explicit DropoutImpl(double p = 0.5, bool inplace = false)
      : DropoutImpl(DropoutOptions(p).inplace(inplace)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  DropoutOptions options;
};
RUSHLIGHT_MODULE(Dropout);

struct FlattenOptions {
  explicit FlattenOptions(int64_t start_dim = 1) : start_dim_(start_dim) {}
  RUSHLIGHT_ARG(int64_t, start_dim) = 1;
  RUSHLIGHT_ARG(int64_t, end_dim) = -1;
};

class RUSHLIGHT_API FlattenImpl : public TensorModule {
 public:
  explicit FlattenImpl(const FlattenOptions& options) : TensorModule("Flatten"), options(options) {}
  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1)
      : FlattenImpl(FlattenOptions(start_dim).end_dim(end_dim)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  FlattenOptions options;
};
RUSHLIGHT_MODULE(Flatten);

class RUSHLIGHT_API IdentityImpl : public TensorModule {
 public:
  IdentityImpl() : TensorModule("Identity") {}
  Tensor forward(const Tensor& input) override { return input; }
};
RUSHLIGHT_MODULE(Identity);

}  // namespace rushlight::nn
