// Joining tensors.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/promotion.h"
#include "ops/views.h"
#include "ops/written.h"

namespace rushlight {
namespace {

DType common_dtype(const TensorList& tensors) {
  Promotion promotion;
  for (const Tensor& tensor : tensors) {
    promotion.add(*tensor.impl());
  }
  return promotion.result();
}

Device common_device(const TensorList& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.is_meta()) {
      return tensor.device();
    }
  }
  return tensors.front().device();
}

// 1-dim tensors without elements may be joined with anything, for old scripts.
bool is_skipped(IntArrayRef sizes) {
  return sizes.size() == 1 && sizes[0] == 0;
}

void check_joinable(const Tensor& first, const Tensor& tensor, int64_t dim, int64_t position) {
  if (first.dim() != tensor.dim()) {
    fail(ErrorKind::Runtime, "cat", "Tensors must have same number of dimensions: got ",
         first.dim(), " and ", tensor.dim());
  }
  for (int64_t d = 0; d < first.dim(); ++d) {
    if (d != dim && first.size(d) != tensor.size(d)) {
      fail(ErrorKind::Runtime, "cat", "Sizes of tensors must match except in dimension ", dim,
           ". Expected size ", first.size(d), " but got size ", tensor.size(d),
           " for tensor number ", position, " in the list.");
    }
  }
}

// The first tensor that is not skipped; the first of all where each is.
const Tensor& model_of(const TensorList& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!is_skipped(tensor.sizes())) {
      return tensor;
    }
  }
  return tensors.front();
}

IntList joined_sizes(const TensorList& tensors, int64_t dim) {
  const Tensor& model = model_of(tensors);
  IntList sizes(model.sizes());
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_skipped(tensors[i].sizes())) {
      check_joinable(model, tensors[i], dim, static_cast<int64_t>(i));
      total = checked_add(total, tensors[i].size(dim), "cat");
    }
  }
  sizes[static_cast<size_t>(dim)] = total;
  return sizes;
}

void check_cat(const TensorList& tensors) {
  if (tensors.empty()) {
    fail(ErrorKind::Value, "", "torch.cat(): expected a non-empty list of Tensors");
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dim() == 0) {
      fail(ErrorKind::Runtime, "cat", "zero-dimensional tensor (at position ",
           static_cast<int64_t>(i), ") cannot be concatenated");
    }
  }
}

// Channels-last inputs join to a channels-last result.
Tensor make_joined(const TensorList& tensors, IntArrayRef sizes, DType dtype) {
  const Device device = common_device(tensors);
  for (MemoryFormat format : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d}) {
    const bool all = std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
      return tensor.is_contiguous(format) && !tensor.is_contiguous();
    });
    if (all) {
      return empty(sizes, TensorOptions(dtype).device(device), format);
    }
  }
  return make_tensor(sizes, dtype, device);
}

Tensor cat_list(const TensorList& tensors, int64_t dim) {
  check_cat(tensors);
  const int64_t at = wrap_dim(dim, model_of(tensors).dim(), "cat");
  Tensor made = make_joined(tensors, joined_sizes(tensors, at), common_dtype(tensors));
  int64_t start = 0;
  IntList part(made.sizes());
  for (const Tensor& tensor : tensors) {
    if (is_skipped(tensor.sizes())) {
      continue;
    }
    const int64_t length = tensor.size(at);
    part[static_cast<size_t>(at)] = length;
    kernels::copy(make_view(made, part, made.strides(), start * made.stride(at)), tensor);
    start += length;
  }
  return made;
}

void cat_gradient(Gradient& g) {
  const int count = g.item_count(0);
  const int64_t dim = wrap_dim(g.integer(1), static_cast<int64_t>(g.result_sizes().size()), "cat");
  TensorList grads(static_cast<size_t>(count));
  int64_t start = 0;
  for (int i = 0; i < count; ++i) {
    const IntArrayRef sizes = g.item_sizes(0, i);
    if (!is_skipped(sizes)) {
      const int64_t length = sizes[static_cast<size_t>(dim)];
      grads[static_cast<size_t>(i)] = narrow(g.grad(), dim, start, length);
      start += length;
    } else {
      grads[static_cast<size_t>(i)] = zeros(sizes, g.grad().options());
    }
  }
  g.set_list(0, std::move(grads));
}

void require_list(const TensorList& tensors, std::string_view op) {
  if (tensors.empty()) {
    fail(ErrorKind::Runtime, "", op, " expects a non-empty TensorList");
  }
}

