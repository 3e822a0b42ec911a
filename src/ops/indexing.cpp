// x[tensors], read and write; masks; nonzero.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "kernels/index_masked.h"
#include "kernels/index_nonzero.h"
#include "kernels/mask.h"
#include "ops/device_check.h"
#include "ops/gradient.h"
#include "ops/indexing_space.h"
#include "ops/operator.h"
#include "ops/view_body.h"
#include "ops/views.h"
#include "ops/watched.h"
#include "ops/written.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

// Whether one mask of all dimensions is the index.
bool is_whole_mask(const Tensor& self, const TensorList& indices) {
  return indices.size() == 1 && indices[0].defined() && is_mask(indices[0]) && self.dim() > 0 &&
         indices[0].sizes() == self.sizes() && !self.is_meta() && !indices[0].is_meta();
}

kernels::MaskScan scan_mask(const Tensor& mask) {
  return kernels::MaskScan(kernels::as_dtype(mask, DType::Bool));
}

Tensor index_read(const Tensor& self, const TensorList& indices) {
  if (is_whole_mask(self, indices)) {
    return kernels::read_masked(self, scan_mask(indices[0]));
  }
  const IndexingSpace space(self, indices);
  Tensor made = make_tensor(space.result_sizes(), self.dtype(), self.device());
  if (!made.is_meta()) {
    kernels::read_indexed(made, self, space.with(made));
  }
  return made;
}

void check_put(const Tensor& self, const TensorList&, const Tensor& values, bool) {
  if (self.dtype() != values.dtype()) {
    fail(ErrorKind::Runtime, "", "Index put requires the source and destination dtypes match, got ",
         scalar_type_name(self.dtype()), " for the destination and ",
         scalar_type_name(values.dtype()), " for the source.");
  }
}

// `read`, copied where it shares memory with what is written.
Tensor apart_from(const Tensor& read, const Tensor& written) {
  return read.storage() == written.storage() ? kernels::contiguous_copy(read) : read;
}

// `values` as a tensor of the given sizes.
Tensor given_values(const Tensor& values, const IntList& sizes) {
  // Leading dimensions of size 1 may be more than the target has.
  Tensor given = values;
  while (given.dim() > static_cast<int64_t>(sizes.size()) && given.size(0) == 1) {
    given = views::select(given, 0, 0);
  }
  bool fits = given.dim() <= static_cast<int64_t>(sizes.size());
  for (int64_t d = 1; fits && d <= given.dim(); ++d) {
    fits = given.size(-d) == 1 || given.size(-d) == sizes[sizes.size() - static_cast<size_t>(d)];
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "", "shape mismatch: value tensor of shape ", values.sizes(),
         " cannot be broadcast to indexing result of shape ", sizes);
  }
  return views::expand(given, sizes);
}

// The mask among the indices, where it is the only one and fits the target: with a dimension of
// size 1 for each of the target behind it, so that it can be broadcast. Else undefined.
Tensor only_mask(const Tensor& target, const TensorList& indices) {
  size_t first = 0;
  while (first < indices.size() && !indices[first].defined()) {
    ++first;
  }
  if (first + 1 != indices.size() || !is_mask(indices[first]) || indices[first].is_meta() ||
      target.is_meta() || !is_non_overlapping(target.sizes(), target.strides())) {
    return Tensor();
  }
  const int64_t dim = static_cast<int64_t>(first);
  Tensor mask = indices[first];
  const int64_t rank = mask.dim();
  if (rank == 0 || dim + rank > target.dim() ||
      !(mask.sizes() == target.sizes().subspan(first, static_cast<size_t>(rank)))) {
    return Tensor();
  }
  for (int64_t d = dim + rank; d < target.dim(); ++d) {
    mask = views::unsqueeze(mask, -1);
  }
  return mask;
}

// x[mask] = number, and x[mask] = values with a mask of all dimensions, need no positions.
bool put_by_mask(const Tensor& target, const TensorList& indices, const Tensor& values) {
  Tensor mask = only_mask(target, indices);
  if (!mask.defined()) {
    return false;
  }
  mask = apart_from(kernels::as_dtype(mask, DType::Bool), target);
  if (values.numel() == 1) {
    kernels::masked_fill(target, target, mask, values);
    return true;
  }
  if (!is_whole_mask(target, indices) || !target.is_contiguous()) {
    return false;
  }
  const kernels::MaskScan scan(mask);
  kernels::write_masked(target, scan, apart_from(given_values(values, {scan.total()}), target));
  return true;
}

