// Splitting a dimension into views.
#include "ops/view_split.h"

#include <rushlight/generated/functions.h>

#include <algorithm>

#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

void refuse_scalar(const Tensor& self, std::string_view op) {
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "", op, " expects at least a 1-dimensional tensor");
  }
}

// The lengths of pieces of `piece` indices of a dimension of `size`; the last may be shorter.
IntList equal_lengths(int64_t size, int64_t piece) {
  if (piece < 0) {
    fail(ErrorKind::Runtime, "",
         "split expects split_size be non-negative, but got split_size=", piece);
  }
  if (piece == 0 && size != 0) {
    fail(ErrorKind::Runtime, "",
         "split_size can only be 0 if dimension size is 0, but got "
         "dimension size of ",
         size);
  }
  if (size == 0) {
    return IntList({0});
  }
  const int64_t count = (size - 1) / piece + 1;
  IntList lengths(static_cast<size_t>(count), piece);
  lengths.back() = size - (count - 1) * piece;
  return lengths;
}

TensorList split_size(const Tensor& self, int64_t piece, int64_t dim) {
  refuse_scalar(self, "split");
  const int64_t at = wrap_dim(dim, self.dim(), "split");
  return split_views(self, equal_lengths(self.size(at), piece), at);
}

TensorList split_lengths(const Tensor& self, IntArrayRef lengths, int64_t dim) {
  refuse_scalar(self, "split_with_sizes");
  const int64_t at = wrap_dim(dim, self.dim(), "split_with_sizes");
  int64_t sum = 0;
  for (int64_t length : lengths) {
    if (length < 0) {
      fail(ErrorKind::Runtime, "",
           "split_with_sizes expects split_sizes have only non-negative "
           "entries, but got split_sizes=",
           lengths);
    }
    sum = checked_add(sum, length, "split_with_sizes");
  }
  if (sum != self.size(at)) {
    fail(ErrorKind::Runtime, "", "split_with_sizes expects split_sizes to sum exactly to ",
         self.size(at), " (input tensor's size at dimension ", at,
         "), but got split_sizes=", lengths);
  }
  return split_views(self, lengths, at);
}

void split_size_gradient(Gradient& g) {
  const int64_t dim = wrap_dim(g.integer(2), static_cast<int64_t>(g.sizes(0).size()), "split");
  split_gradient(g, equal_lengths(g.sizes(0)[static_cast<size_t>(dim)], g.integer(1)), dim);
}

void split_lengths_gradient(Gradient& g) {
  const int64_t dim = wrap_dim(g.integer(2), static_cast<int64_t>(g.sizes(0).size()), "split");
  split_gradient(g, g.ints(1), dim);
}

// What chunk splits by: the size of a piece, and for empty dimensions the lengths.
TensorList chunk_views(const Tensor& self, int64_t chunks, int64_t dim) {
  refuse_scalar(self, "chunk");
  if (chunks <= 0) {
    fail(ErrorKind::Runtime, "", "chunk expects `chunks` to be greater than 0, got: ", chunks);
  }
  const int64_t size = self.size(dim);
  const int64_t piece = (size + chunks - 1) / chunks;
  if (piece == 0 && size == 0) {
    return split_with_sizes(self, IntList(static_cast<size_t>(chunks), 0), dim);
  }
  return split(self, piece, dim);
}

void check_tensor_split(const Tensor& self) {
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "",
         "tensor_split expected at least a 1-dimensional tensor, but got a "
         "tensor with 0 dims");
  }
}

TensorList tensor_split_sections(const Tensor& self, int64_t sections, int64_t dim) {
  check_tensor_split(self);
  const int64_t at = wrap_dim(dim, self.dim(), "tensor_split");
  if (sections <= 0) {
    fail(ErrorKind::Runtime, "", "number of sections must be larger than 0, got ", sections);
  }
  const int64_t size = self.size(at);
  TensorList parts;
  if (static_cast<uint64_t>(sections) > parts.max_size()) {
    fail(ErrorKind::Runtime, "tensor_split", "sections=", sections,
         " are more parts than a list can hold, ", parts.max_size());
  }
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = size / sections + (i < size % sections ? 1 : 0);
    parts.push_back(slice(self, at, start, start + length, 1));
    start += length;
  }
  return parts;
}

TensorList tensor_split_indices(const Tensor& self, IntArrayRef indices, int64_t dim) {
  check_tensor_split(self);
  const int64_t at = wrap_dim(dim, self.dim(), "tensor_split");
  TensorList parts;
  int64_t start = 0;
  for (int64_t end : indices) {
    parts.push_back(slice(self, at, start, end, 1));
    start = end;
  }
  parts.push_back(slice(self, at, start, self.size(at), 1));
  return parts;
}

