// Tensor's autograd methods.
#include <rushlight/generated/view.h>
#include <rushlight/printing.h>

#include "autograd/accumulate_grad.h"
#include "autograd/engine.h"
#include "autograd/meta.h"
#include "ops/invocation.h"

namespace rushlight {

using autograd::AutogradMetaImpl;
using autograd::meta_of;

const Tensor& Tensor::requires_grad_(bool on) const {
  if (!autograd::is_leaf(*this)) {
    if (on) {
      return *this;
    }
    fail(ErrorKind::Runtime, "",
         "you can only change requires_grad flags of leaf variables. If you want to use a computed "
         "variable in a subgraph that doesn't require differentiation use var_no_grad = "
         "var.detach().");
  }
  if (on && !is_floating_point() && !is_complex()) {
    fail(ErrorKind::Runtime, "", "only Tensors of floating point dtype can require gradients");
  }
  if (on && impl_->has(TensorImpl::kInference) && !thread_state.inference_mode) {
    fail(ErrorKind::Runtime, "",
         "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  }
  if (on) {
    // Made now: threads that share a leaf find its record there.
    autograd::require_meta(*this);
  }
  impl_->set(TensorImpl::kRequiresGrad, on);
  return *this;
}

bool Tensor::is_leaf() const {
  return autograd::is_leaf(*this);
}

const Tensor& Tensor::grad() const {
  static const Tensor none;
  AutogradMetaImpl* meta = meta_of(*this);
  return meta != nullptr ? meta->grad : none;
}

void Tensor::set_grad(Tensor grad) const {
  if (!grad.defined()) {
    if (AutogradMetaImpl* meta = meta_of(*this)) {
      meta->grad = {};
    }
    return;
  }
  if (grad.is_same(*this)) {
    fail(ErrorKind::Runtime, "", "can't assign Variable as its own grad");
  }
  AutogradMetaImpl* meta = meta_of(*this);
  DType wanted = meta != nullptr ? meta->grad_dtype.value_or(dtype()) : dtype();
  if (grad.dtype() != wanted && (meta == nullptr || !meta->any_grad_dtype)) {
    fail(ErrorKind::Runtime, "", "attempting to assign a gradient with dtype '", grad.dtype(),
         "' to a tensor with grad_dtype '", wanted,
         "'. The gradient must match the tensor's grad_dtype, which is the tensor's dtype unless "
         "another is set, or None for any");
  }
  if (!(grad.device() == device())) {
    fail(ErrorKind::Runtime, "", "attempting to assign a gradient with device type '",
         grad.device().to_string(), "' to a tensor with device type '", device().to_string(),
         "'. Please ensure that the gradient and the tensor are on the same device");
  }
  if (!(grad.sizes() == sizes())) {
    fail(ErrorKind::Runtime, "", "attempting to assign a gradient of size '", grad.sizes(),
         "' to a tensor of size '", sizes(),
         "'. Please ensure that the gradient and the tensor are the same size");
  }
  autograd::require_meta(*this).grad = std::move(grad);
}

Tensor Tensor::detach() const {
  return rushlight::detach(*this);
}

void Tensor::retain_grad() const {
  if (!requires_grad()) {
    fail(ErrorKind::Runtime, "", "can't retain_grad on Tensor that has requires_grad=False");
  }
  autograd::NodePtr node = autograd::grad_fn(*this);
  AutogradMetaImpl& meta = autograd::require_meta(*this);
  if (!node || meta.retains_grad) {
    return;
  }
  meta.retains_grad = true;
  node->retain_grad(meta.output, &meta);
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  autograd::backward({*this}, {gradient}, retain_graph || create_graph, create_graph);
}

void Tensor::set_data(const Tensor& data) const {
  if (!(data.device() == device())) {
    fail(ErrorKind::Runtime, "",
         "Attempted to call `variable.set_data(tensor)`, but `variable` "
         "and `tensor` have incompatible tensor type.");
  }
  if (requires_grad() && !data.is_floating_point() && !data.is_complex()) {
    fail(ErrorKind::Runtime, "",
         "data set to a tensor that requires gradients must be floating "
         "point or complex dtype");
  }
  TensorImpl& source = *data.impl();
  if (&source == impl_) {
    return;
  }
  rushlight::retain(source.storage);
  rushlight::release(std::exchange(impl_->storage, source.storage));
  impl_->dtype = source.dtype;
  impl_->device = source.device;
  impl_->sizes = source.sizes;
  impl_->strides = source.strides;
  impl_->offset = source.offset;
  impl_->refresh();
}

namespace autograd {

namespace {

std::string printed_name(const Tensor& tensor) {
  NodePtr node = grad_fn(tensor);
  return node ? node->name() : "";
}

const bool installed = (grad_fn_name = printed_name, true);

}  // namespace

std::optional<DType> grad_dtype(const Tensor& leaf) {
  if (!is_leaf(leaf)) {
    fail(ErrorKind::Runtime, "", "grad_dtype can only be accessed on leaf tensors.");
  }
  const AutogradMetaImpl* meta = meta_of(leaf);
  if (meta == nullptr) {
    return leaf.dtype();
  }
  return meta->any_grad_dtype ? std::nullopt
                              : std::optional(meta->grad_dtype.value_or(leaf.dtype()));
}

void set_grad_dtype(const Tensor& leaf, std::optional<DType> dtype) {
  if (!is_leaf(leaf)) {
    fail(ErrorKind::Runtime, "", "grad_dtype can only be set on leaf tensors.");
  }
  AutogradMetaImpl& meta = require_meta(leaf);
  if (dtype && meta.grad.defined() && meta.grad.dtype() != *dtype) {
    fail(ErrorKind::Runtime, "", "Cannot set grad_dtype to '", *dtype,
         "' because there is already a gradient with dtype '", meta.grad.dtype(),
         "'. Please clear the gradient (.grad = None) before changing grad_dtype.");
  }
  meta.grad_dtype = dtype;
  meta.any_grad_dtype = !dtype.has_value();
}

HookHandle register_hook(const Tensor& tensor, TensorHook hook) {
  if (!tensor.requires_grad()) {
    fail(ErrorKind::Runtime, "",
         "cannot register a hook on a tensor that doesn't require gradient");
  }
  Edge edge = gradient_edge(tensor);
  return edge.node->add_input_hook(edge.input, std::move(hook));
}

HookHandle register_post_accumulate_grad_hook(const Tensor& tensor, AccumulateHook hook) {
  if (!tensor.requires_grad()) {
    fail(ErrorKind::Runtime, "",
         "cannot register a hook on a tensor that doesn't require gradient");
  }
  if (!is_leaf(tensor)) {
    fail(ErrorKind::Runtime, "",
         "post accumulate grad hooks cannot be registered on non-leaf "
         "tensors");
  }
  NodePtr node = accumulator(tensor);
  return static_cast<AccumulateGrad*>(node.get())->add_accumulate_hook(std::move(hook));
}

}  // namespace autograd
}  // namespace rushlight
