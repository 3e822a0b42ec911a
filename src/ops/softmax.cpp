// softmax and log_softmax, with the operators that are their gradients.
//
// Each has a fused kernel for its gradient. Where a gradient is itself to be differentiated, the
// rule is written in public operators instead.
#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"
#include "ops/wide_gradient.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

namespace {

// Whether the gradient that is being computed will be differentiated.
bool differentiating() {
  return thread_state.grad_mode;
}

// exp(x - max), times one over its sum, which is at least 1: a division for each row, not for each
// element. Rows of -inf give NaN, as PyTorch's.
void softmax_row(Rows& r) {
  Expr x = r.in(0);
  Expr shifted = loop::exp(x - r.reduce(Combine::Max, x));
  r.store(0, shifted * (1.0 / r.sum(shifted)));
}

void log_softmax_row(Rows& r) {
  Expr x = r.in(0);
  Expr shifted = x - r.reduce(Combine::Max, x);
  r.store(0, shifted - loop::log(r.sum(loop::exp(shifted))));
}

void softmax_gradient(Gradient& g) {
  Tensor y = g.result();
  if (!differentiating()) {
    g.set(0, _softmax_backward(g.grad(), y, g.integer(1)));
    return;
  }
  // The difference first: where one probability is near 1, its products would cancel.
  y = to(y, compute_dtype(y.dtype()));
  Tensor grad = to(g.grad(), y.dtype());
  Tensor total = sum(mul(grad, y), {g.integer(1)}, true, std::nullopt);
  g.set(0, mul(y, sub(grad, total)));
}

void log_softmax_gradient(Gradient& g) {
  Tensor y = g.result();
  if (!differentiating()) {
    g.set(0, _log_softmax_backward(g.grad(), y, g.integer(1)));
    return;
  }
  y = to(y, compute_dtype(y.dtype()));
  Tensor grad = to(g.grad(), y.dtype());
  Tensor total = sum(grad, {g.integer(1)}, true, std::nullopt);
  g.set(0, sub(grad, mul(exp(y), total)));
}

void check_softmax_gradient(const Tensor& grad, const Tensor& output, DType input_dtype) {
  if (grad.sizes() != output.sizes()) {
    fail(ErrorKind::Runtime, "_softmax_backward_data", "expected grad_output of shape ",
         output.sizes(), ", got ", grad.sizes());
  }
  if (grad.dtype() != output.dtype()) {
    fail(ErrorKind::Runtime, "_softmax_backward_data", "expected grad_output of dtype ",
         output.dtype(), ", got ", grad.dtype());
  }
  if (input_dtype != grad.dtype() &&
      !(grad.dtype() == DType::Float32 && is_reduced_floating(input_dtype))) {
    fail(ErrorKind::Runtime, "_softmax_backward_data", "expected input_dtype ", grad.dtype(),
         ", or a half beside float gradients, got ", input_dtype);
  }
}

Tensor softmax_grad_data(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  check_softmax_gradient(grad, output, dtype);
  DoorGuard guard(0, ~uint32_t{0});
  return to(_softmax_backward(grad, output, dim), dtype);
}

Tensor log_softmax_grad_data(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  check_softmax_gradient(grad, output, dtype);
  DoorGuard guard(0, ~uint32_t{0});
  return to(_log_softmax_backward(grad, output, dim), dtype);
}

// What a gradient operator was given, wide enough for the steps of its own gradient.
struct GradientOperands {
  Tensor grad;
  Tensor output;
  Tensor again;  // the gradient of its result

