// Activations as modules. One line each: RUSHLIGHT_LAYERn(Name, type, option, default, ...) makes
// NameOptions, NameImpl and Name with n options.
#pragma once

#include <rushlight/nn/module.h>

#include <optional>

namespace rushlight::nn {

#define RUSHLIGHT_LAYER0(Name)                           \
  class RUSHLIGHT_API Name##Impl : public TensorModule { \
   public:                                               \
    Name##Impl() : TensorModule(#Name) {}                \
    Tensor forward(const Tensor& input) override;        \
  };                                                     \
  RUSHLIGHT_MODULE(Name)

#define RUSHLIGHT_LAYER1(Name, Type, option, value)                \
  struct Name##Options {                                           \
    RUSHLIGHT_ARG(Type, option) = value;                           \
  };                                                               \
  class RUSHLIGHT_API Name##Impl : public TensorModule {           \
   public:                                                         \
    explicit Name##Impl(Name##Options options)                     \
        : TensorModule(#Name), options(std::move(options)) {}      \
    explicit Name##Impl(Type option = value)                       \
        : Name##Impl(Name##Options().option(std::move(option))) {} \
    Tensor forward(const Tensor& input) override;                  \
    std::string extra_repr() const override;                       \
    Name##Options options;                                         \
  };                                                               \
  RUSHLIGHT_MODULE(Name)

#define RUSHLIGHT_LAYER2(Name, Type, option, value, Type2, option2, value2)                    \
  struct Name##Options {                                                                       \
    RUSHLIGHT_ARG(Type, option) = value;                                                       \
    RUSHLIGHT_ARG(Type2, option2) = value2;                                                    \
  };                                                                                           \
  class RUSHLIGHT_API Name##Impl : public TensorModule {                                       \
   public:                                                                                     \
    explicit Name##Impl(Name##Options options)                                                 \
        : TensorModule(#Name), options(std::move(options)) {}                                  \
    explicit Name##Impl(Type option = value, Type2 option2 = value2)                           \
        : Name##Impl(Name##Options().option(std::move(option)).option2(std::move(option2))) {} \
    Tensor forward(const Tensor& input) override;                                              \
    std::string extra_repr() const override;                                                   \
    Name##Options options;                                                                     \
  };                                                                                           \
  RUSHLIGHT_MODULE(Name)

RUSHLIGHT_LAYER1(ReLU, bool, inplace, false);
RUSHLIGHT_LAYER1(ReLU6, bool, inplace, false);
RUSHLIGHT_LAYER1(SiLU, bool, inplace, false);
RUSHLIGHT_LAYER1(Mish, bool, inplace, false);
RUSHLIGHT_LAYER1(SELU, bool, inplace, false);
RUSHLIGHT_LAYER1(Hardsigmoid, bool, inplace, false);
RUSHLIGHT_LAYER1(Hardswish, bool, inplace, false);
RUSHLIGHT_LAYER2(ELU, double, alpha, 1.0, bool, inplace, false);
RUSHLIGHT_LAYER2(CELU, double, alpha, 1.0, bool, inplace, false);
RUSHLIGHT_LAYER2(LeakyReLU, double, negative_slope, 0.01, bool, inplace, false);
RUSHLIGHT_LAYER0(Sigmoid);
RUSHLIGHT_LAYER0(Tanh);
RUSHLIGHT_LAYER0(LogSigmoid);
RUSHLIGHT_LAYER0(Softsign);
RUSHLIGHT_LAYER0(Tanhshrink);
RUSHLIGHT_LAYER1(GELU, std::string, approximate, "none");
RUSHLIGHT_LAYER1(GLU, int64_t, dim, -1);
RUSHLIGHT_LAYER1(Hardshrink, double, lambd, 0.5);
RUSHLIGHT_LAYER1(Softshrink, double, lambd, 0.5);
RUSHLIGHT_LAYER2(Softplus, double, beta, 1.0, double, threshold, 20.0);
// Without `dim`: 0 for tensors of 0, 1 or 3 dimensions, else 1, with a warning.
RUSHLIGHT_LAYER1(Softmax, std::optional<int64_t>, dim, std::nullopt);
RUSHLIGHT_LAYER1(LogSoftmax, std::optional<int64_t>, dim, std::nullopt);
RUSHLIGHT_LAYER1(Softmin, std::optional<int64_t>, dim, std::nullopt);
RUSHLIGHT_LAYER0(Softmax2d);  // over the channels of (N, C, H, W) or (C, H, W)

struct HardtanhOptions {
  RUSHLIGHT_ARG(double, min_val) = -1.0;
  RUSHLIGHT_ARG(double, max_val) = 1.0;
  RUSHLIGHT_ARG(bool, inplace) = false;
};

class RUSHLIGHT_API HardtanhImpl : public TensorModule {
 public:
  explicit HardtanhImpl(HardtanhOptions options);
  explicit HardtanhImpl(double min_val = -1.0, double max_val = 1.0, bool inplace = false)
      : HardtanhImpl(HardtanhOptions().min_val(min_val).max_val(max_val).inplace(inplace)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  HardtanhOptions options;
};
RUSHLIGHT_MODULE(Hardtanh);

struct RReLUOptions {
  RUSHLIGHT_ARG(double, lower) = 1.0 / 8;
  RUSHLIGHT_ARG(double, upper) = 1.0 / 3;
  RUSHLIGHT_ARG(bool, inplace) = false;
};

// Leaky ReLU with a random slope in training.
class RUSHLIGHT_API RReLUImpl : public TensorModule {
 public:
  explicit RReLUImpl(RReLUOptions options = {}) : TensorModule("RReLU"), options(options) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  RReLUOptions options;
};
RUSHLIGHT_MODULE(RReLU);

struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  RUSHLIGHT_ARG(double, threshold);
  RUSHLIGHT_ARG(double, value);
  RUSHLIGHT_ARG(bool, inplace) = false;
};

class RUSHLIGHT_API ThresholdImpl : public TensorModule {
 public:
  explicit ThresholdImpl(ThresholdOptions options) : TensorModule("Threshold"), options(options) {}
  ThresholdImpl(double threshold, double value, bool inplace = false)
      : ThresholdImpl(ThresholdOptions(threshold, value).inplace(inplace)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  ThresholdOptions options;
};
RUSHLIGHT_MODULE(Threshold);

}  // namespace rushlight::nn
