// ASGD and Rprop: the operators of python/rushlight/optim, in the same order.
#include <algorithm>
#include <cmath>

#include "optim/rule.h"

namespace rushlight::optim {

template <>
struct Rule<ASGDOptions> : RuleDefaults {
  static void check(const ASGDOptions& options) {
    check_nonnegative("learning rate", options.lr());
    check_nonnegative("weight_decay value", options.weight_decay());
  }

  static const std::vector<Field<ASGDOptions>>& fields() {
    static const std::vector<Field<ASGDOptions>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "eta",
         .shape = shape_of_number,
         .start = [](const ASGDOptions& options) { return options.lr(); }},
        {.name = "mu", .shape = shape_of_number, .start = [](const ASGDOptions&) { return 1.0; }},
        {.name = "ax"}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const ASGDOptions& options) {
    const double lr = options.lr();
    const double lambd = options.lambd();
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      const double count = advance(slot["step"]);
      if (options.weight_decay() != 0) {
        slot.grad = add(slot.grad, slot.param, options.weight_decay());
      }
      const double rate = slot["eta"].item().to_double();
      mul_(slot.param, 1 - lambd * rate);
      add_(slot.param, slot.grad, -rate);
      const double weight = slot["mu"].item().to_double();
      const Tensor ax = as_real(slot["ax"]);
      if (weight != 1) {
        const Tensor change = sub(slot.param, ax);
        mul_(change, weight);
        add_(ax, change);
      } else {
        copy_(ax, slot.param);
      }
      fill_(slot["eta"], lr / std::pow(1 + lambd * lr * count, options.alpha()));
      fill_(slot["mu"], 1 / std::max(1.0, count - options.t0()));
    }
  }
};

template <>
struct Rule<RpropOptions> : RuleDefaults {
  static void check(const RpropOptions& options) {
    check_nonnegative("learning rate", options.lr());
    const auto [minus, plus] = options.etas();
    if (!(0 < minus && minus < 1 && 1 < plus)) {
      fail(ErrorKind::Value, "", "Invalid eta values: ", minus, ", ", plus,
           "; expected 0 < the first < 1 < the second");
    }
  }

  static const std::vector<Field<RpropOptions>>& fields() {
    static const std::vector<Field<RpropOptions>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "prev"},
        {.name = "step_size", .start = [](const RpropOptions& options) { return options.lr(); }}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const RpropOptions& options) {
    const auto [minus, plus] = options.etas();
    const auto [least, most] = options.step_sizes();
    for (const Slot& given : slots) {
      const Slot slot = begin_update(given, options.maximize());
      advance(slot["step"]);
      const Tensor prev = as_real(slot["prev"]);
      const Tensor step_size = as_real(slot["step_size"]);
      const Tensor product = mul(slot.grad, prev);
      const Tensor turned = lt(product, 0);
      const Tensor factor = ones_like(product);
      masked_fill_(factor, gt(product, 0), plus);
      masked_fill_(factor, turned, minus);
      mul_(step_size, factor);
      clamp_(step_size, std::optional<Scalar>(least), std::optional<Scalar>(most));
      // Where the sign has turned, stay for a step.
      const Tensor grad = masked_fill(slot.grad, turned, 0.0);
      addcmul_(slot.param, sign(grad), step_size, -1);
      copy_(prev, grad);
    }
  }
};

template class OptimizerOf<ASGDOptions>;
template class OptimizerOf<RpropOptions>;

}  // namespace rushlight::optim
