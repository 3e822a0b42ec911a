// Layers with parameters, activations, containers and losses. Constructors draw the same random
// numbers as Python's, in the same order.
#pragma once

#include <rushlight/nn/module.h>

namespace rushlight::nn {

struct LinearOptions {
  LinearOptions(int64_t in, int64_t out) : in_features_(in), out_features_(out) {}
  LinearOptions& bias(bool on) {
    bias_ = on;
    return *this;
  }
  int64_t in_features_;
  int64_t out_features_;
  bool bias_ = true;
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

  Tensor weight;  // (out_features, in_features)
  Tensor bias;    // (out_features), or undefined

 private:
  LinearOptions options_;
};
RUSHLIGHT_MODULE(Linear);

struct EmbeddingOptions {
  EmbeddingOptions(int64_t count, int64_t size) : num_embeddings_(count), embedding_dim_(size) {}
  EmbeddingOptions& padding_idx(int64_t index) {
    padding_idx_ = index;
    return *this;
  }
  int64_t num_embeddings_;
  int64_t embedding_dim_;
  std::optional<int64_t> padding_idx_;
};

// Rows of a table by index: (...) of int64 to (..., embedding_dim).
class RUSHLIGHT_API EmbeddingImpl : public TensorModule {
 public:
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Tensor weight;  // (num_embeddings, embedding_dim)

 private:
  EmbeddingOptions options_;
};
RUSHLIGHT_MODULE(Embedding);

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> shape) : normalized_shape_(std::move(shape)) {}
  LayerNormOptions& eps(double value) {
    eps_ = value;
    return *this;
  }
  LayerNormOptions& elementwise_affine(bool on) {
    elementwise_affine_ = on;
    return *this;
  }
  LayerNormOptions& bias(bool on) {
    bias_ = on;
    return *this;
  }
  std::vector<int64_t> normalized_shape_;
  double eps_ = 1e-5;
  bool elementwise_affine_ = true;
  bool bias_ = true;
};

class RUSHLIGHT_API LayerNormImpl : public TensorModule {
 public:
  explicit LayerNormImpl(LayerNormOptions options);
  explicit LayerNormImpl(int64_t size) : LayerNormImpl(LayerNormOptions({size})) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Tensor weight;
  Tensor bias;

 private:
  LayerNormOptions options_;
};
RUSHLIGHT_MODULE(LayerNorm);

struct RMSNormOptions {
  RMSNormOptions(std::vector<int64_t> shape) : normalized_shape_(std::move(shape)) {}
  RMSNormOptions& eps(double value) {
    eps_ = value;
    return *this;
  }
  RMSNormOptions& elementwise_affine(bool on) {
    elementwise_affine_ = on;
    return *this;
  }
  std::vector<int64_t> normalized_shape_;
  std::optional<double> eps_;
  bool elementwise_affine_ = true;
};

class RUSHLIGHT_API RMSNormImpl : public TensorModule {
 public:
  explicit RMSNormImpl(RMSNormOptions options);
  explicit RMSNormImpl(int64_t size) : RMSNormImpl(RMSNormOptions({size})) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Tensor weight;

 private:
  RMSNormOptions options_;
};
RUSHLIGHT_MODULE(RMSNorm);

class RUSHLIGHT_API DropoutImpl : public TensorModule {
 public:
  explicit DropoutImpl(double p = 0.5, bool inplace = false);
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 private:
  double p_;
  bool inplace_;
};
RUSHLIGHT_MODULE(Dropout);

// Activations without arguments: X(class, call on `input`).
#define RUSHLIGHT_NN_ACTIVATIONS(X)                   \
  X(ReLU, relu(input))                                \
  X(ReLU6, relu6(input))                              \
  X(SiLU, silu(input))                                \
  X(Mish, mish(input))                                \
  X(Sigmoid, sigmoid(input))                          \
  X(Tanh, tanh(input))                                \
  X(SELU, selu(input))                                \
  X(LogSigmoid, log_sigmoid(input))                   \
  X(Hardsigmoid, hardsigmoid(input))                  \
  X(Hardswish, hardswish(input))                      \
  X(Softsign, div(input, add(abs(input), Scalar(1)))) \
  X(Identity, input)

#define RUSHLIGHT_DECLARE(Name, call)                    \
  class RUSHLIGHT_API Name##Impl : public TensorModule { \
   public:                                               \
    Name##Impl() : TensorModule(#Name) {}                \
    Tensor forward(const Tensor& input) override;        \
  };                                                     \
  RUSHLIGHT_MODULE(Name);
RUSHLIGHT_NN_ACTIVATIONS(RUSHLIGHT_DECLARE)
#undef RUSHLIGHT_DECLARE

class RUSHLIGHT_API GELUImpl : public TensorModule {
 public:
  explicit GELUImpl(std::string approximate = "none");
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 private:
  std::string approximate_;
};
RUSHLIGHT_MODULE(GELU);

