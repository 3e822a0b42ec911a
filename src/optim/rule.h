// How an optimizer is made of its settings: what it keeps for a parameter, and how it steps.
//
// Each source specialises Rule<Options> and instantiates OptimizerOf<Options>:
//
//   template <>
//   struct Rule<Options> {
//     static constexpr bool begins_at_once = false;   // state before the first gradient
//     static void check(const Options& options);      // Error(Value) on settings out of range
//     static void check_parameter(const Tensor& p);   // what else is asked of a parameter
//     static const std::vector<Field<Options>>& fields();
//     static void step(const std::vector<Slot>& slots, const Options& options);
//   };
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/optim.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rushlight::optim {

// Error(Value): "Invalid momentum value: -1.0".
void check_nonnegative(const char* name, double value);
void check_betas(const Betas& betas);

// "12.exp_avg" as 12 and "exp_avg"; Error(Value) where it is no such name.
std::pair<size_t, std::string> state_name(const std::string& name);

// Makes `target` a copy of `value`, in place where there is one; Error(Value) naming `name` where
// the shape is not `sizes`.
void take_state(Tensor& target, const Tensor& value, IntArrayRef sizes, const std::string& name);

[[noreturn]] void unknown_state(const std::string& name);

// The shapes that state has.
IntList shape_of_parameter(const Tensor& param);
IntList shape_of_number(const Tensor& param);

// One tensor kept for a parameter. Numbers have the default dtype, others the parameter's.
template <typename Options>
struct Field {
  const char* name;
  IntList (*shape)(const Tensor& param) = shape_of_parameter;
  double (*start)(const Options& options) = [](const Options&) { return 0.0; };
  bool (*wanted)(const Options& options, const Tensor& param) = [](const Options&, const Tensor&) {
    return true;
  };
};

// A new tensor of state, filled with `start`; of the default dtype where it is a number.
Tensor begin_state(const Tensor& param, IntList (*shape)(const Tensor&), double start);

// A parameter with its gradient and state, for one step.
struct Slot {
  Tensor param;
  Tensor grad;
  State* state;
  bool fresh;  // whether some of the state began just now

  Tensor& operator[](std::string_view name) const { return (*state)[name]; }
};

// Adds 1 to a counter, and gives it.
double advance(const Tensor& step);

// The tensor, or its pairs of real numbers.
Tensor as_real(const Tensor& tensor);

// `slot` as most rules want it: in real numbers, the gradient turned where it is to be maximized.
Slot begin_update(const Slot& slot, bool maximize);

template <typename Options>
struct Rule;

// What rules have unless they say otherwise.
struct RuleDefaults {
  static constexpr bool begins_at_once = false;
  static void check_parameter(const Tensor&) {}
};

template <typename Options>
bool begin_fields(State& state, const Tensor& param, const Options& options) {
  bool fresh = false;
  for (const Field<Options>& field : Rule<Options>::fields()) {
    if (field.wanted(options, param) && state.find(field.name) == nullptr) {
      state[field.name] = begin_state(param, field.shape, field.start(options));
      fresh = true;
    }
  }
  return fresh;
}

template <typename Options>
OptimizerOf<Options>::OptimizerOf(std::vector<Tensor> params, const Options& options)
    : OptimizerOf(std::vector<Group<Options>>{{std::move(params), options}}) {}

template <typename Options>
OptimizerOf<Options>::OptimizerOf(std::vector<Group<Options>> groups) {
  for (const Group<Options>& group : groups) {
    Rule<Options>::check(group.options);
  }
  groups_ = std::move(groups);
  check_parameters();
  for (const Group<Options>& group : groups_) {
    add(group);
  }
}

// Makes room for the state of a group.
template <typename Options>
void OptimizerOf<Options>::add(Group<Options> group) {
  std::vector<State>& states = states_.emplace_back(group.params.size());
  for (size_t i = 0; i < group.params.size(); ++i) {
    Rule<Options>::check_parameter(group.params[i]);
    if (Rule<Options>::begins_at_once) {
      begin_fields(states[i], group.params[i], group.options);
    }
  }
}

template <typename Options>
void OptimizerOf<Options>::add_param_group(Group<Options> group) {
  Rule<Options>::check(group.options);
  groups_.push_back(std::move(group));
  try {
    check_parameters();
    add(groups_.back());
  } catch (...) {
    groups_.pop_back();
    states_.resize(groups_.size());
    throw;
  }
}

template <typename Options>
std::vector<Tensor> OptimizerOf<Options>::parameters() const {
  std::vector<Tensor> found;
  for (const Group<Options>& group : groups_) {
    found.insert(found.end(), group.params.begin(), group.params.end());
  }
  return found;
}

template <typename Options>
void OptimizerOf<Options>::step() {
  NoGradGuard no_grad;
  note_step();
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group<Options>& group = groups_[g];
    std::vector<Slot> slots;
    for (size_t i = 0; i < group.params.size(); ++i) {
      const Tensor& param = group.params[i];
      if (param.grad().defined()) {
        const bool fresh = begin_fields(states_[g][i], param, group.options);
        slots.push_back({param, param.grad(), &states_[g][i], fresh});
      }
    }
    if (!slots.empty()) {
      Rule<Options>::step(slots, group.options);
    }
  }
}

template <typename Options>
nn::NamedTensors OptimizerOf<Options>::state_dict() const {
  nn::NamedTensors named;
  size_t number = 0;
  for (const std::vector<State>& group : states_) {
    for (const State& state : group) {
      for (const auto& [name, tensor] : state.tensors()) {
        named.emplace_back(cat(number, ".", name), tensor);
      }
      ++number;
    }
  }
  return named;
}

template <typename Options>
void OptimizerOf<Options>::load_state_dict(const nn::NamedTensors& named) {
  NoGradGuard no_grad;
  for (const auto& [name, value] : named) {
    const auto [number, field_name] = state_name(name);
    const auto& fields = Rule<Options>::fields();
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field<Options>& one) {
      return one.name == field_name;
    });
    size_t group = 0;
    size_t place = number;
    while (group < groups_.size() && place >= groups_[group].params.size()) {
      place -= groups_[group++].params.size();
    }
    if (group == groups_.size()) {
      fail(ErrorKind::Value, "load_state_dict", "'", name, "' is the state of parameter ", number,
           ", but the optimizer has ", number - place);
    }
    if (field == fields.end()) {
      unknown_state(name);
    }
    const Tensor& param = groups_[group].params[place];
    const IntList sizes = field->shape(param);
    State& state = states_[group][place];
    if (Tensor* own = state.find(field_name); own != nullptr) {
      take_state(*own, value, sizes, name);
    } else {
      Tensor loaded;
      take_state(loaded, value, sizes, name);
      state[field_name] = field->shape == shape_of_number ? loaded : to(loaded, param.dtype());
    }
  }
}

}  // namespace rushlight::optim
