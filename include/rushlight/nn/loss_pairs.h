// Losses of pairs and triplets, of margins between classes, and of Poisson and normal
// distributions.
#pragma once

#include <rushlight/nn/module.h>

#include <functional>

namespace rushlight::nn {

struct CosineEmbeddingLossOptions {
  RUSHLIGHT_ARG(double, margin) = 0.0;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// 1 - cos of (N, D) and (N, D) where the target (N) is 1, max(0, cos - margin) where it is -1.
class RUSHLIGHT_API CosineEmbeddingLossImpl : public Module {
 public:
  explicit CosineEmbeddingLossImpl(const CosineEmbeddingLossOptions& options = {});
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);
  CosineEmbeddingLossOptions options;
};
RUSHLIGHT_MODULE(CosineEmbeddingLoss);

struct MarginRankingLossOptions {
  RUSHLIGHT_ARG(double, margin) = 0.0;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// max(0, -target (input1 - input2) + margin), all of one number of dimensions.
class RUSHLIGHT_API MarginRankingLossImpl : public Module {
 public:
  explicit MarginRankingLossImpl(const MarginRankingLossOptions& options = {});
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);
  MarginRankingLossOptions options;
};
RUSHLIGHT_MODULE(MarginRankingLoss);

struct MultiMarginLossOptions {
  RUSHLIGHT_ARG(int64_t, p) = 1;  // 1 or 2
  RUSHLIGHT_ARG(double, margin) = 1.0;
  RUSHLIGHT_ARG(Tensor, weight) = {};  // (C)
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// The hinge loss between the right class and every other, to the power p: (N, C) and (N).
class RUSHLIGHT_API MultiMarginLossImpl : public Module {
 public:
  explicit MultiMarginLossImpl(MultiMarginLossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  MultiMarginLossOptions options;
  Tensor weight;
};
RUSHLIGHT_MODULE(MultiMarginLoss);

struct MultiLabelSoftMarginLossOptions {
  RUSHLIGHT_ARG(Tensor, weight) = {};  // (C)
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// The mean over classes of the one-against-all logistic loss: (N, C) and (N, C) of 0 and 1.
class RUSHLIGHT_API MultiLabelSoftMarginLossImpl : public Module {
 public:
  explicit MultiLabelSoftMarginLossImpl(MultiLabelSoftMarginLossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target);
  MultiLabelSoftMarginLossOptions options;
  Tensor weight;
};
RUSHLIGHT_MODULE(MultiLabelSoftMarginLoss);

struct PoissonNLLLossOptions {
  RUSHLIGHT_ARG(bool, log_input) = true;
  RUSHLIGHT_ARG(bool, full) = false;  // adds Stirling's approximation
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// The negative log likelihood of counts of a Poisson distribution.
class RUSHLIGHT_API PoissonNLLLossImpl : public Module {
 public:
  explicit PoissonNLLLossImpl(const PoissonNLLLossOptions& options = {});
  Tensor forward(const Tensor& log_input, const Tensor& target);
  PoissonNLLLossOptions options;
};
RUSHLIGHT_MODULE(PoissonNLLLoss);

struct GaussianNLLLossOptions {
  RUSHLIGHT_ARG(bool, full) = false;  // adds the constant
  RUSHLIGHT_ARG(double, eps) = 1e-6;  // the least variance
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// The negative log likelihood under normal distributions of mean `input` and variance `var`, which
// has the input's shape, or lacks its last dimension, or has 1 in one. Error(Value) for another.
class RUSHLIGHT_API GaussianNLLLossImpl : public Module {
 public:
  explicit GaussianNLLLossImpl(const GaussianNLLLossOptions& options = {});
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var);
  GaussianNLLLossOptions options;
};
RUSHLIGHT_MODULE(GaussianNLLLoss);

struct TripletMarginLossOptions {
  RUSHLIGHT_ARG(double, margin) = 1.0;
  RUSHLIGHT_ARG(double, p) = 2.0;
  RUSHLIGHT_ARG(double, eps) = 1e-6;
  RUSHLIGHT_ARG(bool, swap) = false;  // the negative may be nearer to the positive
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// max(0, d(anchor, positive) - d(anchor, negative) + margin) for the p-norm distance of (N, D).
class RUSHLIGHT_API TripletMarginLossImpl : public Module {
 public:
  explicit TripletMarginLossImpl(const TripletMarginLossOptions& options = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  TripletMarginLossOptions options;
};
RUSHLIGHT_MODULE(TripletMarginLoss);

struct TripletMarginWithDistanceLossOptions {
  using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
  RUSHLIGHT_ARG(Distance, distance_function) = {};  // by default the 2-norm
  RUSHLIGHT_ARG(double, margin) = 1.0;
  RUSHLIGHT_ARG(bool, swap) = false;
  RUSHLIGHT_ARG(Reduction, reduction) = Reduction::Mean;
};

// The same for any distance.
class RUSHLIGHT_API TripletMarginWithDistanceLossImpl : public Module {
 public:
  explicit TripletMarginWithDistanceLossImpl(TripletMarginWithDistanceLossOptions options = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  TripletMarginWithDistanceLossOptions options;
};
RUSHLIGHT_MODULE(TripletMarginWithDistanceLoss);

}  // namespace rushlight::nn
