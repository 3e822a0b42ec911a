// Operators that move elements without looking at them: roll, flip, repeat, triangles, diagonals.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "ops/dtype_checks.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/views.h"
#include "ops/written.h"
#include "runtime/parallel.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

IntList wrapped_dims(IntArrayRef dims, int64_t rank, std::string_view op) {
  IntList seen(static_cast<size_t>(std::max<int64_t>(rank, 1)), 0);
  IntList made;
  for (int64_t dim : dims) {
    const int64_t at = wrap_dim(dim, rank, op);
    if (seen[static_cast<size_t>(at)]++ != 0) {
      fail(ErrorKind::Runtime, op, "dim ", at, " appears multiple times in the list of dims");
    }
    made.push_back(at);
  }
  return made;
}

// Copies a view that walks the flipped dimensions backwards.
Tensor flip_dims(const Tensor& self, IntArrayRef dims) {
  const IntList flipped = wrapped_dims(dims, self.dim(), "flip");
  Tensor made = make_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()),
                             self.dtype(), self.device());
  if (self.numel() == 0 || self.dim() == 0) {
    kernels::copy(made, self);
    return made;
  }
  IntList strides(self.strides());
  int64_t offset = self.storage_offset();
  for (int64_t d : flipped) {
    offset += (self.size(d) - 1) * self.stride(d);
    strides[static_cast<size_t>(d)] = -self.stride(d);
  }
  kernels::copy(made, make_view(self, self.sizes(), strides, offset));
  return made;
}

// Rolls by `shift` along one dimension.
Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  Tensor made = make_tensor(self.sizes(), self.dtype(), self.device());
  const int64_t size = self.size(dim);
  if (size == 0) {
    return made;
  }
  const int64_t moved = ((shift % size) + size) % size;
  kernels::copy(views::slice(made, dim, moved, size, 1),
                views::slice(self, dim, 0, size - moved, 1));
  kernels::copy(views::slice(made, dim, 0, moved, 1),
                views::slice(self, dim, size - moved, size, 1));
  return made;
}

Tensor roll_dims(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  if (shifts.empty()) {
    fail(ErrorKind::Runtime, "roll", "`shifts` required");
  }
  if (dims.empty() && shifts.size() == 1) {
    const Tensor flat = make_view(kernels::as_contiguous(self), {self.numel()}, {1},
                                  self.is_contiguous() ? self.storage_offset() : 0);
    const Tensor rolled = roll_one(flat, shifts[0], 0);
    return make_view(rolled, self.sizes(), contiguous_strides(self.sizes()), 0);
  }
  if (shifts.size() != dims.size()) {
    fail(ErrorKind::Runtime, "roll",
         "shifts and dimensions must align. shifts: ", static_cast<int64_t>(shifts.size()),
         ", dims:", static_cast<int64_t>(dims.size()));
  }
  Tensor made = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (self.dim() == 0) {
      fail(ErrorKind::Index, "roll", "Dimension specified as ", dims[i],
           " but tensor has no dimensions");
    }
    const int64_t dim = wrap_dim(dims[i], self.dim(), "roll");
    made = roll_one(made, shifts[i], dim);
  }
  return made;
}

Tensor rotate(const Tensor& self, int64_t k, IntArrayRef dims) {
  if (dims.size() != 2) {
    fail(ErrorKind::Runtime, "rot90",
         "expected total rotation dims == 2, but got dims = ", static_cast<int64_t>(dims.size()));
  }
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, "rot90",
         "expected total dims >= 2, but got total dims = ", self.dim());
  }
  const int64_t a = wrap_dim(dims[0], self.dim(), "rot90");
  const int64_t b = wrap_dim(dims[1], self.dim(), "rot90");
  if (a == b) {
    fail(ErrorKind::Runtime, "rot90",
         "expected rotation dims to be different, but got dim0 = ", dims[0],
         " and dim1 = ", dims[1]);
  }
  switch (((k % 4) + 4) % 4) {
    case 1:
      return transpose_(flip(self, {b}), a, b);
    case 2:
      return flip(self, dims);
    case 3:
      return transpose_(flip(self, {a}), a, b);
    default:
      return clone(self, MemoryFormat::Contiguous);
  }
}

