#include <rushlight/optim.h>

#include <charconv>
#include <unordered_set>

#include "optim/groups.h"

namespace rushlight::optim {

void check_nonnegative(const char* name, double value) {
  if (!(value >= 0)) {
    fail(ErrorKind::Value, "", "Invalid ", name, ": ", value, "; expected 0 or more");
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

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    AutoGradMode grad(true);
    loss = closure();
  }
  step();
  return loss;
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
