// Gradient descent, averaged, by signs and with momentum made orthogonal.
#pragma once

#include <rushlight/optim/optimizer.h>

namespace rushlight::optim {

struct SGDOptions {
  SGDOptions(double lr = 1e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(double, momentum) = 0;
  RUSHLIGHT_ARG(double, dampening) = 0;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, nesterov) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(SGD);

// Descent with a falling rate; "ax" in the state averages the parameters from step `t0` on (Polyak
// & Juditsky, 1992).
struct ASGDOptions {
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-2;
  RUSHLIGHT_ARG(double, lambd) = 1e-4;
  RUSHLIGHT_ARG(double, alpha) = 0.75;
  RUSHLIGHT_ARG(double, t0) = 1e6;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(ASGD);

// Steps by the sign of the gradient; each element's step grows while its sign stays, else shrinks
// (Riedmiller & Braun, 1993).
struct RpropOptions {
  RpropOptions(double lr = 1e-2) : lr_(lr) {}
  using Pair = std::tuple<double, double>;
  RUSHLIGHT_ARG(double, lr) = 1e-2;
  RUSHLIGHT_ARG(Pair, etas) = { 0.5, 1.2 };
  RUSHLIGHT_ARG(Pair, step_sizes) = { 1e-6, 50 };
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(Rprop);

// Momentum whose singular values are made equal, for the matrices of hidden layers (Jordan et al.,
// 2024). `adjust_lr_fn` is "original" or "match_rms_adamw": how the rate depends on the shape.
struct MuonOptions {
  MuonOptions(double lr = 1e-3) : lr_(lr) {}
  using Coefficients = std::tuple<double, double, double>;
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(double, weight_decay) = 0.1;
  RUSHLIGHT_ARG(double, momentum) = 0.95;
  RUSHLIGHT_ARG(bool, nesterov) = true;
  RUSHLIGHT_ARG(Coefficients, ns_coefficients) = { 3.4445, -4.7750, 2.0315 };
  RUSHLIGHT_ARG(double, eps) = 1e-7;
  RUSHLIGHT_ARG(int64_t, ns_steps) = 5;
  RUSHLIGHT_ARG(std::optional<std::string>, adjust_lr_fn) = std::nullopt;
};
RUSHLIGHT_OPTIMIZER(Muon);

}  // namespace rushlight::optim
