// L-BFGS (Liu & Nocedal, 1989): quasi-Newton steps from the last changes of the gradient.
#pragma once

#include <rushlight/optim/optimizer.h>

#include <memory>

namespace rushlight::optim {

// `max_eval` is 5/4 of `max_iter` where not given; `line_search_fn` is none or "strong_wolfe".
struct LBFGSOptions {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1;
  RUSHLIGHT_ARG(int64_t, max_iter) = 20;
  RUSHLIGHT_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  RUSHLIGHT_ARG(double, tolerance_grad) = 1e-7;
  RUSHLIGHT_ARG(double, tolerance_change) = 1e-9;
  RUSHLIGHT_ARG(int64_t, history_size) = 100;
  RUSHLIGHT_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;
};

class RUSHLIGHT_API LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<Tensor> params, const LBFGSOptions& options = LBFGSOptions());
  ~LBFGS() override;
  // Runs up to `max_iter` iterations, and evaluates the closure many times; gives its first value.
  Tensor step(const std::function<Tensor()>& closure) override;
  void step() override;  // Error(Type): a closure is needed
  std::vector<Tensor> parameters() const override { return group_.params; }
  LBFGSOptions& options() { return group_.options; }
  nn::NamedTensors state_dict() const override;
  void load_state_dict(const nn::NamedTensors& state) override;
  size_t group_count() const override { return 1; }
  double group_lr(size_t) const override { return group_.options.lr(); }
  void set_group_lr(size_t, double lr) override { group_.options.lr(lr); }
  std::optional<double> group_momentum(size_t) const override { return std::nullopt; }
  void set_group_momentum(size_t, double) override {}

 private:
  struct Memory;
  Group<LBFGSOptions> group_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace rushlight::optim
