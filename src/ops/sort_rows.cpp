#include "ops/sort_rows.h"

#include "kernels/copy.h"
#include "kernels/scatter.h"
#include "ops/views.h"
#include "tensor/geometry.h"

namespace rushlight {

SortRows::SortRows(const Tensor& self, int64_t dim, std::string_view op)
    : self_(self), dim_(wrap_dim(dim, self.dim(), op)) {
  length_ = self.dim() == 0 ? 1 : self.size(dim_);
  count_ = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    count_ *= d == dim_ ? 1 : self.size(d);
  }
  if (self.is_meta()) {
    rows_ = make_tensor({count_, length_}, self.dtype(), self.device());
    return;
  }
  const Tensor last = self.dim() == 0 ? self : views::transpose(self, dim_, -1);
  const Tensor dense = kernels::as_contiguous(last);
  rows_ = make_view(dense, {count_, length_}, {length_, 1}, dense.storage_offset());
}

Tensor SortRows::restored(const Tensor& rows, int64_t width) const {
  if (self_.dim() == 0) {
    return make_view(rows, {}, {}, rows.storage_offset());
  }
  IntList sizes(self_.sizes());
  std::swap(sizes[static_cast<size_t>(dim_)], sizes.back());
  sizes.back() = width;
  const Tensor shaped = make_view(rows, sizes, contiguous_strides(sizes), rows.storage_offset());
  return dim_ == self_.dim() - 1 ? shaped
                                 : kernels::contiguous_copy(views::transpose(shaped, dim_, -1));
}

Tensor SortRows::reduced(const Tensor& rows, bool keepdim) const {
  const Tensor kept = restored(rows, 1);
  return keepdim || self_.dim() == 0 ? kept : views::squeeze(kept, {dim_});
}

Tensor SortRows::picked(const Tensor& positions) const {
  const Tensor made = make_tensor(positions.sizes(), rows_.dtype(), rows_.device());
  if (!made.is_meta()) {
    kernels::gather_along(made, rows_, 1, positions);
  }
  return made;
}

}  // namespace rushlight
