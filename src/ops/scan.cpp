// Scans: running sums, products and extremes along a dimension.
#include <rushlight/generated/functions.h>

#include <numbers>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

namespace {

RowSpec scan_spec(Combine combine) {
  RowSpec spec;
  spec.results = {{RowShape::Full, RowType::Sum}};
  spec.body = [combine](Rows& r) { r.store(0, r.scan(combine, r.in(0))); };
  spec.compute = RowType::Sum;
  spec.ordered = true;
  spec.scans = true;
  return spec;
}

// A dtype that is asked for is the result's, in out= too.
void check_scan_out(const Invocation& inv) {
  if (inv.form != Form::Out || inv.arguments[2].is_none()) {
    return;
  }
  const DType out = inv.results[0].tensor().dtype();
  if (out != inv.arguments[2].dtype()) {
    fail(ErrorKind::Runtime, inv.op->name(), "Expected out tensor to have dtype ",
         scalar_type_name(inv.arguments[2].dtype()), ", but got ", scalar_type_name(out),
         " instead");
  }
}

// Sums from each position to the end.
Tensor reversed_cumsum(const Tensor& x, int64_t dim) {
  return x.dim() == 0 ? x : flip(cumsum(flip(x, {dim}), dim), {dim});
}

// d out_j / d x_i = out_j / x_i for j >= i; zeros of x need the product without them, which an
// outer form gives exactly.
void cumprod_gradient(Gradient& g) {
  Tensor x = g.tensor(0);
  int64_t rank = x.dim();
  if (rank == 0) {
    g.set(0, g.grad());
    return;
  }
  int64_t dim = wrap_dim(g.integer(1), rank, "cumprod");
  if (thread_state.grad_mode || any(eq(x, Scalar(0))).item().to_bool()) {
    // out_j without x_i, for each i: n products with x_i replaced by 1, masked to j >= i.
    int64_t length = x.sizes()[static_cast<size_t>(dim)];
    Tensor moved = movedim(x, {dim}, {-1});
    Tensor eye_mask = eye(length, TensorOptions(DType::Bool));
    Tensor replaced = where(eye_mask, Scalar(1), unsqueeze(moved, -2));  // (..., i, j)
    Tensor products = triu(cumprod(replaced, -1));
    Tensor grad = unsqueeze(movedim(g.grad(), {dim}, {-1}), -2);
    g.set(0, movedim(sum(mul(products, grad), {-1}, false, std::nullopt), {-1}, {dim}));
    return;
  }
  g.set(0, div(reversed_cumsum(mul(g.grad(), g.result()), dim), x));
}

// Of complex numbers: each pass doubles how many elements a position has taken in.
Tensor complex_cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  Tensor total = dtype ? to(self, *dtype) : self;
  dim = wrap_dim(dim, self.dim(), "cumprod");
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  for (int64_t step = 1; step < length; step *= 2) {
    const Tensor later = narrow(total, dim, step, length - step);
    const Tensor earlier = narrow(total, dim, 0, length - step);
    total = cat({narrow(total, dim, 0, step), mul(later, earlier)}, dim);
  }
  return length <= 1 ? clone(total) : total;
}

// The running extreme and where it last was: PyTorch takes the later of equal ones.
RowSpec extreme_scan(Combine combine) {
  RowSpec spec;
  spec.results = {{RowShape::Full, RowType::Same}, {RowShape::Full, RowType::Long}};
  spec.body = [combine](Rows& r) {
    Expr x = r.in(0);
    Expr most = r.scan(combine, x);
    Expr hit = x == most;
    if (is_floating(r.dtype())) {
      hit = hit | (loop::isnan(x) & loop::isnan(most));
    }
    Expr none = loop::constant_int(0, DType::Int64);
    r.store(0, most);
    r.store(1, r.scan(Combine::Max, loop::where(hit, r.position(), none)));
  };
  spec.ordered = true;
  spec.scans = true;
  return spec;
}

