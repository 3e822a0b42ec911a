#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/optim.h>

namespace rushlight::optim {
namespace {

void check_nonnegative(const char* name, double value) {
  if (!(value >= 0)) {
    fail(ErrorKind::Value, "", "Invalid ", name, ": ", value, "; expected 0 or more");
  }
}

std::vector<ParamGroup> one_group(std::vector<Tensor> params, double lr, double weight_decay) {
  std::vector<ParamGroup> groups;
  groups.push_back({std::move(params), lr, weight_decay});
  return groups;
}

// Copies `value` into `target`, or takes a copy where there is none yet.
void take(Tensor& target, const Tensor& value) {
  if (target.defined()) {
    copy_(target, value);
  } else {
    target = clone(value);
  }
}

// "12.exp_avg" split at the dot; Error(Value) where it has none.
std::pair<size_t, std::string> state_name(const std::string& name) {
  size_t dot = name.find('.');
  if (dot == std::string::npos || name.find_first_not_of("0123456789") != dot) {
    fail(ErrorKind::Value, "load_state_dict", "expected names like '0.exp_avg', got '", name, "'");
  }
  return {std::stoul(name.substr(0, dot)), name.substr(dot + 1)};
}

}  // namespace

Optimizer::Optimizer(std::vector<ParamGroup> groups) : groups_(std::move(groups)) {
  bool any = false;
  for (const ParamGroup& group : groups_) {
    check_nonnegative("learning rate", group.lr);
    check_nonnegative("weight_decay value", group.weight_decay);
    for (const Tensor& param : group.params) {
      any = true;
      if (!param.is_leaf()) {
        fail(ErrorKind::Value, "", "can't optimize a non-leaf Tensor");
      }
    }
  }
  if (!any) {
    fail(ErrorKind::Value, "", "optimizer got an empty parameter list");
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (ParamGroup& group : groups_) {
    for (Tensor& param : group.params) {
      if (!param.grad().defined()) {
        continue;
      }
      if (set_to_none) {
        param.set_grad(Tensor());
      } else {
        zero_(param.grad());
      }
    }
  }
}

void Optimizer::set_lr(double lr) {
  check_nonnegative("learning rate", lr);
  for (ParamGroup& group : groups_) {
    group.lr = lr;
  }
}

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options)
    : SGD(one_group(std::move(params), options.lr_, options.weight_decay), options) {}

SGD::SGD(std::vector<ParamGroup> groups, const SGDOptions& options)
    : Optimizer(std::move(groups)), options_(options) {
  check_nonnegative("momentum value", options.momentum);
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    fail(ErrorKind::Value, "", "Nesterov momentum requires a momentum and zero dampening");
  }
  for (const ParamGroup& group : groups_) {
    buffers_.emplace_back(group.params.size());
  }
}

void SGD::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    ParamGroup& group = groups_[g];
    // [0]: parameters whose buffer starts now; [1]: the others.
    TensorList params[2], grads[2], buffers[2];
    for (size_t i = 0; i < group.params.size(); ++i) {
      const Tensor& grad = group.params[i].grad();
      if (!grad.defined()) {
        continue;
      }
      Tensor& buffer = buffers_[g][i];
      int kind = options_.momentum != 0 && !buffer.defined() ? 0 : 1;
      if (kind == 0) {
        buffer = empty_like(group.params[i].detach());
      }
      params[kind].push_back(group.params[i]);
      grads[kind].push_back(grad);
      if (options_.momentum != 0) {
        buffers[kind].push_back(buffer);
      }
    }
    for (int kind : {0, 1}) {
      if (!params[kind].empty()) {
        _fused_sgd_(params[kind], grads[kind], buffers[kind], group.weight_decay, options_.momentum,
                    group.lr, options_.dampening, options_.nesterov, options_.maximize, kind == 0);
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
    auto [number, field] = state_name(name);
    for (std::vector<Tensor>& group : buffers_) {
      if (number < group.size() && field == "momentum_buffer") {
        take(group[number], value);
        break;
      }
      number -= std::min(number, group.size());
    }
  }
}

