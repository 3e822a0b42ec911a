// gather and scatter: one index an element.
#include "kernels/scatter.h"

#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/index_check.h"
#include "ops/operator.h"
#include "ops/views.h"
#include "ops/written.h"

namespace rushlight {
namespace {

using kernels::Update;

Tensor at_least_line(const Tensor& tensor) {
  return tensor.dim() == 0 ? views::unsqueeze(tensor, 0) : tensor;
}

Tensor checked_index(const Tensor& index, const Tensor& self, int64_t dim, std::string_view op) {
  return checked_positions(at_least_line(index), self.dim() == 0 ? 1 : self.size(dim), dim, op);
}

Tensor gather_dim(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const int64_t at = wrap_dim(dim, self.dim(), "gather");
  check_index_type(index, "gather");
  const Tensor made = make_tensor(index.sizes(), self.dtype(), self.device());
  if (index.numel() == 0) {
    return made;
  }
  check_gather_shape(self, at, index);
  if (!made.is_meta() && !index.is_meta()) {
    kernels::gather_along(at_least_line(made), at_least_line(self), at,
                          checked_index(index, self, at, "gather"));
  }
  return made;
}

void check_scatter_source(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                          std::string_view op) {
  const int64_t at = wrap_dim(dim, self.dim(), op);
  check_index_type(index, op);
  if (index.numel() == 0) {
    return;
  }
  if (src.defined() && self.dtype() != src.dtype()) {
    fail(ErrorKind::Runtime, "", op, "(): Expected self.dtype to be equal to src.dtype, got ",
         scalar_type_name(self.dtype()), " and ", scalar_type_name(src.dtype()));
  }
  check_scatter_shape(self, at, index, src);
}

void scatter_into(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src,
                  Update update, std::string_view op) {
  if (target.is_meta() || index.numel() == 0) {
    return;
  }
  const int64_t at = wrap_dim(dim, target.dim(), op);
  const Tensor source = src.storage() == target.storage() ? kernels::contiguous_copy(src) : src;
  kernels::scatter_along(at_least_line(target), at, checked_index(index, target, at, op),
                         at_least_line(source), update);
}

void scatter_value(const Tensor& target, int64_t dim, const Tensor& index, const Scalar& value,
                   Update update) {
  const Tensor number = kernels::make_filled({}, value, target.dtype(), target.device());
  scatter_into(target, dim, index, views::expand(number, index.sizes()), update, "scatter");
}

Update named_update(std::string_view reduce) {
  if (reduce == "add") {
    return Update::Add;
  }
  if (reduce != "multiply") {
    fail(ErrorKind::Runtime, "scatter", "reduce argument must be either add or multiply., got ",
         reduce);
  }
  return Update::Mul;
}

void check_src(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter_source(self, dim, index, src, "scatter");
}

void check_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter_source(self, dim, index, src, "scatter_add");
}

void check_value(const Tensor& self, int64_t dim, const Tensor& index, Scalar) {
  check_scatter_source(self, dim, index, Tensor(), "scatter");
}

void scatter_src_body(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into(target, dim, index, src, Update::Set, "scatter");
}

void scatter_add_body(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into(target, dim, index, src, Update::Add, "scatter_add");
}

void scatter_value_body(const Tensor& target, int64_t dim, const Tensor& index, Scalar value) {
  scatter_value(target, dim, index, value, Update::Set);
}

void check_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  std::string_view reduce) {
  check_scatter_source(self, dim, index, src, "scatter");
  named_update(reduce);
}

void scatter_reduce_body(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce) {
  scatter_into(target, dim, index, src, named_update(reduce), "scatter");
}

void check_value_reduce(const Tensor& self, int64_t dim, const Tensor& index, Scalar,
                        std::string_view reduce) {
  check_scatter_source(self, dim, index, Tensor(), "scatter");
  named_update(reduce);
}

void scatter_value_reduce_body(const Tensor& target, int64_t dim, const Tensor& index, Scalar value,
                               std::string_view reduce) {
  scatter_value(target, dim, index, value, named_update(reduce));
}

