// The bodies of the view operators, for use inside other operators' bodies: past the doors, with
// the operators' checks and errors.
#pragma once

#include <rushlight/tensor.h>

#include <optional>

namespace rushlight::views {

Tensor alias(const Tensor& self);
Tensor view(const Tensor& self, IntArrayRef size);
Tensor view_dtype(const Tensor& self, DType dtype);
Tensor permute(const Tensor& self, IntArrayRef dims);
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1);
Tensor expand(const Tensor& self, IntArrayRef size, bool implicit = false);
Tensor squeeze(const Tensor& self, IntArrayRef dims);
Tensor unsqueeze(const Tensor& self, int64_t dim);
Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step);
Tensor select(const Tensor& self, int64_t dim, int64_t index);
Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset);
Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);
Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step);

}  // namespace rushlight::views
