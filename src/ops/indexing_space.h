// Indexing by lists of tensors: which dimensions they take, and where each position lies.
#pragma once

#include <rushlight/tensor.h>

#include "kernels/index.h"

namespace rushlight {

// x[indices]: undefined entries take a whole dimension, masks as many dimensions as they have,
// and all others one. Index tensors are broadcast together; their dimensions take the place of the
// indexed ones where these are neighbours, and go to the front where not.
class IndexingSpace {
 public:
  // Errors as PyTorch's. Meta tensors give a space without offsets.
  IndexingSpace(const Tensor& self, const TensorList& indices);

  const IntList& result_sizes() const { return result_sizes_; }
  const Tensor& base() const { return base_; }

  // The space for a dense tensor of the result's shape. A tensor whose index dimensions do not
  // form one line of equal steps must be made contiguous first (`fits`).
  bool fits(const Tensor& dense) const;
  kernels::IndexSpace with(const Tensor& dense) const;

 private:
  void collect(const Tensor& self, const TensorList& indices);
  void broadcast();
  void place(const Tensor& self);

  std::vector<std::pair<int64_t, Tensor>> indexed_;  // dimension, int64 indices
  IntList index_sizes_;
  IntList result_sizes_;
  Tensor base_;
  Tensor offsets_;
  size_t outer_ = 0;  // dimensions of the result before the index's
  IntList outer_strides_;
  IntList outer_sizes_;
  IntList inner_strides_;
  IntList inner_sizes_;
  int64_t count_ = 1;
};

bool is_mask(const Tensor& index);  // bool, or uint8

// Indices of the true elements of a mask, one int64 tensor a dimension.
TensorList mask_indices(const Tensor& mask);

}  // namespace rushlight