Tensor zeros_as_argument(Gradient& g) {
  return zeros(g.sizes(0), TensorOptions(g.grad().dtype()).device(g.grad().device()));
}

// Negative positions count from the end.
Tensor from_the_end(const Tensor& indices, int64_t length) {
  return where(lt(indices, Scalar(0)), add(indices, Scalar(length)), indices);
}

Tensor take_along(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (indices.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "", "torch.take_along_dim(): dtype of indices should be Long but got ",
         scalar_type_name(indices.dtype()));
  }
  if (!dim) {
    Tensor flat = view(contiguous(self), {-1});
    return gather(flat, 0, from_the_end(view(contiguous(indices), {-1}), flat.size(0)));
  }
  if (self.dim() != indices.dim()) {
    fail(ErrorKind::Runtime, "",
         "torch.take_along_dim(): input and indices should have the same "
         "number of dimensions, but got ",
         self.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
  }
  const int64_t at = wrap_dim(*dim, self.dim(), "take_along_dim");
  IntList own(self.sizes());
  IntList asked(indices.sizes());
  if (!own.empty()) {
    own[static_cast<size_t>(at)] = 1;
    asked[static_cast<size_t>(at)] = 1;
  }
  const IntList shape = broadcast_shapes(own, asked, "take_along_dim");
  IntList self_shape = shape;
  IntList index_shape = shape;
  if (!shape.empty()) {
    self_shape[static_cast<size_t>(at)] = self.size(at);
    index_shape[static_cast<size_t>(at)] = indices.size(at);
  }
  int64_t length = shape.empty() ? 1 : self.size(at);
  return gather(expand(self, self_shape), at, from_the_end(expand(indices, index_shape), length));
}

[[noreturn]] void no_gradient(std::string_view name) {
  fail(ErrorKind::Runtime, "", "the derivative for '", name, "' is not implemented.");
}

}  // namespace

RUSHLIGHT_OPERATORS(scatter) {
  op("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc(
          "The element of `self` at each position, with the position along `dim` taken from "
          "`index`.")
      .kernel_into(strict_outputs(box(gather_dim)))
      .gradient("index", [](Gradient& g) {
        g.set(0, scatter_add(zeros_as_argument(g), g.integer(1), g.tensor(2), g.grad()));
      });
  op("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("gather with broadcasting; over the flattened tensors without a dimension.")
      .composition(take_along);
  op("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", kUnary)
      .doc(
          "Writes each element of `src` to its position, with the position along `dim` taken from "
          "`index`; of repeated positions the last wins.")
      .kernel_into(written(check_src, scatter_src_body))
      .gradient("index", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, scatter(g.grad(), g.integer(1), g.tensor(2), 0));
        }
        if (g.needs(3)) {
          g.set(3, gather(g.grad(), g.integer(1), g.tensor(2)));
        }
      });
  op("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", kUnary)
      .doc("Writes one number to the positions that `index` names along `dim`.")
      .kernel_into(written(check_value, scatter_value_body))
      .gradient("index",
                [](Gradient& g) { g.set(0, scatter(g.grad(), g.integer(1), g.tensor(2), 0)); });
  op("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
     kUnary)
      .doc("Adds or multiplies each element of `src` to its position (\"add\", \"multiply\").")
      .kernel_into(written(check_reduce, scatter_reduce_body))
      .gradient("", [](Gradient&) { no_gradient("scatter"); });
  op("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
     "Tensor",
     kUnary)
      .doc("Adds or multiplies one number to the positions that `index` names.")
      .kernel_into(written(check_value_reduce, scatter_value_reduce_body))
      .gradient("", [](Gradient&) { no_gradient("scatter"); });
  op("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", kUnary)
      .doc(
          "Adds each element of `src` to its position, with the position along `dim` taken from "
          "`index`; repeated positions in their order along `dim`.")
      .kernel_into(written(check_add, scatter_add_body))
      .gradient("index", [](Gradient& g) {
        g.set(0, g.grad());
        if (g.needs(3)) {
          g.set(3, gather(g.grad(), g.integer(1), g.tensor(2)));
        }
      });
}

}  // namespace rushlight