  explicit GradientOperands(const Gradient& g) {
    const DType compute = compute_dtype(g.dtype(1));
    grad = to(g.tensor(0), compute);
    output = to(g.tensor(1), compute);
    again = to(g.grad(), compute);
  }
};

// Of y (g - sum(g y)), by g and y.
void softmax_grad_data_gradient(Gradient& g) {
  const auto [grad, y, again] = GradientOperands(g);
  const IntList dim{g.integer(2)};
  const Tensor total = sum(mul(again, y), dim, true, std::nullopt);
  if (g.needs(0)) {
    g.set(0, mul(y, sub(again, total)));
  }
  if (g.needs(1)) {
    const Tensor first = sum(mul(grad, y), dim, true, std::nullopt);
    g.set(1, sub(mul(again, sub(grad, first)), mul(grad, total)));
  }
}

// Of g - exp(y) sum(g), by g and y.
void log_softmax_grad_data_gradient(Gradient& g) {
  const auto [grad, y, again] = GradientOperands(g);
  const Tensor probability = exp(y);
  const IntList dim{g.integer(2)};
  if (g.needs(0)) {
    g.set(0, sub(again, sum(mul(again, probability), dim, true, std::nullopt)));
  }
  if (g.needs(1)) {
    const Tensor total = sum(grad, dim, true, std::nullopt);
    g.set(1, neg(mul(mul(again, probability), total)));
  }
}

// softmax, but zeros for rows of -inf alone.
Tensor safe_softmax_of(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  DoorGuard guard(0, ~uint32_t{0});
  const Tensor x =
      to(self, dtype.value_or(self.is_floating_point() ? self.dtype() : default_dtype()));
  const Tensor blind = all(isneginf(x), IntList{dim}, true);
  return masked_fill(_softmax(x, dim), blind, Scalar(0));
}

Tensor softmax_of(const Tensor& self, int64_t dim, std::optional<DType> dtype, bool logarithm) {
  Tensor x = dtype && *dtype != self.dtype() ? to(self, *dtype) : self;
  if (!x.is_floating_point() && !x.is_complex()) {
    fail(ErrorKind::NotImplemented, logarithm ? "log_softmax" : "softmax", "\"",
         logarithm ? "log_softmax" : "softmax", "\" not implemented for '",
         scalar_type_name(x.dtype()), "'");
  }
  return logarithm ? _log_softmax(x, dim) : _softmax(x, dim);
}

// Integers are converted where a dtype is asked for.
void check_softmax(const Invocation& inv) {
  if (inv.arguments[2].is_none()) {
    expect_floating(inv);
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(softmax) {
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };
  const RowResult full{RowShape::Full, RowType::Same};

  rows(op("_softmax(Tensor self, int dim) -> Tensor", kInternal).doc("softmax along a dimension."),
       {{full}, softmax_row})
      .gradient("result", wide_second_order(softmax_gradient));
  rows(op("_log_softmax(Tensor self, int dim) -> Tensor", kInternal)
           .doc("log_softmax along a dimension."),
       {{full}, log_softmax_row})
      .gradient("result", wide_second_order(log_softmax_gradient));
  rows(op("_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor", kInternal)
           .doc("output * (grad - sum(grad * output))."),
       {{full}, [](Rows& r) { r.store(0, r.in(1) * (r.in(0) - r.sum(r.in(0) * r.in(1)))); }})
      .not_differentiable();
  rows(op("_log_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor", kInternal)
           .doc("grad - exp(output) * sum(grad)."),
       {{full}, [](Rows& r) { r.store(0, r.in(0) - loop::exp(r.in(1)) * r.sum(r.in(0))); }})
      .not_differentiable();
  op("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("exp(x) / sum(exp(x)) along a dimension, without overflow.")
      .composition([](const Tensor& self, int64_t dim, std::optional<DType> dtype) -> Tensor {
        return softmax_of(self, dim, dtype, false);
      })
      .check(check_softmax);
  op("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("log(softmax(x)) along a dimension, exact.")
      .composition([](const Tensor& self, int64_t dim, std::optional<DType> dtype) -> Tensor {
        return softmax_of(self, dim, dtype, true);
      })
      .check(check_softmax);

  op("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kFunction)
      .doc("softmax that gives zeros where every element along the dimension is -inf.")
      .kernel(safe_softmax_of)
      .gradient("result", wide_second_order(softmax_gradient));
  op("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
     "-> Tensor",
     kFunction)
      .doc("The gradient of softmax by its input, from that by its output.")
      .kernel(softmax_grad_data)
      .gradient("grad_output output", softmax_grad_data_gradient);
  op("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
     "ScalarType input_dtype) -> Tensor",
     kFunction)
      .doc("The gradient of log_softmax by its input, from that by its output.")
      .kernel(log_softmax_grad_data)
      .gradient("grad_output output", log_softmax_grad_data_gradient);
}

}  // namespace rushlight
