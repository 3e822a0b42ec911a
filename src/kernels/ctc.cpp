#include "kernels/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

template <typename T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) [+ exp(c)]).
template <typename T>
T log_sum(T a, T b, T c = kNever<T>) {
  const T most = std::max({a, b, c});
  if (most == kNever<T>) {
    return most;
  }
  return std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most)) + most;
}

// One sample: its states are the labels with blanks before, between and after them.
template <typename T>
class Sample {
 public:
  Sample(const Tensor& log_probs, const CtcProblem& problem, int64_t b)
      : probs_(static_cast<const T*>(log_probs.data()) + b * log_probs.size(2)),
        row_(log_probs.size(1) * log_probs.size(2)),
        labels_(problem.targets + problem.first[b]),
        blank_(problem.blank),
        states(2 * problem.labels[b] + 1),
        steps(problem.steps[b]) {}

  int64_t label(int64_t state) const { return state % 2 == 1 ? labels_[state / 2] : blank_; }
  T prob(int64_t t, int64_t state) const { return probs_[t * row_ + label(state)]; }
  const T* row(int64_t t) const { return probs_ + t * row_; }
  // Whether a path may go from `state` to the one after the next: no blank between equal labels.
  bool skips(int64_t state) const {
    return state + 2 < states && label(state) != label(state + 2) && state % 2 == 1;
  }

 private:
  const T* probs_;
  int64_t row_;
  const int64_t* labels_;
  int64_t blank_;

 public:
  const int64_t states;
  const int64_t steps;
};

// Fills `alpha` (steps, states), and returns the loss.
template <typename T>
T forward(std::vector<T>& alpha, const Sample<T>& s) {
  if (s.steps == 0) {
    return s.states == 1 ? T{0} : -kNever<T>;
  }
  alpha.assign(static_cast<size_t>(s.steps * s.states), kNever<T>);
  alpha[0] = s.prob(0, 0);
  if (s.states > 1) {
    alpha[1] = s.prob(0, 1);
  }
  for (int64_t t = 1; t < s.steps; ++t) {
    const T* before = alpha.data() + (t - 1) * s.states;
    T* now = alpha.data() + t * s.states;
    for (int64_t i = 0; i < s.states; ++i) {
      const T one = i > 0 ? before[i - 1] : kNever<T>;
      const T two = i > 1 && s.skips(i - 2) ? before[i - 2] : kNever<T>;
      now[i] = log_sum(before[i], one, two) + s.prob(t, i);
    }
  }
  const T* last = alpha.data() + (s.steps - 1) * s.states;
  return -log_sum(last[s.states - 1], s.states > 1 ? last[s.states - 2] : kNever<T>);
}

// `row` elements of `made` from one step to the next.
template <typename T>
void backward(T* made, int64_t row, int64_t classes, T grad, T loss, const std::vector<T>& alpha,
              const Sample<T>& s) {
  std::vector<T> beta(static_cast<size_t>(s.states), kNever<T>);
  std::vector<T> after(beta);
  // For each class, the log of the sum over its states of alpha beta.
  std::vector<T> sums(static_cast<size_t>(classes));
  for (int64_t t = s.steps - 1; t >= 0; --t) {
    std::swap(beta, after);
    std::fill(sums.begin(), sums.end(), kNever<T>);
    for (int64_t i = s.states - 1; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      if (t == s.steps - 1) {
        beta[at] = i + 2 >= s.states ? s.prob(t, i) : kNever<T>;
      } else {
        const T one = i + 1 < s.states ? after[at + 1] : kNever<T>;
        const T two = s.skips(i) ? after[at + 2] : kNever<T>;
        beta[at] = log_sum(after[at], one, two) + s.prob(t, i);
      }
      T& sum = sums[static_cast<size_t>(s.label(i))];
      sum = log_sum(sum, alpha[static_cast<size_t>(t * s.states + i)] + beta[at]);
    }
    const T* probs = s.row(t);
    for (int64_t c = 0; c < classes; ++c) {
      const T own = probs[c];
      const T joint = sums[static_cast<size_t>(c)] + loss - own;
      made[t * row + c] = (std::exp(own) - std::exp(joint)) * grad;
    }
  }
}

template <typename F>
void by_precision(const Tensor& tensor, F&& function) {
  if (tensor.dtype() == DType::Float64) {
    return function(double{});
  }
  function(float{});
}

}  // namespace

void ctc_loss(const Tensor& loss, const Tensor& alpha, const Tensor& log_probs,
              const CtcProblem& problem) {
  by_precision(log_probs, [&]<typename T>(T) {
    T* losses = static_cast<T*>(loss.data());
    T* table = static_cast<T*>(alpha.data());
    std::fill_n(table, alpha.numel(), kNever<T>);
    const int64_t width = alpha.size(2);
    parallel_for(0, loss.numel(), 1, [&](int64_t begin, int64_t end) {
      std::vector<T> sums;
      for (int64_t b = begin; b < end; ++b) {
        const Sample<T> sample(log_probs, problem, b);
        losses[b] = forward(sums, sample);
        for (int64_t i = 0; i < sample.steps * sample.states; ++i) {
          table[(b * alpha.size(1) + i / sample.states) * width + i % sample.states] =
              sums[static_cast<size_t>(i)];
        }
      }
    });
  });
}

void ctc_loss_gradient(const Tensor& made, const Tensor& grad, const Tensor& log_probs,
                       const CtcProblem& problem, bool zero_infinity) {
  by_precision(log_probs, [&]<typename T>(T) {
    T* out = static_cast<T*>(made.data());
    const T* given = static_cast<const T*>(grad.data());
    const int64_t classes = log_probs.size(2);
    const int64_t row = log_probs.size(1) * classes;
    std::fill_n(out, made.numel(), T{0});
    parallel_for(0, grad.numel(), 1, [&](int64_t begin, int64_t end) {
      std::vector<T> alpha;
      for (int64_t b = begin; b < end; ++b) {
        const Sample<T> sample(log_probs, problem, b);
        const T loss = forward(alpha, sample);
        if (sample.steps != 0 && !(zero_infinity && loss == -kNever<T>)) {
          backward(out + b * classes, row, classes, given[b], loss, alpha, sample);
        }
      }
    });
  });
}

}  // namespace rushlight::kernels
