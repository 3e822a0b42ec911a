// A softmax over many classes that spends less on rare ones (Grave et al., 2016).
#pragma once

#include <rushlight/nn/container.h>
#include <rushlight/nn/layers.h>

#include <tuple>

namespace rushlight::nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes,
                                    std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  RUSHLIGHT_ARG(int64_t, in_features);
  RUSHLIGHT_ARG(int64_t, n_classes);
  RUSHLIGHT_ARG(std::vector<int64_t>, cutoffs);  // increasing, from 1 to n_classes - 1
  RUSHLIGHT_ARG(double, div_value) = 4.0;
  RUSHLIGHT_ARG(bool, head_bias) = false;
};

// Classes are sorted by frequency and cut into clusters; the head holds the first and one entry for
// each other, whose projections shrink by div_value each.
class RUSHLIGHT_API AdaptiveLogSoftmaxWithLossImpl : public Module {
 public:
  explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options);
  // The log-probabilities of the targets (N) for inputs (N, in_features), and their mean loss; or
  // () for (in_features). Error(Runtime) for other shapes and for targets that are no class.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& target);
  Tensor log_prob(const Tensor& input);  // (N, n_classes)
  Tensor predict(const Tensor& input);   // (N), the most probable class of each

  AdaptiveLogSoftmaxWithLossOptions options;
  Linear head{nullptr};
  ModuleList tail;

 private:
  // The log-probabilities of all classes from the head's output.
  Tensor full_log_prob(const Tensor& input, const Tensor& head_output);
  Tensor cluster(size_t index, const Tensor& input);
  int64_t shortlist() const { return options.cutoffs()[0]; }
};
RUSHLIGHT_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace rushlight::nn
