// Sorting and selection by order.
#include "kernels/sort.h"

#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/dtype_checks.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/sort_rows.h"
#include "ops/views.h"
#include "ops/written.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

Tensor make_positions(const SortRows& rows, int64_t width) {
  return make_tensor({rows.count(), width}, DType::Int64, rows.rows().device());
}

// Sorted tensors lie in memory as the argument does.
Tensor laid_as(const Tensor& self, const Tensor& sorted) {
  if (self.is_contiguous()) {
    return sorted;
  }
  const Tensor made = make_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()),
                                   sorted.dtype(), sorted.device());
  kernels::copy(made, sorted);
  return made;
}

Pair sort_dim(const Tensor& self, int64_t dim, bool descending) {
  const SortRows rows(self, dim, "sort");
  const Tensor order = make_positions(rows, rows.length());
  if (!self.is_meta() && self.numel() != 0) {
    kernels::sort_rows(rows.rows(), order, descending, "sort");
  }
  return {laid_as(self, rows.restored(rows.picked(order), rows.length())),
          laid_as(self, rows.restored(order, rows.length()))};
}

Pair sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  return sort_dim(self, dim, descending);
}

Pair topk_dim(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  const SortRows rows(self, dim, "topk");
  if (k < 0 || k > rows.length()) {
    fail(ErrorKind::Runtime, "topk", "selected index k out of range: k=", k, ", dimension ",
         rows.dim(), " has size ", rows.length());
  }
  // Of a number alone k = 0 gives the number too, as PyTorch does.
  const int64_t count = self.dim() == 0 ? 1 : k;
  const Tensor order = make_positions(rows, count);
  if (!self.is_meta() && self.numel() != 0 && count != 0) {
    kernels::partial_sort_rows(rows.rows(), order, largest, "topk");
  }
  return {rows.restored(rows.picked(order), count), rows.restored(order, count)};
}

void refuse_empty(const SortRows& rows, std::string_view op) {
  if (rows.length() == 0) {
    fail(ErrorKind::Index, "", op, "(): Expected reduction dim ", rows.dim(),
         " to have non-zero size.");
  }
}

Pair kthvalue_dim(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const SortRows rows(self, dim, "kthvalue");
  refuse_empty(rows, "kthvalue");
  if (k < 1 || k > rows.length()) {
    fail(ErrorKind::Runtime, "kthvalue", "selected number k out of range for dimension ",
         rows.dim(), ": k=", k, ", size ", rows.length());
  }
  const Tensor at = make_positions(rows, 1);
  if (!self.is_meta() && self.numel() != 0) {
    kernels::select_rows(rows.rows(), at, k - 1, kernels::Median::No, "kthvalue");
  }
  return {rows.reduced(rows.picked(at), keepdim), rows.reduced(at, keepdim)};
}

Pair median_rows(const Tensor& self, int64_t dim, bool keepdim, kernels::Median kind,
                 std::string_view op) {
  const SortRows rows(self, dim, op);
  refuse_empty(rows, op);
  const Tensor at = make_positions(rows, 1);
  if (!self.is_meta() && self.numel() != 0) {
    kernels::select_rows(rows.rows(), at, 0, kind, op);
  }
  return {rows.reduced(rows.picked(at), keepdim), rows.reduced(at, keepdim)};
}

Tensor median_all(const Tensor& self, kernels::Median kind, std::string_view op) {
  if (self.numel() == 0) {
    // PyTorch gives NaN, which integers cannot hold: their smallest number.
    return self.is_floating_point()
               ? kernels::make_filled({}, std::numeric_limits<double>::quiet_NaN(), self.dtype(),
                                      self.device())
               : kernels::make_filled({}, std::numeric_limits<int64_t>::min(), self.dtype(),
                                      self.device());
  }
  const Tensor flat = kernels::as_contiguous(self);
  const Tensor line = make_view(flat, {self.numel()}, {1}, flat.storage_offset());
  return std::get<0>(median_rows(line, 0, false, kind, op));
}