Tensor stack_list(const TensorList& tensors, int64_t dim) {
  require_list(tensors, "stack");
  const int64_t at = wrap_dim(dim, tensors.front().dim() + 1, "stack");
  IntList sizes(tensors.front().sizes());
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].sizes() != tensors.front().sizes()) {
      fail(ErrorKind::Runtime, "", "stack expects each tensor to be equal size, but got ",
           tensors.front().sizes(), " at entry 0 and ", tensors[i].sizes(), " at entry ",
           static_cast<int64_t>(i));
    }
  }
  sizes.insert(static_cast<size_t>(at), static_cast<int64_t>(tensors.size()));
  Tensor made = make_tensor(sizes, common_dtype(tensors), common_device(tensors));
  for (size_t i = 0; i < tensors.size(); ++i) {
    kernels::copy(views::select(made, at, static_cast<int64_t>(i)), tensors[i]);
  }
  return made;
}

void stack_gradient(Gradient& g) {
  if (g.item_count(0) > 0) {
    g.set_list(0, unbind(g.grad(), g.integer(1)));
  }
}

Tensor at_least_1d(const Tensor& self) {
  return self.dim() == 0 ? reshape(self, {1}) : self;
}

Tensor at_least_2d(const Tensor& self) {
  return self.dim() == 0 ? reshape(self, {1, 1}) : self.dim() == 1 ? unsqueeze(self, 0) : self;
}

Tensor at_least_3d(const Tensor& self) {
  switch (self.dim()) {
    case 0:
      return reshape(self, {1, 1, 1});
    case 1:
      return unsqueeze(unsqueeze(self, 0), -1);
    case 2:
      return unsqueeze(self, -1);
    default:
      return self;
  }
}

template <Tensor (*F)(const Tensor&)>
TensorList each(const TensorList& tensors) {
  TensorList made;
  for (const Tensor& tensor : tensors) {
    made.push_back(F(tensor));
  }
  return made;
}

Tensor hstack_list(const TensorList& tensors) {
  require_list(tensors, "hstack");
  const TensorList parts = each<at_least_1d>(tensors);
  return cat(parts, parts.front().dim() == 1 ? int64_t{0} : int64_t{1});
}

Tensor vstack_list(const TensorList& tensors) {
  require_list(tensors, "vstack");
  return cat(each<at_least_2d>(tensors), int64_t{0});
}

Tensor dstack_list(const TensorList& tensors) {
  require_list(tensors, "dstack");
  return cat(each<at_least_3d>(tensors), int64_t{2});
}

Tensor as_column(const Tensor& self) {
  return self.dim() <= 1 ? reshape(self, {self.numel(), 1}) : self;
}

Tensor column_stack_list(const TensorList& tensors) {
  require_list(tensors, "column_stack");
  return hstack(each<as_column>(tensors));
}

// Rows and columns that a tensor takes in a block-diagonal matrix.
std::pair<int64_t, int64_t> block_sizes(IntArrayRef sizes) {
  return {sizes.size() == 2 ? sizes[0] : 1, sizes.empty() ? 1 : sizes.back()};
}

Tensor block_diag_list(const TensorList& tensors) {
  if (tensors.empty()) {
    return make_tensor({1, 0}, default_dtype());
  }
  int64_t rows = 0;
  int64_t columns = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dim() > 2) {
      fail(ErrorKind::Runtime, "",
           "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
           "Input ",
           static_cast<int64_t>(i), " has ", tensors[i].dim(), " dimensions");
    }
    const auto [r, c] = block_sizes(tensors[i].sizes());
    rows = checked_add(rows, r, "block_diag");
    columns = checked_add(columns, c, "block_diag");
  }
  Tensor made = kernels::make_zeros({rows, columns}, common_dtype(tensors), common_device(tensors));
  int64_t row = 0;
  int64_t column = 0;
  for (const Tensor& tensor : tensors) {
    const auto [r, c] = block_sizes(tensor.sizes());
    kernels::copy(make_view(made, {r, c}, {columns, 1}, row * columns + column), tensor);
    row += r;
    column += c;
  }
  return made;
}

void block_diag_gradient(Gradient& g) {
  TensorList grads;
  int64_t row = 0;
  int64_t column = 0;
  for (int i = 0; i < g.item_count(0); ++i) {
    const IntArrayRef sizes = g.item_sizes(0, i);
    const auto [r, c] = block_sizes(sizes);
    grads.push_back(reshape(narrow(narrow(g.grad(), 0, row, r), 1, column, c), sizes));
    row += r;
    column += c;
  }
  g.set_list(0, std::move(grads));
}

