// Optimizers that divide the gradient by the root of a mean of its squares.
#pragma once

#include <rushlight/optim/optimizer.h>

namespace rushlight::optim {

// Hinton, 2012; `centered` divides by the standard deviation (Graves, 2013).
struct RMSpropOptions {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-2;
  RUSHLIGHT_ARG(double, alpha) = 0.99;
  RUSHLIGHT_ARG(double, eps) = 1e-8;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(double, momentum) = 0;
  RUSHLIGHT_ARG(bool, centered) = false;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(RMSprop);

// The sum of all squares so far (Duchi et al., 2011).
struct AdagradOptions {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1e-2;
  RUSHLIGHT_ARG(double, lr_decay) = 0;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(double, initial_accumulator_value) = 0;
  RUSHLIGHT_ARG(double, eps) = 1e-10;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(Adagrad);

// Steps as large as recent steps (Zeiler, 2012).
struct AdadeltaOptions {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  RUSHLIGHT_ARG(double, lr) = 1.0;
  RUSHLIGHT_ARG(double, rho) = 0.9;
  RUSHLIGHT_ARG(double, eps) = 1e-6;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(Adadelta);

// The mean square of a matrix kept as its row and column means (Shazeer & Stern, 2018). `eps` holds
// the least mean square (none: the dtype's epsilon) and the least size of a parameter; `d` limits
// the root mean square of an update.
struct AdafactorOptions {
  AdafactorOptions(double lr = 1e-2) : lr_(lr) {}
  using Epsilons = std::tuple<std::optional<double>, double>;
  RUSHLIGHT_ARG(double, lr) = 1e-2;
  RUSHLIGHT_ARG(double, beta2_decay) = -0.8;
  RUSHLIGHT_ARG(Epsilons, eps) = { std::nullopt, 1e-3 };
  RUSHLIGHT_ARG(double, d) = 1.0;
  RUSHLIGHT_ARG(double, weight_decay) = 0;
  RUSHLIGHT_ARG(bool, maximize) = false;
};
RUSHLIGHT_OPTIMIZER(Adafactor);

}  // namespace rushlight::optim
