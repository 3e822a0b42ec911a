#include "kernels/linear_cross_entropy.h"

#include <rushlight/error.h>

#include "kernels/linear_cross_entropy_run.h"

namespace rushlight {
namespace {

template <typename T>
void backward(const LinearCrossEntropy& problem, const void* logsumexp,
              const LinearCrossEntropyGradients& gradients) {
  auto* known = const_cast<T*>(static_cast<const T*>(logsumexp));  // read only
  LossRun<T>(problem, nullptr, known, &gradients, false).run_backward();
}

}  // namespace

bool can_fuse(const LinearCrossEntropy& problem) {
  const bool own = problem.dtype == DType::Float32 || problem.dtype == DType::Float64;
  return own && problem.classes * element_size(problem.dtype) * 16 <= kHeldScores;
}

void linear_cross_entropy_forward(const LinearCrossEntropy& problem, void* loss, void* logsumexp) {
  if (problem.rows == 0) {
    return;
  }
  if (problem.dtype == DType::Float64) {
    LossRun<double>(problem, static_cast<double*>(loss), static_cast<double*>(logsumexp), nullptr,
                    false)
        .run_forward();
  } else {
    LossRun<float>(problem, static_cast<float*>(loss), static_cast<float*>(logsumexp), nullptr,
                   false)
        .run_forward();
  }
}

void linear_cross_entropy_backward(const LinearCrossEntropy& problem, const void* logsumexp,
                                   const LinearCrossEntropyGradients& gradients) {
  if (problem.rows == 0) {
    return;
  }
  if (problem.dtype == DType::Float64) {
    backward<double>(problem, logsumexp, gradients);
  } else {
    backward<float>(problem, logsumexp, gradients);
  }
}

void linear_cross_entropy_fused(const LinearCrossEntropy& problem, void* loss, void* logsumexp,
                                const LinearCrossEntropyGradients& gradients) {
  RUSHLIGHT_ASSERT(can_fuse(problem) && gradients.loss_gradient == nullptr &&
                   gradients.logsumexp_gradient == nullptr);
  if (problem.rows == 0) {
    return;
  }
  if (problem.dtype == DType::Float64) {
    LossRun<double>(problem, static_cast<double*>(loss), static_cast<double*>(logsumexp),
                    &gradients, true)
        .run_forward();
  } else {
    LossRun<float>(problem, static_cast<float*>(loss), static_cast<float*>(logsumexp), &gradients,
                   true)
        .run_forward();
  }
}

}  // namespace rushlight