TensorList broadcast_list(const TensorList& tensors) {
  IntList shape;
  for (const Tensor& tensor : tensors) {
    shape = broadcast_shapes(shape, tensor.sizes(), "");
  }
  TensorList made;
  for (const Tensor& tensor : tensors) {
    made.push_back(tensor.sizes() == IntArrayRef(shape) ? tensor : expand(tensor, shape));
  }
  return made;
}

TensorList meshgrid_ij(const TensorList& tensors) {
  require_list(tensors, "meshgrid");
  IntList shape;
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() > 1) {
      fail(ErrorKind::Runtime, "",
           "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but "
           "got: a tensor of shape ",
           tensor.sizes());
    }
    if (tensor.dtype() != tensors.front().dtype()) {
      fail(ErrorKind::Runtime, "", "meshgrid expects all tensors to have the same dtype, got ",
           tensors.front().dtype(), " and ", tensor.dtype());
    }
    shape.push_back(tensor.numel());
  }
  TensorList made;
  for (size_t i = 0; i < tensors.size(); ++i) {
    IntList own(shape.size(), 1);
    own[i] = tensors[i].numel();
    made.push_back(expand(view(tensors[i], own), shape));
  }
  return made;
}

TensorList meshgrid_indexing(const TensorList& tensors, std::string_view indexing) {
  if (indexing == "ij") {
    return meshgrid(tensors);
  }
  if (indexing != "xy") {
    fail(ErrorKind::Runtime, "",
         "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but "
         "received: ",
         indexing);
  }
  require_list(tensors, "meshgrid");
  if (tensors.size() < 2) {
    return meshgrid(tensors);
  }
  TensorList swapped = tensors;
  std::swap(swapped[0], swapped[1]);
  TensorList made = meshgrid(swapped);
  std::swap(made[0], made[1]);
  return made;
}

Tensor cartesian_product(const TensorList& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.dim() != 1) {
      fail(ErrorKind::Runtime, "cartesian_prod", "Expect a 1D vector, but got shape ",
           tensor.sizes());
    }
  }
  if (tensors.size() == 1) {
    return tensors.front();
  }
  TensorList columns = meshgrid(tensors);
  for (Tensor& column : columns) {
    column = flatten(column);
  }
  return stack(columns, 1);
}

void check_chunk_cat(const TensorList& tensors, int64_t dim, int64_t chunks) {
  if (chunks <= 0) {
    fail(ErrorKind::Runtime, "", "_chunk_cat expects positive num_chunks");
  }
  if (tensors.empty()) {
    fail(ErrorKind::Runtime, "", "_chunk_cat expects a non-empty input tensor list");
  }
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() != tensors.front().dtype()) {
      fail(ErrorKind::Runtime, "", "_chunk_cat expects all input tensors with the same dtype");
    }
    if (tensor.numel() == 0) {
      fail(ErrorKind::Runtime, "", "_chunk_cat expects non-empty tensor");
    }
    if (dim >= tensor.dim()) {
      fail(ErrorKind::Runtime, "", "_chunk_cat expects dim < ndim for all input tensors");
    }
    for (int64_t d = 0; d < dim; ++d) {
      if (tensor.size(d) != tensors.front().size(d)) {
        fail(ErrorKind::Runtime, "",
             "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
      }
    }
  }
}

// Each tensor in equal chunks along the dimension, the last ones filled up with zeros; then the
// chunks of all, side by side: (sizes before dim..., chunks, elements).
Tensor chunk_cat_of(const TensorList& tensors, int64_t dim, int64_t chunks) {
  DoorGuard guard(0, ~uint32_t{0});
  const int64_t at = tensors.empty() ? 0 : wrap_dim(dim, tensors.front().dim(), "_chunk_cat");
  check_chunk_cat(tensors, at, chunks);
  IntList front(tensors.front().sizes());
  front.resize(static_cast<size_t>(at));
  front.push_back(chunks);
  front.push_back(-1);
  TensorList parts;
  for (const Tensor& tensor : tensors) {
    IntList sizes(tensor.sizes());
    const int64_t length = tensor.size(at);
    const int64_t full = (length + chunks - 1) / chunks * chunks;
    sizes[static_cast<size_t>(at)] = full;
    const Tensor padded = kernels::make_zeros(sizes, tensor.dtype(), tensor.device());
    sizes[static_cast<size_t>(at)] = length;
    kernels::copy(make_view(padded, sizes, padded.strides(), 0), tensor);
    parts.push_back(reshape(padded, front));
  }
  return cat(parts, -1);
}

}  // namespace

