// Views that keep all elements: other sizes, another order of dimensions, broadcasting.
#include <rushlight/generated/functions.h>

#include <numeric>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/view_body.h"
#include "ops/views.h"
#include "tensor/geometry.h"

namespace rushlight {

void take_geometry(const Tensor& target, const Tensor& shown) {
  TensorImpl* impl = target.impl();
  impl->sizes = shown.impl()->sizes;
  impl->strides = shown.impl()->strides;
  impl->offset = shown.impl()->offset;
  impl->refresh();
}

namespace {

Tensor reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return views::as_strided(self, size, stride, self.storage_offset());
}

Tensor reshape_sizes(const Tensor& self, IntArrayRef shape) {
  const IntList sizes = infer_sizes(shape, self.numel(), "reshape");
  if (view_strides(self.sizes(), self.strides(), sizes)) {
    return view(self, sizes);
  }
  return _unsafe_view(clone(self, MemoryFormat::Contiguous), sizes);
}

IntList inverse_order(IntArrayRef dims) {
  IntList inverse(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = dims[i] < 0 ? dims[i] + static_cast<int64_t>(dims.size()) : dims[i];
    inverse[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return inverse;
}

Tensor t_view(const Tensor& self) {
  if (self.dim() > 2) {
    fail(ErrorKind::Runtime, "t", "t() expects a tensor with <= 2 dimensions, but self is ",
         self.dim(), "D");
  }
  return self.dim() < 2 ? views::alias(self) : views::transpose(self, 0, 1);
}

Tensor move_dims(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  if (source.size() != destination.size()) {
    fail(ErrorKind::Runtime, "movedim", "Invalid source or destination dims: source (", source,
         " dims) should contain the same number of dims as destination (", destination, " dims)");
  }
  const int64_t rank = self.dim();
  if (rank == 0) {
    for (IntArrayRef dims : {source, destination}) {
      for (int64_t dim : dims) {
        wrap_dim(dim, rank, "movedim");
      }
    }
    return self;
  }
  IntList order(static_cast<size_t>(rank), -1);
  IntList moved(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < source.size(); ++i) {
    const auto from = static_cast<size_t>(wrap_dim(source[i], rank, "movedim"));
    const auto to = static_cast<size_t>(wrap_dim(destination[i], rank, "movedim"));
    if (moved[from]++ != 0) {
      fail(ErrorKind::Runtime, "movedim", "repeated dim in `source` (", source, ")");
    }
    if (order[to] != -1) {
      fail(ErrorKind::Runtime, "movedim", "repeated dim in `destination` (", destination, ")");
    }
    order[to] = static_cast<int64_t>(from);
  }
  int64_t next = 0;
  for (int64_t& place : order) {
    if (place != -1) {
      continue;
    }
    while (moved[static_cast<size_t>(next)] != 0) {
      ++next;
    }
    place = next++;
  }
  return permute(self, order);
}

Tensor squeeze_all(const Tensor& self) {
  IntList dims(static_cast<size_t>(self.dim()), 0);
  std::iota(dims.begin(), dims.end(), 0);
  return views::squeeze(self, dims);
}

Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  return views::squeeze(self, {dim});
}

Tensor flatten_dims(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t start = wrap_dim(start_dim, self.dim(), "flatten");
  const int64_t end = wrap_dim(end_dim, self.dim(), "flatten");
  if (start > end) {
    fail(ErrorKind::Runtime, "flatten",
         "flatten() has invalid args: start_dim cannot come after "
         "end_dim, got start_dim=",
         start_dim, ", end_dim=", end_dim);
  }
  if (self.dim() == 0) {
    return reshape(self, {1});
  }
  if (start == end) {
    return self;
  }
  IntList sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t size = self.sizes()[static_cast<size_t>(d)];
    if (d < start || d > end) {
      sizes.push_back(size);
    } else {
      merged *= size;
      if (d == end) {
        sizes.push_back(merged);
      }
    }
  }
  return reshape(self, sizes);
}

Tensor unflatten_dim(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  const auto at = static_cast<size_t>(wrap_dim(dim, self.dim(), "unflatten"));
  if (sizes.empty()) {
    fail(ErrorKind::Runtime, "unflatten", "sizes must be non-empty");
  }
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "unflatten", "cannot unflatten a 0-dim tensor");
  }
  const int64_t whole = self.sizes()[at];
  int64_t known = 1;
  bool inferred = false;
  for (int64_t size : sizes) {
    inferred = inferred || size == -1;
    known = size == -1 ? known : checked_multiply(known, size, "unflatten");
  }
  if (inferred ? known == 0 || whole % known != 0 : known != whole) {
    fail(ErrorKind::Runtime, "unflatten", "Provided sizes ", sizes,
         " don't multiply up to the size of dim ", static_cast<int64_t>(at), " (", whole,
         ") in the input tensor");
  }
  IntList shape(self.sizes());
  shape.erase(at);
  const IntList parts = infer_sizes(sizes, whole, "unflatten");
  for (size_t i = 0; i < parts.size(); ++i) {
    shape.insert(at + i, parts[i]);
  }
  return view(self, shape);
}

