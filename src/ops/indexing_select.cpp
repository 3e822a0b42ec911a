// Reading and writing whole slices at indices of one dimension, and single elements by position.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "ops/gradient.h"
#include "ops/index_check.h"
#include "ops/operator.h"
#include "ops/view_body.h"
#include "ops/views.h"
#include "ops/watched.h"
#include "ops/written.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

// The space of `index` (one dimension) along `dim` of a tensor of at least one dimension.
kernels::IndexSpace slices_at(const Tensor& base, int64_t dim, const Tensor& offsets,
                              const Tensor& dense) {
  kernels::IndexSpace space;
  for (int64_t d = 0; d < base.dim(); ++d) {
    if (d == dim) {
      continue;
    }
    (d < dim ? space.outer_sizes : space.inner_sizes).push_back(base.size(d));
    (d < dim ? space.base_outer : space.base_inner).push_back(base.stride(d));
    (d < dim ? space.dense_outer : space.dense_inner).push_back(dense.stride(d));
  }
  space.dense_index = dense.stride(dim);
  space.count = offsets.numel();
  space.offsets = offsets.data_ptr<int64_t>();
  return space;
}

Tensor offsets_of(const Tensor& index, int64_t stride, const kernels::IndexBound& bound) {
  const Tensor values = kernels::index_values(index);
  const Tensor offsets = kernels::make_zeros({values.numel()}, DType::Int64);
  kernels::add_offsets(offsets.data_ptr<int64_t>(), values.data_ptr<int64_t>(), values.numel(),
                       stride, bound);
  return offsets;
}

Tensor at_least_line(const Tensor& self) {
  return self.dim() == 0 ? views::unsqueeze(self, 0) : self;
}

Tensor index_select_dim(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t at = wrap_dim(dim, self.dim(), "index_select");
  if (index.dim() > 1) {
    fail(ErrorKind::Index, "", "index_select(): Index is supposed to be a vector, got ",
         index.dim(), " dimensions");
  }
  if (!is_index_dtype(index)) {
    fail(ErrorKind::Runtime, "", "index_select(): Expected dtype int32 or int64 for index, got ",
         scalar_type_name(index.dtype()));
  }
  if (self.dim() == 0 && index.numel() != 1) {
    fail(ErrorKind::Runtime, "", "index_select(): Index to scalar can have only 1 value, got ",
         index.numel(), " value(s)");
  }
  const Tensor base = at_least_line(self);
  IntList sizes(base.sizes());
  sizes[static_cast<size_t>(at)] = index.numel();
  const Tensor made = make_tensor(sizes, self.dtype(), self.device());
  if (!made.is_meta() && !index.is_meta()) {
    const kernels::IndexBound bound{
        base.size(at), at, false, ErrorKind::Index, "index_select", kernels::IndexText::Embedding};
    const Tensor offsets = offsets_of(index, base.stride(at), bound);
    kernels::read_indexed(made, base, slices_at(base, at, offsets, made));
  }
  return self.dim() == 0 ? views::squeeze(made, {0}) : made;
}

void check_index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     Scalar) {
  const int64_t at = wrap_dim(dim, self.dim(), "index_add");
  if (!is_index_dtype(index)) {
    fail(ErrorKind::Runtime, "", "index_add_(): Expected dtype int32/int64 for index but got: ",
         scalar_type_name(index.dtype()));
  }
  if (self.dtype() != source.dtype()) {
    fail(ErrorKind::Runtime, "", "index_add_(): self (", scalar_type_name(self.dtype()),
         ") and source (", scalar_type_name(source.dtype()), ") must have the same scalar type");
  }
  check_source_slices(self, at, index, source, "index_add_");
}

// Slices of `source` times alpha.
Tensor scaled(const Tensor& source, const Scalar& alpha) {
  if (alpha == Scalar(1)) {
    return source;
  }
  const DoorGuard guard(0, ~0U);
  return mul(source, make_scalar_tensor(alpha, source.dtype()));
}

void write_slices(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& source,
                  kernels::Update update, ErrorKind kind, std::string_view op) {
  if (target.is_meta()) {
    return;
  }
  const int64_t at = wrap_dim(dim, target.dim(), op);
  const Tensor base = at_least_line(target);
  const kernels::IndexBound bound{base.size(at), at, false, kind, op};
  const Tensor offsets = offsets_of(index, base.stride(at), bound);
  Tensor dense = at_least_line(source);
  if (dense.storage() == base.storage()) {
    dense = kernels::contiguous_copy(dense);
  }
  kernels::write_indexed(base, dense, slices_at(base, at, offsets, dense), update);
}

