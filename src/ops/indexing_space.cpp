#include "ops/indexing_space.h"

#include "kernels/copy.h"
#include "kernels/index_nonzero.h"
#include "ops/views.h"

namespace rushlight {
namespace {

void check_mask(const Tensor& mask, const Tensor& self, int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (first + d >= self.dim()) {
      fail(ErrorKind::Index, "", "too many indices for tensor of dimension ", self.dim());
    }
    if (mask.size(d) != self.size(first + d)) {
      fail(ErrorKind::Index, "", "The shape of the mask ", mask.sizes(), " at index ", d,
           " does not match the shape of the indexed tensor ", self.sizes(), " at index ",
           first + d);
    }
  }
}

}  // namespace

bool is_mask(const Tensor& index) {
  return index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
}

TensorList mask_indices(const Tensor& mask) {
  const Tensor positions = kernels::nonzero(mask);
  TensorList columns;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    columns.push_back(kernels::as_contiguous(views::select(positions, 1, d)));
  }
  return columns;
}

void IndexingSpace::collect(const Tensor& self, const TensorList& indices) {
  int64_t dim = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      ++dim;
      continue;
    }
    if (is_mask(index)) {
      check_mask(index, self, dim);
      if (index.is_meta() || self.is_meta()) {
        fail(ErrorKind::NotImplemented, "index",
             "the shape of a result indexed by a mask depends on the "
             "mask's elements, which meta tensors do not have");
      }
      if (index.dim() == 0) {
        fail(ErrorKind::Index, "", "0-dim masks must be given a dimension of their own");
      }
      for (Tensor& column : mask_indices(index)) {
        indexed_.emplace_back(dim++, std::move(column));
      }
      continue;
    }
    if (index.dtype() != DType::Int64 && index.dtype() != DType::Int32) {
      fail(ErrorKind::Index, "",
           "tensors used as indices must be long, int, byte or bool tensors, "
           "got ",
           index.dtype());
    }
    indexed_.emplace_back(dim++, kernels::as_dtype(index, DType::Int64));
  }
  if (dim > self.dim()) {
    fail(ErrorKind::Index, "", "too many indices for tensor of dimension ", self.dim(), ", got ",
         dim);
  }
}

void IndexingSpace::broadcast() {
  for (const auto& [dim, index] : indexed_) {
    try {
      index_sizes_ = broadcast_shapes(index_sizes_, index.sizes(), "index");
    } catch (const Error&) {
      std::string shapes;
      for (const auto& other : indexed_) {
        shapes += (shapes.empty() ? "" : ", ") + cat(other.second.sizes());
      }
      fail(ErrorKind::Index, "",
           "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
  }
  count_ = checked_numel(index_sizes_, "index");
}

// Splits the other dimensions into those before and those after the index's place.
void IndexingSpace::place(const Tensor& self) {
  bool neighbours = true;
  for (size_t i = 1; i < indexed_.size(); ++i) {
    neighbours = neighbours && indexed_[i].first == indexed_[i - 1].first + 1;
  }
  const int64_t first = indexed_.empty() || !neighbours ? 0 : indexed_.front().first;
  std::vector<bool> taken(static_cast<size_t>(self.dim()), false);
  for (const auto& [dim, index] : indexed_) {
    taken[static_cast<size_t>(dim)] = true;
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (taken[static_cast<size_t>(d)]) {
      continue;
    }
    const bool before = neighbours && d < first;
    (before ? outer_sizes_ : inner_sizes_).push_back(self.size(d));
    (before ? outer_strides_ : inner_strides_).push_back(self.stride(d));
  }
  outer_ = outer_sizes_.size();
  for (const IntList* part : {&outer_sizes_, &index_sizes_, &inner_sizes_}) {
    for (int64_t size : *part) {
      result_sizes_.push_back(size);
    }
  }
}

IndexingSpace::IndexingSpace(const Tensor& self, const TensorList& indices) : base_(self) {
  collect(self, indices);
  broadcast();
  place(self);
  if (self.is_meta()) {
    return;
  }
  offsets_ = kernels::make_zeros({count_}, DType::Int64);
  const bool reads = checked_numel(result_sizes_, "index") != 0;
  for (const auto& [dim, index] : indexed_) {
    const Tensor whole = kernels::as_contiguous(views::expand(index, index_sizes_));
    const kernels::IndexBound bound{self.size(dim), dim, true};
    if (reads || self.size(dim) != 0) {
      kernels::add_offsets(offsets_.data_ptr<int64_t>(), whole.data_ptr<int64_t>(), count_,
                           self.stride(dim), bound);
    }
  }
}

bool IndexingSpace::fits(const Tensor& dense) const {
  int64_t expected = -1;
  for (size_t i = index_sizes_.size(); i-- > 0;) {
    if (index_sizes_[i] == 1) {
      continue;
    }
    const int64_t stride = dense.strides()[outer_ + i];
    if (expected >= 0 && stride != expected) {
      return false;
    }
    expected = stride * index_sizes_[i];
  }
  return true;
}

kernels::IndexSpace IndexingSpace::with(const Tensor& dense) const {
  kernels::IndexSpace space;
  space.outer_sizes = outer_sizes_;
  space.inner_sizes = inner_sizes_;
  space.base_outer = outer_strides_;
  space.base_inner = inner_strides_;
  const IntArrayRef strides = dense.strides();
  space.dense_outer = IntList(IntArrayRef(strides.subspan(0, outer_)));
  space.dense_inner = IntList(IntArrayRef(strides.subspan(outer_ + index_sizes_.size())));
  space.dense_index = 0;
  for (size_t i = index_sizes_.size(); i-- > 0;) {
    if (index_sizes_[i] != 1) {
      space.dense_index = strides[outer_ + i];
      break;
    }
  }
  space.count = count_;
  space.offsets = offsets_.data_ptr<int64_t>();
  return space;
}

}  // namespace rushlight
