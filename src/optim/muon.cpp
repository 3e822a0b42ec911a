// The operators of python/rushlight/optim/_muon.py, in the same order.
#include <algorithm>
#include <cmath>

#include "optim/rule.h"

namespace rushlight::optim {
namespace {

// The nearest matrix with equal singular values, by Newton-Schulz iterations in bfloat16.
Tensor orthogonalize(const Tensor& update, const MuonOptions& options) {
  if (options.ns_steps() >= 100) {
    fail(ErrorKind::Value, "",
         "Number of steps must be less than 100 for computational efficiency");
  }
  const auto [a, b, c] = options.ns_coefficients();
  Tensor x = to(update, DType::BFloat16);
  const bool tall = x.size(0) > x.size(1);
  if (tall) {
    x = transpose(x, 0, 1);
  }
  div_(x, clamp(norm(x), std::optional<Scalar>(options.eps())));
  for (int64_t step = 0; step < options.ns_steps(); ++step) {
    const Tensor gram = matmul(x, transpose(x, 0, 1));
    const Tensor polynomial = addmm(gram, gram, gram, b, c);
    x = addmm(x, polynomial, x, a);
  }
  return tall ? transpose(x, 0, 1) : x;
}

double adjusted_lr(const MuonOptions& options, const Tensor& param) {
  const double rows = static_cast<double>(param.size(0));
  const double columns = static_cast<double>(param.size(1));
  if (options.adjust_lr_fn() == "match_rms_adamw") {
    return options.lr() * 0.2 * std::sqrt(std::max(rows, columns));
  }
  return options.lr() * std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

template <>
struct Rule<MuonOptions> : RuleDefaults {
  static void check(const MuonOptions& options) {
    check_range("Learning rate", options.lr());
    check_range("momentum", options.momentum());
    check_range("weight decay", options.weight_decay());
    const std::string name = options.adjust_lr_fn().value_or("original");
    if (name != "original" && name != "match_rms_adamw") {
      fail(ErrorKind::Value, "", "Adjust learning rate function ", name, " is not supported");
    }
  }

  static void check_range(const char* name, double value) {
    if (!(value >= 0)) {
      fail(ErrorKind::Value, "", name, " should be >= 0 but is: ", value);
    }
  }

  static void check_parameter(const Tensor& param) {
    if (param.dim() != 2) {
      fail(ErrorKind::Value, "",
           "Muon only supports 2D parameters whereas we found a parameter with size: ",
           param.sizes());
    }
  }

  static const std::vector<Field<MuonOptions>>& fields() {
    static const std::vector<Field<MuonOptions>> all = {{.name = "momentum_buffer"}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const MuonOptions& options) {
    const double momentum = options.momentum();
    for (const Slot& slot : slots) {
      if (slot.param.is_complex()) {
        fail(ErrorKind::Runtime, "", "Muon does not support complex parameters");
      }
      const Tensor& buffer = slot["momentum_buffer"];
      lerp_(buffer, slot.grad, 1 - momentum);
      const Tensor moved = options.nesterov() ? lerp(slot.grad, buffer, momentum) : buffer;
      const Tensor update = orthogonalize(moved, options);
      mul_(slot.param, 1 - options.lr() * options.weight_decay());
      add_(slot.param, update, -adjusted_lr(options, slot.param));
    }
  }
};

template class OptimizerOf<MuonOptions>;

}  // namespace rushlight::optim
