// Runs an operator's gradient rule for a node: what the rule sees of the forward call.
#include "autograd/engine.h"
#include "autograd/operator_node.h"
#include "autograd/operators.h"
#include "ops/gradient_view.h"

namespace rushlight::autograd {
namespace {

class OperatorGradient final : public Gradient {
 public:
  OperatorGradient(OperatorNode& node, TensorList& grads)
      : node_(node), grads_(grads), results_(node.edge_count()) {}

  const Tensor& grad(int i) const override { return grads_[static_cast<size_t>(i)]; }
  const Operator& op() const override { return node_.op(); }
  bool needs(int argument) const override;
  const Value& value(int argument) const override;
  Tensor tensor(int argument) const override;
  Tensor result(int i) const override { return node_.unpack_result(i); }
  TensorList tensors(int argument) const override;
  IntArrayRef sizes(int argument) const override { return record(argument).sizes(); }
  DType dtype(int argument) const override { return record(argument).dtype; }
  IntArrayRef result_sizes(int i) const override { return node_.result(i).sizes(); }
  DType result_dtype(int i) const override { return node_.result(i).dtype; }
  IntArrayRef item_sizes(int argument, int item) const override {
    return record(argument, item).sizes();
  }
  int item_count(int argument) const override { return at(argument).count; }
  DType item_dtype(int argument, int item) const override { return record(argument, item).dtype; }
  void set(int argument, Tensor gradient) override;
  void set_list(int argument, TensorList gradients) override;

  TensorList take() { return std::move(results_); }

 private:
  const ArgumentRecord& at(int argument) const {
    return node_.arguments()[static_cast<size_t>(argument)];
  }
  const TensorRecord& record(int argument, int item = 0) const {
    return node_.argument_tensor(at(argument).first + item);
  }
  void put(int slot, Tensor gradient);

  OperatorNode& node_;
  TensorList& grads_;
  TensorList results_;
  mutable std::vector<Value> unpacked_;  // one an argument, once one is asked for
};

bool OperatorGradient::needs(int argument) const {
  const ArgumentRecord& wanted = at(argument);
  for (uint32_t i = wanted.first; i < uint32_t{wanted.first} + wanted.count; ++i) {
    if (node_.edge(i) && is_edge_wanted(node_, i)) {
      return true;
    }
  }
  return false;
}

const Value& OperatorGradient::value(int argument) const {
  const ArgumentRecord& asked = at(argument);
  if (asked.count == 0 || asked.value.tag() != Value::Tag::Bool) {
    return asked.value;
  }
  // A tensor or a list: unpacked where it was saved.
  if (unpacked_.empty()) {
    unpacked_.resize(node_.arguments().size());
  }
  Value& slot = unpacked_[static_cast<size_t>(argument)];
  if (slot.is_none()) {
    if (asked.is_list) {
      slot = Value(tensors(argument));
    } else if (record(argument).given) {
      Tensor tensor = node_.unpack_argument(asked.first);
      slot = tensor.defined() ? Value(std::move(tensor)) : asked.value;
    } else {
      return asked.value;
    }
  }
  return slot;
}

Tensor OperatorGradient::tensor(int argument) const {
  const ArgumentRecord& asked = at(argument);
  if (asked.is_tensor() && !record(argument).given && asked.value.is_number()) {
    Scalar number = asked.value.to_scalar();
    Tensor wrapped = make_scalar_tensor(number, number.dtype());
    wrapped.impl()->set(TensorImpl::kWrappedNumber, true);
    return wrapped;
  }
  if (!unpacked_.empty() && unpacked_[static_cast<size_t>(argument)].is_tensor()) {
    return unpacked_[static_cast<size_t>(argument)].tensor();
  }
  return node_.unpack_argument(asked.first);
}

TensorList OperatorGradient::tensors(int argument) const {
  const ArgumentRecord& asked = at(argument);
  TensorList list;
  list.reserve(asked.count);
  for (int i = 0; i < asked.count; ++i) {
    list.push_back(node_.unpack_argument(asked.first + i));
  }
  return list;
}

void OperatorGradient::put(int slot, Tensor gradient) {
  if (!gradient.defined() || !node_.edge(static_cast<uint32_t>(slot))) {
    return;
  }
  const TensorRecord& wanted = node_.argument_tensor(slot);
  if (gradient.is_complex() && !is_complex(wanted.dtype)) {
    gradient = ops::real_part(gradient);  // a real argument of a complex result
  }
  if (!(gradient.sizes() == wanted.sizes()) &&
      ops::is_expandable(wanted.sizes(), gradient.sizes())) {
    gradient = ops::sum_to_size(gradient, wanted.sizes());
  }
  if (gradient.dtype() != wanted.dtype) {
    gradient = ops::to_dtype(gradient, wanted.dtype);
  }
  results_[static_cast<size_t>(slot)] = std::move(gradient);
}

void OperatorGradient::set(int argument, Tensor gradient) {
  put(at(argument).first, std::move(gradient));
}

void OperatorGradient::set_list(int argument, TensorList gradients) {
  RUSHLIGHT_ASSERT(gradients.size() <= at(argument).count);
  for (size_t i = 0; i < gradients.size(); ++i) {
    put(at(argument).first + static_cast<int>(i), std::move(gradients[i]));
  }
}

}  // namespace

TensorList OperatorNode::apply(TensorList&& gradients) {
  bool any = false;
  for (const Tensor& gradient : gradients) {
    any = any || gradient.defined();
  }
  if (!any || !op_->differentiable) {
    return TensorList(edge_count_);
  }
  if (!op_->gradient) {
    fail(ErrorKind::Runtime, "", "derivative for ", op_->schema.full_name(), " is not implemented");
  }
  OperatorGradient gradient(*this, gradients);
  if (op_->conjugates_gradient()) {
    ConjugateGradient conjugate(gradient);
    op_->gradient(conjugate);
  } else {
    op_->gradient(gradient);
  }
  return gradient.take();
}

}  // namespace rushlight::autograd
