// Optimizers: fused over all parameters, with Python's defaults.
#pragma once

#include <rushlight/nn/module.h>

#include <memory>
#include <vector>

namespace rushlight::optim {

// Parameters that share settings. Settings that a subclass does not use are ignored by it.
struct ParamGroup {
  std::vector<Tensor> params;
  double lr;
  double weight_decay;
};

class RUSHLIGHT_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Updates every parameter that has a gradient.
  virtual void step() = 0;
  void zero_grad(bool set_to_none = true);
  std::vector<ParamGroup>& param_groups() { return groups_; }
  void set_lr(double lr);
  // The state by name: "0.exp_avg" is that of the first parameter.
  virtual nn::NamedTensors state_dict() const = 0;
  virtual void load_state_dict(const nn::NamedTensors& state) = 0;

 protected:
  explicit Optimizer(std::vector<ParamGroup> groups);
  std::vector<ParamGroup> groups_;
};

struct SGDOptions {
  explicit SGDOptions(double lr = 1e-3) : lr_(lr) {}
  double lr_;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

class RUSHLIGHT_API SGD : public Optimizer {
 public:
  SGD(std::vector<Tensor> params, const SGDOptions& options = SGDOptions());
  SGD(std::vector<ParamGroup> groups, const SGDOptions& options);
  void step() override;
  nn::NamedTensors state_dict() const override;
  void load_state_dict(const nn::NamedTensors& state) override;

 private:
  SGDOptions options_;
  std::vector<std::vector<Tensor>> buffers_;  // a group, a parameter
};

struct AdamOptions {
  explicit AdamOptions(double lr = 1e-3) : lr_(lr) {}
  double lr_;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

class RUSHLIGHT_API Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> params, const AdamOptions& options = AdamOptions());
  Adam(std::vector<ParamGroup> groups, const AdamOptions& options);
  void step() override;
  nn::NamedTensors state_dict() const override;
  void load_state_dict(const nn::NamedTensors& state) override;

 protected:
  Adam(std::vector<ParamGroup> groups, const AdamOptions& options, bool decoupled);

 private:
  struct State {
    Tensor step, exp_avg, exp_avg_sq, max_exp_avg_sq;
  };
  AdamOptions options_;
  bool decoupled_;
  std::vector<std::vector<State>> states_;  // a group, a parameter
};

// Adam with weight decay apart from the gradient; its default is 0.01.
struct AdamWOptions : AdamOptions {
  explicit AdamWOptions(double lr = 1e-3) : AdamOptions(lr) { weight_decay = 1e-2; }
};

class RUSHLIGHT_API AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> params, const AdamWOptions& options = AdamWOptions());
  AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options);
};

}  // namespace rushlight::optim
