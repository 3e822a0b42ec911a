// RMSprop, Adagrad and Adadelta: the operators of python/rushlight/optim, in the same order.
#include "optim/rule.h"

namespace rushlight::optim {
namespace {

template <typename Options>
void decay(Slot& slot, const Options& options) {
  if (options.weight_decay() != 0) {
    slot.grad = add(slot.grad, slot.param, options.weight_decay());
  }
}

}  // namespace

template <>
struct Rule<RMSpropOptions> : RuleDefaults {
  static void check(const RMSpropOptions& options) {
    check_nonnegative("learning rate", options.lr());
    check_nonnegative("epsilon value", options.eps());
    check_nonnegative("momentum value", options.momentum());
    check_nonnegative("weight_decay value", options.weight_decay());
    check_nonnegative("alpha value", options.alpha());
  }

  static const std::vector<Field<RMSpropOptions>>& fields() {
    static const std::vector<Field<RMSpropOptions>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "square_avg"},
        {.name = "momentum_buffer",
         .wanted = [](const RMSpropOptions& options,
                      const Tensor&) { return options.momentum() > 0; }},
        {.name = "grad_avg", .wanted = [](const RMSpropOptions& options, const Tensor&) {
           return options.centered();
         }}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const RMSpropOptions& options) {
    const double alpha = options.alpha();
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      advance(slot["step"]);
      decay(slot, options);
      const Tensor square_avg = as_real(slot["square_avg"]);
      mul_(square_avg, alpha);
      addcmul_(square_avg, slot.grad, slot.grad, 1 - alpha);
      Tensor root;
      if (options.centered()) {
        const Tensor grad_avg = as_real(slot["grad_avg"]);
        lerp_(grad_avg, slot.grad, 1 - alpha);
        root = addcmul(square_avg, grad_avg, grad_avg, -1);
        sqrt_(root);
      } else {
        root = sqrt(square_avg);
      }
      add_(root, options.eps());
      if (options.momentum() > 0) {
        const Tensor buffer = as_real(slot["momentum_buffer"]);
        mul_(buffer, options.momentum());
        addcdiv_(buffer, slot.grad, root);
        add_(slot.param, buffer, -options.lr());
      } else {
        addcdiv_(slot.param, slot.grad, root, -options.lr());
      }
    }
  }
};

template <>
struct Rule<AdagradOptions> : RuleDefaults {
  static constexpr bool begins_at_once = true;

  static void check(const AdagradOptions& options) {
    check_nonnegative("learning rate", options.lr());
    check_nonnegative("lr_decay value", options.lr_decay());
    check_nonnegative("weight_decay value", options.weight_decay());
    check_nonnegative("initial_accumulator_value value", options.initial_accumulator_value());
    check_nonnegative("epsilon value", options.eps());
  }

  static const std::vector<Field<AdagradOptions>>& fields() {
    static const std::vector<Field<AdagradOptions>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "sum", .start = [](const AdagradOptions& options) {
           return options.initial_accumulator_value();
         }}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const AdagradOptions& options) {
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      const double count = advance(slot["step"]);
      decay(slot, options);
      const double rate = options.lr() / (1 + (count - 1) * options.lr_decay());
      const Tensor sum = as_real(slot["sum"]);
      addcmul_(sum, slot.grad, slot.grad, 1);
      const Tensor root = sqrt(sum);
      add_(root, options.eps());
      addcdiv_(slot.param, slot.grad, root, -rate);
    }
  }
};

template <>
struct Rule<AdadeltaOptions> : RuleDefaults {
  static void check(const AdadeltaOptions& options) {
    check_nonnegative("learning rate", options.lr());
    if (!(options.rho() >= 0 && options.rho() <= 1)) {
      fail(ErrorKind::Value, "", "Invalid rho value: ", options.rho(), "; expected [0, 1]");
    }
    check_nonnegative("epsilon value", options.eps());
    check_nonnegative("weight_decay value", options.weight_decay());
  }

  static const std::vector<Field<AdadeltaOptions>>& fields() {
    static const std::vector<Field<AdadeltaOptions>> all = {
        {.name = "step", .shape = shape_of_number}, {.name = "square_avg"}, {.name = "acc_delta"}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const AdadeltaOptions& options) {
    const double rho = options.rho();
    for (const Slot& given : slots) {
      Slot slot = begin_update(given, options.maximize());
      advance(slot["step"]);
      decay(slot, options);
      const Tensor square_avg = as_real(slot["square_avg"]);
      const Tensor acc_delta = as_real(slot["acc_delta"]);
      mul_(square_avg, rho);
      addcmul_(square_avg, slot.grad, slot.grad, 1 - rho);
      const Tensor root = add(square_avg, options.eps());
      sqrt_(root);
      const Tensor delta = add(acc_delta, options.eps());
      sqrt_(delta);
      div_(delta, root);
      mul_(delta, slot.grad);
      mul_(acc_delta, rho);
      addcmul_(acc_delta, delta, delta, 1 - rho);
      add_(slot.param, delta, -options.lr());
    }
  }
};

template class OptimizerOf<RMSpropOptions>;
template class OptimizerOf<AdagradOptions>;
template class OptimizerOf<AdadeltaOptions>;

}  // namespace rushlight::optim
