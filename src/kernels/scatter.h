// Reading and writing along one dimension at an index for each element.
#pragma once

#include "kernels/index.h"

namespace rushlight::kernels {

// out[p] = base[p with p[dim] replaced by index[p]], for p over the shape of `index`. All of one
// rank, at least 1; `index` int64 and in range, of any strides.
void gather_along(const Tensor& out, const Tensor& base, int64_t dim, const Tensor& index);

// base[p with p[dim] replaced by index[p]] becomes its update with source[p], in the order of
// p[dim], whatever the number of threads. `source` has at least the shape of `index`.
void scatter_along(const Tensor& base, int64_t dim, const Tensor& index, const Tensor& source,
                   Update update);

}  // namespace rushlight::kernels
