// Variances and standard deviations.
#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"
#include "ops/wide_gradient.h"

namespace rushlight {

using loop::Expr;

namespace {

int64_t reduced_count(const Tensor& self, const Value& dim) {
  int64_t count = 1;
  for (int64_t at : reduced_dims(dim, self.dim(), "count")) {
    count *= self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(at)];
  }
  return count;
}

// Variance along rows, about the mean: sums of squares do not cancel.
RowSpec variance_spec(bool root, bool with_mean) {
  RowSpec spec;
  spec.results = {{RowShape::Reduced, RowType::Same}};
  if (with_mean) {
    spec.results.push_back({RowShape::Reduced, RowType::Same});
  }
  spec.body = [root, with_mean](Rows& r) {
    Expr x = r.in(0);
    Expr mean = r.sum(x) / r.count();
    Expr gap = x - mean;
    Expr correction = r.has(2) ? r.scalar(2) : loop::constant(1, r.dtype());
    Expr freedom = loop::max(r.count() - correction, loop::constant(0, r.dtype()));
    Expr variance = r.sum(gap * gap) / freedom;
    r.store(0, root ? loop::sqrt(variance) : variance);
    if (with_mean) {
      r.store(1, mean);
    }
  };
  return spec;
}

// The variance of complex numbers is that of both parts together.
Tensor complex_variance(const Tensor& self, std::optional<IntArrayRef> dim,
                        std::optional<Scalar> correction, bool keepdim) {
  return add(var(real(self), dim, correction, keepdim), var(imag(self), dim, correction, keepdim));
}

Tensor complex_deviation(const Tensor& self, std::optional<IntArrayRef> dim,
                         std::optional<Scalar> correction, bool keepdim) {
  return sqrt(complex_variance(self, dim, correction, keepdim));
}

std::tuple<Tensor, Tensor> complex_variance_mean(const Tensor& self, std::optional<IntArrayRef> dim,
                                                 std::optional<Scalar> correction, bool keepdim) {
  return {complex_variance(self, dim, correction, keepdim), mean(self, dim, keepdim)};
}

std::tuple<Tensor, Tensor> complex_deviation_mean(const Tensor& self,
                                                  std::optional<IntArrayRef> dim,
                                                  std::optional<Scalar> correction, bool keepdim) {
  return {complex_deviation(self, dim, correction, keepdim), mean(self, dim, keepdim)};
}

// d variance / dx = 2 (x - mean) / (n - correction).
Tensor variance_gradient(const Tensor& grad, const Tensor& x, const Value& dim, double correction) {
  auto count = static_cast<double>(reduced_count(x, dim));
  Tensor mean_of = mean(x, reduced_dims(dim, x.dim(), "var"), true, std::nullopt);
  return mul(grad, mul(sub(x, mean_of), Scalar(2.0 / (count - correction))));
}

void var_gradient(Gradient& g) {
  double correction = g.is_none(2) ? 1.0 : g.scalar(2).to_double();
  auto rank = static_cast<int64_t>(g.sizes(0).size());
  Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(3), rank);
  g.set(0, variance_gradient(grad, g.tensor(0), g.value(1), correction));
}

void std_gradient(Gradient& g) {
  double correction = g.is_none(2) ? 1.0 : g.scalar(2).to_double();
  auto rank = static_cast<int64_t>(g.sizes(0).size());
  Tensor scaled = div(g.grad(), mul(g.result(), Scalar(2)));
  scaled = masked_fill(scaled, eq(g.result(), Scalar(0)), Scalar(0));
  Tensor grad = restore_dims(scaled, g.value(1), g.flag(3), rank);
  g.set(0, variance_gradient(grad, g.tensor(0), g.value(1), correction));
}

void var_mean_gradient(Gradient& g) {
  double correction = g.is_none(2) ? 1.0 : g.scalar(2).to_double();
  Tensor x = g.tensor(0);
  Tensor total;
  if (g.has_grad(0)) {
    Tensor grad = g.grad(0);
    if (g.op().name() == "std_mean") {
      grad = div(grad, mul(g.result(0), Scalar(2)));
    }
    grad = restore_dims(grad, g.value(1), g.flag(3), x.dim());
    total = variance_gradient(grad, x, g.value(1), correction);
  }
  if (g.has_grad(1)) {
    Tensor grad = restore_dims(g.grad(1), g.value(1), g.flag(3), x.dim());
    auto count = static_cast<double>(reduced_count(x, g.value(1)));
    Tensor part = expand(div(grad, Scalar(count)), x.sizes());
    total = total.defined() ? add(total, part) : part;
  }
  g.set(0, total);
}

