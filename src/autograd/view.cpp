// Views and in-place writes: a write to a view changes the history of its base.
//
// A tracked view knows its base; the other way round nothing is kept. When the base's storage was
// written since the view's grad_fn was made, the view takes its elements out of the base anew.
#include "autograd/copy_slices.h"
#include "autograd/meta.h"
#include "autograd/operators.h"
#include "ops/invocation.h"

namespace rushlight {

bool base_requires_grad(const TensorImpl* view) {
  auto* meta = static_cast<autograd::AutogradMetaImpl*>(view->autograd);
  return meta != nullptr && meta->view != nullptr && meta->view->base.requires_grad();
}

namespace autograd {

void track_view(const Tensor& base, const Tensor& view, Creation creation) {
  if (view.impl()->has(TensorImpl::kInference)) {
    return;
  }
  auto info = std::make_unique<ViewInfo>();
  AutogradMetaImpl* base_meta = meta_of(base);
  if (base_meta != nullptr && base_meta->view != nullptr) {
    info->base = base_meta->view->base;
    Creation before = base_meta->view->creation;
    info->creation = before == Creation::Default ? creation : before;
  } else {
    info->base = base;
    info->creation = creation;
  }
  info->version = view.version();
  require_meta(view).view = std::move(info);
  view.impl()->set(TensorImpl::kTracksBase, true);
}

Tensor view_base(const Tensor& view) {
  AutogradMetaImpl* meta = meta_of(view);
  return meta != nullptr && meta->view != nullptr ? meta->view->base : Tensor();
}

namespace {

// `indirect`: not the view itself was written, but its base or another view of that.
[[noreturn]] void fail_view_write(const AutogradMetaImpl& meta, bool indirect) {
  std::string what;
  const char* written = indirect
                            ? " and its base or another view of its base has been modified inplace"
                            : " and is being modified inplace";
  Creation creation = meta.view->creation;
  if (meta.grad_fn) {
    std::string name = meta.grad_fn->name();
    size_t end = name.rfind("Backward");
    what = cat("Output ", meta.output, " of ", name.substr(0, end), " is a view", written, ".");
  } else if (creation == Creation::Inference) {
    what = cat("A view was created in inference mode", written, " in normal mode.");
  } else {
    what = cat("A view was created in no_grad mode", written, " with grad mode enabled.");
  }
  switch (creation) {
    case Creation::MultiOutput:
      fail(ErrorKind::Runtime, "", what,
           " This view is the output of a function that returns multiple views. Such functions do "
           "not allow the output views to be modified inplace. You should replace the inplace "
           "operation by an out-of-place one.");
    case Creation::CustomFunction:
      fail(ErrorKind::Runtime, "", what,
           " This view was created inside a custom Function (or because an input was returned "
           "as-is) and the autograd logic to handle view+inplace would override the custom "
           "backward associated with the custom Function, leading to incorrect gradients. This "
           "behavior is forbidden. You can fix this by cloning the output of the custom Function.");
    default:
      break;
  }
  const char* block = creation == Creation::Inference ? "inference_mode" : "no_grad";
  fail(ErrorKind::Runtime, "", what,
       " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
       "your code by moving both the view and the inplace either both inside the ",
       block,
       " block (if you don't want the inplace to be tracked) or both outside (if you want "
       "the inplace to be tracked).");
}

}  // namespace

NodePtr grad_fn(const Tensor& tensor) {
  AutogradMetaImpl* meta = meta_of(tensor);
  if (meta == nullptr) {
    return {};
  }
  ViewInfo* view = meta->view.get();
  if (view == nullptr || (!meta->grad_fn && !view->base.requires_grad()) ||
      view->version == tensor.version() || view->base.dtype() != tensor.dtype()) {
    return meta->grad_fn;
  }
  if (view->creation != Creation::Default) {
    fail_view_write(*meta, true);
  }
  EnableGradGuard on;
  DoorGuard open(kAutogradDoor, 0);
  Tensor again =
      ops::as_strided(view->base, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (NodePtr node = meta_of(again)->grad_fn) {
    set_history(tensor, node, 0);
  }
  return meta->grad_fn;
}

void rebase_history(const Tensor& tensor, const NodePtr& node, uint32_t edge, uint32_t output) {
  AutogradMetaImpl& meta = require_meta(tensor);
  if (meta.view == nullptr) {
    set_history(tensor, node, output);
    return;
  }
  const Tensor& base = meta.view->base;
  if (base.dtype() != tensor.dtype()) {
    fail(ErrorKind::Runtime, "", "an in-place operation on a view of another dtype (",
         tensor.dtype(), " of ", base.dtype(),
         ") cannot be recorded for differentiation: clone() "
         "the view first");
  }
  NodePtr slices(new CopySlices(base, tensor, node, edge, output));
  set_history(base, slices, 0);
  // The view's own history follows when somebody asks for it.
  meta.view->version = tensor.version() - 1;
  tensor.impl()->set(TensorImpl::kRequiresGrad, true);
}

void check_inplace(const Tensor& tensor) {
  AutogradMetaImpl* meta = meta_of(tensor);
  if (meta != nullptr && meta->view != nullptr) {
    if (meta->view->creation != Creation::Default) {
      fail_view_write(*meta, false);
    }
    if (tensor.requires_grad() && is_leaf(meta->view->base)) {
      fail(ErrorKind::Runtime, "",
           "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
  }
  if (tensor.requires_grad() && is_leaf(tensor)) {
    fail(ErrorKind::Runtime, "",
         "a leaf Variable that requires grad is being used in an in-place operation.");
  }
}

void check_inference_write(const Tensor& tensor) {
  if (tensor.impl()->has(TensorImpl::kInference) && !thread_state.inference_mode) {
    fail(ErrorKind::Runtime, "",
         "Inplace update to inference tensor outside InferenceMode is not allowed."
         "You can make a clone to get a normal tensor before doing inplace update."
         "See https://github.com/pytorch/rfcs/pull/17 for more details.");
  }
}

}  // namespace autograd
}  // namespace rushlight
