#include <type_traits>

#include "optim/groups.h"

namespace rushlight::optim {
namespace {

template <typename Options>
void check(const Options& options) {
  check_nonnegative("learning rate", options.lr());
  check_nonnegative("epsilon value", options.eps());
  check_nonnegative("weight_decay value", options.weight_decay());
  const double betas[] = {std::get<0>(options.betas()), std::get<1>(options.betas())};
  for (const int index : {0, 1}) {
    if (!(betas[index] >= 0 && betas[index] < 1)) {
      fail(ErrorKind::Value, "", "Invalid beta parameter at index ", index, ": ", betas[index],
           "; expected [0, 1)");
    }
  }
}

}  // namespace

template <typename Options>
AdamFamily<Options>::AdamFamily(std::vector<Group<Options>> groups) {
  for (Group<Options>& group : groups) {
    check(group.options);
    states_.emplace_back(group.params.size());
  }
  groups_ = std::move(groups);
  check_parameters();
}

template <typename Options>
void AdamFamily<Options>::add_param_group(Group<Options> group) {
  check(group.options);
  groups_.push_back(std::move(group));
  try {
    check_parameters();
  } catch (...) {
    groups_.pop_back();
    throw;
  }
  states_.emplace_back(groups_.back().params.size());
}

template <typename Options>
std::vector<Tensor> AdamFamily<Options>::parameters() const {
  return all_parameters(groups_);
}

template <typename Options>
void AdamFamily<Options>::set_lr(double lr) {
  check_nonnegative("learning rate", lr);
  for (Group<Options>& group : groups_) {
    group.options.lr(lr);
  }
}

template <typename Options>
void AdamFamily<Options>::begin(State& state, const Tensor& param, const Options& options) const {
  if (!state.step.defined()) {
    state.step = zeros({}, TensorOptions(DType::Float32));
    state.exp_avg = zeros_like(param.detach());
    state.exp_avg_sq = zeros_like(param.detach());
  }
  if (options.amsgrad() && !state.max_exp_avg_sq.defined()) {
    state.max_exp_avg_sq = zeros_like(param.detach());
  }
}

template <typename Options>
void AdamFamily<Options>::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Options& options = groups_[g].options;
    TensorList params, grads, firsts, seconds, maxima, steps;
    for (size_t i = 0; i < groups_[g].params.size(); ++i) {
      const Tensor& param = groups_[g].params[i];
      if (!param.grad().defined()) {
        continue;
      }
      State& state = states_[g][i];
      begin(state, param, options);
      *state.step.template data_ptr<float>() += 1;
      params.push_back(param);
      grads.push_back(param.grad());
      firsts.push_back(state.exp_avg);
      seconds.push_back(state.exp_avg_sq);
      steps.push_back(state.step);
      if (options.amsgrad()) {
        maxima.push_back(state.max_exp_avg_sq);
      }
    }
    if (!params.empty()) {
      const auto fused = std::is_same_v<Options, AdamWOptions> ? _fused_adamw_ : _fused_adam_;
      fused(params, grads, firsts, seconds, maxima, steps, options.lr(),
            std::get<0>(options.betas()), std::get<1>(options.betas()), options.weight_decay(),
            options.eps(), options.amsgrad(), options.maximize(), Tensor(), Tensor());
    }
  }
}

template <typename Options>
nn::NamedTensors AdamFamily<Options>::state_dict() const {
  nn::NamedTensors named;
  size_t number = 0;
  for (const std::vector<State>& group : states_) {
    for (const State& state : group) {
      const std::string prefix = cat(number++, ".");
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

template <typename Options>
void AdamFamily<Options>::load_state_dict(const nn::NamedTensors& named) {
  NoGradGuard no_grad;
  for (const auto& [name, value] : named) {
    const auto [number, field] = state_name(name);
    const auto [g, i] = place_of(groups_, number, name);
    const Tensor& param = groups_[g].params[i];
    State& state = states_[g][i];
    if (field == "step") {
      take_state(state.step, value, {}, name);
    } else if (field == "exp_avg") {
      take_state(state.exp_avg, value, param.sizes(), name);
    } else if (field == "exp_avg_sq") {
      take_state(state.exp_avg_sq, value, param.sizes(), name);
    } else if (field == "max_exp_avg_sq") {
      take_state(state.max_exp_avg_sq, value, param.sizes(), name);
    } else {
      unknown_state(name);
    }
  }
}

template class AdamFamily<AdamOptions>;
template class AdamFamily<AdamWOptions>;

Adam::Adam(std::vector<Tensor> params, const AdamOptions& options)
    : AdamFamily(one_group(std::move(params), options)) {}

AdamW::AdamW(std::vector<Tensor> params, const AdamWOptions& options)
    : AdamFamily(one_group(std::move(params), options)) {}

}  // namespace rushlight::optim
