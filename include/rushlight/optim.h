// Optimizers: one fused operator steps all parameters, with Python's defaults.
#pragma once

#include <rushlight/nn/module.h>

#include <functional>
#include <tuple>
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
  Tensor step(const std::function<Tensor()>& closure);
  void zero_grad(bool set_to_none = true);
  virtual std::vector<Tensor> parameters() const = 0;  // in the order of the groups
  virtual void set_lr(double lr) = 0;                  // of all groups
  // The state by name: "0.exp_avg" is that of the first parameter. Settings are not part of it.
  virtual nn::NamedTensors state_dict() const = 0;
  // Error(Value) on a name that is no state of this optimizer, a number past its parameters, or a
  // shape that is not the parameter's.
  virtual void load_state_dict(const nn::NamedTensors& state) = 0;

 protected:
  // Error(Value) where there is no parameter, one is given twice, or one is no leaf.
  void check_parameters() const;
};

struct SGDOptions {
  explicit SGDOptions(double lr = 1e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(double, momentum) = 0;
  RUSHLIGHT_ARG(double, dampening) = 0;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, nesterov) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};

class RUSHLIGHT_API SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = SGDOptions());
  explicit SGD(std::vector<Group<SGDOptions>> groups);
  using Optimizer::step;
  void step() override;
  std::vector<Tensor> parameters() const override;
  std::vector<Group<SGDOptions>>& param_groups() { return groups_; }
  void add_param_group(Group<SGDOptions> group);
  void set_lr(double lr) override;
  nn::NamedTensors state_dict() const override;
  void load_state_dict(const nn::NamedTensors& state) override;

 private:
  std::vector<Group<SGDOptions>> groups_;
  std::vector<std::vector<Tensor>> buffers_;  // a group, a parameter
};

struct AdamOptions {
  explicit AdamOptions(double lr = 1e-3) : lr_(lr) {}
  using Betas = std::tuple<double, double>;
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, amsgrad) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};

// Adam with weight decay apart from the gradient.
struct AdamWOptions {
  explicit AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  using Betas = std::tuple<double, double>;
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 1e-2;
  RUSHLIGHT_ARG(bool, amsgrad) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};

// What Adam and AdamW share: averages of the gradient and of its square.
template <typename Options>
class RUSHLIGHT_API AdamFamily : public Optimizer {
 public:
  using Optimizer::step;
  void step() override;
  std::vector<Tensor> parameters() const override;
  std::vector<Group<Options>>& param_groups() { return groups_; }
  void add_param_group(Group<Options> group);
  void set_lr(double lr) override;
  nn::NamedTensors state_dict() const override;
  void load_state_dict(const nn::NamedTensors& state) override;

 protected:
  explicit AdamFamily(std::vector<Group<Options>> groups);

 private:
  struct State {
    Tensor step, exp_avg, exp_avg_sq, max_exp_avg_sq;
  };
  void begin(State& state, const Tensor& param, const Options& options) const;
  std::vector<Group<Options>> groups_;
  std::vector<std::vector<State>> states_;  // a group, a parameter
};

extern template class AdamFamily<AdamOptions>;
extern template class AdamFamily<AdamWOptions>;

class RUSHLIGHT_API Adam : public AdamFamily<AdamOptions> {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = AdamOptions());
  explicit Adam(std::vector<Group<AdamOptions>> groups) : AdamFamily(std::move(groups)) {}
};

class RUSHLIGHT_API AdamW : public AdamFamily<AdamWOptions> {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = AdamWOptions());
  explicit AdamW(std::vector<Group<AdamWOptions>> groups) : AdamFamily(std::move(groups)) {}
};

}  // namespace rushlight::optim
