// Checks that the indexing operators share, with PyTorch's errors.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>

namespace rushlight {

bool is_index_dtype(const Tensor& index);  // int32 or int64

// index_add and index_reduce: as many slices as indices, of the same shape.
void check_source_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         std::string_view op);
void check_copy_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
void check_fill_rank(const Tensor& value);  // index_fill: 0-dim

// gather: `index` has the rank of `self` and is no larger save along `dim`.
void check_gather_shape(const Tensor& self, int64_t dim, const Tensor& index);
// scatter: the same, and no larger than `source` where that is defined.
void check_scatter_shape(const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& source);
void check_index_type(const Tensor& index, std::string_view op);

// `index`, of at least one dimension, as int64, its elements checked to lie in [0, size). What is
// expanded stays so: each element is read once.
Tensor checked_positions(const Tensor& index, int64_t size, int64_t dim, std::string_view op);

}  // namespace rushlight
