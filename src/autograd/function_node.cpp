#include "autograd/function_node.h"

#include <cxxabi.h>

#include <cstdlib>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "autograd/operators.h"
#include "ops/invocation.h"

namespace rushlight::autograd {
namespace {

int find(const TensorList& list, const Tensor& tensor) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].defined() && list[i].is_same(tensor)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool can_differentiate(const Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

}  // namespace

void FunctionNode::begin(const TensorList& arguments, std::vector<bool> is_tensor) {
  is_tensor_ = std::move(is_tensor);
  own_edges_.reserve(arguments.size());
  for (const Tensor& argument : arguments) {
    bool needs = argument.defined() && argument.requires_grad();
    needs_grad_.push_back(needs);
    records_ = records_ || (needs && thread_state.grad_mode);
  }
  for (const Tensor& argument : arguments) {
    own_edges_.push_back(records_ && argument.defined() ? gradient_edge(argument) : Edge());
  }
  edges_ = own_edges_.data();
  edge_count_ = static_cast<uint32_t>(own_edges_.size());
}

void FunctionNode::check_dirty(const TensorList& results) const {
  for (const Tensor& dirty : context.dirty_) {
    if (find(results, dirty) < 0) {
      fail(ErrorKind::Runtime, "",
           "Some elements marked as dirty during the forward method were not returned as output. "
           "The inputs that are modified inplace must all be outputs of the Function.");
    }
  }
}

TensorList FunctionNode::finish(const TensorList& arguments, TensorList results) {
  check_dirty(results);
  for (const Tensor& dirty : context.dirty_) {
    dirty.bump_version();
  }
  results_.reserve(results.size());
  TensorList given = results;
  for (size_t i = 0; i < results.size(); ++i) {
    Result described;
    if (results[i].defined()) {
      described = {
          results[i].sizes(), results[i].dtype(), results[i].device(),
          find(context.non_differentiable_, results[i]) < 0 && can_differentiate(results[i]), true};
    }
    results_.push_back(std::move(described));
    if (results[i].defined()) {
      results[i] = finish_one(arguments, given[i], static_cast<uint32_t>(i));
    }
  }
  if (records_) {
    for (Tensor& kept : context.to_save_) {
      // A result that was replaced (an argument handed back) is saved as the result.
      int position = kept.defined() ? find(given, kept) : -1;
      if (position >= 0 && find(arguments, kept) < 0) {
        kept = results[static_cast<size_t>(position)];
      }
    }
    save(results);
  }
  context.to_save_.clear();
  context.dirty_.clear();
  context.non_differentiable_.clear();
  return results;
}

Tensor FunctionNode::finish_dirty(const TensorList& arguments, size_t argument, uint32_t position) {
  const Tensor& written = arguments[argument];
  if (!records_) {
    return written;
  }
  if (!results_[position].differentiable) {
    return written;
  }
  if (written.requires_grad() && is_leaf(written)) {
    fail(ErrorKind::Runtime, "",
         "a leaf Variable that requires grad has been used in an in-place operation.");
  }
  check_inplace(written);
  rebase_history(written, NodePtr::share(this), static_cast<uint32_t>(argument), position);
  return written;
}

Tensor FunctionNode::finish_one(const TensorList& arguments, const Tensor& result,
                                uint32_t position) {
  int argument = find(arguments, result);
  if (argument >= 0 && find(context.dirty_, result) >= 0) {
    return finish_dirty(arguments, static_cast<size_t>(argument), position);
  }
  bool differentiable = records_ && results_[position].differentiable;
  if (argument >= 0) {
    // An argument handed back: a view stands for it, so that it has a history of its own.
    Tensor alias = make_view(result, result.sizes(), result.strides(), result.storage_offset());
    if (!differentiable) {
      return records_ ? alias : result;
    }
    track_view(result, alias, Creation::CustomFunction);
    set_history(alias, NodePtr::share(this), position);
    return alias;
  }
  if (!differentiable) {
    return records_ && result.requires_grad() ? result.detach() : result;
  }
  AutogradMetaImpl* meta = meta_of(result);
  if (meta != nullptr && meta->view != nullptr) {
    meta->view->creation = Creation::CustomFunction;
  }
  set_history(result, NodePtr::share(this), position);
  return result;
}

void FunctionNode::save(const TensorList& results) {
  saved_.reserve(context.to_save_.size());
  for (const Tensor& tensor : context.to_save_) {
    int position = tensor.defined() ? find(results, tensor) : -1;
    bool is_result =
        position >= 0 && meta_of(tensor) != nullptr && meta_of(tensor)->grad_fn.get() == this;
    saved_.emplace_back(tensor, is_result ? position : -1);
  }
}

TensorList FunctionNode::apply(TensorList&& gradients) {
  if (context.materialize_) {
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined() && results_[i].is_tensor) {
        gradients[i] = ops::zeros(results_[i].sizes, results_[i].dtype, results_[i].device);
      }
    }
  }
  TensorList returned = backward_(*this, std::move(gradients));
  if (returned.size() > is_tensor_.size()) {
    bool rest_undefined = true;
    for (size_t i = is_tensor_.size(); i < returned.size(); ++i) {
      rest_undefined = rest_undefined && !returned[i].defined();
    }
    if (!rest_undefined) {
      fail(ErrorKind::Runtime, "", "function ", name_,
           " returned an incorrect number of gradients (expected ", is_tensor_.size(), ", got ",
           returned.size(), ")");
    }
  } else if (returned.size() < is_tensor_.size()) {
    fail(ErrorKind::Runtime, "", "function ", name_,
         " returned an incorrect number of gradients (expected ", is_tensor_.size(), ", got ",
         returned.size(), ")");
  }
  TensorList outgoing;
  outgoing.reserve(edge_count_);
  for (size_t i = 0; i < is_tensor_.size(); ++i) {
    if (is_tensor_[i]) {
      outgoing.push_back(std::move(returned[i]));
    } else if (returned[i].defined()) {
      fail(ErrorKind::Runtime, "", "function ", name_,
           " returned a gradient different than None at position ", i + 1,
           ", but the corresponding forward input was not a Variable");
    }
  }
  return outgoing;
}

