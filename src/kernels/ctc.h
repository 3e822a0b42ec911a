// Connectionist temporal classification (Graves et al., 2006), in log space.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// Row-major log probabilities (time, batch, classes), f32 or f64. Sample b has steps[b] of the time
// steps and labels[b] labels, which begin at targets + first[b]. All have been checked.
struct CtcProblem {
  const int64_t* targets;
  const int64_t* first;
  const int64_t* labels;
  const int64_t* steps;
  int64_t blank;
};

// loss[b] = -log p(labels), infinite where they do not fit. `alpha` (batch, time, 2 most labels +
// 1) is filled with the log probabilities of the prefixes, blanks between the labels.
void ctc_loss(const Tensor& loss, const Tensor& alpha, const Tensor& log_probs,
              const CtcProblem& problem);

// made = the gradient by the log probabilities, for grad[b] of loss[b]: zero beyond the steps, and
// with `zero_infinity` where the loss is infinite.
void ctc_loss_gradient(const Tensor& made, const Tensor& grad, const Tensor& log_probs,
                       const CtcProblem& problem, bool zero_infinity);

}  // namespace rushlight::kernels
