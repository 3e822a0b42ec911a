#include <type_traits>

#include "optim/rule.h"

namespace rushlight::optim {
namespace {

// Adam and AdamW differ in the operator.
template <typename Options>
struct AdamRule : RuleDefaults {
  static void check(const Options& options) {
    check_nonnegative("learning rate", options.lr());
    check_nonnegative("epsilon value", options.eps());
    check_betas(options.betas());
    check_nonnegative("weight_decay value", options.weight_decay());
  }

  static const std::vector<Field<Options>>& fields() {
    static const std::vector<Field<Options>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "exp_avg"},
        {.name = "exp_avg_sq"},
        {.name = "max_exp_avg_sq",
         .wanted = [](const Options& options, const Tensor&) { return options.amsgrad(); }}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const Options& options) {
    TensorList params, grads, firsts, seconds, maxima, steps;
    for (const Slot& slot : slots) {
      advance(slot["step"]);
      params.push_back(as_real(slot.param));
      grads.push_back(as_real(slot.grad));
      firsts.push_back(as_real(slot["exp_avg"]));
      seconds.push_back(as_real(slot["exp_avg_sq"]));
      steps.push_back(slot["step"]);
      if (options.amsgrad()) {
        maxima.push_back(as_real(slot["max_exp_avg_sq"]));
      }
    }
    const auto fused = std::is_same_v<Options, AdamWOptions> ? _fused_adamw_ : _fused_adam_;
    fused(params, grads, firsts, seconds, maxima, steps, options.lr(), std::get<0>(options.betas()),
          std::get<1>(options.betas()), options.weight_decay(), options.eps(), options.amsgrad(),
          options.maximize(), Tensor(), Tensor());
  }
};

}  // namespace

template <>
struct Rule<AdamOptions> : AdamRule<AdamOptions> {};
template <>
struct Rule<AdamWOptions> : AdamRule<AdamWOptions> {};

template class OptimizerOf<AdamOptions>;
template class OptimizerOf<AdamWOptions>;

}  // namespace rushlight::optim