// Each dimension becomes (repeats, size), of which the first is broadcast.
Tensor repeat_sizes(const Tensor& self, IntArrayRef repeats) {
  const int64_t added = static_cast<int64_t>(repeats.size()) - self.dim();
  if (added < 0) {
    fail(ErrorKind::Runtime, "repeat",
         "Number of dimensions of repeat dims can not be smaller than "
         "number of dimensions of tensor");
  }
  IntList singles;
  IntList wide;
  IntList target;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t own =
        static_cast<int64_t>(i) < added ? 1 : self.sizes()[i - static_cast<size_t>(added)];
    target.push_back(checked_multiply(own, repeats[i], "repeat"));
    if (repeats[i] < 0) {
      fail(ErrorKind::Runtime, "repeat", "Trying to create tensor with negative dimension ",
           target.back(), ": ", target);
    }
    singles.push_back(1);
    singles.push_back(own);
    wide.push_back(repeats[i]);
    wide.push_back(own);
  }
  const Tensor spread = expand(reshape(self, singles), wide);
  return view(clone(spread, MemoryFormat::Contiguous), target);
}

Tensor tile_sizes(const Tensor& self, IntArrayRef dims) {
  IntList repeats(dims);
  while (static_cast<int64_t>(repeats.size()) < self.dim()) {
    repeats.insert(0, 1);
  }
  return repeat(self, repeats);
}

// Sets to zero what lies outside the triangle, in place.
void keep_triangle(const Tensor& target, int64_t diagonal, bool lower) {
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  const int64_t rows = target.size(-2);
  const int64_t columns = target.size(-1);
  const int64_t matrices = target.numel() / (rows * columns);
  const int64_t grain = std::max<int64_t>(1, 32768 / columns);
  parallel_for(0, matrices * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t row = at % rows;
      int64_t rest = at / rows;
      int64_t offset = target.storage_offset() + row * target.stride(-2);
      for (int64_t d = target.dim() - 3; d >= 0; --d) {
        offset += rest % target.size(d) * target.stride(d);
        rest /= target.size(d);
      }
      // Written so that no diagonal can overflow.
      const int64_t bound = diagonal >= columns - row ? columns
                            : diagonal < -row         ? 0
                                                      : row + diagonal + (lower ? 1 : 0);
      const int64_t inside = std::clamp<int64_t>(bound, 0, columns);
      const int64_t first = lower ? inside : 0;
      const int64_t count = lower ? columns - inside : inside;
      kernels::zero_line(target, offset + first * target.stride(-1), target.stride(-1), count);
    }
  });
}

template <bool lower>
void check_triangle(const Tensor& self, int64_t) {
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, lower ? "tril" : "triu",
         "input tensor must have at least 2 dimensions, got ", self.dim());
  }
}

template <bool lower>
void triangle(const Tensor& target, int64_t diagonal) {
  keep_triangle(target, diagonal, lower);
}

Tensor diag_embedded(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t rank = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, rank, "diag_embed");
  const int64_t b = wrap_dim(dim2, rank, "diag_embed");
  if (a == b) {
    fail(ErrorKind::Runtime, "diag_embed", "diagonal dimensions cannot be identical ", dim1, ", ",
         dim2);
  }
  IntList sizes(self.sizes());
  const int64_t side = checked_add(self.size(-1), std::abs(offset), "diag_embed");
  sizes.pop_back();
  sizes.insert(static_cast<size_t>(std::min(a, b)), side);
  sizes.insert(static_cast<size_t>(std::max(a, b)), side);
  Tensor made = kernels::make_zeros(sizes, self.dtype(), self.device());
  kernels::copy(views::diagonal(made, offset, a, b), self);
  return made;
}

Tensor diag_of(const Tensor& self, int64_t diagonal) {
  if (self.dim() != 1 && self.dim() != 2) {
    fail(ErrorKind::Runtime, "", "diag(): Supports 1D or 2D tensors. Got ", self.dim(), "D");
  }
  return self.dim() == 1 ? diag_embed(self, diagonal)
                         : clone(rushlight::diagonal(self, diagonal), MemoryFormat::Contiguous);
}

