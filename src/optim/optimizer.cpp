#include <charconv>
#include <unordered_set>

#include "optim/rule.h"

namespace rushlight::optim {

void check_nonnegative(const char* name, double value) {
  if (!(value >= 0)) {
    fail(ErrorKind::Value, "", "Invalid ", name, ": ", value, "; expected 0 or more");
  }
}

void check_betas(const Betas& betas) {
  int index = 0;
  for (const double beta : {std::get<0>(betas), std::get<1>(betas)}) {
    if (!(beta >= 0 && beta < 1)) {
      fail(ErrorKind::Value, "", "Invalid beta parameter at index ", index, ": ", beta,
           "; expected [0, 1)");
    }
    ++index;
  }
}

std::pair<size_t, std::string> state_name(const std::string& name) {
  size_t number = 0;
  const char* end = name.data() + name.size();
  const auto [rest, fault] = std::from_chars(name.data(), end, number);
  if (fault != std::errc() || rest == end || *rest != '.') {
    fail(ErrorKind::Value, "load_state_dict", "expected names like '0.exp_avg', got '", name, "'");
  }
  return {number, std::string(rest + 1, end)};
}

void take_state(Tensor& target, const Tensor& value, IntArrayRef sizes, const std::string& name) {
  if (!value.defined() || !(value.sizes() == sizes)) {
    fail(ErrorKind::Value, "load_state_dict", "expected '", name, "' of shape ", sizes, ", got ",
         value.defined() ? cat(value.sizes()) : "nothing");
  }
  if (target.defined()) {
    copy_(target, value);
  } else {
    target = clone(value);
  }
}

void unknown_state(const std::string& name) {
  fail(ErrorKind::Value, "load_state_dict", "'", name, "' is no state of this optimizer");
}

IntList shape_of_parameter(const Tensor& param) {
  return param.sizes();
}

IntList shape_of_number(const Tensor&) {
  return {};
}

Tensor begin_state(const Tensor& param, IntList (*shape)(const Tensor&), double start) {
  Tensor made;
  if (shape == shape_of_number) {
    const bool wide = default_dtype() == DType::Float64;
    made = zeros({}, TensorOptions(wide ? DType::Float64 : DType::Float32));
  } else if (shape == shape_of_parameter) {
    made = zeros_like(param.detach());
  } else {
    made = zeros(shape(param), param.options());
  }
  if (start != 0) {
    fill_(as_real(made), start);
  }
  return made;
}

double advance(const Tensor& step) {
  step.bump_version();
  if (step.dtype() == DType::Float32) {  // without an operator: there is one for each parameter
    return *step.data_ptr<float>() += 1;
  }
  add_(step, 1);
  return step.item().to_double();
}

Tensor as_real(const Tensor& tensor) {
  return tensor.is_complex() ? view_as_real(tensor) : tensor;
}

Slot begin_update(const Slot& slot, bool maximize) {
  const Tensor grad = as_real(slot.grad);
  return {as_real(slot.param), maximize ? neg(grad) : grad, slot.state, slot.fresh};
}

Tensor* State::find(std::string_view name) {
  for (auto& [own, tensor] : tensors_) {
    if (own == name) {
      return &tensor;
    }
  }
  return nullptr;
}

Tensor& State::operator[](std::string_view name) {
  if (Tensor* found = find(name); found != nullptr) {
    return *found;
  }
  return tensors_.emplace_back(name, Tensor()).second;
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    AutoGradMode grad(true);
    loss = closure();
  }
  step();
  return loss;
}

void Optimizer::set_lr(double lr) {
  check_nonnegative("learning rate", lr);
  for (size_t group = 0; group < group_count(); ++group) {
    set_group_lr(group, lr);
  }
}

std::optional<double>& Optimizer::initial_lr(size_t group) {
  initial_lrs_.resize(std::max(initial_lrs_.size(), group_count()));
  return initial_lrs_.at(group);
}

void Optimizer::check_parameters() const {
  const std::vector<Tensor> all = parameters();
  if (all.empty()) {
    fail(ErrorKind::Value, "", "optimizer got an empty parameter list");
  }
  std::unordered_set<const TensorImpl*> seen;
  for (const Tensor& param : all) {
    if (!param.defined()) {
      fail(ErrorKind::Type, "", "optimizer can only optimize Tensors, but one of the params is ",
           "undefined");
    }
    if (!param.is_leaf()) {
      fail(ErrorKind::Value, "", "can't optimize a non-leaf Tensor");
    }
    if (!seen.insert(param.impl()).second) {
      fail(ErrorKind::Value, "",
           "some parameters appear in more than one parameter group, or twice");
    }
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const Tensor& param : parameters()) {
    if (!param.grad().defined()) {
      continue;
    }
    if (set_to_none) {
      param.set_grad(Tensor());
    } else {
      zero_(param.grad().detach());
    }
  }
}

}  // namespace rushlight::optim
