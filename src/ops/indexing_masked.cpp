// Positions: found, padded to a given number, unravelled; and reads and writes where a mask allows.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/index_nonzero.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

Tensor nonzero_padded(const Tensor& self, int64_t size, int64_t fill) {
  if (size < 0) {
    fail(ErrorKind::Runtime, "", "nonzero_static: 'size' must be an non-negative integer");
  }
  DoorGuard guard(0, ~uint32_t{0});
  const Tensor made =
      full({size, self.dim()}, Scalar(fill), TensorOptions(DType::Int64).device(self.device()));
  if (!self.is_meta() && made.numel() != 0) {
    const Tensor found = kernels::nonzero(self);
    const int64_t count = std::min(size, found.size(0));
    copy_(narrow(made, 0, 0, count), narrow(found, 0, 0, count));
  }
  return made;
}

// The indices, with 0 where the mask is false: those may name anything.
TensorList allowed(const TensorList& indices, const Tensor& mask) {
  TensorList made;
  for (const Tensor& index : indices) {
    made.push_back(!index.defined() ? index : masked_fill(index, logical_not(mask), Scalar(0)));
  }
  return made;
}

bool has_index(const TensorList& indices) {
  for (const Tensor& index : indices) {
    if (index.defined()) {
      return true;
    }
  }
  return false;
}

Tensor masked_index(const Tensor& self, const Tensor& mask, const TensorList& indices,
                    Scalar fill) {
  if (self.numel() == 0) {
    IntList sizes(mask.sizes());
    return full(sizes, fill, self.options());
  }
  const Tensor read = has_index(indices) ? index(self, allowed(indices, mask)) : self;
  return masked_fill(read, logical_not(mask), fill);
}

Tensor masked_index_add(const Tensor& self, const Tensor& mask, const TensorList& indices,
                        const Tensor& values) {
  if (self.numel() == 0) {
    return clone(self);
  }
  const Tensor kept = masked_fill(values, logical_not(mask), Scalar(0));
  return index_put(self, allowed(indices, mask), kept, true);
}

// Positions in a tensor of this shape, a tensor for each dimension, of positions in row-major
// order.
TensorList unravelled(const Tensor& indices, IntArrayRef shape) {
  if (!is_integral(indices.dtype(), false)) {
    fail(ErrorKind::Type, "", "expected 'indices' to be integer dtype, but got ", indices.dtype());
  }
  IntList steps(shape.size(), 1);
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 0) {
      fail(ErrorKind::Value, "", "'shape' cannot have negative values, but got ", shape);
    }
    steps[d] = step;
    step = checked_multiply(step, shape[d], "unravel_index");
  }
  const auto line = [&](IntArrayRef numbers) {
    const Tensor made = make_tensor({static_cast<int64_t>(numbers.size())}, DType::Int64);
    std::copy(numbers.begin(), numbers.end(), static_cast<int64_t*>(made.data()));
    return indices.is_meta() ? to(made, made.options().device(indices.device())) : made;
  };
  if (shape.empty()) {
    return {};
  }
  const Tensor quotient = floor_divide(unsqueeze(indices, -1), line(steps));
  return unbind(remainder(quotient, line(shape)), -1);
}

// What stands for an element in its hash: its value in 64 bits.
Tensor hashed_bits(const Tensor& self) {
  if (self.is_complex()) {
    fail(ErrorKind::NotImplemented, "", "\"xor_sum_cpu\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  return contiguous(to(self, self.is_floating_point() ? DType::Float64 : DType::Int64));
}

void check_hash(const Invocation& inv) {
  const int64_t mode = inv.arguments[3].to_int();
  if (mode != 0) {
    fail(ErrorKind::Runtime, "", "Unknown hash_tensor mode: ", mode);
  }
  if (inv.form == Form::Out && inv.results[0].tensor().dtype() != DType::UInt64) {
    fail(ErrorKind::Runtime, "", "Expected result to be of dtype uint64, but got ",
         scalar_type_name(inv.results[0].tensor().dtype()));
  }
}

// Which dimensions are reduced; all of them where none is named.
IntList hashed_dims(const Tensor& self, IntArrayRef given) {
  IntList chosen(static_cast<size_t>(self.dim()), given.empty() ? 1 : 0);
  if (given.empty() && self.numel() == 0) {
    fail(ErrorKind::Runtime, "",
         "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
         "reduction dim with the 'dim' argument.");
  }
  for (int64_t dim : given) {
    const int64_t at = wrap_dim(dim, self.dim(), "hash_tensor");
    if (self.dim() == 0) {
      continue;
    }
    if (chosen[static_cast<size_t>(at)]++ != 0) {
      fail(ErrorKind::Runtime, "", "dim ", at, " appears multiple times in the list of dims");
    }
    if (self.size(at) == 0) {
      fail(ErrorKind::Index, "", "hash_tensor: Expected reduction dim ", at,
           " to have non-zero size.");
    }
  }
  return chosen;
}

Tensor hash_of(const Tensor& self, IntArrayRef dim, bool keepdim, int64_t) {
  DoorGuard guard(0, ~uint32_t{0});
  const IntList chosen = hashed_dims(self, dim);
  IntList order;
  IntList kept;
  IntList sizes;
  int64_t count = 1;
  for (size_t d = 0; d < chosen.size(); ++d) {
    if (chosen[d] != 0) {
      count *= self.sizes()[d];
    } else {
      order.push_back(static_cast<int64_t>(d));
      kept.push_back(self.sizes()[d]);
    }
    if (chosen[d] == 0 || keepdim) {
      sizes.push_back(chosen[d] != 0 ? 1 : self.sizes()[d]);
    }
  }
  for (size_t d = 0; d < chosen.size(); ++d) {
    if (chosen[d] != 0) {
      order.push_back(static_cast<int64_t>(d));
    }
  }
  const Tensor made = make_tensor(sizes, DType::UInt64, self.device());
  if (self.is_meta()) {
    return made;
  }
  const Tensor bits = hashed_bits(permute(self, order));
  const auto* from = static_cast<const uint64_t*>(bits.data());
  auto* into = static_cast<uint64_t*>(made.data());
  for (int64_t row = 0; row < made.numel(); ++row) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < count; ++i) {
      hash ^= from[row * count + i];
    }
    into[row] = hash;
  }
  return made;
}

}  // namespace

RUSHLIGHT_OPERATORS(indexing_masked) {
  op("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The first `size` positions of nonzero; rows of `fill_value` where there are fewer.")
      .kernel(nonzero_padded)
      .not_differentiable();
  op("unravel_index(Tensor indices, SymInt[1] shape) -> Tensor[]", kFunction)
      .doc(
          "Positions in a tensor of this shape from positions in row-major order, a tensor for "
          "each dimension.")
      .composition(unravelled);
  op("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     kFunction)
      .doc(
          "self[indices] where the mask is true, `fill` elsewhere; indices there are not looked "
          "at.")
      .composition(masked_index)
      .node("UnsafeMaskedIndexBackward0");
  op("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
     "Tensor values) -> Tensor",
     kFunction)
      .doc("self[indices] += values where the mask is true.")
      .composition(masked_index_add)
      .node("UnsafeMaskedIndexPutAccumulateBackward0");
  op("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The exclusive or of the bits of the elements, each widened to 64 bits.")
      .kernel(hash_of)
      .not_differentiable()
      .check(check_hash);
}

}  // namespace rushlight