RUSHLIGHT_OPERATORS(join) {
  op("cat(Tensor[] tensors, int dim=0) -> Tensor", kFunction | kOut)
      .doc("Tensors of equal shape, save for `dim`, one behind the other along `dim`.")
      .kernel_into(strict_outputs(box(cat_list)))
      .gradient("", cat_gradient)
      .casts_out();
  op("concat(Tensor[] tensors, int dim=0) -> Tensor", kFunction | kOut)
      .doc("Another name of cat.")
      .body(Kind::Composition, strict_body(box(+[](const TensorList& tensors, int64_t dim) {
              return cat(tensors, dim);
            })))
      .casts_out();
  op("concatenate(Tensor[] tensors, int dim=0) -> Tensor", kFunction | kOut)
      .doc("Another name of cat.")
      .body(Kind::Composition, strict_body(box(+[](const TensorList& tensors, int64_t dim) {
              return cat(tensors, dim);
            })))
      .casts_out();
  op("stack(Tensor[] tensors, int dim=0) -> Tensor", kFunction | kOut)
      .doc("Tensors of equal shape along a new dimension.")
      .kernel_into(strict_outputs(box(stack_list)))
      .gradient("", stack_gradient)
      .casts_out();
  op("hstack(Tensor[] tensors) -> Tensor", kFunction | kOut)
      .doc("Joins along the columns (1-dim tensors: end to end).")
      .body(Kind::Composition, strict_body(box(hstack_list)))
      .casts_out();
  op("vstack(Tensor[] tensors) -> Tensor", kFunction | kOut)
      .doc("Joins along the rows; 1-dim tensors are rows.")
      .body(Kind::Composition, strict_body(box(vstack_list)))
      .casts_out();
  op("row_stack(Tensor[] tensors) -> Tensor", kFunction | kOut)
      .doc("Another name of vstack.")
      .body(Kind::Composition, strict_body(box(vstack_list)))
      .casts_out();
  op("dstack(Tensor[] tensors) -> Tensor", kFunction | kOut)
      .doc("Joins along the third dimension.")
      .body(Kind::Composition, strict_body(box(dstack_list)))
      .casts_out();
  op("column_stack(Tensor[] tensors) -> Tensor", kFunction | kOut)
      .doc("Joins along the columns; 1-dim tensors are columns.")
      .body(Kind::Composition, strict_body(box(column_stack_list)))
      .casts_out();
  op("atleast_1d(Tensor self) -> Tensor", kFunction)
      .doc("A view of at least one dimension.")
      .composition(at_least_1d);
  op("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", kFunction)
      .doc("Views of at least one dimension.")
      .composition(each<at_least_1d>);
  op("atleast_2d(Tensor self) -> Tensor", kFunction)
      .doc("A view of at least two dimensions.")
      .composition(at_least_2d);
  op("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", kFunction)
      .doc("Views of at least two dimensions.")
      .composition(each<at_least_2d>);
  op("atleast_3d(Tensor self) -> Tensor", kFunction)
      .doc("A view of at least three dimensions.")
      .composition(at_least_3d);
  op("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", kFunction)
      .doc("Views of at least three dimensions.")
      .composition(each<at_least_3d>);
  op("block_diag(Tensor[] tensors) -> Tensor", kFunction)
      .doc("Matrices along the diagonal of one matrix of zeros.")
      .kernel(block_diag_list)
      .gradient("", block_diag_gradient);
  op("broadcast_tensors(Tensor[] tensors) -> Tensor[]", kFunction)
      .doc("Views of one common shape.")
      .composition(broadcast_list);
  op("meshgrid(Tensor[] tensors) -> Tensor[]", kFunction)
      .doc("The coordinates of a grid over 1-dim tensors; the first runs along the rows.")
      .composition(meshgrid_ij);
  op("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", kFunction)
      .doc("The coordinates of a grid; \"xy\" lets the first run along the columns.")
      .composition(meshgrid_indexing);
  op("cartesian_prod(Tensor[] tensors) -> Tensor", kFunction)
      .doc("All combinations of elements of 1-dim tensors, one a row.")
      .composition(cartesian_product);
  op("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", kFunction | kOut)
      .doc(
          "Cuts each tensor into chunks along a dimension, with zeros at the end, and joins the "
          "chunks of the same number.")
      .kernel_into(strict_outputs(box(chunk_cat_of)))
      .not_differentiable()
      .casts_out();
}

}  // namespace rushlight
