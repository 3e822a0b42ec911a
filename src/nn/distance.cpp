#include <rushlight/generated/functions.h>
#include <rushlight/nn/distance.h>
#include <rushlight/nn/init.h>

#include <cmath>

#include "nn/text.h"

namespace rushlight::nn {

CosineSimilarityImpl::CosineSimilarityImpl(const CosineSimilarityOptions& given)
    : Module("CosineSimilarity"), options(given) {}

Tensor CosineSimilarityImpl::forward(const Tensor& x1, const Tensor& x2) {
  return cosine_similarity(x1, x2, options.dim(), options.eps());
}

PairwiseDistanceImpl::PairwiseDistanceImpl(const PairwiseDistanceOptions& given)
    : Module("PairwiseDistance"), options(given) {}

Tensor PairwiseDistanceImpl::forward(const Tensor& x1, const Tensor& x2) {
  return pairwise_distance(x1, x2, options.p(), options.eps(), options.keepdim());
}

BilinearImpl::BilinearImpl(const BilinearOptions& given) : Module("Bilinear"), options(given) {
  if (options.in1_features() <= 0) {
    fail(ErrorKind::Value, "", "in1_features must be > 0, but got ", options.in1_features());
  }
  if (options.in2_features() < 0 || options.out_features() < 0) {
    fail(ErrorKind::Value, "Bilinear", "expected in2_features and out_features of 0 or more, got ",
         options.in2_features(), " and ", options.out_features());
  }
  weight = register_parameter(
      "weight", empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? empty({options.out_features()}) : Tensor());
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(options.in1_features()));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) {
    init::uniform_(bias, -bound, bound);
  }
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return bilinear(input1, input2, weight, bias);
}

std::string BilinearImpl::extra_repr() const {
  return cat("in1_features=", options.in1_features(), ", in2_features=", options.in2_features(),
             ", out_features=", options.out_features(), ", bias=", python_text(bias.defined()));
}

}  // namespace rushlight::nn
