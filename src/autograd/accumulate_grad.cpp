#include "autograd/accumulate_grad.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "autograd/node_run.h"
#include "autograd/operators.h"
#include "ops/invocation.h"
#include "tensor/wrapper.h"

namespace rushlight::autograd {
namespace {

// A view that nobody else can see, but whose record of being one keeps its base alive.
bool may_hold_base(const Tensor& tensor) {
  return tensor.impl()->references.load(std::memory_order_acquire) == 1 &&
         tensor.storage()->references.load(std::memory_order_acquire) == 1 + sole_holders(tensor) &&
         tensor.storage()->bytes == static_cast<size_t>(tensor.nbytes());
}

// The same elements in a tensor that is no view.
Tensor without_base(Tensor tensor) {
  return make_view(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

// Whether each element has a place of its own and none is skipped, in some order of dimensions.
bool is_dense(const TensorImpl& tensor) {
  if (tensor.has(TensorImpl::kContiguous)) {
    return true;
  }
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] != 1) {
      steps.emplace_back(tensor.strides[i], tensor.sizes[i]);
    }
  }
  std::sort(steps.begin(), steps.end());
  int64_t expected = 1;
  for (auto [stride, size] : steps) {
    if (stride != expected) {
      return false;
    }
    expected *= size;
  }
  return true;
}

// A grad is laid out like its leaf, where that has no gaps; else row-major.
bool is_laid_out_like(const Tensor& gradient, const TensorImpl& leaf) {
  if (leaf.has(TensorImpl::kContiguous) || !is_dense(leaf)) {
    return gradient.is_contiguous();
  }
  return IntArrayRef(leaf.strides) == gradient.strides();
}

thread_local bool enforces_layout = true;

Tensor first_grad(Tensor gradient, const TensorImpl& leaf) {
  if (thread_state.grad_mode) {
    return ops::clone(gradient);
  }
  if (is_wrapper(gradient)) {
    return gradient;
  }
  const bool fits = !enforces_layout || is_laid_out_like(gradient, leaf);
  if (may_hold_base(gradient) && fits) {
    gradient = without_base(std::move(gradient));
  }
  if (!enforces_layout && is_sole_owner(gradient)) {
    return gradient;
  }
  const IntList strides = is_dense(leaf) ? leaf.strides : contiguous_strides(leaf.sizes);
  if (is_sole_owner(gradient) && fits) {
    // Strides of dimensions of size 1 must not tell who else held the gradient.
    return gradient.strides() == IntArrayRef(strides)
               ? gradient
               : make_view(gradient, leaf.sizes, strides, gradient.storage_offset());
  }
  Tensor copy = make_strided(leaf.sizes, strides, gradient.dtype(), gradient.device());
  ops::copy_(copy, gradient);
  return copy;
}

}  // namespace

bool grad_layout_enforced() {
  return enforces_layout;
}

void set_grad_layout_enforced(bool enforced) {
  enforces_layout = enforced;
}

AccumulateGrad::AccumulateGrad(TensorImpl* leaf) {
  leaf_ = leaf;
  sequence_ = std::numeric_limits<uint64_t>::max();
}

InputMetadata AccumulateGrad::input(uint32_t) const {
  const auto& meta = static_cast<const AutogradMetaImpl&>(*leaf_->autograd);
  return {leaf_->sizes, meta.grad_dtype.value_or(leaf_->dtype), leaf_->device, meta.any_grad_dtype};
}

HookHandle AccumulateGrad::add_accumulate_hook(AccumulateHook hook) {
  auto alive = std::make_shared<std::atomic<bool>>(true);
  std::lock_guard lock(hooks_mutex_);
  hooks_.push_back({std::move(hook), alive});
  return HookHandle(alive);
}

void AccumulateGrad::accumulate(Tensor gradient) {
  std::lock_guard lock(mutex_);
  Tensor& grad = static_cast<AutogradMetaImpl*>(leaf_->autograd)->grad;
  if (!grad.defined()) {
    grad = first_grad(std::move(gradient), *leaf_);
  } else if (thread_state.grad_mode) {
    grad = ops::add(grad, gradient);
  } else {
    ops::add_(grad, gradient);
  }
}

TensorList AccumulateGrad::apply(TensorList&& gradients) {
  if (!gradients[0].defined() || !leaf_->has(TensorImpl::kRequiresGrad)) {
    return {};
  }
  accumulate(std::move(gradients[0]));
  std::vector<Hook<AccumulateHook>> hooks;
  {
    std::lock_guard lock(hooks_mutex_);
    if (hooks_.empty()) {
      return {};
    }
    hooks = hooks_;
  }
  Tensor self = leaf();
  for (const Hook<AccumulateHook>& hook : hooks) {
    if (*hook.alive) {
      hook.function(self);
    }
  }
  return {};
}

}  // namespace rushlight::autograd
