// Reductions into positions that an index names: scatter_reduce and index_reduce.
#include <rushlight/generated/functions.h>

#include <limits>

#include "kernels/copy.h"
#include "kernels/scatter.h"
#include "ops/gradient.h"
#include "ops/index_check.h"
#include "ops/operator.h"
#include "ops/views.h"
#include "ops/wide_gradient.h"
#include "ops/written.h"

namespace rushlight {
namespace {

using kernels::Update;

struct Reduction {
  Update update;
  bool mean;
};

Reduction parse_reduction(std::string_view reduce, std::string_view op) {
  if (reduce == "sum" && op == "scatter_reduce") {
    return {Update::Add, false};
  }
  if (reduce == "mean") {
    return {Update::Add, true};
  }
  if (reduce == "prod") {
    return {Update::Mul, false};
  }
  if (reduce == "amax") {
    return {Update::Max, false};
  }
  if (reduce == "amin") {
    return {Update::Min, false};
  }
  fail(ErrorKind::Runtime, op, "reduce argument must be either ",
       op == "scatter_reduce" ? "sum, " : "", "prod, mean, amax or amin, got ", reduce);
}

// What a position that `self` does not take part in starts with.
Scalar identity(Update update, DType dtype) {
  if (update == Update::Add) {
    return 0;
  }
  if (update == Update::Mul) {
    return 1;
  }
  const bool high = update == Update::Min;
  if (is_floating(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return high ? infinity : -infinity;
  }
  if (dtype == DType::Bool) {
    return high;
  }
  const int bits = static_cast<int>(element_size(dtype)) * 8;
  if (is_signed(dtype)) {
    const int64_t most = INT64_MAX >> (64 - bits);
    return high ? most : -most - 1;
  }
  return high ? Scalar(UINT64_MAX >> (64 - bits)) : Scalar(0);
}

// Sums become means: floats by division, integers by floor division.
void divide(const Tensor& target, const Tensor& counts) {
  const DoorGuard guard(0, ~0U);
  if (target.is_floating_point()) {
    div_(target, to(counts, target.dtype()));
  } else {
    div_(target, to(counts, target.dtype()), "floor");
  }
}

Tensor at_least_line(const Tensor& tensor) {
  return tensor.dim() == 0 ? views::unsqueeze(tensor, 0) : tensor;
}

void reduce_into(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src,
                 std::string_view reduce, bool include_self, std::string_view op) {
  if (target.is_meta() || index.numel() == 0) {
    return;
  }
  const Reduction kind = parse_reduction(reduce, op);
  const int64_t at = wrap_dim(dim, target.dim(), op);
  const Tensor to_write = at_least_line(target);
  const Tensor values = checked_positions(at_least_line(index), to_write.size(at), at, op);
  Tensor given = at_least_line(src);
  if (given.storage() == target.storage()) {
    given = kernels::contiguous_copy(given);
  }
  if (!include_self) {
    const Tensor start =
        kernels::make_filled({}, identity(kind.update, target.dtype()), target.dtype());
    kernels::scatter_along(to_write, at, values, views::expand(start, values.sizes()), Update::Set);
  }
  kernels::scatter_along(to_write, at, values, given, kind.update);
  if (kind.mean) {
    const Tensor counts =
        kernels::make_filled(to_write.sizes(), include_self ? 1 : 0, DType::Int64);
    const Tensor one = kernels::make_filled({}, 1, DType::Int64);
    kernels::scatter_along(counts, at, values, views::expand(one, values.sizes()), Update::Add);
    const DoorGuard guard(0, ~0U);
    divide(to_write, clamp_min(counts, 1));
  }
}

void check_scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                          std::string_view reduce, bool) {
  parse_reduction(reduce, "scatter_reduce");
  const int64_t at = wrap_dim(dim, self.dim(), "scatter_reduce");
  check_index_type(index, "scatter");
  if (index.numel() == 0) {
    return;
  }
  if (self.dtype() != src.dtype()) {
    fail(ErrorKind::Runtime, "", "scatter(): Expected self.dtype to be equal to src.dtype, got ",
         scalar_type_name(self.dtype()), " and ", scalar_type_name(src.dtype()));
  }
  check_scatter_shape(self, at, index, src);
}

void scatter_reduce_body(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce, bool include_self) {
  reduce_into(target, dim, index, src, reduce, include_self, "scatter_reduce");
}

void check_index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                        std::string_view reduce, bool) {
  parse_reduction(reduce, "index_reduce");
  const int64_t at = wrap_dim(dim, self.dim(), "index_reduce");
  if (!is_index_dtype(index)) {
    fail(ErrorKind::Runtime, "", "index_reduce(): Expected dtype int32/int64 for index, got ",
         scalar_type_name(index.dtype()));
  }
  if (self.dtype() != source.dtype()) {
    fail(ErrorKind::Runtime, "",
         "index_reduce(): self and source must have the same scalar type, "
         "got ",
         scalar_type_name(self.dtype()), " and ", scalar_type_name(source.dtype()));
  }
  check_source_slices(self, at, index, source, "index_reduce");
}

// The index of each slice, repeated for all elements of the slice.
Tensor spread_index(const Tensor& index, int64_t dim, IntArrayRef sizes) {
  IntList shape(sizes.size(), 1);
  shape[static_cast<size_t>(dim)] = index.numel();
  return expand(reshape(index, shape), sizes);
}

void index_reduce_body(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& source,
                       std::string_view reduce, bool include_self) {
  const int64_t at = wrap_dim(dim, target.dim(), "index_reduce");
  const Tensor given = at_least_line(source);
  const DoorGuard guard(0, ~0U);
  reduce_into(target, at, spread_index(index, at, given.sizes()), given, reduce, include_self,
              "index_reduce");
}

// Gradients of both arguments of self.scatter_reduce(dim, index, src).
struct ReduceGradients {
  Tensor self;
  Tensor src;
};

Tensor counts_at(const Tensor& grad, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor start = include_self ? ones_like(grad) : zeros_like(grad);
  const Tensor ones = rushlight::ones(index.sizes(), grad.options());
  const Tensor counts = scatter_add(start, dim, index, ones);
  return masked_fill(counts, eq(counts, 0), 1);
}

ReduceGradients sum_gradients(const Tensor& grad, int64_t dim, const Tensor& index) {
  return {grad, gather(grad, dim, index)};
}

ReduceGradients mean_gradients(const Tensor& grad, int64_t dim, const Tensor& index,
                               bool include_self) {
  const Tensor counts = counts_at(grad, dim, index, include_self);
  return {div(grad, counts), gather(div(grad, counts), dim, index)};
}

// Shared among all arguments that equal the result.
ReduceGradients extreme_gradients(const Tensor& grad, const Tensor& self, int64_t dim,
                                  const Tensor& index, const Tensor& src, const Tensor& result) {
  const Tensor own = to(eq(self, result), grad.dtype());
  const Tensor taken = to(eq(src, gather(result, dim, index)), grad.dtype());
  const Tensor share = div(grad, scatter_add(own, dim, index, taken));
  return {mul(own, share), mul(taken, gather(share, dim, index))};
}

// With one zero among the factors only that one has a gradient, the product of the others; with
// more, none.
ReduceGradients product_gradients(const Tensor& grad, const Tensor& self, int64_t dim,
                                  const Tensor& index, const Tensor& src, const Tensor& result) {
  const Tensor self_zero = eq(self, 0);
  const Tensor filled = masked_fill(self, self_zero, 1);
  const Tensor grad_self = div(mul(grad, scatter_reduce(filled, dim, index, src, "prod")), filled);
  const Tensor src_zero = eq(src, 0);
  // A zero of self does not count: the product of the others then is zero by itself, and depends on
  // self.
  const Tensor zeros_at = scatter_add(zeros_like(self), dim, index, to(src_zero, src.dtype()));
  const Tensor single = logical_and(src_zero, eq(gather(zeros_at, dim, index), 1));
  const Tensor src_filled = masked_fill(src, single, 1);
  const Tensor others = scatter_reduce(self, dim, index, src_filled, "prod");
  const Tensor of_single = gather(mul(grad, others), dim, index);
  const Tensor of_others =
      div(gather(mul(grad, result), dim, index), masked_fill(src, src_zero, 1));
  const Tensor grad_src = where(single, of_single, masked_fill(of_others, src_zero, 0));
  return {grad_self, grad_src};
}

ReduceGradients reduce_gradients(const Tensor& grad, const Tensor& self, int64_t dim,
                                 const Tensor& index, const Tensor& src, const Tensor& result,
                                 std::string_view reduce, bool include_self, std::string_view op) {
  const Reduction kind = parse_reduction(reduce, op);
  ReduceGradients made = kind.mean ? mean_gradients(grad, dim, index, include_self)
                         : kind.update == Update::Add ? sum_gradients(grad, dim, index)
                         : kind.update == Update::Mul
                             ? product_gradients(grad, self, dim, index, src, result)
                             : extreme_gradients(grad, self, dim, index, src, result);
  if (!include_self) {
    made.self = scatter(made.self, dim, index, 0);
  }
  return made;
}

// Where `self` does not take part, the formula of products sees 1 in its place. That of extremes
// sees `self`: as in PyTorch, an element of it that happens to equal the result counts as one of
// those that share.
Tensor taking_part(const Tensor& self, int64_t dim, const Tensor& index, std::string_view reduce,
                   bool include_self, std::string_view op) {
  const Update update = parse_reduction(reduce, op).update;
  return include_self || update != Update::Mul ? self : scatter(self, dim, index, Scalar(1));
}

}  // namespace