Pair mode_dim(const Tensor& self, int64_t dim, bool keepdim) {
  const SortRows rows(self, dim, "mode");
  refuse_empty(rows, "mode");
  const Tensor at = make_positions(rows, 1);
  if (!self.is_meta() && self.numel() != 0) {
    kernels::mode_rows(rows.rows(), at, "mode");
  }
  return {rows.reduced(rows.picked(at), keepdim), rows.reduced(at, keepdim)};
}

// The gradient of values that were picked at `indices` along `dim`.
void picked_gradient(Gradient& g, int64_t dim, bool keepdim) {
  Tensor grad = g.grad();
  Tensor indices = g.result(1);
  const bool drops = !keepdim && !g.sizes(0).empty();
  if (drops) {
    grad = unsqueeze(grad, dim);
    indices = unsqueeze(indices, dim);
  }
  const Tensor blank = zeros(g.sizes(0), TensorOptions(grad.dtype()).device(grad.device()));
  g.set(0, scatter(blank, dim, indices, grad));
}

// Shared among all elements that equal the result.
void median_gradient(Gradient& g) {
  const Tensor self = g.tensor(0);
  const Tensor result = g.result();
  const Tensor same = logical_or(eq(self, result), logical_and(ne(self, self), ne(result, result)));
  const Tensor mask = to(same, g.grad().dtype());
  g.set(0, mul(mask, div(g.grad(), sum(mask))));
}

}  // namespace

RUSHLIGHT_OPERATORS(sort) {
  op("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc(
          "The elements along a dimension in order, and where they were. Equal elements keep "
          "their order; NaN counts as the largest.")
      .kernel(sort_dim)
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(1), true); });
  op("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> "
     "(Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc("The same; every sort is stable.")
      .kernel(sort_stable)
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(2), true); });
  op("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", kFunction | kMethod)
      .doc("Where the elements along a dimension are, in their order.")
      .composition([](const Tensor& self, int64_t dim, bool descending) {
        return std::get<1>(sort(self, dim, descending));
      });
  op("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The same; every sort is stable.")
      .composition([](const Tensor& self, bool, int64_t dim, bool descending) {
        return std::get<1>(sort(self, dim, descending));
      });
  op("msort(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("The elements along the first dimension in ascending order.")
      .composition([](const Tensor& self) { return std::get<0>(sort(self, int64_t{0}, false)); });
  op("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> "
     "(Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc("The k largest, or smallest, elements along a dimension in order, and where they are.")
      .kernel(topk_dim)
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(2), true); })
      .check(expect_not_bool);
  op("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> "
     "(Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc("The k-th smallest element along a dimension, and where it is.")
      .kernel_into(strict_outputs(box(kthvalue_dim)))
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(2), g.flag(3)); })
      .check(expect_not_bool);
  op("median(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("The lower median of all elements; NaN where one is NaN.")
      .kernel(
          [](const Tensor& self) { return median_all(self, kernels::Median::Propagate, "median"); })
      .gradient("self result", median_gradient)
      .check(expect_not_bool);
  op("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc("The lower median along a dimension, and where it is; NaN where one is NaN.")
      .kernel([](const Tensor& self, int64_t dim, bool keepdim) {
        return median_rows(self, dim, keepdim, kernels::Median::Propagate, "median");
      })
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(1), g.flag(2)); })
      .check(expect_not_bool);
  op("nanmedian(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("The lower median of the elements that are not NaN.")
      .kernel(
          [](const Tensor& self) { return median_all(self, kernels::Median::Ignore, "nanmedian"); })
      .gradient("self result", median_gradient)
      .check(expect_not_bool);
  op("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc("The lower median of the numbers along a dimension, and where it is.")
      .kernel([](const Tensor& self, int64_t dim, bool keepdim) {
        return median_rows(self, dim, keepdim, kernels::Median::Ignore, "nanmedian");
      })
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(1), g.flag(2)); })
      .check(expect_not_bool);
  op("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
     kFunction | kMethod | kOut)
      .doc(
          "The most frequent element along a dimension (of several, the smallest), and where it "
          "is last.")
      .kernel(mode_dim)
      .gradient("result1", [](Gradient& g) { picked_gradient(g, g.integer(1), g.flag(2)); });
}

}  // namespace rushlight
