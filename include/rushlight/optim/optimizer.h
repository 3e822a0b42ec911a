// What all optimizers share: groups of parameters with settings, and state by parameter.
#pragma once

#include <rushlight/nn/module.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace rushlight::optim {

// Parameters that share settings.
template <typename Options>
struct Group {
  std::vector<Tensor> params;
  Options options;
};

class RUSHLIGHT_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient.
  virtual void step() = 0;
  // Calls `closure`, which computes the loss and its gradients, with gradients on; then steps.
  virtual Tensor step(const std::function<Tensor()>& closure);
  void zero_grad(bool set_to_none = true);
  virtual std::vector<Tensor> parameters() const = 0;  // in the order of the groups
  void set_lr(double lr);                              // of all groups; Error(Value) below 0
  // The state by name: "0.exp_avg" is that of the first parameter. Settings are not part of it.
  virtual nn::NamedTensors state_dict() const = 0;
  // Error(Value) on a name that is no state of this optimizer, a number past its parameters, or a
  // shape that is not the parameter's.
  virtual void load_state_dict(const nn::NamedTensors& state) = 0;

  // What schedules read and set, by the number of the group.
  virtual size_t group_count() const = 0;
  virtual double group_lr(size_t group) const = 0;
  virtual void set_group_lr(size_t group, double lr) = 0;
  // The momentum, or the first of the betas; none where the settings have neither.
  virtual std::optional<double> group_momentum(size_t group) const = 0;
  virtual void set_group_momentum(size_t group, double momentum) = 0;
  // The rate that schedules start from: the first of them sets it.
  std::optional<double>& initial_lr(size_t group);
  bool has_stepped() const { return stepped_; }

 protected:
  // Error(Value) where there is no parameter, one is given twice, or one is no leaf.
  void check_parameters() const;
  void note_step() { stepped_ = true; }

 private:
  std::vector<std::optional<double>> initial_lrs_;
  bool stepped_ = false;
};

// What an optimizer keeps for one parameter: few tensors by name, in the order in which they began.
class RUSHLIGHT_API State {
 public:
  Tensor& operator[](std::string_view name);  // undefined where it is new
  Tensor* find(std::string_view name);        // null where there is none
  const nn::NamedTensors& tensors() const { return tensors_; }

 private:
  nn::NamedTensors tensors_;
};

// An optimizer whose groups have settings of type Options. What it keeps for a parameter, and how
// it steps, is its Rule<Options> (src/optim/rule.h).
template <typename Options>
class RUSHLIGHT_API OptimizerOf : public Optimizer {
 public:
  // Error(Value) on settings out of range, and as check_parameters.
  explicit OptimizerOf(std::vector<Tensor> params, const Options& options = Options());
  explicit OptimizerOf(std::vector<Group<Options>> groups);
  using Optimizer::step;
  void step() override;
  std::vector<Tensor> parameters() const override;
  std::vector<Group<Options>>& param_groups() { return groups_; }
  void add_param_group(Group<Options> group);
  nn::NamedTensors state_dict() const override;
  void load_state_dict(const nn::NamedTensors& state) override;
  size_t group_count() const override { return groups_.size(); }
  double group_lr(size_t group) const override { return groups_.at(group).options.lr(); }
  void set_group_lr(size_t group, double lr) override { groups_.at(group).options.lr(lr); }
  std::optional<double> group_momentum(size_t group) const override {
    const Options& options = groups_.at(group).options;
    if constexpr (requires { options.betas(); }) {
      return std::get<0>(options.betas());
    } else if constexpr (requires { options.momentum(); }) {
      return options.momentum();
    }
    return std::nullopt;
  }
  void set_group_momentum(size_t group, double momentum) override {
    Options& options = groups_.at(group).options;
    if constexpr (requires { options.betas(); }) {
      options.betas({momentum, std::get<1>(options.betas())});
    } else if constexpr (requires { options.momentum(); }) {
      options.momentum(momentum);
    }
  }

 private:
  void add(Group<Options> group);
  std::vector<Group<Options>> groups_;
  std::vector<std::vector<State>> states_;  // a group, a parameter
};

}  // namespace rushlight::optim

// Declares the optimizer `Name` of the settings NameOptions, which come before.
#define RUSHLIGHT_OPTIMIZER(Name)                                \
  extern template class OptimizerOf<Name##Options>;              \
  class RUSHLIGHT_API Name : public OptimizerOf<Name##Options> { \
   public:                                                       \
    using OptimizerOf::OptimizerOf;                              \
  }
