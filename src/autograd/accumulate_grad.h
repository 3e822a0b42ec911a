// The node at a leaf: adds what arrives to the leaf's grad.
#pragma once

#include "autograd/meta.h"

namespace rushlight::autograd {

// Whether, in this thread, a first gradient that nobody else holds is copied where it is not laid
// out like its leaf; else it is taken as it lies. On until it is set.
RUSHLIGHT_API bool grad_layout_enforced();
RUSHLIGHT_API void set_grad_layout_enforced(bool enforced);

// Owned by the leaf's record and alive as long as the leaf.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(TensorImpl* leaf);
  TensorList apply(TensorList&& gradients) override;
  std::string name() const override { return "AccumulateGrad"; }
  uint32_t input_count() const override { return 1; }
  InputMetadata input(uint32_t) const override;
  Tensor leaf() const { return Tensor::share(leaf_); }
  HookHandle add_accumulate_hook(AccumulateHook hook);
  // Looks at the hooks, in order, while none can be added.
  template <typename F>
  auto with_hooks(F&& function) {
    std::lock_guard lock(hooks_mutex_);
    return function(hooks_);
  }

 private:
  void accumulate(Tensor gradient);

  std::mutex mutex_;  // backward may run in several threads
  std::mutex hooks_mutex_;
  std::vector<Hook<AccumulateHook>> hooks_;
};

}  // namespace rushlight::autograd
