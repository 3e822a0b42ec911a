// One dimension of a tensor as the rows that the sorting kernels take, and back.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>
#include <utility>

namespace rushlight {

class SortRows {
 public:
  // `dim` may be negative. 0-dim tensors are one row of one element.
  SortRows(const Tensor& self, int64_t dim, std::string_view op);

  int64_t dim() const { return dim_; }
  int64_t length() const { return length_; }
  int64_t count() const { return count_; }
  const Tensor& rows() const { return rows_; }  // (count, length), contiguous

  // (count, width) in the tensor's own layout of dimensions, with `width` in place of the length.
  Tensor restored(const Tensor& rows, int64_t width) const;
  // (count, 1) without the dimension, or with it at size 1.
  Tensor reduced(const Tensor& rows, bool keepdim) const;
  // The elements at `positions` (count, width) of each row.
  Tensor picked(const Tensor& positions) const;

 private:
  Tensor self_;
  int64_t dim_;
  int64_t length_;
  int64_t count_;
  Tensor rows_;
};

}  // namespace rushlight
