#include "ops/index_check.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "ops/views.h"

namespace rushlight {
namespace {

int64_t size_or_one(const Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.size(dim);
}

int64_t rank_or_one(const Tensor& tensor) {
  return std::max<int64_t>(tensor.dim(), 1);
}

}  // namespace

bool is_index_dtype(const Tensor& index) {
  return index.dtype() == DType::Int64 || index.dtype() == DType::Int32;
}

void check_source_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         std::string_view op) {
  if (index.dim() > 1) {
    fail(ErrorKind::Index, "", op,
         "(): Index is supposed to be a vector, but got dim: ", index.dim(),
         " with type: ", scalar_type_name(index.dtype()), " and size: ", index.sizes());
  }
  const int64_t slices = size_or_one(source, std::min(dim, rank_or_one(source) - 1));
  if (index.numel() != slices) {
    fail(ErrorKind::Runtime, "", op, "(): Number of indices (", index.numel(),
         ") should be equal to source.size(dim): (", slices, "), for dim: ", dim);
  }
  bool same = rank_or_one(self) == rank_or_one(source);
  for (int64_t d = 0; same && d < self.dim(); ++d) {
    same = d == dim || size_or_one(self, d) == size_or_one(source, d);
  }
  if (!same) {
    fail(ErrorKind::Runtime, "",
         "source tensor shape must match self tensor shape, excluding the "
         "specified dimension. Got self.shape = ",
         self.sizes(), " source.shape = ", source.sizes());
  }
}

void check_copy_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  if (source.dim() == 0 && index.numel() != 1) {
    fail(ErrorKind::Index, "",
         "index_copy_(): When source is scalar, index should have one element "
         "(got ",
         index.numel(), ")");
  }
  if (source.dim() != self.dim() && source.dim() != 0 && self.dim() != 0) {
    fail(ErrorKind::Index, "",
         "index_copy_(): When source and destination are not scalars, their "
         "dimensionality must match. Source dimensionality (",
         source.dim(), "), destination dimensionality (", self.dim(), ")");
  }
  bool same = true;
  for (int64_t d = 0; d < std::min(self.dim(), source.dim()); ++d) {
    same = same && (d == dim || self.size(d) == source.size(d));
  }
  if (!same || (source.dim() == 0 && self.numel() != size_or_one(self, dim))) {
    fail(ErrorKind::Runtime, "",
         "index_copy_(): Source/destination tensor must have same slice "
         "shapes. Destination slice shape: ",
         self.sizes(), " at dimension ", dim, " and source slice shape: ", source.sizes(),
         " at dimension ", dim, ".");
  }
  const int64_t slices = size_or_one(source, source.dim() == 0 ? 0 : dim);
  if (index.numel() != slices) {
    fail(ErrorKind::Index, "", "index_copy_(): Number of indices (", index.numel(),
         ") should be equal to source.size(dim) (", slices, ")");
  }
}

void check_fill_rank(const Tensor& value) {
  if (value.dim() != 0) {
    fail(ErrorKind::Runtime, "",
         "index_fill_ only supports a 0-dimensional value tensor, but got "
         "tensor with ",
         value.dim(), " dimension(s).");
  }
}

void check_gather_shape(const Tensor& self, int64_t dim, const Tensor& index) {
  if (rank_or_one(self) != rank_or_one(index)) {
    fail(ErrorKind::Runtime, "gather",
         "Index tensor must have the same number of dimensions as "
         "input tensor, got ",
         index.dim(), " and ", self.dim());
  }
  for (int64_t d = 0; d < rank_or_one(self); ++d) {
    if (d != dim && size_or_one(index, d) > size_or_one(self, d)) {
      fail(ErrorKind::Runtime, "gather", "Size does not match at dimension ", d, " expected index ",
           index.sizes(), " to be no larger than self ", self.sizes(), " apart from dimension ",
           dim);
    }
  }
}

void check_scatter_shape(const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& source) {
  if (rank_or_one(self) != rank_or_one(index)) {
    fail(ErrorKind::Runtime, "scatter",
         "Index tensor must have the same number of dimensions as "
         "self tensor, got ",
         index.dim(), " and ", self.dim());
  }
  if (source.defined() && rank_or_one(source) != rank_or_one(index)) {
    fail(ErrorKind::Runtime, "scatter",
         "Index tensor must have the same number of dimensions as "
         "src tensor, got ",
         index.dim(), " and ", source.dim());
  }
  bool fits = true;
  for (int64_t d = 0; d < rank_or_one(self); ++d) {
    const int64_t size = size_or_one(index, d);
    fits = fits && (d == dim || size <= size_or_one(self, d)) &&
           (!source.defined() || size <= size_or_one(source, d));
  }
  if (!fits && source.defined()) {
    fail(ErrorKind::Runtime, "scatter", "Expected index ", index.sizes(),
         " to be no larger than "
         "self ",
         self.sizes(), " apart from dimension ", dim, " and to be no larger size than src ",
         source.sizes());
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "scatter", "Expected index ", index.sizes(),
         " to be no larger than "
         "self ",
         self.sizes(), " apart from dimension ", dim);
  }
}

void check_index_type(const Tensor& index, std::string_view op) {
  if (index.numel() != 0 && !is_index_dtype(index)) {
    fail(ErrorKind::Runtime, "", op, "(): Expected dtype int32/int64 for index, got ",
         scalar_type_name(index.dtype()));
  }
}

Tensor checked_positions(const Tensor& index, int64_t size, int64_t dim, std::string_view op) {
  Tensor distinct = index;
  for (int64_t d = 0; d < index.dim(); ++d) {
    if (index.stride(d) == 0 && index.size(d) > 1) {
      distinct = views::slice(distinct, d, 0, 1, 1);
    }
  }
  const Tensor values = kernels::index_values(distinct);
  kernels::check_index(values.data_ptr<int64_t>(), values.numel(),
                       {size, dim, false, ErrorKind::Runtime, op});
  return views::expand(values, index.sizes());
}

}  // namespace rushlight
