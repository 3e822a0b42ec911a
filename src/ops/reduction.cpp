// Reductions: sums, products, extremes, means, variances, norms.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

Tensor restore_dims(const Tensor& tensor, const Value& dim, bool keepdim, int64_t rank) {
  if (keepdim || rank == 0) {
    return tensor;
  }
  IntList shape(tensor.sizes());
  for (int64_t at : reduced_dims(dim, rank, "restore_dims")) {
    shape.insert(static_cast<size_t>(at), 1);
  }
  return reshape(tensor, shape);
}

namespace {

Expr input(Rows& r) {
  return r.in(0);
}

Expr truth(Rows& r) {
  Expr x = r.raw(0);
  return x.dtype() == DType::Bool ? x : loop::cast(x, DType::Bool);
}

int64_t reduced_count(const Tensor& self, const Value& dim) {
  int64_t count = 1;
  for (int64_t at : reduced_dims(dim, self.dim(), "count")) {
    count *= self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(at)];
  }
  return count;
}

void check_mean(std::string_view op, DType dtype) {
  if (!is_floating(dtype) && !is_complex(dtype)) {
    fail(ErrorKind::Runtime, op, op,
         "(): could not infer output dtype. Input dtype must be either "
         "a floating point or complex dtype. Got: ",
         scalar_type_name(dtype));
  }
}

Tensor mean_dims(const Tensor& self, std::optional<IntArrayRef> dim, bool keepdim,
                 std::optional<DType> dtype) {
  check_mean("mean", dtype.value_or(self.dtype()));
  Value dims = dim ? Value(IntList(*dim)) : Value();
  auto count = static_cast<double>(reduced_count(self, dims));
  return div(sum(self, dim, keepdim, dtype), Scalar(count));
}

void sum_gradient(Gradient& g) {
  auto rank = static_cast<int64_t>(g.sizes(0).size());
  Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), rank);
  g.set(0, expand(grad, g.sizes(0)));
}

// Ties share the gradient evenly.
void extreme_gradient(Gradient& g) {
  auto rank = static_cast<int64_t>(g.sizes(0).size());
  Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), rank);
  Tensor result = restore_dims(g.result(), g.value(1), g.flag(2), rank);
  Tensor mask = eq(g.tensor(0), result);
  Tensor count = sum(mask, reduced_dims(g.value(1), rank, "amax"), true, std::nullopt);
  g.set(0, mul(mask, div(grad, count)));
}

// The product of the others: exact with zeros, through exclusive products from both sides.
void prod_gradient(Gradient& g) {
  Tensor x = g.tensor(0);
  Tensor grad = g.grad();
  if (x.dim() == 0) {
    g.set(0, grad);
    return;
  }
  bool all_dims = g.op().schema.overload.empty();
  Tensor flat = all_dims ? reshape(x, {-1}) : x;
  int64_t dim = all_dims ? 0 : wrap_dim(g.integer(1), x.dim(), "prod");
  if (!all_dims && !g.flag(2)) {
    grad = unsqueeze(grad, dim);
  }
  int64_t length = flat.sizes()[static_cast<size_t>(dim)];
  if (length == 0) {
    g.set(0, zeros_like(x));
    return;
  }
  IntList one(flat.sizes());
  one[static_cast<size_t>(dim)] = 1;
  Tensor ones_part = ones(one, flat.options());
  Tensor before = cumprod(cat({ones_part, narrow(flat, dim, 0, length - 1)}, dim), dim);
  Tensor reversed = flip(narrow(flat, dim, 1, length - 1), {dim});
  Tensor after = flip(cumprod(cat({ones_part, reversed}, dim), dim), {dim});
  g.set(0, reshape(mul(grad, mul(before, after)), x.sizes()));
}

// The first position of an extreme; a NaN counts as the most extreme.
void arg_extreme(Rows& r, Combine combine, int store_value) {
  Expr x = r.in(0);
  Expr most = r.reduce(combine, x);
  Expr hit = x == most;
  if (is_floating(r.dtype())) {
    hit = hit | (loop::isnan(x) & loop::isnan(most));
  }
  Expr never = loop::constant_int(INT64_MAX, DType::Int64);
  Expr position = r.reduce(Combine::Min, loop::where(hit, r.position(), never));
  if (store_value >= 0) {
    r.store(store_value, most);
  }
  r.store(store_value + 1, position);
}

RowSpec arg_spec(Combine combine) {
  RowSpec spec;
  spec.results = {{RowShape::Reduced, RowType::Long}};
  spec.body = [combine](Rows& r) { arg_extreme(r, combine, -1); };
  spec.allow_empty = false;
  spec.ordered = true;
  return spec;
}