Adam::Adam(std::vector<Tensor> params, const AdamOptions& options)
    : Adam(one_group(std::move(params), options.lr_, options.weight_decay), options, false) {}

Adam::Adam(std::vector<ParamGroup> groups, const AdamOptions& options)
    : Adam(std::move(groups), options, false) {}

Adam::Adam(std::vector<ParamGroup> groups, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(groups)), options_(options), decoupled_(decoupled) {
  check_nonnegative("epsilon value", options.eps);
  for (double beta : {options.beta1, options.beta2}) {
    if (!(beta >= 0 && beta < 1)) {
      fail(ErrorKind::Value, "", "Invalid beta parameter: ", beta, "; expected [0, 1)");
    }
  }
  for (const ParamGroup& group : groups_) {
    states_.emplace_back(group.params.size());
  }
}

void Adam::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    TensorList params, grads, firsts, seconds, maxima, steps;
    for (size_t i = 0; i < groups_[g].params.size(); ++i) {
      const Tensor& param = groups_[g].params[i];
      if (!param.grad().defined()) {
        continue;
      }
      State& state = states_[g][i];
      if (!state.step.defined()) {
        state.step = zeros({}, TensorOptions(DType::Float32));
        state.exp_avg = zeros_like(param.detach());
        state.exp_avg_sq = zeros_like(param.detach());
        state.max_exp_avg_sq = options_.amsgrad ? zeros_like(param.detach()) : Tensor();
      }
      *state.step.data_ptr<float>() += 1;
      params.push_back(param);
      grads.push_back(param.grad());
      firsts.push_back(state.exp_avg);
      seconds.push_back(state.exp_avg_sq);
      steps.push_back(state.step);
      if (options_.amsgrad) {
        maxima.push_back(state.max_exp_avg_sq);
      }
    }
    auto step = decoupled_ ? _fused_adamw_ : _fused_adam_;
    if (!params.empty()) {
      step(params, grads, firsts, seconds, maxima, steps, groups_[g].lr, options_.beta1,
           options_.beta2, groups_[g].weight_decay, options_.eps, options_.amsgrad,
           options_.maximize, Tensor(), Tensor());
    }
  }
}

nn::NamedTensors Adam::state_dict() const {
  nn::NamedTensors named;
  size_t number = 0;
  for (const std::vector<State>& group : states_) {
    for (const State& state : group) {
      std::string prefix = cat(number++, ".");
      if (!state.step.defined()) {
        continue;
      }
      named.emplace_back(cat(prefix, "step"), state.step);
      named.emplace_back(cat(prefix, "exp_avg"), state.exp_avg);
      named.emplace_back(cat(prefix, "exp_avg_sq"), state.exp_avg_sq);
      if (state.max_exp_avg_sq.defined()) {
        named.emplace_back(cat(prefix, "max_exp_avg_sq"), state.max_exp_avg_sq);
      }
    }
  }
  return named;
}

void Adam::load_state_dict(const nn::NamedTensors& named) {
  NoGradGuard no_grad;
  for (const auto& [name, value] : named) {
    auto [number, field] = state_name(name);
    for (std::vector<State>& group : states_) {
      if (number < group.size()) {
        State& state = group[number];
        Tensor& target = field == "step"         ? state.step
                         : field == "exp_avg"    ? state.exp_avg
                         : field == "exp_avg_sq" ? state.exp_avg_sq
                                                 : state.max_exp_avg_sq;
        take(target, value);
        break;
      }
      number -= group.size();
    }
  }
}

AdamW::AdamW(std::vector<Tensor> params, const AdamWOptions& options)
    : AdamW(one_group(std::move(params), options.lr_, options.weight_decay), options) {}

AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options)
    : Adam(std::move(groups), options, true) {}

}  // namespace rushlight::optim