Tensor matrix_transpose(const Tensor& self, std::string_view name) {
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, "", "tensor.", name,
         " is only supported on matrices or batches of matrices. Got ", self.dim(), "-D tensor.");
  }
  return transpose(self, -2, -1);
}

Tensor adjoint_view(const Tensor& self, std::string_view name) {
  return matrix_transpose(conj(self), name);
}

Tensor matrix_h_view(const Tensor& self) {
  if (self.dim() != 2 && self.dim() != 0) {
    fail(ErrorKind::Runtime, "", "tensor.H is only supported on matrices (2-D tensors). Got ",
         self.dim(), "-D tensor.");
  }
  return self.dim() == 0 ? self : adjoint_view(self, "H");
}

Tensor numpy_t_view(const Tensor& self) {
  if (self.dim() != 2 && self.dim() != 0) {
    warn(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
        "deprecated and it will throw an error in a future release. Consider `x.mT` to transpose "
        "batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
        "dimensions of a tensor.");
  }
  IntList order(static_cast<size_t>(self.dim()), 0);
  for (size_t d = 0; d < order.size(); ++d) {
    order[d] = self.dim() - 1 - static_cast<int64_t>(d);
  }
  return permute(self, order);
}

void reshape_back(Gradient& g) {
  g.set(0, reshape(g.grad(), g.sizes(0)));
}
void pass_back(Gradient& g) {
  g.set(0, g.grad());
}

}  // namespace