RowSpec extreme_with_index(Combine combine) {
  RowSpec spec = arg_spec(combine);
  spec.results = {{RowShape::Reduced, RowType::Same}, {RowShape::Reduced, RowType::Long}};
  spec.body = [combine](Rows& r) { arg_extreme(r, combine, 0); };
  return spec;
}

void index_gradient(Gradient& g) {
  auto rank = static_cast<int64_t>(g.sizes(0).size());
  if (rank == 0) {
    g.set(0, g.grad());
    return;
  }
  int64_t dim = wrap_dim(g.integer(1), rank, "max");
  Tensor grad = g.grad();
  Tensor index = g.result(1);
  if (!g.flag(2)) {
    grad = unsqueeze(grad, dim);
    index = unsqueeze(index, dim);
  }
  g.set(0, scatter(zeros(g.sizes(0), grad.options()), dim, index, grad));
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

// log(sum(exp(x))), shifted by the maximum.
void log_sum_exp(Rows& r) {
  Expr x = r.in(0);
  Expr most = r.reduce(Combine::Max, x);
  Expr shift = loop::where(loop::isinf(most), 0.0, most);
  r.store(0, shift + loop::log(r.sum(loop::exp(x - shift))));
}

// The p-norm's element, by the kind of p: 0 counts, 1 and 2 need no pow.
Tensor vector_norm(const Tensor& self, Scalar ord, std::optional<IntArrayRef> dim, bool keepdim,
                   std::optional<DType> dtype) {
  Tensor x = dtype ? to(self, *dtype) : self;
  if (!x.is_floating_point()) {
    fail(ErrorKind::Runtime, "linalg.vector_norm",
         "Expected a floating point or complex tensor as input. Got ", scalar_type_name(x.dtype()));
  }
  double p = ord.to_double();
  IntList dims = reduced_dims(dim ? Value(IntList(*dim)) : Value(), x.dim(), "linalg.vector_norm");
  if (p == 0) {
    return _norm0(x, dims, keepdim);
  }
  if (p == 1) {
    return sum(abs(x), dims, keepdim, std::nullopt);
  }
  if (p == 2) {
    return _norm2(x, dims, keepdim);
  }
  if (std::isinf(p)) {
    return p > 0 ? amax(abs(x), dims, keepdim) : amin(abs(x), dims, keepdim);
  }
  return pow(sum(pow(abs(x), Scalar(p)), dims, keepdim, std::nullopt), Scalar(1 / p));
}

Tensor norm_default(const Tensor& self, Scalar p) {
  return vector_norm(self, p, std::nullopt, false, std::nullopt);
}
Tensor norm_dims(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                 bool keepdim) {
  return vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, std::nullopt);
}

std::optional<IntArrayRef> no_dims() {
  return std::nullopt;
}