void index_add_to(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& source,
                  Scalar alpha) {
  check_no_overlap(target, index, "index_add_");
  check_no_overlap(target, source, "index_add_");
  write_slices(target, dim, index, scaled(source, alpha), kernels::Update::Add, ErrorKind::Runtime,
               "index_add_");
}

void check_index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t at = wrap_dim(dim, self.dim(), "index_copy");
  if (index.dim() > 1) {
    fail(ErrorKind::Index, "", "index_copy_(): Index should have dimension 1 or 0 (got ",
         index.dim(), ")");
  }
  if (index.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "", "index_copy_(): Expected a long tensor for index, but got ",
         scalar_type_name(index.dtype()));
  }
  if (self.dtype() != source.dtype()) {
    fail(ErrorKind::Runtime, "",
         "index_copy_(): self and source expected to have the same dtype, "
         "but got (self) ",
         scalar_type_name(self.dtype()), " and (source) ", scalar_type_name(source.dtype()));
  }
  check_copy_slices(self, at, index, source);
}

void index_copy_to(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& source) {
  write_slices(target, dim, index, source, kernels::Update::Set, ErrorKind::Index, "index_copy_");
}

void check_index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar) {
  wrap_dim(dim, self.dim(), "index_fill");
  if (index.dtype() != DType::Int64) {
    fail(ErrorKind::Index, "", "index_fill_(): Expected dtype int64 for index, got ",
         scalar_type_name(index.dtype()));
  }
  if (index.dim() > 1) {
    fail(ErrorKind::Index, "", "Index has to be a vector/scalar, got ", index.dim(), " dimensions");
  }
}

void index_fill_in(const Tensor& target, int64_t dim, const Tensor& index, Scalar value) {
  const int64_t at = wrap_dim(dim, target.dim(), "index_fill");
  const Tensor number = kernels::make_filled({}, value, target.dtype(), target.device());
  if (target.is_meta()) {
    return;
  }
  IntList sizes(at_least_line(target).sizes());
  sizes[static_cast<size_t>(at)] = index.numel();
  const Tensor base = at_least_line(target);
  const kernels::IndexBound bound{base.size(at), at, true};
  const Tensor offsets = offsets_of(index, base.stride(at), bound);
  const Tensor dense = views::expand(number, sizes);
  kernels::write_indexed(base, dense, slices_at(base, at, offsets, dense), kernels::Update::Set);
}

Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& value) {
  check_fill_rank(value);
  if (!value.requires_grad() && !is_watched()) {
    return index_fill(self, dim, index, value.item());
  }
  // By a mask, in which a position that is named twice counts once.
  const Tensor none = zeros(self.sizes(), TensorOptions(DType::Bool).device(self.device()));
  return where(index_fill(none, dim, index, Scalar(true)), to(value, self.dtype()), self);
}

kernels::IndexBound flat_bound(const Tensor& self, std::string_view op) {
  return {self.numel(), 0, true, ErrorKind::Index, op, kernels::IndexText::Flat};
}

// Element offsets of positions in the flattened tensor.
Tensor flat_offsets(const Tensor& self, const Tensor& index, std::string_view op) {
  Tensor offsets = offsets_of(index, 1, flat_bound(self, op));
  if (!self.is_contiguous()) {
    auto* made = offsets.data_ptr<int64_t>();
    for (int64_t i = 0; i < offsets.numel(); ++i) {
      int64_t rest = made[i];
      made[i] = 0;
      for (int64_t d = self.dim(); d-- > 0;) {
        made[i] += rest % self.size(d) * self.stride(d);
        rest /= self.size(d);
      }
    }
  }
  return offsets;
}

kernels::IndexSpace elements_at(const Tensor& offsets) {
  kernels::IndexSpace space;
  space.count = offsets.numel();
  space.offsets = offsets.data_ptr<int64_t>();
  return space;
}

Tensor take_elements(const Tensor& self, const Tensor& index) {
  if (index.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "", "take(): Expected a long tensor for index, but got ",
         scalar_type_name(index.dtype()));
  }
  if (self.numel() == 0 && index.numel() != 0) {
    fail(ErrorKind::Index, "", "take(): tried to take from an empty tensor");
  }
  const Tensor made = make_tensor(index.sizes(), self.dtype(), self.device());
  if (made.is_meta()) {
    return made;
  }
  if (self.is_contiguous()) {
    kernels::read_flat(made, self, kernels::index_values(index), flat_bound(self, "take"));
  } else {
    const Tensor offsets = flat_offsets(self, index, "take");
    kernels::read_indexed(made, self, elements_at(offsets));
  }
  return made;
}