void extreme_scan_gradient(Gradient& g) {
  if (g.sizes(0).empty()) {
    g.set(0, g.grad());
    return;
  }
  g.set(0, scatter_add(zeros(g.sizes(0), g.grad().options()), g.integer(1), g.result(1), g.grad()));
}

// The logarithms of complex sums, taken in another order, may lie whole turns away from those of
// sums from the first element to the last: 2 pi i times what this returns. There the imaginary part
// moves by no more than a quarter of a turn from that of the greater summand, which is the sum so
// far or the element that joins it.
Tensor turns_missed(const Tensor& elements, const Tensor& sums, int64_t dim) {
  const int64_t rest = sums.size(dim) - 1;
  const Tensor earlier = narrow(sums, dim, 0, rest);
  const Tensor later = narrow(sums, dim, 1, rest);
  const Tensor joining = narrow(elements, dim, 1, rest);
  const auto turns = [&](const Tensor& from, const Tensor& to) {
    const Tensor count = round(div(sub(imag(from), imag(to)), Scalar(2 * std::numbers::pi)));
    return constant_pad_nd(movedim(nan_to_num(count, 0, 0, 0), {dim}, {-1}), {1, 0}, Scalar(0));
  };
  const Tensor moved = cumsum(turns(earlier, later), -1);
  const Tensor own = turns(joining, later);
  const Tensor greater = movedim(ge(real(joining), real(earlier)), {dim}, {-1});
  const Tensor position = where(greater, arange(Scalar(1), Scalar(rest + 1)), Scalar(0));
  const Tensor last = std::get<0>(cummax(constant_pad_nd(position, {1, 0}, Scalar(0)), -1));
  return movedim(add(moved, gather(sub(own, moved), -1, last)), {-1}, {dim});
}

Tensor log_cum_sum_exp(const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim(), "logcumsumexp");
  if (self.dim() == 0 || self.numel() == 0) {
    return clone(self);
  }
  // Each pass doubles how many elements a position has taken in. One shift for a whole row would
  // lose those far below its maximum.
  int64_t length = self.size(dim);
  Tensor total = self;
  for (int64_t step = 1; step < length; step *= 2) {
    Tensor later = narrow(total, dim, step, length - step);
    Tensor earlier = narrow(total, dim, 0, length - step);
    total = cat({narrow(total, dim, 0, step), logaddexp(later, earlier)}, dim);
  }
  if (self.is_complex() && length > 1) {
    const Tensor turns = turns_missed(detach(self), detach(total), dim);
    return add(total, complex(zeros_like(turns), mul(turns, Scalar(2 * std::numbers::pi))));
  }
  return length == 1 ? clone(self) : total;
}

}  // namespace

RUSHLIGHT_OPERATORS(scan) {
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };
  rows(op("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", kUnary)
           .doc("Running sum along a dimension; integers sum as int64."),
       scan_spec(Combine::Sum))
      .by_parts()
      .gradient("", [](Gradient& g) { g.set(0, reversed_cumsum(g.grad(), g.integer(1))); })
      .casts_out()
      .check(check_scan_out);
  rows(op("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", kUnary)
           .doc("Running product along a dimension; integers multiply as int64."),
       scan_spec(Combine::Prod))
      .complex()
      .complex_body(complex_cumprod)
      .gradient("self result", cumprod_gradient)
      .casts_out()
      .check(check_scan_out);
  rows(op("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
          kFunction | kMethod | kOut)
           .doc("Running maximum and its last position."),
       extreme_scan(Combine::Max))
      .gradient("result1", extreme_scan_gradient);
  rows(op("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
          kFunction | kMethod | kOut)
           .doc("Running minimum and its last position."),
       extreme_scan(Combine::Min))
      .gradient("result1", extreme_scan_gradient);
  op("logcumsumexp(Tensor self, int dim) -> Tensor", kFunction | kMethod | kOut)
      .doc("log of the running sum of exp along a dimension.")
      .composition(log_cum_sum_exp)
      .node("LogcumsumexpBackward0")
      .check(expect_floating);
}

}  // namespace rushlight