RUSHLIGHT_OPERATORS(scatter_reduce) {
  op("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
     "bool include_self=True) -> Tensor",
     kUnary)
      .doc(
          "Reduces the elements of `src` into the positions that `index` names along `dim`: sum, "
          "prod, mean, amax or amin.")
      .kernel_into(written(check_scatter_reduce, scatter_reduce_body))
      .gradient("self index src result", wide_second_order([](Gradient& g) {
                  const Tensor self = taking_part(g.tensor(0), g.integer(1), g.tensor(2), g.text(4),
                                                  g.flag(5), "scatter_reduce");
                  const Tensor index = g.tensor(2);
                  Tensor src = g.tensor(3);
                  for (int64_t d = 0; d < src.dim(); ++d) {
                    src = narrow(src, d, 0, index.size(d));
                  }
                  const ReduceGradients made =
                      reduce_gradients(g.grad(), self, g.integer(1), index, src, g.result(),
                                       g.text(4), g.flag(5), "scatter_reduce");
                  g.set(0, made.self);
                  Tensor grad_src = made.src;
                  if (g.needs(3) && grad_src.sizes() != g.sizes(3)) {
                    IntList pad;
                    for (int64_t d = grad_src.dim(); d-- > 0;) {
                      pad.push_back(0);
                      pad.push_back(g.sizes(3)[static_cast<size_t>(d)] - grad_src.size(d));
                    }
                    grad_src = constant_pad_nd(grad_src, pad, 0);
                  }
                  g.set(3, grad_src);
                }));
  op("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
     "bool include_self=True) -> Tensor",
     kUnary)
      .doc(
          "Reduces slices of `source` into the slices at the given indices: prod, mean, amax or "
          "amin.")
      .kernel_into(written(check_index_reduce, index_reduce_body))
      .gradient("self index source result", wide_second_order([](Gradient& g) {
                  const Tensor source = g.tensor(3);
                  const int64_t dim = wrap_dim(g.integer(1), g.tensor(0).dim(), "index_reduce");
                  const Tensor wide = source.dim() == 0 ? unsqueeze(source, 0) : source;
                  const Tensor index = spread_index(g.tensor(2), dim, wide.sizes());
                  const Tensor self =
                      taking_part(g.tensor(0), dim, index, g.text(4), g.flag(5), "index_reduce");
                  const ReduceGradients made =
                      reduce_gradients(g.grad(), self, dim, index, wide, g.result(), g.text(4),
                                       g.flag(5), "index_reduce");
                  g.set(0, made.self);
                  g.set(3, reshape(made.src, g.sizes(3)));
                }));
}

}  // namespace rushlight