Tensor repeat_indices(const Tensor& repeats, std::optional<int64_t> output_size) {
  if (repeats.dim() != 1) {
    fail(ErrorKind::Runtime, "", "repeat_interleave only accept 1D vector as repeat, got ",
         repeats.dim(), "D");
  }
  if (repeats.dtype() != DType::Int64 && repeats.dtype() != DType::Int32) {
    fail(ErrorKind::NotImplemented, "", "\"repeat_interleave_cpu\" not implemented for '",
         scalar_type_name(repeats.dtype()), "'");
  }
  const Tensor counts = kernels::as_contiguous(kernels::as_dtype(repeats, DType::Int64));
  if (counts.is_meta()) {
    if (!output_size) {
      fail(ErrorKind::NotImplemented, "repeat_interleave",
           "the shape of the result depends on the elements of repeats, which meta tensors do not "
           "have; output_size says it");
    }
    return make_tensor({*output_size}, repeats.dtype(), counts.device());
  }
  const auto* count = counts.data_ptr<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    if (count[i] < 0) {
      fail(ErrorKind::Runtime, "repeat_interleave", "repeats can not be negative, got ", count[i],
           " at index ", i);
    }
    total = checked_add(total, count[i], "repeat_interleave");
  }
  if (output_size && *output_size != total) {
    fail(ErrorKind::Runtime, "repeat_interleave",
         "allocated size does not match required size: "
         "output_size is ",
         *output_size, ", the repeats add up to ", total);
  }
  Tensor made = make_tensor({total}, DType::Int64);
  auto* at = made.data_ptr<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) {
    at = std::fill_n(at, count[i], i);
  }
  return kernels::as_dtype(made, repeats.dtype());
}

Tensor repeat_interleave_tensor(const Tensor& self, const Tensor& repeats,
                                std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  const Tensor input = dim ? self : flatten(self);
  const int64_t at = wrap_dim(dim.value_or(0), input.dim(), "repeat_interleave");
  Tensor counts = repeats;
  const int64_t size = input.dim() == 0 ? 1 : input.size(at);
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1)) {
    counts = expand(reshape(repeats, {1}), {size});
  } else if (repeats.dim() != 1) {
    fail(ErrorKind::Runtime, "repeat_interleave", "repeats must be 0-dim or 1-dim tensor, got ",
         repeats.dim(), "-dim");
  } else if (repeats.numel() != size) {
    fail(ErrorKind::Runtime, "repeat_interleave",
         "repeats must have the same size as input along "
         "dim, but got repeats.size(0) = ",
         repeats.numel(), " and input.size(", at, ") = ", size);
  }
  return index_select(input, at, rushlight::repeat_interleave(counts, output_size));
}

Tensor repeat_interleave_number(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size) {
  if (repeats < 0) {
    fail(ErrorKind::Runtime, "", "Repeats must be non-negative, got ", repeats);
  }
  const Tensor input = dim ? atleast_1d(self) : flatten(self);
  const int64_t at = wrap_dim(dim.value_or(0), input.dim(), "repeat_interleave");
  const int64_t total = checked_multiply(input.size(at), repeats, "repeat_interleave");
  if (output_size && *output_size != total) {
    fail(ErrorKind::Runtime, "repeat_interleave",
         "Allocated size does not match required size: "
         "output_size is ",
         *output_size, ", the result has ", total);
  }
  IntList wide(input.sizes());
  wide.insert(static_cast<size_t>(at) + 1, repeats);
  IntList target(input.sizes());
  target[static_cast<size_t>(at)] = total;
  return view(clone(expand(unsqueeze(input, at + 1), wide), MemoryFormat::Contiguous), target);
}

}  // namespace

