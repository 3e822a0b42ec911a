// The operators of python/rushlight/optim/_adafactor.py, in the same order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "optim/rule.h"

namespace rushlight::optim {
namespace {

// Of a matrix, the means of its rows: the last size is 1; of its columns: the last but one is.
IntList shape_of_rows(const Tensor& param) {
  IntList sizes = param.sizes();
  sizes[sizes.size() - 1] = 1;
  return sizes;
}

IntList shape_of_columns(const Tensor& param) {
  IntList sizes = param.sizes();
  sizes[sizes.size() - 2] = 1;
  return sizes;
}

double norm_of(const Tensor& tensor) {
  return norm(tensor, 2).item().to_double();
}

// sqrt(numel), as Python's power.
double root_of_size(const Tensor& tensor) {
  return std::pow(static_cast<double>(tensor.numel()), 0.5);
}

// Takes the mean square along `dim` into the average `kept`.
void take_mean(const Tensor& kept, const Tensor& grad, int64_t dim, double weight) {
  const Tensor mean = norm(grad, Scalar(2), {dim}, true);
  square_(mean);
  div_(mean, grad.size(dim));
  lerp_(kept, mean, weight);
}

// The mean square, from the averages of its row and column means, which it updates.
Tensor factored_square(const Slot& slot, double weight, double eps) {
  const Tensor& rows = slot["row_var"];
  const Tensor& columns = slot["col_var"];
  take_mean(rows, slot.grad, -1, weight);
  take_mean(columns, slot.grad, -2, weight);
  const Tensor least = mean(rows, IntList{-2}, true);
  clamp_(least, std::optional<Scalar>(eps));
  const Tensor square = matmul(rows, columns);
  div_(square, least);
  return square;
}

}  // namespace

template <>
struct Rule<AdafactorOptions> : RuleDefaults {
  static void check(const AdafactorOptions& options) {
    const auto [eps1, eps2] = options.eps();
    check_range(options.lr() >= 0, "Learning rate should be >= 0 but is: ", options.lr());
    check_range(options.beta2_decay() <= 0,
                "beta2_decay should be <= 0 but is: ", options.beta2_decay());
    check_range(eps1.value_or(0) >= 0, "epsilon1 should be >= 0 but is: ", eps1.value_or(0));
    check_range(eps2 >= 0, "epsilon2 should be >= 0 but is: ", eps2);
    check_range(options.d() >= 1, "Clipping threshold d should be >= 1 but is: ", options.d());
    check_range(options.weight_decay() >= 0,
                "weight_decay should be >= 0 but is: ", options.weight_decay());
  }

  static void check_range(bool holds, const char* text, double value) {
    if (!holds) {
      fail(ErrorKind::Value, "", text, value);
    }
  }

  static const std::vector<Field<AdafactorOptions>>& fields() {
    const auto matrix = [](const AdafactorOptions&, const Tensor& param) {
      return param.dim() > 1;
    };
    const auto vector = [](const AdafactorOptions&, const Tensor& param) {
      return param.dim() <= 1;
    };
    static const std::vector<Field<AdafactorOptions>> all = {
        {.name = "step", .shape = shape_of_number},
        {.name = "row_var", .shape = shape_of_rows, .wanted = matrix},
        {.name = "col_var", .shape = shape_of_columns, .wanted = matrix},
        {.name = "variance", .wanted = vector}};
    return all;
  }

  static void step(const std::vector<Slot>& slots, const AdafactorOptions& options) {
    for (const Slot& slot : slots) {
      if (slot.param.is_complex()) {
        fail(ErrorKind::Runtime, "", "Adafactor does not support complex parameters");
      }
      update({slot.param, options.maximize() ? neg(slot.grad) : slot.grad, slot.state, slot.fresh},
             options);
    }
  }

  static void update(const Slot& slot, const AdafactorOptions& options) {
    const auto [given, eps2] = options.eps();
    const double eps1 = given.value_or(epsilon(slot.param.dtype()));
    const double count = advance(slot["step"]);
    const double weight = std::pow(count, options.beta2_decay());  // of the new square
    const double rate = std::min(options.lr(), 1 / std::pow(count, 0.5));
    const double size = norm_of(slot.param) / root_of_size(slot.param);
    const double scale = std::max(eps2, size) * rate;
    if (options.weight_decay() != 0) {
      mul_(slot.param, 1 - options.lr() * options.weight_decay());
    }
    Tensor update;
    if (slot.grad.dim() > 1) {
      update = factored_square(slot, weight, eps1);
    } else {
      lerp_(slot["variance"], mul(slot.grad, slot.grad), weight);
      update = clone(slot["variance"]);
    }
    clamp_(update, std::optional<Scalar>(eps1 * eps1));
    rsqrt_(update);
    mul_(update, slot.grad);
    const double excess = std::max(1.0, norm_of(update) / (root_of_size(update) * options.d()));
    add_(slot.param, update, -scale / excess);
  }

  // The distance from 1 to the next number.
  static double epsilon(DType dtype) {
    switch (dtype) {
      case DType::Float64:
        return std::numeric_limits<double>::epsilon();
      case DType::Float16:
        return 0x1p-10;
      case DType::BFloat16:
        return 0x1p-7;
      default:
        return std::numeric_limits<float>::epsilon();
    }
  }
};

template class OptimizerOf<AdafactorOptions>;

}  // namespace rushlight::optim
