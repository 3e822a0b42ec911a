// Adam and its relatives: averages of the gradient and of its size.
#pragma once

#include <rushlight/optim/optimizer.h>

namespace rushlight::optim {

using Betas = std::tuple<double, double>;  // decay of the two averages, each in [0, 1)

// Kingma & Ba, 2014; amsgrad: Reddi et al., 2018.
struct AdamOptions {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, amsgrad) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(Adam);

// Adam with weight decay apart from the gradient.
struct AdamWOptions {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 1e-2;
  RUSHLIGHT_ARG(bool, amsgrad) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(AdamW);

// Adam with the largest decayed gradient in place of the root of the mean square.
struct AdamaxOptions {
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 2e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(Adamax);

// Adam with Nesterov's momentum, which grows over the first steps (Dozat, 2016).
struct NAdamOptions {
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 2e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(double, momentum_decay) = 4e-3;
  RUSHLIGHT_ARG(bool, decoupled_weight_decay) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(NAdam);

// Adam that divides by the mean square once enough of it is known (Liu et al., 2019).
struct RAdamOptions {
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-3;
  RUSHLIGHT_ARG(Betas, betas) = { 0.9, 0.999 };
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, decoupled_weight_decay) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(RAdam);

}  // namespace rushlight::optim