RUSHLIGHT_OPERATORS(shape) {
  op("flip(Tensor self, int[] dims) -> Tensor", kFunction | kMethod)
      .doc("A copy with the order along the given dimensions reversed.")
      .kernel(flip_dims)
      .gradient("", [](Gradient& g) { g.set(0, flip(g.grad(), g.ints(1))); });
  op("fliplr(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("A copy with the order of the columns reversed.")
      .composition([](const Tensor& self) {
        if (self.dim() < 2) {
          fail(ErrorKind::Runtime, "fliplr", "Input must be >= 2-d.");
        }
        return flip(self, {1});
      });
  op("flipud(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("A copy with the order of the rows reversed.")
      .composition([](const Tensor& self) {
        if (self.dim() < 1) {
          fail(ErrorKind::Runtime, "flipud", "Input must be >= 1-d.");
        }
        return flip(self, {0});
      });
  op("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", kFunction | kMethod)
      .doc(
          "A copy with elements moved along dimensions; what leaves at one end enters at the "
          "other. Without dimensions the flattened tensor is rolled.")
      .kernel(roll_dims)
      .gradient("", [](Gradient& g) {
        IntList back(g.ints(1));
        for (int64_t& shift : back) {
          shift = -shift;
        }
        g.set(0, roll(g.grad(), back, g.ints(2)));
      });
  op("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", kFunction | kMethod)
      .doc(
          "A copy turned `k` quarters in the plane of two dimensions, from the first to the "
          "second.")
      .composition(rotate)
      .node("Rot90Backward0");
  op("repeat(Tensor self, SymInt[] repeats) -> Tensor", kMethod)
      .doc("Copies of the tensor along each dimension; new dimensions are added in front.")
      .composition(repeat_sizes)
      .node("RepeatBackward0");
  op("tile(Tensor self, SymInt[] dims) -> Tensor", kFunction | kMethod)
      .doc("Like repeat; missing numbers are 1.")
      .composition(tile_sizes)
      .node("RepeatBackward0");
  op("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", kFunction)
      .doc("Index i, `repeats[i]` times.")
      .kernel(repeat_indices)
      .not_differentiable();
  op("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
     "SymInt? output_size=None) -> Tensor",
     kFunction | kMethod)
      .doc("Index i of a dimension, `repeats[i]` times; the flattened tensor without a dimension.")
      .composition(repeat_interleave_tensor);
  op("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
     "SymInt? output_size=None) -> Tensor",
     kFunction | kMethod)
      .doc("Each index of a dimension, `repeats` times; the flattened tensor without a dimension.")
      .composition(repeat_interleave_number);
  op("tril(Tensor self, SymInt diagonal=0) -> Tensor", kUnary)
      .doc("The lower triangle of matrices, up to a diagonal; zero elsewhere.")
      .kernel_into(written(check_triangle<true>, triangle<true>))
      .gradient("", [](Gradient& g) { g.set(0, tril(g.grad(), g.integer(1))); });
  op("triu(Tensor self, SymInt diagonal=0) -> Tensor", kUnary)
      .doc("The upper triangle of matrices, from a diagonal; zero elsewhere.")
      .kernel_into(written(check_triangle<false>, triangle<false>))
      .gradient("", [](Gradient& g) { g.set(0, triu(g.grad(), g.integer(1))); });
  op("diag(Tensor self, int diagonal=0) -> Tensor", kFunction | kMethod | kOut)
      .doc("The diagonal of a matrix, or a matrix with this diagonal.")
      .composition(diag_of);
  op("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
     kFunction | kMethod)
      .doc("Matrices of zeros whose diagonals are the last dimension.")
      .kernel(diag_embedded)
      .gradient("", [](Gradient& g) {
        g.set(0, diagonal(g.grad(), g.integer(1), g.integer(2), g.integer(3)));
      });
  op("diagflat(Tensor self, int offset=0) -> Tensor", kFunction | kMethod)
      .doc("A matrix whose diagonal is the flattened tensor.")
      .composition(
          [](const Tensor& self, int64_t offset) { return diag(reshape(self, {-1}), offset); });
  op("trace(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("The sum of a matrix's diagonal.")
      .composition([](const Tensor& self) {
        if (self.dim() != 2) {
          fail(ErrorKind::Runtime, "trace", "expected a matrix, but got tensor with dim ",
               self.dim());
        }
        return sum(diagonal(self));
      })
      .node("TraceBackward0")
      .check(expect_not_bool);
}

}  // namespace rushlight
