// Reductions to extremes: their values and their positions.
#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

namespace {

Expr input(Rows& r) {
  return r.in(0);
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

// The first position of an extreme; a NaN counts as the most extreme.
void arg_extreme(Rows& r, Combine combine, int store_value) {
  Expr x = r.in(0);
  Expr most = r.reduce(combine, x);
  Expr hit = x == most;
  if (is_floating(r.dtype())) {
    hit = hit | loop::isnan(x);  // where one is NaN, so is the extreme, and nothing equals it
  }
  DType counts = r.is_short() ? DType::Int32 : DType::Int64;
  Expr never = loop::constant_int(r.is_short() ? INT32_MAX : INT64_MAX, counts);
  Expr at = loop::cast(r.position(), counts);
  Expr position = loop::cast(r.reduce(Combine::Min, loop::where(hit, at, never)), DType::Int64);
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

RUSHLIGHT_OPERATORS(reduction_extreme) {
  auto reduction = [](Entry entry, ReduceSpec spec) {
    entry.body(Kind::Reduction, make_reduction(entry.entry().schema, std::move(spec)));
    return entry;
  };
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };

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
      .casts_out()
      .node("MaxBackward1");
  op("min(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Minimum of all elements.")
      .composition([](const Tensor& self) -> Tensor { return whole_extreme(self, false); })
      .casts_out()
      .node("MinBackward1");
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
      })
      .node("ArgmaxBackward0")  // seen whole: nothing inside has a gradient
      .check(expect_not_bool);
  op("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kFunction | kMethod | kOut)
      .doc("First position of the minimum, in the flattened tensor or along dim.")
      .composition([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) -> Tensor {
        return arg_whole(self, dim, keepdim, false);
      })
      .node("ArgminBackward0")  // seen whole: nothing inside has a gradient
      .check(expect_not_bool);
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
      })
      .node("AminmaxBackward0");
}

}  // namespace rushlight
