#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/adaptive.h>

namespace rushlight::nn {
namespace {

void check(const std::vector<int64_t>& cutoffs, int64_t classes) {
  if (cutoffs.empty()) {
    fail(ErrorKind::Value, "", "cutoffs should be a sequence of length larger than 0");
  }
  int64_t last = 0;
  for (const int64_t cutoff : cutoffs) {
    if (cutoff <= last || cutoff > classes - 1) {
      fail(ErrorKind::Value, "",
           "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
           "order, where each value is between 1 and n_classes-1");
    }
    last = cutoff;
  }
}

}  // namespace

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(
    AdaptiveLogSoftmaxWithLossOptions given)
    : Module("AdaptiveLogSoftmaxWithLoss"), options(std::move(given)) {
  const std::vector<int64_t>& cutoffs = options.cutoffs();
  check(cutoffs, options.n_classes());
  const auto clusters = static_cast<int64_t>(cutoffs.size());
  const int64_t width = options.in_features();
  head = register_module(
      "head", Linear(LinearOptions(width, shortlist() + clusters).bias(options.head_bias())));
  double divisor = 1;
  for (size_t i = 0; i < cutoffs.size(); ++i) {
    divisor *= options.div_value();
    const auto hidden = static_cast<int64_t>(static_cast<double>(width) / divisor);
    const int64_t end = i + 1 < cutoffs.size() ? cutoffs[i + 1] : options.n_classes();
    Sequential projection;
    projection->push_back(Linear(LinearOptions(width, hidden).bias(false)));
    projection->push_back(Linear(LinearOptions(hidden, end - cutoffs[i]).bias(false)));
    tail->push_back(projection);
  }
  register_module("tail", tail);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::cluster(size_t index, const Tensor& input) {
  return log_softmax(tail->at<SequentialImpl>(index).forward(input), 1);
}

std::tuple<Tensor, Tensor> AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& given_input,
                                                                   const Tensor& given_target) {
  const bool batched = given_target.dim() > 0;
  if (given_target.dim() > 1) {
    fail(ErrorKind::Runtime, "", "0D or 1D target tensor expected, multi-target not supported");
  }
  if (batched && given_input.size(0) != given_target.size(0)) {
    fail(ErrorKind::Runtime, "",
         "Input and target should have the same size in the batch dimension.");
  }
  const Tensor input = batched ? given_input : unsqueeze(given_input, 0);
  const Tensor target = batched ? given_target : unsqueeze(given_target, 0);
  const int64_t classes = options.n_classes();
  if (any(logical_or(lt(target, Scalar(0)), ge(target, Scalar(classes)))).item<bool>()) {
    fail(ErrorKind::Runtime, "", "Target values should be in [0, ", classes - 1,
         "], but values in range [", min(target).item<int64_t>(), ", ", max(target).item<int64_t>(),
         "] were found. ");
  }
  // Of each target: the head's column, and what its cluster adds.
  Tensor column = clone(target);
  Tensor output = zeros({target.size(0)}, TensorOptions(input.dtype()));
  const std::vector<int64_t>& cutoffs = options.cutoffs();
  for (size_t i = 0; i < cutoffs.size(); ++i) {
    const int64_t end = i + 1 < cutoffs.size() ? cutoffs[i + 1] : classes;
    const Tensor inside = logical_and(ge(target, Scalar(cutoffs[i])), lt(target, Scalar(end)));
    const Tensor rows = reshape(nonzero(inside), {-1});
    if (rows.numel() == 0) {
      continue;
    }
    const Tensor relative = sub(index_select(target, 0, rows), Scalar(cutoffs[i]));
    const Tensor log_probs = cluster(i, index_select(input, 0, rows));
    const Tensor local = gather(log_probs, 1, unsqueeze(relative, 1));
    output = index_copy(output, 0, rows, squeeze(local, 1));
    column = masked_fill(column, inside, Scalar(shortlist() + static_cast<int64_t>(i)));
  }
  const Tensor own = gather(log_softmax(head(input), 1), 1, unsqueeze(column, 1));
  output = add(output, squeeze(own, 1));
  const Tensor loss = mean(neg(output));
  return {batched ? output : squeeze(output, 0), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::full_log_prob(const Tensor& input,
                                                     const Tensor& head_output) {
  const Tensor of_head = log_softmax(head_output, 1);
  TensorList parts{narrow(of_head, 1, 0, shortlist())};
  for (size_t i = 0; i < tail->size(); ++i) {
    const Tensor entry = narrow(of_head, 1, shortlist() + static_cast<int64_t>(i), 1);
    parts.push_back(add(cluster(i, input), entry));
  }
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) {
  return full_log_prob(input, head(input));
}

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) {
  const Tensor head_output = head(input);
  const Tensor best = argmax(head_output, 1);
  const Tensor outside = ge(best, Scalar(shortlist()));
  if (!any(outside).item<bool>()) {  // the head alone answers
    return best;
  }
  const Tensor rows = reshape(nonzero(outside), {-1});
  const Tensor log_probs =
      full_log_prob(index_select(input, 0, rows), index_select(head_output, 0, rows));
  return index_copy(best, 0, rows, argmax(log_probs, 1));
}

}  // namespace rushlight::nn
