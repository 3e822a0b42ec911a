// What autograd keeps of a tensor: its grad, the node that made it, and what it is a view of.
//
// A tensor without a record is a leaf that does not require grad.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autograd/node.h"

namespace rushlight::autograd {

class AccumulateGrad;

// How a view came to be: all but Default forbid recorded in-place writes.
enum class Creation : uint8_t { Default, NoGrad, Inference, MultiOutput, CustomFunction };

struct ViewInfo {
  Tensor base;  // never a tracked view itself
  Creation creation = Creation::Default;
  uint32_t version = 0;  // of the storage, when grad_fn was made
};

struct AutogradMetaImpl final : AutogradMeta {
  explicit AutogradMetaImpl(TensorImpl* tensor) : self(tensor) {}
  ~AutogradMetaImpl() override;

  static void* operator new(size_t size);
  static void operator delete(void* block, size_t size) noexcept;

  TensorImpl* self;
  NodePtr grad_fn;
  uint32_t output = 0;  // which result of grad_fn
  bool retains_grad = false;
  Tensor grad;
  // What dtype the grad of a leaf has: the leaf's, unless another is set, or any.
  std::optional<DType> grad_dtype;
  bool any_grad_dtype = false;
  std::atomic<AccumulateGrad*> accumulate{nullptr};  // owned; made at first use
  std::unique_ptr<ViewInfo> view;
};

inline AutogradMetaImpl* meta_of(const Tensor& tensor) {
  std::atomic_ref<AutogradMeta*> slot(tensor.impl()->autograd);
  return static_cast<AutogradMetaImpl*>(slot.load(std::memory_order_acquire));
}
AutogradMetaImpl& require_meta(const Tensor& tensor);

// The node that made the tensor; null for leaves. A view whose base was written in place since gets
// a new one.
NodePtr grad_fn(const Tensor& tensor);
// Where the tensor's gradient goes; no node where it does not require grad.
Edge gradient_edge(const Tensor& tensor);
// The node that accumulates into a leaf.
NodePtr accumulator(const Tensor& leaf);
bool is_leaf(const Tensor& tensor);
// The dtype that a leaf's grad has, whatever that of what arrives; nullopt: that of what arrives.
// Error(Runtime) for tensors that are no leaves, and where a grad of another dtype is there.
std::optional<DType> grad_dtype(const Tensor& leaf);
void set_grad_dtype(const Tensor& leaf, std::optional<DType> dtype);

// Makes the tensor result `output` of `node`.
void set_history(const Tensor& tensor, const NodePtr& node, uint32_t output);
// The same after an in-place write, seen by the base and other views too. `edge`: which argument of
// the node the tensor was.
void rebase_history(const Tensor& tensor, const NodePtr& node, uint32_t edge, uint32_t output);

// Makes the tensor a leaf that does not require grad. Error(Runtime) for tracked views.
void detach_in_place(const Tensor& tensor);

// Notes that `view` shares memory with `base`. Views of views lead to the first base.
void track_view(const Tensor& base, const Tensor& view, Creation creation);
// The tensor that `view` is a tracked view of; undefined where it is none.
Tensor view_base(const Tensor& view);

// Whether a recorded in-place write to the tensor is allowed: Error(Runtime) where not.
void check_inplace(const Tensor& tensor);
// In-place writes to inference tensors are for inference mode.
void check_inference_write(const Tensor& tensor);

}  // namespace rushlight::autograd