class RUSHLIGHT_API LeakyReLUImpl : public TensorModule {
 public:
  explicit LeakyReLUImpl(double negative_slope = 0.01)
      : TensorModule("LeakyReLU"), negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 private:
  double negative_slope_;
};
RUSHLIGHT_MODULE(LeakyReLU);

class RUSHLIGHT_API SoftmaxImpl : public TensorModule {
 public:
  explicit SoftmaxImpl(int64_t dim) : TensorModule("Softmax"), dim_(dim) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 private:
  int64_t dim_;
};
RUSHLIGHT_MODULE(Softmax);

class RUSHLIGHT_API LogSoftmaxImpl : public TensorModule {
 public:
  explicit LogSoftmaxImpl(int64_t dim) : TensorModule("LogSoftmax"), dim_(dim) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 private:
  int64_t dim_;
};
RUSHLIGHT_MODULE(LogSoftmax);

class RUSHLIGHT_API FlattenImpl : public TensorModule {
 public:
  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1)
      : TensorModule("Flatten"), start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 private:
  int64_t start_dim_;
  int64_t end_dim_;
};
RUSHLIGHT_MODULE(Flatten);

// Modules one after the other, named "0", "1", ...
class RUSHLIGHT_API SequentialImpl : public TensorModule {
 public:
  SequentialImpl() : TensorModule("Sequential") {}
  template <typename... Modules>
    requires(sizeof...(Modules) > 0)
  explicit SequentialImpl(Modules... modules) : SequentialImpl() {
    (push_back(std::move(modules)), ...);
  }
  void push_back(std::shared_ptr<TensorModule> module);
  template <typename Holder>
    requires requires(const Holder& h) { h.ptr(); }
  void push_back(const Holder& holder) {
    push_back(std::static_pointer_cast<TensorModule>(holder.ptr()));
  }
  size_t size() const { return chain_.size(); }
  std::shared_ptr<TensorModule> operator[](size_t i) const { return chain_.at(i); }
  Tensor forward(const Tensor& input) override;

 private:
  std::vector<std::shared_ptr<TensorModule>> chain_;
};
RUSHLIGHT_MODULE(Sequential);

// A list of modules, named "0", "1", ...
class RUSHLIGHT_API ModuleListImpl : public Module {
 public:
  ModuleListImpl() : Module("ModuleList") {}
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return children().size(); }
  template <typename M>
  M& at(size_t i) const {
    return dynamic_cast<M&>(*children().at(i));
  }
};
RUSHLIGHT_MODULE(ModuleList);

enum class Reduction : uint8_t { None, Mean, Sum };

class RUSHLIGHT_API CrossEntropyLossImpl : public Module {
 public:
  explicit CrossEntropyLossImpl(Tensor weight = {}, int64_t ignore_index = -100,
                                Reduction reduction = Reduction::Mean, double label_smoothing = 0);
  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  Tensor weight_;
  int64_t ignore_index_;
  Reduction reduction_;
  double label_smoothing_;
};
RUSHLIGHT_MODULE(CrossEntropyLoss);

// Losses of (input, target) with a reduction alone: X(class, native function).
#define RUSHLIGHT_NN_LOSSES(X) X(MSELoss, mse_loss) X(L1Loss, l1_loss)

#define RUSHLIGHT_DECLARE(Name, function)                      \
  class RUSHLIGHT_API Name##Impl : public Module {             \
   public:                                                     \
    explicit Name##Impl(Reduction reduction = Reduction::Mean) \
        : Module(#Name), reduction_(reduction) {}              \
    Tensor forward(const Tensor& input, const Tensor& target); \
                                                               \
   private:                                                    \
    Reduction reduction_;                                      \
  };                                                           \
  RUSHLIGHT_MODULE(Name);
RUSHLIGHT_NN_LOSSES(RUSHLIGHT_DECLARE)
#undef RUSHLIGHT_DECLARE

class RUSHLIGHT_API NLLLossImpl : public Module {
 public:
  explicit NLLLossImpl(Tensor weight = {}, int64_t ignore_index = -100,
                       Reduction reduction = Reduction::Mean);
  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  Tensor weight_;
  int64_t ignore_index_;
  Reduction reduction_;
};
RUSHLIGHT_MODULE(NLLLoss);

class RUSHLIGHT_API BCEWithLogitsLossImpl : public Module {
 public:
  explicit BCEWithLogitsLossImpl(Tensor weight = {}, Reduction reduction = Reduction::Mean,
                                 Tensor pos_weight = {});
  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  Reduction reduction_;
};
RUSHLIGHT_MODULE(BCEWithLogitsLoss);

class RUSHLIGHT_API SmoothL1LossImpl : public Module {
 public:
  explicit SmoothL1LossImpl(Reduction reduction = Reduction::Mean, double beta = 1);
  Tensor forward(const Tensor& input, const Tensor& target);

 private:
  Reduction reduction_;
  double beta_;
};
RUSHLIGHT_MODULE(SmoothL1Loss);

}  // namespace rushlight::nn
