// The negative log likelihood of classes.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <atomic>
#include <tuple>

#include "kernels/copy.h"
#include "kernels/element_type.h"
#include "ops/dtype_checks.h"
#include "ops/gradient.h"
#include "ops/loss.h"
#include "ops/operator.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

// The negative of each target's element, 0 where the target is ignored, and how many are not.
std::tuple<Tensor, Tensor> picked_costs(const Tensor& self, const Tensor& target, int64_t given,
                                        int64_t ignored) {
  const int64_t dim = wrap_dim(given, self.dim(), "_picked_costs");
  IntList expected(self.sizes());
  if (self.dim() != 0) {
    expected.erase(static_cast<size_t>(dim));
  }
  if (self.dim() == 0 || target.dtype() != DType::Int64 || target.sizes() != expected) {
    fail(ErrorKind::Runtime, "_picked_costs",
         "expected int64 targets for all but one dimension of self, got ", target.sizes(), " of ",
         target.dtype(), " for ", self.sizes());
  }
  Tensor cost = make_tensor(target.sizes(), self.dtype(), self.device());
  Tensor count = make_tensor({}, DType::Int64, self.device());
  if (cost.is_meta()) {
    return {cost, count};
  }
  const int64_t classes = self.size(dim);
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < self.dim(); ++d) {
    inner *= self.size(d);
  }
  const Tensor from = kernels::as_contiguous(self);
  const Tensor wanted = kernels::as_contiguous(target);
  const auto* classes_of = wanted.data_ptr<int64_t>();
  std::atomic<int64_t> counted{0};
  kernels::by_floating_dtype(self.dtype(), "nll_loss", [&]<typename T>(T) {
    const T* x = static_cast<const T*>(from.data());
    T* to = static_cast<T*>(cost.data());
    parallel_for(0, wanted.numel(), 4096, [&](int64_t begin, int64_t end) {
      int64_t own = 0;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = classes_of[i];
        if (at == ignored) {
          to[i] = T{};
          continue;
        }
        if (at < 0 || at >= classes) {
          fail(ErrorKind::Index, "nll_loss", "Target ", at,
               " is out of bounds: expected a class in [0, ", classes, ") or ignore_index ",
               ignored);
        }
        const T element = x[(i / inner * classes + at) * inner + i % inner];
        to[i] = kernels::store_value<T>(-kernels::load_value(element));
        ++own;
      }
      counted += own;
    });
  });
  *count.data_ptr<int64_t>() = counted;
  return {cost, count};
}

void picked_costs_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  g.set(0, _picked_costs_backward(g.grad(0), g.tensor(1), g.sizes(0), g.integer(2), g.integer(3)));
}

// Zeros but for minus each gradient at its target.
Tensor spread_costs(const Tensor& grad, const Tensor& target, IntArrayRef sizes, int64_t given,
                    int64_t ignored) {
  const int64_t dim = wrap_dim(given, static_cast<int64_t>(sizes.size()), "nll_loss_backward");
  const Tensor made = make_tensor(sizes, grad.dtype(), grad.device());
  if (made.is_meta() || made.numel() == 0) {
    return made;
  }
  const int64_t classes = made.size(dim);
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < made.dim(); ++d) {
    inner *= made.size(d);
  }
  const Tensor from = kernels::as_contiguous(grad);
  const Tensor wanted = kernels::as_contiguous(target);
  const auto* classes_of = wanted.data_ptr<int64_t>();
  const int64_t size = classes * inner;
  kernels::by_floating_dtype(grad.dtype(), "nll_loss", [&]<typename T>(T) {
    const T* costs = static_cast<const T*>(from.data());
    T* to = static_cast<T*>(made.data());
    const int64_t grain = std::max<int64_t>(1, 32768 / size);
    parallel_for(0, made.numel() / size, grain, [&](int64_t begin, int64_t end) {
      std::fill(to + begin * size, to + end * size, T{});
      for (int64_t i = begin * inner; i < end * inner; ++i) {
        const int64_t at = classes_of[i];
        if (at == ignored) {
          continue;
        }
        if (at < 0 || at >= classes) {
          fail(ErrorKind::Index, "nll_loss_backward", "Target ", at,
               " is out of bounds: expected a class in [0, ", classes, ") or ignore_index ",
               ignored);
        }
        to[(i / inner * classes + at) * inner + i % inner] =
            kernels::store_value<T>(-kernels::load_value(costs[i]));
      }
    });
  });
  return made;
}

Tensor nll_loss_of(const Tensor& self, const Tensor& target, const Tensor& weight,
                   int64_t reduction, int64_t ignore_index) {
  if (is_line_of_one(self, target)) {
    return nll_loss_of(self, reshape(target, {}), weight, reduction, ignore_index);
  }
  ClassShape shape = check_class_target("nll_loss", self, target, weight, ignore_index);
  if (!weight.defined() && self.is_floating_point()) {
    auto [cost, count] = _picked_costs(self, target, shape.dim, ignore_index);
    return reduction == 0 ? cost : reduction == 2 ? sum(cost) : div(sum(cost), count);
  }
  Tensor counted = ne(target, Scalar(ignore_index));
  Tensor index = masked_fill(target, logical_not(counted), Scalar(0));
  Tensor picked = squeeze(gather(self, shape.dim, unsqueeze(index, shape.dim)), shape.dim);
  Tensor loss = neg(where(counted, picked, Scalar(0)));
  Tensor weights;
  if (weight.defined()) {
    Tensor taken = reshape(index_select(weight, 0, reshape(index, {-1})), index.sizes());
    weights = mul(taken, counted);
    loss = mul(loss, weights);
  }
  if (reduction != 1) {
    return reduction == 2 ? sum(loss) : loss;
  }
  Tensor count = weights.defined() ? sum(weights) : sum(counted);
  return div(sum(loss), count);
}

}  // namespace

RUSHLIGHT_OPERATORS(loss_nll) {
  op("_picked_costs(Tensor self, Tensor target, int dim, int ignore_index) -> (Tensor, Tensor)",
     kInternal)
      .doc("Minus the elements at the targets along dim, and the number of targets not ignored.")
      .kernel(picked_costs)
      .gradient("target", picked_costs_gradient);
  op("_picked_costs_backward(Tensor grad_output, Tensor target, SymInt[] sizes, int dim, "
     "int ignore_index) -> Tensor",
     kInternal)
      .doc("The gradient of _picked_costs.")
      .kernel(spread_costs)
      .gradient("target", [](Gradient& g) {
        const auto [costs, count] =
            _picked_costs(g.grad(), g.tensor(1), g.integer(3), g.integer(4));
        g.set(0, costs);
      });
  op("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
     "int ignore_index=-100) -> Tensor",
     kNN)
      .doc("Minus the log-probability of the target classes.")
      .composition(nll_loss_of)
      .node([](const Invocation& inv) {
        return inv.arguments[0].tensor().dim() > 2 ? "NllLoss2DBackward0" : "NllLossBackward0";
      })
      .check(expect_floating);
}

}  // namespace rushlight
