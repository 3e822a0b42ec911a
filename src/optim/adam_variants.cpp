// Adamax, NAdam and RAdam: the operators of python/rushlight/optim, in the same order.
#include <cmath>

#include "optim/rule.h"

namespace rushlight::optim {
namespace {

template <typename Options>
void check_settings(const Options& options) {
  check_nonnegative("learning rate", options.lr());
  check_nonnegative("epsilon value", options.eps());
  check_betas(options.betas());
  check_nonnegative("weight_decay value", options.weight_decay());
}

template <typename Options>
void decay(Slot& slot, const Options& options, bool decoupled) {
  if (options.weight_decay() == 0) {
    return;
  }
  if (decoupled) {
    mul_(slot.param, 1 - options.lr() * options.weight_decay());
  } else {
    slot.grad = add(slot.grad, slot.param, options.weight_decay());
  }
}

}  // namespace

template <>
struct Rule<AdamaxOptions> : RuleDefaults {
  static void check(const AdamaxOptions& options) { check_settings(options); }

  static const std::vector<Field<AdamaxOptions>>& fields() {
    static const std::vector<Field<AdamaxOptions>> all = {
        {.name = "step", .shape = shape_of_number}, {.name = "exp_avg"}, {.name = "exp_inf"}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const AdamaxOptions& options) {
    const auto [beta1, beta2] = options.betas();
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      const double count = advance(slot["step"]);
      decay(slot, options, false);
      const Tensor exp_avg = as_real(slot["exp_avg"]);
      const Tensor exp_inf = as_real(slot["exp_inf"]);
      lerp_(exp_avg, slot.grad, 1 - beta1);
      const Tensor magnitude = abs(slot.grad);
      add_(magnitude, options.eps());
      mul_(exp_inf, beta2);
      copy_(exp_inf, maximum(exp_inf, magnitude));
      const double rate = options.lr() / (1 - std::pow(beta1, count));
      addcdiv_(slot.param, exp_avg, exp_inf, -rate);
    }
  }
};

template <>
struct Rule<NAdamOptions> : RuleDefaults {
  static void check(const NAdamOptions& options) {
    check_settings(options);
    check_nonnegative("momentum_decay value", options.momentum_decay());
  }

  static const std::vector<Field<NAdamOptions>>& fields() {
    static const std::vector<Field<NAdamOptions>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "mu_product",
         .shape = shape_of_number,
         .start = [](const NAdamOptions&) { return 1.0; }},
        {.name = "exp_avg"},
        {.name = "exp_avg_sq"}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const NAdamOptions& options) {
    const auto [beta1, beta2] = options.betas();
    const double lr = options.lr();
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      const double count = advance(slot["step"]);
      decay(slot, options, options.decoupled_weight_decay());
      const double grown = options.momentum_decay();
      const double mu = beta1 * (1.0 - 0.5 * std::pow(0.96, count * grown));
      const double mu_next = beta1 * (1.0 - 0.5 * std::pow(0.96, (count + 1) * grown));
      mul_(slot["mu_product"], mu);
      const Tensor exp_avg = as_real(slot["exp_avg"]);
      const Tensor exp_avg_sq = as_real(slot["exp_avg_sq"]);
      lerp_(exp_avg, slot.grad, 1 - beta1);
      mul_(exp_avg_sq, beta2);
      addcmul_(exp_avg_sq, slot.grad, slot.grad, 1 - beta2);
      const Tensor root = sqrt(div(exp_avg_sq, 1 - std::pow(beta2, count)));
      add_(root, options.eps());
      const double product = slot["mu_product"].item().to_double();
      addcdiv_(slot.param, slot.grad, root, -lr * (1.0 - mu) / (1.0 - product));
      addcdiv_(slot.param, exp_avg, root, -lr * mu_next / (1.0 - product * mu_next));
    }
  }
};

template <>
struct Rule<RAdamOptions> : RuleDefaults {
  static void check(const RAdamOptions& options) { check_settings(options); }

  static const std::vector<Field<RAdamOptions>>& fields() {
    static const std::vector<Field<RAdamOptions>> all = {
        {.name = "step", .shape = shape_of_number}, {.name = "exp_avg"}, {.name = "exp_avg_sq"}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const RAdamOptions& options) {
    const auto [beta1, beta2] = options.betas();
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      const double count = advance(slot["step"]);
      decay(slot, options, options.decoupled_weight_decay());
      const Tensor exp_avg = as_real(slot["exp_avg"]);
      const Tensor exp_avg_sq = as_real(slot["exp_avg_sq"]);
      lerp_(exp_avg, slot.grad, 1 - beta1);
      mul_(exp_avg_sq, beta2);
      addcmul_(exp_avg_sq, slot.grad, slot.grad, 1 - beta2);
      const double power = std::pow(beta2, count);
      const double correction = 1 - power;
      const Tensor mean = div(exp_avg, 1 - std::pow(beta1, count));
      // The length of the average of squares, and its limit.
      const double longest = 2 / (1 - beta2) - 1;
      const double length = longest - 2 * count * power / correction;
      Tensor update = mul(mean, options.lr());
      if (length > 5.0) {
        const double numerator = (length - 4) * (length - 2) * longest;
        const double factor = std::pow(numerator / ((longest - 4) * (longest - 2) * length), 0.5);
        const Tensor root = sqrt(exp_avg_sq);
        add_(root, options.eps());
        const Tensor scaled = mul(reciprocal(root), std::pow(correction, 0.5));
        update = mul(update, mul(scaled, factor));
      }
      add_(slot.param, update, -1.0);
    }
  }
};

template class OptimizerOf<AdamaxOptions>;
template class OptimizerOf<NAdamOptions>;
template class OptimizerOf<RAdamOptions>;

}  // namespace rushlight::optim
