// Views of a part of the elements: slices, single indices, diagonals, windows.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/view_body.h"
#include "ops/view_split.h"
#include "ops/views.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

Tensor narrow_view(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "", "narrow() cannot be applied to a 0-dim tensor.");
  }
  if (length < 0) {
    fail(ErrorKind::Runtime, "", "narrow(): length must be non-negative, got ", length, ".");
  }
  const int64_t size = self.size(dim);
  if (start < -size || start > size) {
    fail(ErrorKind::Index, "narrow", "start out of range (expected to be in range of [", -size,
         ", ", size, "], but got ", start, ")");
  }
  const int64_t first = start < 0 ? start + size : start;
  if (first > size - length) {
    fail(ErrorKind::Runtime, "narrow", "start (", first, ") + length (", length,
         ") exceeds dimension size (", size, ").");
  }
  return slice(self, dim, first, first + length, 1);
}

Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  if (start.dim() != 0 || !is_integral(start.dtype(), false)) {
    fail(ErrorKind::Runtime, "narrow", "start must be an 0-dim integral Tensor, got ",
         start.dtype(), " of shape ", start.sizes());
  }
  return narrow(self, dim, start.item().to_int(), length);
}

TensorList unbind_views(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) {
    fail(ErrorKind::Index, "unbind", "Dimension specified as ", dim,
         " but tensor has no dimensions");
  }
  const int64_t at = wrap_dim(dim, self.dim(), "unbind");
  TensorList parts;
  for (int64_t i = 0; i < self.size(at); ++i) {
    parts.push_back(views::select(self, at, i));
  }
  return parts;
}

Tensor zeros_of(IntArrayRef sizes, const Tensor& like) {
  return zeros(sizes, like.options());
}

// Gradients of several results, zeros where a result was not used.
TensorList filled_gradients(Gradient& g, const std::vector<IntList>& shapes) {
  TensorList grads;
  Tensor known;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (g.has_grad(static_cast<int>(i))) {
      known = g.grad(static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto at = static_cast<int>(i);
    grads.push_back(g.has_grad(at) ? g.grad(at) : zeros_of(shapes[i], known));
  }
  return grads;
}

void unbind_gradient(Gradient& g) {
  const int64_t dim = wrap_dim(g.integer(1), static_cast<int64_t>(g.sizes(0).size()), "unbind");
  IntList part(g.sizes(0));
  const int64_t count = part[static_cast<size_t>(dim)];
  part.erase(static_cast<size_t>(dim));
  if (count == 0) {
    return;
  }
  g.set(0, stack(filled_gradients(g, std::vector<IntList>(static_cast<size_t>(count), part)), dim));
}

}  // namespace

TensorList split_views(const Tensor& self, IntArrayRef lengths, int64_t dim) {
  TensorList parts;
  int64_t start = 0;
  IntList sizes(self.sizes());
  for (int64_t length : lengths) {
    sizes[static_cast<size_t>(dim)] = length;
    parts.push_back(
        make_view(self, sizes, self.strides(), self.storage_offset() + start * self.stride(dim)));
    start += length;
  }
  return parts;
}

void split_gradient(Gradient& g, IntArrayRef lengths, int64_t dim) {
  std::vector<IntList> shapes;
  for (int64_t length : lengths) {
    IntList shape(g.sizes(0));
    shape[static_cast<size_t>(dim)] = length;
    shapes.push_back(shape);
  }
  if (!shapes.empty()) {
    g.set(0, cat(filled_gradients(g, shapes), dim));
  }
}

RUSHLIGHT_OPERATORS(view_slice) {
  op("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)"
     " -> Tensor(a)",
     kMethod | kInternal)
      .doc("Every `step`-th index from `start` up to `end` of one dimension, as a view.")
      .view(views::slice)
      .gradient("", [](Gradient& g) {
        const int64_t size = g.sizes(0)[static_cast<size_t>(
            wrap_dim(g.integer(1), static_cast<int64_t>(g.sizes(0).size()), "slice"))];
        const int64_t start = g.is_none(2) ? 0 : g.integer(2);
        const int64_t end = g.is_none(3) ? size : g.integer(3);
        g.set(0, slice_backward(g.grad(), g.sizes(0), g.integer(1), start, end, g.integer(4)));
      });
  op("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", kFunction | kMethod)
      .doc("One index of a dimension, as a view without that dimension.")
      .view(views::select)
      .gradient("", [](Gradient& g) {
        g.set(0, select_backward(g.grad(), g.sizes(0), g.integer(1), g.integer(2)));
      });
  op("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
     kFunction | kMethod)
      .doc("`length` indices from `start` of one dimension, as a view.")
      .composition(narrow_view);
  op("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
     kFunction | kMethod)
      .doc("The same with the start in a 0-dim tensor.")
      .composition(narrow_tensor);
  op("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("A copy of `length` indices from `start` of one dimension.")
      .composition([](const Tensor& self, int64_t dim, int64_t start, int64_t length) {
        if (dim >= self.dim() && self.dim() != 0) {
          fail(ErrorKind::Runtime, "narrow_copy", "expected dim below ", self.dim(), ", got ", dim);
        }
        return clone(narrow(self, dim, start, length), MemoryFormat::Contiguous);
      })
      .node("NarrowCopyBackward0");
  op("unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]", kFunction | kMethod)
      .doc("A view for each index of one dimension.")
      .view(unbind_views)
      .gradient("", unbind_gradient);
  reshaping_view(op("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, "
                    "SymInt? storage_offset=None) -> Tensor(a)",
                    kFunction | kMethod | kInplace),
                 views::as_strided)
      .doc(
          "A view with any sizes, strides and storage offset (in elements) that stay inside the "
          "storage.")
      .gradient("self.layout", [](Gradient& g) {
        const Tensor self = g.tensor(0);
        const int64_t offset = g.is_none(3) ? self.storage_offset() : g.integer(3);
        g.set(0, _as_strided_backward(g.grad(), self.sizes(), self.strides(), self.storage_offset(),
                                      g.ints(2), offset));
      });
  op("slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
     "SymInt step=1) -> Tensor(a)",
     kFunction | kMethod)
      .doc("Of a slice of a tensor that lies as `src` does, the whole tensor.")
      .composition([](const Tensor& self, const Tensor& src, int64_t, std::optional<int64_t>,
                      std::optional<int64_t>, int64_t) -> Tensor {
        return as_strided(self, src.sizes(), src.strides(), src.storage_offset());
      });
  op("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
     kFunction | kMethod)
      .doc(
          "A view of the diagonals of the matrices in two dimensions; the diagonal is the last "
          "dimension of the result.")
      .view(views::diagonal)
      .gradient("", [](Gradient& g) {
        g.set(0, diagonal_backward(g.grad(), g.sizes(0), g.integer(1), g.integer(2), g.integer(3)));
      });
  op("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", kMethod)
      .doc(
          "Windows of `size` elements every `step` along a dimension, as a view; the windows are "
          "the last dimension.")
      .view(views::unfold)
      .gradient("", [](Gradient& g) {
        g.set(0, unfold_backward(g.grad(), g.sizes(0), g.integer(1), g.integer(2), g.integer(3)));
      });
  op("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", kFunction | kOut)
      .doc("Windows along a dimension, as a copy.")
      .composition([](const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
        return clone(unfold(self, dimension, size, step), MemoryFormat::Contiguous);
      });
}

}  // namespace rushlight
