// Distances, similarities and products of two inputs.
#pragma once

#include <rushlight/nn/module.h>

namespace rushlight::nn {

struct CosineSimilarityOptions {
  RUSHLIGHT_ARG(int64_t, dim) = 1;
  RUSHLIGHT_ARG(double, eps) = 1e-8;
};

// The cosine of the angle between x1 and x2 along `dim`.
class RUSHLIGHT_API CosineSimilarityImpl : public Module {
 public:
  explicit CosineSimilarityImpl(const CosineSimilarityOptions& options = {});
  Tensor forward(const Tensor& x1, const Tensor& x2);
  CosineSimilarityOptions options;
};
RUSHLIGHT_MODULE(CosineSimilarity);

struct PairwiseDistanceOptions {
  RUSHLIGHT_ARG(double, p) = 2.0;
  RUSHLIGHT_ARG(double, eps) = 1e-6;
  RUSHLIGHT_ARG(bool, keepdim) = false;
};

// The p-norm of x1 - x2 + eps along the last dimension.
class RUSHLIGHT_API PairwiseDistanceImpl : public Module {
 public:
  explicit PairwiseDistanceImpl(const PairwiseDistanceOptions& options = {});
  Tensor forward(const Tensor& x1, const Tensor& x2);
  PairwiseDistanceOptions options;
};
RUSHLIGHT_MODULE(PairwiseDistance);

struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  RUSHLIGHT_ARG(int64_t, in1_features);
  RUSHLIGHT_ARG(int64_t, in2_features);
  RUSHLIGHT_ARG(int64_t, out_features);
  RUSHLIGHT_ARG(bool, bias) = true;
};

// y = x1^T weight x2 + bias: (..., in1_features) and (..., in2_features) to (..., out_features).
class RUSHLIGHT_API BilinearImpl : public Module {
 public:
  explicit BilinearImpl(const BilinearOptions& options);
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  void reset_parameters();
  Tensor forward(const Tensor& input1, const Tensor& input2);
  std::string extra_repr() const override;

  BilinearOptions options;
  Tensor weight;  // (out_features, in1_features, in2_features)
  Tensor bias;    // (out_features), or undefined
};
RUSHLIGHT_MODULE(Bilinear);

}  // namespace rushlight::nn
