#include "optim/rule.h"

namespace rushlight::optim {

template <>
struct Rule<SGDOptions> : RuleDefaults {
  static void check(const SGDOptions& options) {
    check_nonnegative("learning rate", options.lr());
    check_nonnegative("momentum value", options.momentum());
    check_nonnegative("weight_decay value", options.weight_decay());
    if (options.nesterov() && (options.momentum() <= 0 || options.dampening() != 0)) {
      fail(ErrorKind::Value, "", "Nesterov momentum requires a momentum and zero dampening");
    }
  }

  static const std::vector<Field<SGDOptions>>& fields() {
    static const std::vector<Field<SGDOptions>> all = {
        {.name = "momentum_buffer", .wanted = [](const SGDOptions& options, const Tensor&) {
           return options.momentum() != 0;
         }}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const SGDOptions& options) {
    for (const bool first : {true, false}) {  // a buffer starts as the first gradient
      TensorList params, grads, buffers;
      for (const Slot& slot : slots) {
        if (slot.fresh != first) {
          continue;
        }
        params.push_back(as_real(slot.param));
        grads.push_back(as_real(slot.grad));
        if (options.momentum() != 0) {
          buffers.push_back(as_real(slot["momentum_buffer"]));
        }
      }
      if (!params.empty()) {
        _fused_sgd_(params, grads, buffers, options.weight_decay(), options.momentum(),
                    options.lr(), options.dampening(), options.nesterov(), options.maximize(),
                    first);
      }
    }
  }
};

template class OptimizerOf<SGDOptions>;

}  // namespace rushlight::optim