TensorList tensor_split_tensor(const Tensor& self, const Tensor& given, int64_t dim) {
  check_tensor_split(self);
  if (given.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "tensor_split",
         "tensor_split expected tensor_indices_or_sections to "
         "have dtype of long, but got ",
         given.dtype());
  }
  if (given.dim() > 1) {
    fail(ErrorKind::Runtime, "tensor_split",
         "tensor_split expected tensor_indices_or_sections to "
         "be a zero-dimensional or one-dimensional tensor, but got a tensor with ",
         given.dim(), " dims");
  }
  if (given.dim() == 0) {
    return tensor_split(self, given.item().to_int(), dim);
  }
  IntList indices;
  const auto* values = given.data_ptr<int64_t>();
  for (int64_t i = 0; i < given.numel(); ++i) {
    indices.push_back(values[i * given.stride(0)]);
  }
  return tensor_split(self, indices, dim);
}

// The dimension that hsplit, vsplit and dsplit work along, after checks. `sections` is 0 for lists.
int64_t named_split_dim(const Tensor& self, char letter, int64_t sections) {
  const int64_t least = letter == 'h' ? 1 : letter == 'v' ? 2 : 3;
  if (self.dim() < least) {
    fail(ErrorKind::Runtime, "", "torch.", letter, "split requires a tensor with at least ", least,
         " dimension", least > 1 ? "s" : "", ", but got a tensor with ", self.dim(),
         " dimensions!");
  }
  const int64_t dim = letter == 'h' ? (self.dim() == 1 ? 0 : 1) : letter == 'v' ? 0 : 2;
  if (sections != 0 && self.size(dim) % sections != 0) {
    fail(ErrorKind::Runtime, "", "torch.", letter, "split attempted to split along dimension ", dim,
         ", but the size of the dimension ", self.size(dim), " is not divisible by the split_size ",
         sections, "!");
  }
  return dim;
}

template <char letter>
TensorList named_split(const Tensor& self, int64_t sections) {
  if (self.dim() >= (letter == 'h' ? 1 : letter == 'v' ? 2 : 3) && sections == 0) {
    fail(ErrorKind::Runtime, "", "torch.", letter, "split attempted to split along dimension ",
         named_split_dim(self, letter, 0),
         ", but the size of the dimension is not divisible by "
         "the split_size 0!");
  }
  return tensor_split(self, sections, named_split_dim(self, letter, sections));
}

template <char letter>
TensorList named_split_at(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, named_split_dim(self, letter, 0));
}

}  // namespace

RUSHLIGHT_OPERATORS(view_split) {
  op("split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
     kFunction | kMethod)
      .doc("Views of `split_size` indices of a dimension each; the last may be shorter.")
      .view(split_size)
      .gradient("", split_size_gradient);
  op("split.sizes(Tensor(a) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
     kFunction | kMethod)
      .doc("Views of the given lengths along a dimension.")
      .composition([](const Tensor& self, IntArrayRef lengths, int64_t dim) {
        return split_with_sizes(self, lengths, dim);
      });
  op("split_with_sizes(Tensor(a) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
     kFunction | kMethod)
      .doc("Views of the given lengths along a dimension.")
      .view(split_lengths)
      .gradient("", split_lengths_gradient);
  op("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
     kFunction | kMethod)
      .doc("Like split, but the results may be written in place.")
      .view(split_size)
      .gradient("", split_size_gradient);
  op("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     kFunction | kMethod)
      .doc("Like split_with_sizes, but the results may be written in place.")
      .view(split_lengths)
      .gradient("", split_lengths_gradient);
  op("chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]", kFunction | kMethod)
      .doc("At most `chunks` views of equal length along a dimension; the last may be shorter.")
      .composition(chunk_views);
  op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", kFunction | kMethod)
      .doc("Like chunk, but the results may be written in place.")
      .composition(chunk_views);
  op("tensor_split.sections(Tensor(a) self, SymInt sections, int dim=0) -> Tensor(a)[]",
     kFunction | kMethod)
      .doc("Exactly `sections` views along a dimension, whose lengths differ by at most one.")
      .composition(tensor_split_sections);
  op("tensor_split.indices(Tensor(a) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
     kFunction | kMethod)
      .doc("Views between the given indices of a dimension.")
      .composition(tensor_split_indices);
  op("tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, "
     "int dim=0) -> Tensor(a)[]",
     kFunction | kMethod)
      .doc("The same with the number of sections, or the indices, in a tensor.")
      .composition(tensor_split_tensor);
  op("hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", kFunction | kMethod)
      .doc("Equal views along the columns.")
      .composition(named_split<'h'>);
  op("hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", kFunction | kMethod)
      .doc("Views between the given columns.")
      .composition(named_split_at<'h'>);
  op("vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", kFunction | kMethod)
      .doc("Equal views along the rows.")
      .composition(named_split<'v'>);
  op("vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", kFunction | kMethod)
      .doc("Views between the given rows.")
      .composition(named_split_at<'v'>);
  op("dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]", kFunction | kMethod)
      .doc("Equal views along the third dimension.")
      .composition(named_split<'d'>);
  op("dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]", kFunction | kMethod)
      .doc("Views between the given indices of the third dimension.")
      .composition(named_split_at<'d'>);
}

}  // namespace rushlight
