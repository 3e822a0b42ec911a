// Reductions: sums, products, means, truth values.
#include <rushlight/generated/functions.h>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/reads_result.h"
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

// Of complex numbers: halves multiply one another until one is left.
Tensor complex_prod(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  Tensor x = dtype ? to(self, *dtype) : self;
  dim = wrap_dim(dim, x.dim(), "prod");
  if (x.dim() == 0) {
    return clone(x);
  }
  if (x.size(dim) == 0) {
    IntList sizes(x.sizes());
    sizes[static_cast<size_t>(dim)] = 1;
    x = ones(sizes, x.options());
  }
  while (x.size(dim) > 1) {
    const int64_t half = x.size(dim) / 2;
    const Tensor product = mul(narrow(x, dim, 0, half), narrow(x, dim, half, half));
    const Tensor rest = narrow(x, dim, 2 * half, x.size(dim) - 2 * half);
    x = rest.size(dim) == 0 ? product : cat({product, rest}, dim);
  }
  return clone(keepdim ? x : squeeze(x, dim));
}

Tensor complex_prod_all(const Tensor& self, std::optional<DType> dtype) {
  return complex_prod(reshape(self, {-1}), 0, false, dtype);
}

// The largest real part is shifted by.
Tensor complex_log_sum_exp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  if (self.numel() == 0) {
    return log(sum(exp(self), dim, keepdim));
  }
  const Tensor most = amax(real(self), dim, true);
  const Tensor shift = masked_fill(most, isinf(most), Scalar(0));
  const Tensor total = add(log(sum(exp(sub(self, shift)), dim, true)), shift);
  return keepdim ? total : reshape(total, sum(self, dim, false).sizes());
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

// log(sum(exp(x))), shifted by the maximum.
void log_sum_exp(Rows& r) {
  Expr x = r.in(0);
  Expr most = r.reduce(Combine::Max, x);
  Expr shift = loop::where(loop::isinf(most), 0.0, most);
  r.store(0, shift + loop::log(r.sum(loop::exp(x - shift))));
}

std::optional<IntArrayRef> no_dims() {
  return std::nullopt;
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
                .by_parts()
                .doc("Sum over dimensions; integers sum as int64."),
            {Combine::Sum, input, {}, RowType::Sum, RowType::Sum})
      .gradient("", sum_gradient)
      .casts_out()
      .node("SumBackward1");
  op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", kFunction | kMethod)
      .doc("Sum of all elements; integers sum as int64.")
      .composition([](const Tensor& self, std::optional<DType> dtype) -> Tensor {
        return sum(self, no_dims(), false, dtype);
      })
      .node("SumBackward0");
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
      .casts_out()
      .node("MeanBackward1");
  op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", kFunction | kMethod | kOut)
      .doc("Mean of all elements.")
      .composition([](const Tensor& self, std::optional<DType> dtype) -> Tensor {
        return mean_dims(self, no_dims(), false, dtype);
      })
      .casts_out()
      .node("MeanBackward0");
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
        if (dtype && !is_floating(*dtype) && !is_complex(*dtype)) {
          fail(ErrorKind::Runtime, "nanmean",
               "could not infer output dtype. Optional dtype must be either a floating point or "
               "complex dtype. Got: ",
               scalar_type_name(*dtype));
        }
        Tensor count = sum(logical_not(isnan(self)), dim, keepdim, std::nullopt);
        return div(nansum(self, dim, keepdim, dtype), count);
      })
      .casts_out();
  keep_result(
      reduction(
          op("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) "
             "-> Tensor",
             kFunction | kMethod | kOut)
              .doc("Product over a dimension; integers multiply as int64."),
          {Combine::Prod, input, {}, RowType::Sum, RowType::Sum})
          .complex()
          .complex_body(complex_prod)
          .gradient("self", prod_gradient)
          .casts_out()
          .node("ProdBackward1"));
  keep_result(
      reduction(op("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", kFunction | kMethod)
                    .doc("Product of all elements."),
                {Combine::Prod, input, {}, RowType::Sum, RowType::Sum})
          .complex()
          .complex_body(complex_prod_all)
          .gradient("self", prod_gradient)
          .node("ProdBackward0"));
  reduction(
      op("all.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
         kFunction | kMethod | kOut)
          .doc("Whether all elements along dimensions are non-zero; along none, each by itself."),
      {Combine::And, truth, {}, RowType::Bool, RowType::Bool, true, false})
      .complex_body([](const Tensor& self, std::optional<IntArrayRef> dim, bool keepdim) {
        return all(ne(self, Scalar(0)), dim, keepdim);
      })
      .not_differentiable();
  op("all(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Whether all elements are non-zero.")
      .composition([](const Tensor& self) -> Tensor { return all(self, no_dims(), false); });
  reduction(
      op("any.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
         kFunction | kMethod | kOut)
          .doc("Whether any element along dimensions is non-zero; along none, each by itself."),
      {Combine::Or, truth, {}, RowType::Bool, RowType::Bool, true, false})
      .complex_body([](const Tensor& self, std::optional<IntArrayRef> dim, bool keepdim) {
        return any(ne(self, Scalar(0)), dim, keepdim);
      })
      .not_differentiable();
  op("any(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Whether any element is non-zero.")
      .composition([](const Tensor& self) -> Tensor { return any(self, no_dims(), false); });
  rows(op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
          kFunction | kMethod | kOut)
           .doc("log(sum(exp(x))) over dimensions, without overflow."),
       {{{RowShape::Reduced, RowType::Float}}, log_sum_exp, RowType::Float})
      .complex()
      .complex_body(complex_log_sum_exp)
      .gradient("self result",
                [](Gradient& g) {
                  Tensor x = g.tensor(0);
                  Tensor grad = restore_dims(g.grad(), g.value(1), g.flag(2), x.dim());
                  Tensor result = restore_dims(g.result(), g.value(1), g.flag(2), x.dim());
                  // exp(-inf - -inf) is NaN: such rows get no gradient.
                  Tensor none = isneginf(result.is_complex() ? real(result) : result);
                  Tensor shift = masked_fill(result, none, Scalar(0));
                  g.set(0, mul(grad, exp(sub(x, shift))));
                })
      .casts_out();
}

}  // namespace rushlight