void put_at(const Tensor& target, const TensorList& indices, const Tensor& values,
            bool accumulate) {
  if (!accumulate && put_by_mask(target, indices, values)) {
    return;
  }
  const IndexingSpace space(target, indices);
  Tensor given = given_values(values, space.result_sizes());
  if (target.is_meta()) {
    return;
  }
  given = space.fits(given) ? apart_from(given, target) : kernels::contiguous_copy(given);
  kernels::write_indexed(target, given, space.with(given),
                         accumulate ? kernels::Update::Add : kernels::Update::Set);
}

Tensor zeros_as_argument(Gradient& g) {
  return zeros(g.sizes(0), TensorOptions(g.dtype(0)).device(g.grad().device()));
}

void check_fill_mask(const Tensor&, const Tensor& mask, Scalar) {
  if (mask.dtype() != DType::Bool) {
    fail(ErrorKind::Runtime, "",
         "masked_fill only supports boolean masks, but got mask with dtype ", mask.dtype());
  }
}

// One pass: the result takes either the old element or the number.
void masked_fill_body(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  const Tensor& mask = inv.arguments[1].tensor();
  const Scalar value = inv.arguments[2].to_scalar();
  check_fill_mask(self, mask, value);
  common_device(inv);
  const IntList shape = broadcast_shapes(self.sizes(), mask.sizes(), "");
  if (inv.form == Form::Functional) {
    inv.results[0] = Value(make_tensor(shape, self.dtype(), self.device()));
  } else {
    if (!(self.sizes() == IntArrayRef(shape))) {
      fail(ErrorKind::Runtime, "masked_fill_", "output with shape ", self.sizes(),
           " doesn't match the broadcast shape ", shape);
    }
    prepare_written(inv, Overlap::Allow);
  }
  kernels::masked_fill(inv.results[0].tensor(), self, mask,
                       kernels::make_filled({}, value, self.dtype()));
}

Tensor masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  if (value.dim() != 0) {
    fail(ErrorKind::Runtime, "",
         "masked_fill only supports a 0-dimensional value tensor, but got "
         "tensor with ",
         value.dim(), " dimension(s).");
  }
  if (value.requires_grad() || is_watched()) {
    return where(mask, to(value, self.dtype()), self);
  }
  return masked_fill(self, mask, value.item());
}

void check_mask_dtype(const Tensor& mask, std::string_view text) {
  if (mask.dtype() != DType::Bool) {
    fail(ErrorKind::Runtime, "", text, ", but got mask with dtype ",
         scalar_type_name(mask.dtype()));
  }
}

Tensor masked_read(const Tensor& self, const Tensor& mask) {
  check_mask_dtype(mask, "masked_select: expected BoolTensor for mask");
  const IntList shape = broadcast_shapes(self.sizes(), mask.sizes(), "");
  if (self.is_meta() || mask.is_meta()) {
    fail(ErrorKind::NotImplemented, "masked_select",
         "the shape of the result depends on the mask's "
         "elements, which meta tensors do not have");
  }
  const Tensor whole = views::expand(mask, shape);
  if (shape.empty()) {
    const Tensor one = make_view(self, {1}, {1}, self.storage_offset());
    return index_read(one, {make_view(whole, {1}, {1}, whole.storage_offset())});
  }
  return index_read(views::expand(self, shape), {whole});
}

void check_masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_mask_dtype(mask, "masked_scatter_ only supports boolean masks");
  if (self.dtype() != source.dtype()) {
    fail(ErrorKind::Runtime, "",
         "masked_scatter: expected self and source to have same dtypes but "
         "got ",
         scalar_type_name(self.dtype()), " and ", scalar_type_name(source.dtype()));
  }
  const IntList shape = broadcast_shapes(self.sizes(), mask.sizes(), "");
  if (!(self.sizes() == IntArrayRef(shape))) {
    fail(ErrorKind::Runtime, "masked_scatter_", "output with shape ", self.sizes(),
         " doesn't match the broadcast shape ", shape);
  }
}

void masked_write(const Tensor& target, const Tensor& mask, const Tensor& source) {
  if (target.is_meta()) {
    return;
  }
  const Tensor whole = apart_from(views::expand(mask, target.sizes()), target);
  const kernels::MaskScan scan(whole);
  const int64_t count = scan.total();
  if (source.numel() < count) {
    fail(ErrorKind::Runtime, "masked_scatter",
         "Number of elements of source < number of ones in "
         "mask: ",
         source.numel(), " < ", count);
  }
  const Tensor flat = apart_from(kernels::as_contiguous(source), target);
  const Tensor taken = make_view(flat, {count}, {1}, flat.storage_offset());
  if (target.is_contiguous()) {
    kernels::write_masked(target, scan, taken);
  } else {
    put_at(target, {whole}, taken, false);
  }
}

