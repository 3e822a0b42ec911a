#include "optim/groups.h"

namespace rushlight::optim {
namespace {

void check(const SGDOptions& options) {
  check_nonnegative("learning rate", options.lr());
  check_nonnegative("momentum value", options.momentum());
  check_nonnegative("weight_decay value", options.weight_decay());
  if (options.nesterov() && (options.momentum() <= 0 || options.dampening() != 0)) {
    fail(ErrorKind::Value, "", "Nesterov momentum requires a momentum and zero dampening");
  }
}

}  // namespace

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options)
    : SGD(one_group(std::move(params), options)) {}

SGD::SGD(std::vector<Group<SGDOptions>> groups) {
  for (Group<SGDOptions>& group : groups) {
    check(group.options);
    buffers_.emplace_back(group.params.size());
  }
  groups_ = std::move(groups);
  check_parameters();
}

void SGD::add_param_group(Group<SGDOptions> group) {
  check(group.options);
  groups_.push_back(std::move(group));
  try {
    check_parameters();
  } catch (...) {
    groups_.pop_back();
    throw;
  }
  buffers_.emplace_back(groups_.back().params.size());
}

std::vector<Tensor> SGD::parameters() const {
  return all_parameters(groups_);
}

void SGD::set_lr(double lr) {
  check_nonnegative("learning rate", lr);
  for (Group<SGDOptions>& group : groups_) {
    group.options.lr(lr);
  }
}

void SGD::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group<SGDOptions>& group = groups_[g];
    const SGDOptions& options = group.options;
    // [0]: parameters whose buffer starts now; [1]: the others.
    TensorList params[2];
    TensorList grads[2];
    TensorList buffers[2];
    for (size_t i = 0; i < group.params.size(); ++i) {
      const Tensor& grad = group.params[i].grad();
      if (!grad.defined()) {
        continue;
      }
      Tensor& buffer = buffers_[g][i];
      const int kind = options.momentum() != 0 && !buffer.defined() ? 0 : 1;
      if (kind == 0) {
        buffer = empty_like(group.params[i].detach());
      }
      params[kind].push_back(group.params[i]);
      grads[kind].push_back(grad);
      if (options.momentum() != 0) {
        buffers[kind].push_back(buffer);
      }
    }
    for (const int kind : {0, 1}) {
      if (!params[kind].empty()) {
        _fused_sgd_(params[kind], grads[kind], buffers[kind], options.weight_decay(),
                    options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                    options.maximize(), kind == 0);
      }
    }
  }
}

nn::NamedTensors SGD::state_dict() const {
  nn::NamedTensors state;
  size_t number = 0;
  for (const std::vector<Tensor>& group : buffers_) {
    for (const Tensor& buffer : group) {
      if (buffer.defined()) {
        state.emplace_back(cat(number, ".momentum_buffer"), buffer);
      }
      ++number;
    }
  }
  return state;
}

void SGD::load_state_dict(const nn::NamedTensors& state) {
  NoGradGuard no_grad;
  for (const auto& [name, value] : state) {
    const auto [number, field] = state_name(name);
    const auto [g, i] = place_of(groups_, number, name);
    if (field != "momentum_buffer") {
      unknown_state(name);
    }
    take_state(buffers_[g][i], value, groups_[g].params[i].sizes(), name);
  }
}

}  // namespace rushlight::optim