void FunctionNode::release_saved() {
  std::vector<SavedTensor> dropped;
  std::lock_guard lock(mutex_);
  released_ = released_ || !saved_.empty();
  dropped.swap(saved_);
}

TensorList FunctionNode::saved_tensors() {
  std::vector<SavedTensor> kept;
  {
    std::lock_guard lock(mutex_);
    if (released_) {
      fail_released();
    }
    kept = saved_;
  }
  TensorList tensors;
  tensors.reserve(kept.size());
  for (const SavedTensor& saved : kept) {
    tensors.push_back(saved.unpack(this));
  }
  return tensors;
}

bool FunctionNode::needs_input_grad(size_t argument) const {
  size_t tensor = 0;
  for (size_t i = 0; i < argument && i < is_tensor_.size(); ++i) {
    tensor += is_tensor_[i] ? 1 : 0;
  }
  if (argument >= is_tensor_.size() || !is_tensor_[argument] || !needs_grad_[tensor]) {
    return false;
  }
  return running_node() != this || is_edge_wanted(*this, static_cast<uint32_t>(tensor));
}

TensorList AutogradContext::get_saved_variables() const {
  return node_->saved_tensors();
}

bool AutogradContext::needs_input_grad(size_t argument) const {
  return node_->needs_input_grad(argument);
}

namespace detail {
namespace {

std::string function_name(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = text != nullptr ? text : mangled;
  std::free(text);
  size_t colon = name.rfind("::");
  return (colon == std::string::npos ? name : name.substr(colon + 2)) + "Backward";
}

}  // namespace

FunctionCall::FunctionCall(const char* type_name, BackwardFunction backward, TensorList arguments,
                           std::vector<bool> is_tensor)
    : arguments_(std::move(arguments)) {
  node_ = new FunctionNode(function_name(type_name),
                           [backward](FunctionNode& node, TensorList gradients) {
                             return backward(&node.context, std::move(gradients));
                           });
  node_->begin(arguments_, std::move(is_tensor));
}

FunctionCall::~FunctionCall() {
  NodePtr drop(node_);
}

AutogradContext* FunctionCall::context() {
  return &node_->context;
}

TensorList FunctionCall::finish(TensorList results) {
  return node_->finish(arguments_, std::move(results));
}

}  // namespace detail
}  // namespace rushlight::autograd
