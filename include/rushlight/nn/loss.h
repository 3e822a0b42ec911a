// Losses of (input, target). One line each: RUSHLIGHT_LOSSn(Name, type, option, default, ...) makes
// NameOptions, NameImpl and Name with n options.
#pragma once

#include <rushlight/nn/layers.h>

#include <optional>
#include <vector>

namespace rushlight::nn {

#define RUSHLIGHT_LOSS1(Name, Type, option, value)                                           \
  struct Name##Options {                                                                     \
    RUSHLIGHT_ARG(Type, option) = value;                                                     \
  };                                                                                         \
  class RUSHLIGHT_API Name##Impl : public Module {                                           \
   public:                                                                                   \
    explicit Name##Impl(Name##Options options) : Module(#Name), options(options) {}          \
    explicit Name##Impl(Type option = value) : Name##Impl(Name##Options().option(option)) {} \
    Tensor forward(const Tensor& input, const Tensor& target);                               \
    Name##Options options;                                                                   \
  };                                                                                         \
  RUSHLIGHT_MODULE(Name)

#define RUSHLIGHT_LOSS2(Name, Type, option, value, Type2, option2, value2)          \
  struct Name##Options {                                                            \
    RUSHLIGHT_ARG(Type, option) = value;                                            \
    RUSHLIGHT_ARG(Type2, option2) = value2;                                         \
  };                                                                                \
  class RUSHLIGHT_API Name##Impl : public Module {                                  \
   public:                                                                          \
    explicit Name##Impl(Name##Options options) : Module(#Name), options(options) {} \
    explicit Name##Impl(Type option = value, Type2 option2 = value2)                \
        : Name##Impl(Name##Options().option(option).option2(option2)) {}            \
    Tensor forward(const Tensor& input, const Tensor& target);                      \
    Name##Options options;                                                          \
  };                                                                                \
  RUSHLIGHT_MODULE(Name)

RUSHLIGHT_LOSS1(MSELoss, Reduction, reduction, Reduction::Mean);
RUSHLIGHT_LOSS1(L1Loss, Reduction, reduction, Reduction::Mean);
RUSHLIGHT_LOSS1(SoftMarginLoss, Reduction, reduction, Reduction::Mean);
RUSHLIGHT_LOSS1(MultiLabelMarginLoss, Reduction, reduction, Reduction::Mean);
RUSHLIGHT_LOSS2(SmoothL1Loss, Reduction, reduction, Reduction::Mean, double, beta, 1.0);
RUSHLIGHT_LOSS2(HuberLoss, Reduction, reduction, Reduction::Mean, double, delta, 1.0);
// The mean is over elements, as in Python; divide Reduction::Sum by the batch for its "batchmean".
RUSHLIGHT_LOSS2(KLDivLoss, Reduction, reduction, Reduction::Mean, bool, log_target, false);
RUSHLIGHT_LOSS2(HingeEmbeddingLoss, double, margin, 1.0, Reduction, reduction, Reduction::Mean);

struct CrossEntropyLossOptions {
  RUSHLIGHT_ARG(Tensor, weight) = {};
  RUSHLIGHT_ARG(int64_t, ignore_index) = -100;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
  RUSHLIGHT_ARG(double, label_smoothing) = 0.0;
};

// The cross entropy of logits (N, C, ...) and classes (N, ...) or probabilities (N, C, ...).
class RUSHLIGHT_API CrossEntropyLossImpl : public Module {
 public:
  explicit CrossEntropyLossImpl(CrossEntropyLossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  CrossEntropyLossOptions options;
  Tensor weight;  // (C), or undefined
};
RUSHLIGHT_MODULE(CrossEntropyLoss);

// A linear layer of (N, in_features) and the cross entropy of its logits, which are never held
// together. With out_features {d1, ..., dK} targets are (N, d1, ..., dK). For a weight that is
// shared, give `linear` the embedding's parameter, or call rushlight::linear_cross_entropy.
struct LinearCrossEntropyLossOptions {
  LinearCrossEntropyLossOptions(int64_t in_features, int64_t num_classes)
      : in_features_(in_features), num_classes_(num_classes) {}
  RUSHLIGHT_ARG(int64_t, in_features);
  RUSHLIGHT_ARG(int64_t, num_classes);
  RUSHLIGHT_ARG(std::vector<int64_t>, out_features) = {};
  RUSHLIGHT_ARG(bool, bias) = false;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
  RUSHLIGHT_ARG(Tensor, weight) = {};  // (num_classes)
  RUSHLIGHT_ARG(std::optional<int64_t>, ignore_index) = std::nullopt;
  RUSHLIGHT_ARG(double, label_smoothing) = 0.0;
  RUSHLIGHT_ARG(double, z_loss) = 0.0;  // times the squared logsumexp of each row
};

class RUSHLIGHT_API LinearCrossEntropyLossImpl : public Module {
 public:
  explicit LinearCrossEntropyLossImpl(LinearCrossEntropyLossOptions options);
  LinearCrossEntropyLossImpl(int64_t in_features, int64_t num_classes)
      : LinearCrossEntropyLossImpl(LinearCrossEntropyLossOptions(in_features, num_classes)) {}
  Tensor forward(const Tensor& input, const Tensor& target);
  LinearCrossEntropyLossOptions options;
  Linear linear;  // weight (num_classes * d1 * ... * dK, in_features)
  Tensor weight;  // (num_classes), or undefined
};
RUSHLIGHT_MODULE(LinearCrossEntropyLoss);

struct NLLLossOptions {
  RUSHLIGHT_ARG(Tensor, weight) = {};
  RUSHLIGHT_ARG(int64_t, ignore_index) = -100;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

class RUSHLIGHT_API NLLLossImpl : public Module {
 public:
  explicit NLLLossImpl(NLLLossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  NLLLossOptions options;
  Tensor weight;  // (C), or undefined
};
RUSHLIGHT_MODULE(NLLLoss);

struct BCELossOptions {
  RUSHLIGHT_ARG(Tensor, weight) = {};
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

class RUSHLIGHT_API BCELossImpl : public Module {
 public:
  explicit BCELossImpl(BCELossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  BCELossOptions options;
  Tensor weight;
};
RUSHLIGHT_MODULE(BCELoss);

struct BCEWithLogitsLossOptions {
  RUSHLIGHT_ARG(Tensor, weight) = {};
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
  RUSHLIGHT_ARG(Tensor, pos_weight) = {};
};

class RUSHLIGHT_API BCEWithLogitsLossImpl : public Module {
 public:
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  BCEWithLogitsLossOptions options;
  Tensor weight;
  Tensor pos_weight;
};
RUSHLIGHT_MODULE(BCEWithLogitsLoss);

}  // namespace rushlight::nn