void check_put(const Tensor& self, const Tensor& index, const Tensor& source, bool) {
  if (index.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "", "put_(): Expected a long tensor for index, but got ",
         scalar_type_name(index.dtype()));
  }
  if (self.dtype() != source.dtype()) {
    fail(ErrorKind::Runtime, "",
         "put_(): self and source expected to have the same dtype, but got "
         "self.dtype = ",
         scalar_type_name(self.dtype()), " and source.dtype = ", scalar_type_name(source.dtype()));
  }
  if (index.numel() != source.numel()) {
    fail(ErrorKind::Index, "",
         "put_(): Expected source and index to have the same number of "
         "elements, but got source.numel() = ",
         source.numel(), ", index.numel() = ", index.numel());
  }
  if (self.numel() == 0 && index.numel() != 0) {
    fail(ErrorKind::Index, "", "put_(): Tried to put elements into an empty tensor");
  }
}

void put_elements(const Tensor& target, const Tensor& index, const Tensor& source,
                  bool accumulate) {
  if (target.is_meta()) {
    return;
  }
  const Tensor offsets = flat_offsets(target, index, "put_");
  const Tensor dense = source.storage() == target.storage() ? kernels::contiguous_copy(source)
                                                            : kernels::as_contiguous(source);
  kernels::write_indexed(target, dense, elements_at(offsets),
                         accumulate ? kernels::Update::Add : kernels::Update::Set);
}

Tensor zeros_as_argument(Gradient& g) {
  return zeros(g.sizes(0), TensorOptions(g.grad().dtype()).device(g.grad().device()));
}

}  // namespace

RUSHLIGHT_OPERATORS(indexing_select) {
  op("index_select(Tensor self, int dim, Tensor index) -> Tensor", kFunction | kMethod | kOut)
      .doc("The slices of one dimension at the given indices.")
      .kernel_into(strict_outputs(box(index_select_dim)))
      .gradient("index", [](Gradient& g) {
        g.set(0, index_add(zeros_as_argument(g), g.integer(1), g.tensor(2), g.grad()));
      });
  op("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
     kUnary)
      .doc(
          "Adds slices of `source`, times alpha, to the slices at the given indices; repeated "
          "indices in their order.")
      .kernel_into(written(check_index_add, index_add_to))
      .gradient("index", [](Gradient& g) {
        g.set(0, g.grad());
        if (g.needs(3)) {
          const Tensor taken =
              reshape(index_select(g.grad(), g.integer(1), g.tensor(2)), g.sizes(3));
          g.set(3, g.scalar(4) == Scalar(1) ? taken : mul(taken, g.scalar(4)));
        }
      });
  op("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", kUnary)
      .doc("Replaces the slices at the given indices by those of `source`.")
      .kernel_into(written(check_index_copy, index_copy_to))
      .gradient("index", [](Gradient& g) {
        g.set(0, index_fill(g.grad(), g.integer(1), g.tensor(2), 0));
        if (g.needs(3)) {
          g.set(3, reshape(index_select(g.grad(), g.integer(1), g.tensor(2)), g.sizes(3)));
        }
      });
  // Before the form with a number, which a 0-dim tensor fits too.
  two_form_composition(
      op("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
         kFunction | kMethod | kInplace),
      index_fill_tensor,
      [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
        check_fill_rank(value);
        if (value.requires_grad() || is_watched()) {
          copy_(self, index_fill_tensor(self, dim, index, value));
        } else {
          index_fill_(self, dim, index, value.item());
        }
      })
      .doc("The number of a 0-dim tensor in the slices at the given indices.");
  op("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     kFunction | kMethod | kInplace)
      .doc("A number in the slices at the given indices.")
      .kernel_into(written(check_index_fill, index_fill_in, Overlap::Allow, Fresh::AsGiven))
      .gradient("index",
                [](Gradient& g) { g.set(0, index_fill(g.grad(), g.integer(1), g.tensor(2), 0)); });
  op("take(Tensor self, Tensor index) -> Tensor", kFunction | kMethod | kOut)
      .doc("The elements at positions of the flattened tensor.")
      .kernel_into(strict_outputs(box(take_elements)))
      .gradient("index", [](Gradient& g) {
        g.set(0, put(zeros_as_argument(g), g.tensor(1), g.grad(), true));
      });
  op("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
     kFunction | kMethod | kInplace)
      .doc("Writes, or adds, elements at positions of the flattened tensor.")
      .kernel_into(written(check_put, put_elements, Overlap::Refuse, Fresh::AsGiven))
      .gradient("index", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, g.flag(3)
                       ? g.grad()
                       : put(g.grad(), g.tensor(1), zeros(g.sizes(1), g.grad().options()), false));
        }
        if (g.needs(2)) {
          g.set(2, reshape(take(g.grad(), g.tensor(1)), g.sizes(2)));
        }
      });
}

}  // namespace rushlight