Tensor whole_extreme(const Tensor& self, bool greatest) {
  if (self.numel() == 0) {
    const char* name = greatest ? "max" : "min";
    fail(ErrorKind::Runtime, name, name,
         "(): Expected reduction dim to be specified for "
         "input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  }
  return greatest ? amax(self) : amin(self);
}

Tensor arg_whole(const Tensor& self, const std::optional<int64_t>& dim, bool keepdim,
                 bool greatest) {
  Tensor flat = dim ? self : reshape(self, {-1});
  if (!dim && self.numel() == 0) {
    const char* name = greatest ? "argmax" : "argmin";
    fail(ErrorKind::Index, name,
         "Expected reduction dim to be specified for input.numel() == 0. "
         "Specify the reduction dim with the 'dim' argument.");
  }
  Tensor found = greatest ? _argmax(flat, dim.value_or(0), keepdim && dim)
                          : _argmin(flat, dim.value_or(0), keepdim && dim);
  if (!dim && keepdim) {
    return reshape(found, IntList(static_cast<size_t>(self.dim()), 1));
  }
  return found;
}

}  // namespace

RUSHLIGHT_OPERATORS(reduction) {
  auto reduction = [](Entry entry, ReduceSpec spec) {
    entry.body(Kind::Reduction, make_reduction(entry.entry().schema, std::move(spec)));
    return entry;
  };
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };

  reduction(op("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
               "ScalarType? dtype=None) -> Tensor",
               kFunction | kMethod | kOut)
                .doc("Sum over dimensions; integers sum as int64."),
            {Combine::Sum, input, {}, RowType::Sum, RowType::Sum})
      .gradient("", sum_gradient)
      .casts_out();
  op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", kFunction | kMethod)
      .doc("Sum of all elements; integers sum as int64.")
      .composition([](const Tensor& self, std::optional<DType> dtype) -> Tensor {
        return sum(self, no_dims(), false, dtype);
      });
  reduction(op("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
               "ScalarType? dtype=None) -> Tensor",
               kFunction | kMethod | kOut)
                .doc("Sum over dimensions, NaN counting as 0."),
            {Combine::Sum,
             [](Rows& r) {
               Expr x = r.in(0);
               return is_floating(r.dtype()) ? loop::where(loop::isnan(x), 0.0, x) : x;
             },
             {},
             RowType::Sum,
             RowType::Sum})
      .gradient("self",
                [](Gradient& g) {
                  auto rank = static_cast<int64_t>(g.sizes(0).size());
                  Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), rank);
                  g.set(0, mul(grad, logical_not(isnan(g.tensor(0)))));
                })
      .casts_out();
  op("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Mean over dimensions of a floating tensor.")
      .composition(mean_dims)
      .casts_out();
  op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", kFunction | kMethod | kOut)
      .doc("Mean of all elements.")
      .composition([](const Tensor& self, std::optional<DType> dtype) -> Tensor {
        return mean_dims(self, no_dims(), false, dtype);
      })
      .casts_out();
  op("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
     "-> Tensor",
     kFunction | kMethod | kOut)
      .doc("Mean of the elements that are not NaN.")
      .composition([](const Tensor& self, std::optional<IntArrayRef> dim, bool keepdim,
                      std::optional<DType> dtype) -> Tensor {
        if (!self.is_floating_point()) {
          fail(ErrorKind::Runtime, "nanmean",
               "expected input to have floating point or complex "
               "dtype but got ",
               scalar_type_name(self.dtype()));
        }
        Tensor count = sum(logical_not(isnan(self)), dim, keepdim, std::nullopt);
        return div(nansum(self, dim, keepdim, dtype), count);
      })
      .casts_out();
  reduction(op("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) "
               "-> Tensor",
               kFunction | kMethod | kOut)
                .doc("Product over a dimension; integers multiply as int64."),
            {Combine::Prod, input, {}, RowType::Sum, RowType::Sum})
      .gradient("self", prod_gradient)
      .casts_out();
  reduction(op("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", kFunction | kMethod)
                .doc("Product of all elements."),
            {Combine::Prod, input, {}, RowType::Sum, RowType::Sum})
      .gradient("self", prod_gradient);
  reduction(op("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
               kFunction | kMethod | kOut)
                .doc("Maximum over dimensions; ties share the gradient."),
            {Combine::Max, input, {}, RowType::Same, RowType::Same, false})
      .gradient("self result", extreme_gradient);
  reduction(op("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
               kFunction | kMethod | kOut)
                .doc("Minimum over dimensions; ties share the gradient."),
            {Combine::Min, input, {}, RowType::Same, RowType::Same, false})
      .gradient("self result", extreme_gradient);
  op("max(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Maximum of all elements.")
      .composition([](const Tensor& self) -> Tensor { return whole_extreme(self, true); })
      .casts_out();
  op("min(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Minimum of all elements.")
      .composition([](const Tensor& self) -> Tensor { return whole_extreme(self, false); })
      .casts_out();
  // Before the form with dim, for which a tensor of one integer could pass.
  op("max.other(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("Another name of maximum.")
      .composition(
          [](const Tensor& self, const Tensor& other) -> Tensor { return maximum(self, other); })
      .casts_out();
  rows(op("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          kFunction | kMethod | kOut)
           .doc("Maximum along a dimension and its first position."),
       extreme_with_index(Combine::Max))
      .gradient("result1", index_gradient);
  // Before the form with dim, for which a tensor of one integer could pass.
  op("min.other(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("Another name of minimum.")
      .composition(
          [](const Tensor& self, const Tensor& other) -> Tensor { return minimum(self, other); })
      .casts_out();
  rows(op("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          kFunction | kMethod | kOut)
           .doc("Minimum along a dimension and its first position."),
       extreme_with_index(Combine::Min))
      .gradient("result1", index_gradient);
  rows(op("_argmax(Tensor self, int dim, bool keepdim) -> Tensor", kInternal)
           .doc("argmax along one dimension."),
       arg_spec(Combine::Max))
      .not_differentiable();
  rows(op("_argmin(Tensor self, int dim, bool keepdim) -> Tensor", kInternal)
           .doc("argmin along one dimension."),
       arg_spec(Combine::Min))
      .not_differentiable();
  op("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kFunction | kMethod | kOut)
      .doc("First position of the maximum, in the flattened tensor or along dim.")
      .composition([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) -> Tensor {
        return arg_whole(self, dim, keepdim, true);
      });
  op("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kFunction | kMethod | kOut)
      .doc("First position of the minimum, in the flattened tensor or along dim.")
      .composition([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) -> Tensor {
        return arg_whole(self, dim, keepdim, false);
      });
  op("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
     kFunction | kMethod | kOut)
      .doc("Minimum and maximum together.")
      .composition([](const Tensor& self, std::optional<int64_t> dim,
                      bool keepdim) -> std::tuple<Tensor, Tensor> {
        IntList dims = dim ? IntList{*dim} : IntList();
        if (!dim && self.numel() == 0) {
          fail(ErrorKind::Runtime, "aminmax",
               "cannot compute aminmax over an empty dimension as "
               "the operation has no identity, got shape ",
               self.sizes());
        }
        return {amin(self, dims, keepdim), amax(self, dims, keepdim)};
      });
  reduction(op("all.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
               kFunction | kMethod | kOut)
                .doc("Whether all elements along dimensions are non-zero."),
            {Combine::And, truth, {}, RowType::Bool, RowType::Bool})
      .not_differentiable();
  op("all(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Whether all elements are non-zero.")
      .composition([](const Tensor& self) -> Tensor { return all(self, no_dims(), false); });
  reduction(op("any.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
               kFunction | kMethod | kOut)
                .doc("Whether any element along dimensions is non-zero."),
            {Combine::Or, truth, {}, RowType::Bool, RowType::Bool})
      .not_differentiable();
  op("any(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Whether any element is non-zero.")
      .composition([](const Tensor& self) -> Tensor { return any(self, no_dims(), false); });
  rows(op("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> Tensor",
          kFunction | kMethod | kOut)
           .doc("Variance over dimensions, divided by n - correction (1)."),
       variance_spec(false, false))
      .gradient("self", var_gradient)
      .casts_out();
  rows(op("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> Tensor",
          kFunction | kMethod | kOut)
           .doc("Standard deviation over dimensions, by n - correction (1)."),
       variance_spec(true, false))
      .gradient("self result", std_gradient)
      .casts_out();
  rows(op("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> (Tensor, Tensor)",
          kFunction)
           .doc("Variance and mean together."),
       variance_spec(false, true))
      .gradient("self result0", var_mean_gradient);
  rows(op("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
          "bool keepdim=False) -> (Tensor, Tensor)",
          kFunction)
           .doc("Standard deviation and mean together."),
       variance_spec(true, true))
      .gradient("self result0", var_mean_gradient);
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
      .casts_out();
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
      .casts_out();
  rows(op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
          kFunction | kMethod | kOut)
           .doc("log(sum(exp(x))) over dimensions, without overflow."),
       {{{RowShape::Reduced, RowType::Float}}, log_sum_exp, RowType::Float})
      .gradient("self result",
                [](Gradient& g) {
                  Tensor x = g.tensor(0);
                  Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), x.dim());
                  Tensor result = restore_dims(g.result(), g.value(1), g.flag(2), x.dim());
                  // exp(-inf - -inf) is NaN: such rows get no gradient.
                  Tensor shift = masked_fill(result, isneginf(result), Scalar(0));
                  g.set(0, mul(grad, exp(sub(x, shift))));
                })
      .casts_out();
  reduction(op("_norm2(Tensor self, int[1] dim, bool keepdim) -> Tensor", kInternal)
                .doc("Euclidean norm over dimensions."),
            {Combine::Sum,
             [](Rows& r) {
               Expr x = r.in(0);
               return x * x;
             },
             [](Rows&, Expr total) { return loop::sqrt(total); }})
      .gradient("self result", [](Gradient& g) {
        Tensor x = g.tensor(0);
        Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), x.dim());
        Tensor result = restore_dims(g.result(), g.value(1), g.flag(2), x.dim());
        Tensor scale = masked_fill(div(grad, result), eq(result, Scalar(0)), Scalar(0));
        g.set(0, mul(x, scale));
      });
  reduction(op("_norm0(Tensor self, int[1] dim, bool keepdim) -> Tensor", kInternal)
                .doc("How many elements are not zero, as a float."),
            {Combine::Sum,
             [](Rows& r) {
               Expr zero = loop::constant(0, r.dtype());
               return loop::where(r.in(0) == zero, zero, loop::constant(1, r.dtype()));
             },
             {}})
      .gradient("", [](Gradient&) {});
  op("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     kFunction | kOut)
      .doc("The ord-norm of the elements over dimensions.")
      .composition(vector_norm);
  op("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", kFunction | kMethod)
      .doc("The p-norm of all elements.")
      .composition(norm_default);
  op("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The p-norm over dimensions.")
      .composition(norm_dims);
}

}  // namespace rushlight