RUSHLIGHT_OPERATORS(view) {
  op("alias(Tensor(a) self) -> Tensor(a)", kInternal)
      .doc("Another tensor on the same memory.")
      .view(views::alias)
      .gradient("", pass_back);
  op("detach(Tensor(a) self) -> Tensor(a)", kFunction | kMethod)
      .doc("The same memory, outside the autograd graph.")
      .view(views::alias)
      .not_differentiable();
  op("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", kMethod)
      .doc(
          "The same elements in another shape, without a copy; one size may be -1. Fails where "
          "the strides do not allow it.")
      .view(views::view)
      .gradient("", reshape_back);
  op("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", kMethod)
      .doc(
          "The same bytes read as another dtype; the last dimension grows or shrinks where the "
          "element sizes differ.")
      .view(views::view_dtype)
      .not_differentiable();
  op("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", kInternal)
      .doc("A view of a tensor that nobody else sees.")
      .view(views::view)
      .gradient("", reshape_back);
  op("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", kInternal)
      .doc("A view with given strides, which the caller has computed.")
      .view(reshape_alias)
      .gradient("", reshape_back);
  op("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", kFunction | kMethod)
      .doc(
          "The same elements in another shape: a view where the strides allow it, else a copy. "
          "One size may be -1.")
      .composition(reshape_sizes);
  op("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", kMethod)
      .doc("Reshapes to the shape of `other`.")
      .composition(
          [](const Tensor& self, const Tensor& other) { return reshape(self, other.sizes()); });
  op("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", kMethod)
      .doc("Views in the shape of `other`.")
      .composition(
          [](const Tensor& self, const Tensor& other) { return view(self, other.sizes()); });
  op("permute(Tensor(a) self, int[] dims) -> Tensor(a)", kFunction | kMethod)
      .doc("A view with the dimensions in the given order.")
      .view(views::permute)
      .gradient("", [](Gradient& g) { g.set(0, permute(g.grad(), inverse_order(g.ints(1)))); });
  reshaping_view(op("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
                    kFunction | kMethod | kInplace),
                 views::transpose)
      .doc("A view with two dimensions swapped.")
      .gradient("", [](Gradient& g) { g.set(0, transpose(g.grad(), g.integer(1), g.integer(2))); })
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "TransposeBackward1" : "TransposeBackward0";
      });
  reshaping_view(op("t(Tensor(a) self) -> Tensor(a)", kFunction | kMethod | kInplace), t_view)
      .doc("The transposed matrix; tensors of rank 0 and 1 as they are.")
      .gradient("", [](Gradient& g) { g.set(0, t(g.grad())); })
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "TBackward1" : "TBackward0";
      });
  two_form_composition(
      op("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
         kFunction | kMethod | kInplace),
      [](const Tensor& self, int64_t a, int64_t b) { return transpose(self, a, b); },
      [](const Tensor& self, int64_t a, int64_t b) { transpose_(self, a, b); })
      .doc("Another name of transpose.");
  two_form_composition(
      op("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
         kFunction | kMethod | kInplace),
      [](const Tensor& self, int64_t a, int64_t b) { return transpose(self, a, b); },
      [](const Tensor& self, int64_t a, int64_t b) { transpose_(self, a, b); })
      .doc("Another name of transpose.");
  op("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
     kFunction | kMethod)
      .doc("Moves dimensions to new places; the others keep their order.")
      .composition(move_dims);
  op("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", kFunction | kMethod)
      .doc("Moves one dimension to a new place.")
      .composition([](const Tensor& self, int64_t source, int64_t destination) {
        return move_dims(self, source, destination);
      });
  op("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
     kFunction | kMethod)
      .doc("Another name of movedim.")
      .composition(move_dims);
  op("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", kFunction | kMethod)
      .doc("Another name of movedim.")
      .composition([](const Tensor& self, int64_t source, int64_t destination) {
        return move_dims(self, source, destination);
      });
  op("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", kMethod)
      .doc(
          "A view that repeats dimensions of size 1 without a copy; -1 keeps a size. New "
          "dimensions are added in front.")
      .view(views::expand)
      .gradient("", pass_back);
  op("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", kMethod)
      .doc("Expands to the shape of `other`.")
      .composition(
          [](const Tensor& self, const Tensor& other) { return expand(self, other.sizes()); });
  op("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", kFunction | kMethod)
      .doc("Another name of expand.")
      .composition([](const Tensor& self, IntArrayRef size) { return expand(self, size); });
  reshaping_view(op("squeeze(Tensor(a) self) -> Tensor(a)", kFunction | kMethod | kInplace),
                 squeeze_all)
      .doc("A view without the dimensions of size 1.")
      .gradient("", reshape_back)
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "SqueezeBackward3" : "SqueezeBackward0";
      });
  reshaping_view(
      op("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", kFunction | kMethod | kInplace),
      squeeze_dim)
      .doc("A view without dimension `dim` where its size is 1.")
      .gradient("", reshape_back)
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "SqueezeBackward4" : "SqueezeBackward1";
      });
  reshaping_view(
      op("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", kFunction | kMethod | kInplace),
      views::squeeze)
      .doc("A view without those of the given dimensions whose size is 1.")
      .gradient("", reshape_back)
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "SqueezeBackward5" : "SqueezeBackward2";
      });
  reshaping_view(
      op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", kFunction | kMethod | kInplace),
      views::unsqueeze)
      .doc("A view with a new dimension of size 1 at `dim`.")
      .gradient("", reshape_back)
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "UnsqueezeBackward1" : "UnsqueezeBackward0";
      });
  op("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
     kFunction | kMethod)
      .doc("Merges the dimensions from `start_dim` to `end_dim`.")
      .composition(flatten_dims);
  op("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", kFunction | kMethod)
      .doc("Splits one dimension into several; one size may be -1.")
      .composition(unflatten_dim);
  op("ravel(Tensor(a) self) -> Tensor(a)", kFunction | kMethod)
      .doc("All elements in one dimension.")
      .composition([](const Tensor& self) { return reshape(contiguous(self), {-1}); });
  op("numpy_T(Tensor(a) self) -> Tensor(a)", kInternal)
      .doc("The dimensions in reverse order: `x.T`.")
      .composition(numpy_t_view);
  op("matrix_H(Tensor(a) self) -> Tensor(a)", kInternal)
      .doc("The conjugate transpose of a matrix: `x.H`.")
      .composition(matrix_h_view);
  op("mT(Tensor(a) self) -> Tensor(a)", kInternal)
      .doc("Matrices transposed, over any batch dimensions: `x.mT`.")
      .composition([](const Tensor& self) { return matrix_transpose(self, "mT"); });
  op("mH(Tensor(a) self) -> Tensor(a)", kInternal)
      .doc("Matrices transposed and conjugated, over any batch dimensions: `x.mH`.")
      .composition([](const Tensor& self) { return adjoint_view(self, "mH"); });
  op("adjoint(Tensor(a) self) -> Tensor(a)", kFunction | kMethod)
      .doc("Matrices transposed and conjugated, over any batch dimensions.")
      .composition([](const Tensor& self) { return adjoint_view(self, "adjoint"); });
}

}  // namespace rushlight