// As in PyTorch, halves that are reduced to one number go to no wider float.
void check_variance(const Invocation& inv) {
  expect_floating(inv);
  if (inv.form != Form::Out || !inv.arguments[0].is_tensor() || !inv.results[0].is_tensor()) {
    return;
  }
  const Tensor& self = inv.arguments[0].tensor();
  const DType out = inv.results[0].tensor().dtype();
  const bool widens =
      is_reduced_floating(self.dtype()) && is_floating(out) && element_size(out) > 2;
  if (widens && self.numel() != 0 && reduced_count(self, inv.arguments[1]) == self.numel()) {
    fail(ErrorKind::Runtime, "", "std_var_all: Unsupported dtype ", scalar_type_name(self.dtype()),
         " where out= is ", scalar_type_name(out));
  }
}

std::optional<IntArrayRef> no_dims() {
  return std::nullopt;
}

}  // namespace

RUSHLIGHT_OPERATORS(reduction_variance) {
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };

  rows(op("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> Tensor",
          kFunction | kMethod | kOut)
           .doc("Variance over dimensions, divided by n - correction (1)."),
       variance_spec(false, false))
      .complex_body(complex_variance)
      .gradient("self", wide_second_order(var_gradient))
      .casts_out()
      .check(check_variance);
  rows(op("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> Tensor",
          kFunction | kMethod | kOut)
           .doc("Standard deviation over dimensions, by n - correction (1)."),
       variance_spec(true, false))
      .complex_body(complex_deviation)
      .gradient("self result", wide_second_order(std_gradient))
      .casts_out()
      .check(check_variance);
  rows(op("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> (Tensor, Tensor)",
          kFunction)
           .doc("Variance and mean together."),
       variance_spec(false, true))
      .complex_body(complex_variance_mean)
      .gradient("self result0", wide_second_order(var_mean_gradient))
      .check(expect_floating);
  rows(op("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> (Tensor, Tensor)",
          kFunction)
           .doc("Standard deviation and mean together."),
       variance_spec(true, true))
      .complex_body(complex_deviation_mean)
      .gradient("self result0", wide_second_order(var_mean_gradient))
      .check(expect_floating);
  op("var(Tensor self, bool unbiased=True) -> Tensor", kFunction | kMethod)
      .doc("Variance of all elements.")
      .composition([](const Tensor& self, bool unbiased) -> Tensor {
        return var(self, no_dims(), Scalar(unbiased ? 1 : 0), false);
      });
  op("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Variance over dimensions.")
      .composition(
          [](const Tensor& self, std::optional<IntArrayRef> dim, bool unbiased,
             bool keepdim) -> Tensor { return var(self, dim, Scalar(unbiased ? 1 : 0), keepdim); })
      .casts_out()
      .check(check_variance);
  op("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", kFunction)
      .doc("Variance and mean of all elements.")
      .composition([](const Tensor& self, bool unbiased) -> std::tuple<Tensor, Tensor> {
        return var_mean(self, no_dims(), Scalar(unbiased ? 1 : 0), false);
      });
  op("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) "
     "-> (Tensor, Tensor)",
     kFunction)
      .doc("Variance and mean over dimensions.")
      .composition([](const Tensor& self, std::optional<IntArrayRef> dim, bool unbiased,
                      bool keepdim) -> std::tuple<Tensor, Tensor> {
        return var_mean(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
      });
  op("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", kFunction)
      .doc("Standard deviation and mean of all elements.")
      .composition([](const Tensor& self, bool unbiased) -> std::tuple<Tensor, Tensor> {
        return std_mean(self, no_dims(), Scalar(unbiased ? 1 : 0), false);
      });
  op("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) "
     "-> (Tensor, Tensor)",
     kFunction)
      .doc("Standard deviation and mean over dimensions.")
      .composition([](const Tensor& self, std::optional<IntArrayRef> dim, bool unbiased,
                      bool keepdim) -> std::tuple<Tensor, Tensor> {
        return std_mean(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
      });
  op("std(Tensor self, bool unbiased=True) -> Tensor", kFunction | kMethod)
      .doc("Standard deviation of all elements.")
      .composition([](const Tensor& self, bool unbiased) -> Tensor {
        return rushlight::std(self, no_dims(), Scalar(unbiased ? 1 : 0), false);
      });
  op("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Standard deviation over dimensions.")
      .composition([](const Tensor& self, std::optional<IntArrayRef> dim, bool unbiased,
                      bool keepdim) -> Tensor {
        return rushlight::std(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
      })
      .casts_out()
      .check(check_variance);
}

}  // namespace rushlight
