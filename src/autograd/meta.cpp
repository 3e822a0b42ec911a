#include "autograd/meta.h"

#include <rushlight/memory.h>

#include "autograd/accumulate_grad.h"

namespace rushlight::autograd {

AutogradMetaImpl::~AutogradMetaImpl() {
  if (retains_grad && grad_fn) {
    grad_fn->forget_retained(this);
  }
  delete accumulate.load(std::memory_order_acquire);
}

void* AutogradMetaImpl::operator new(size_t size) {
  return memory::allocate(size);
}

void AutogradMetaImpl::operator delete(void* block, size_t size) noexcept {
  memory::release(block, size);
}

AutogradMetaImpl& require_meta(const Tensor& tensor) {
  if (AutogradMetaImpl* found = meta_of(tensor)) {
    return *found;
  }
  // Threads that share a tensor may come here together.
  std::atomic_ref<AutogradMeta*> slot(tensor.impl()->autograd);
  auto made = std::make_unique<AutogradMetaImpl>(tensor.impl());
  AutogradMeta* expected = nullptr;
  if (slot.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *static_cast<AutogradMetaImpl*>(expected);
}

NodePtr accumulator(const Tensor& leaf) {
  AutogradMetaImpl& meta = require_meta(leaf);
  AccumulateGrad* found = meta.accumulate.load(std::memory_order_acquire);
  if (found == nullptr) {
    auto made = std::make_unique<AccumulateGrad>(leaf.impl());
    if (meta.accumulate.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
      found = made.release();
    }
  }
  return NodePtr::share(found);
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.requires_grad()) {
    return {};
  }
  AutogradMetaImpl* meta = meta_of(tensor);
  if (meta != nullptr && meta->view == nullptr && meta->grad_fn) {
    return {meta->grad_fn, meta->output};
  }
  if (NodePtr node = grad_fn(tensor)) {
    return {std::move(node), meta->output};
  }
  return {accumulator(tensor), 0};
}

bool is_leaf(const Tensor& tensor) {
  return !tensor.requires_grad() || !grad_fn(tensor);
}

void set_history(const Tensor& tensor, const NodePtr& node, uint32_t output) {
  AutogradMetaImpl& meta = require_meta(tensor);
  if (meta.retains_grad && meta.grad_fn) {
    meta.grad_fn->forget_retained(&meta);
    node->retain_grad(output, &meta);
  }
  meta.grad_fn = node;
  meta.output = output;
  if (meta.view != nullptr) {
    meta.view->version = tensor.version();
  }
  tensor.impl()->set(TensorImpl::kRequiresGrad, true);
}

void detach_in_place(const Tensor& tensor) {
  AutogradMetaImpl* meta = meta_of(tensor);
  if (meta != nullptr && meta->view != nullptr) {
    fail(ErrorKind::Runtime, "", "Can't detach views in-place. Use detach() instead.");
  }
  if (meta != nullptr) {
    if (meta->retains_grad && meta->grad_fn) {
      meta->grad_fn->forget_retained(meta);
      meta->retains_grad = false;
    }
    meta->grad_fn = {};
    meta->output = 0;
  }
  tensor.impl()->set(TensorImpl::kRequiresGrad, false);
}

}  // namespace rushlight::autograd