// The out-of-place form lets the mask enlarge the tensor.
void masked_scatter_body(Invocation& inv) {
  const Tensor& mask = inv.arguments[1].tensor();
  const Tensor& source = inv.arguments[2].tensor();
  Tensor self = inv.arguments[0].tensor();
  if (inv.form == Form::Functional) {
    self = views::expand(self, broadcast_shapes(self.sizes(), mask.sizes(), ""));
  }
  check_masked_scatter(self, mask, source);
  if (inv.form == Form::Functional) {
    inv.results[0] = Value(kernels::contiguous_copy(self));
  } else {
    prepare_written(inv);
  }
  masked_write(inv.results[0].tensor(), mask, source);
}

// The gradient of a source of which the first elements were taken.
Tensor source_gradient(Gradient& g, const Tensor& mask) {
  const Tensor taken = masked_select(g.grad(), mask);
  int64_t numel = 1;
  for (int64_t size : g.sizes(2)) {
    numel *= size;
  }
  const Tensor rest = zeros({numel - taken.numel()}, taken.options());
  return reshape(cat({taken, rest}, 0), g.sizes(2));
}

Tensor nonzero_of(const Tensor& self) {
  if (self.is_meta()) {
    fail(ErrorKind::NotImplemented, "nonzero",
         "the shape of the result depends on the elements, which "
         "meta tensors do not have");
  }
  return kernels::nonzero(self);
}

TensorList nonzero_columns(const Tensor& self) {
  return unbind(nonzero(self.dim() == 0 ? reshape(self, {1}) : self), 1);
}

}  // namespace

RUSHLIGHT_OPERATORS(indexing) {
  op("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", kInternal)
      .doc(
          "x[indices]: elements at positions that integer tensors or masks name, one a dimension; "
          "None takes a whole dimension.")
      .kernel(index_read)
      .gradient("indices", [](Gradient& g) {
        g.set(0, index_put(zeros_as_argument(g), g.tensors(1), g.grad(), true));
      });
  op("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     kUnary)
      .doc(
          "x[indices] = values; with `accumulate`, x[indices] += values, repeated positions in "
          "the order of the index.")
      .kernel_into(written(check_put, put_at, Overlap::Allow, Fresh::AsGiven))
      .gradient("indices", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, g.flag(3)
                       ? g.grad()
                       : index_put(g.grad(), g.tensors(1), zeros({}, g.grad().options()), false));
        }
        if (g.needs(2)) {
          g.set(2, index(g.grad(), g.tensors(1)));
        }
      });
  // Before the form with a number, which a 0-dim tensor fits too.
  two_form_composition(op("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
                          kFunction | kMethod | kInplace),
                       masked_fill_tensor,
                       [](const Tensor& self, const Tensor& mask, const Tensor& value) {
                         if (value.requires_grad() || is_watched()) {
                           copy_(self, masked_fill_tensor(self, mask, value));
                         } else {
                           masked_fill_(self, mask, value.item());
                         }
                       })
      .doc("The number of a 0-dim tensor where the mask holds.");
  op("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
     kFunction | kMethod | kInplace)
      .doc("A number where the mask holds, else the tensor's own elements.")
      .kernel_into(masked_fill_body)
      .gradient("mask", [](Gradient& g) { g.set(0, masked_fill(g.grad(), g.tensor(1), 0)); });
  op("masked_select(Tensor self, Tensor mask) -> Tensor", kFunction | kMethod | kOut)
      .doc("The elements where the mask holds, in row-major order.")
      .kernel_into(strict_outputs(box(masked_read)))
      .gradient("mask", [](Gradient& g) {
        const Tensor mask = g.tensor(1);
        const IntList shape = broadcast_shapes(g.sizes(0), mask.sizes(), "");
        g.set(0, masked_scatter(zeros(shape, g.grad().options()), mask, g.grad()));
      });
  op("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
     kFunction | kMethod | kInplace)
      .doc("The elements of `source`, in order, where the mask holds.")
      .kernel_into(masked_scatter_body)
      .gradient("mask", [](Gradient& g) {
        const Tensor mask = g.tensor(1);
        g.set(0, masked_fill(g.grad(), mask, 0));
        if (g.needs(2)) {
          g.set(2, source_gradient(g, mask));
        }
      });
  op("nonzero(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Positions of the elements that are not zero, one a row, in row-major order.")
      .kernel(nonzero_of)
      .not_differentiable();
  op("nonzero_numpy(Tensor self) -> Tensor[]", kInternal)
      .doc("Positions of the elements that are not zero, a tensor for each dimension.")
      .composition(nonzero_columns);
  op("argwhere(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Positions of the elements that are not zero, one a row.")
      .composition([](const Tensor& self) { return nonzero(self); });
  op("where(Tensor condition) -> Tensor[]", kFunction)
      .doc("Positions of the elements that are not zero, a tensor for each dimension.")
      .composition(nonzero_columns);
}

}  // namespace rushlight
