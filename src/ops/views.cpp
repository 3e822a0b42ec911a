#include "ops/views.h"

#include <algorithm>

#include "tensor/geometry.h"

namespace rushlight::views {
namespace {

void check_split_of_bytes(const Tensor& self, int64_t factor, DType dtype) {
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "view", "self.dim() cannot be 0 to view ", self.dtype(), " as ", dtype,
         " (different element sizes)");
  }
  if (self.strides().back() != 1) {
    fail(ErrorKind::Runtime, "view", "self.stride(-1) must be 1 to view ", self.dtype(), " as ",
         dtype, " (different element sizes), but got ", self.strides().back());
  }
  if (factor > 1 && self.sizes().back() % factor != 0) {
    fail(ErrorKind::Runtime, "view", "self.size(-1) must be divisible by ", factor, " to view ",
         self.dtype(), " as ", dtype, " (different element sizes), but got ", self.sizes().back());
  }
}

void refuse_scalar(const Tensor& self, std::string_view op) {
  if (self.dim() == 0) {
    fail(ErrorKind::Index, "", op, "() cannot be applied to a 0-dim tensor.");
  }
}

// A slice's bound counted from the start and clamped to [0, size].
int64_t clamp_bound(int64_t bound, int64_t size) {
  return std::clamp<int64_t>(bound < 0 ? bound + size : bound, 0, size);
}

Tensor keep_dims(const Tensor& self, const IntList& dropped) {
  IntList sizes;
  IntList strides;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (dropped[d] == 0 || self.sizes()[d] != 1) {
      sizes.push_back(self.sizes()[d]);
      strides.push_back(self.strides()[d]);
    }
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

}  // namespace

Tensor alias(const Tensor& self) {
  return make_view(self, self.sizes(), self.strides(), self.storage_offset());
}

Tensor view(const Tensor& self, IntArrayRef size) {
  const IntList sizes = infer_sizes(size, self.numel(), "view");
  const std::optional<IntList> strides = view_strides(self.sizes(), self.strides(), sizes);
  if (!strides) {
    fail(ErrorKind::Runtime, "view",
         "view size is not compatible with input tensor's size and stride (at least one dimension "
         "spans across two contiguous subspaces). Use .reshape(...) instead. Got size ",
         self.sizes(), ", stride ", self.strides(), ", wanted ", sizes);
  }
  return make_view(self, sizes, *strides, self.storage_offset());
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  const int64_t from = self.element_size();
  const int64_t to = element_size(dtype);
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from > to) {
    check_split_of_bytes(self, 1, dtype);
    for (int64_t& stride : strides) {
      stride *= from / to;
    }
    strides.back() = 1;
    sizes.back() *= from / to;
    offset *= from / to;
  } else if (from < to) {
    const int64_t factor = to / from;
    check_split_of_bytes(self, factor, dtype);
    if (offset % factor != 0) {
      fail(ErrorKind::Runtime, "view", "self.storage_offset() must be divisible by ", factor,
           " to view ", self.dtype(), " as ", dtype, " (different element sizes), but got ",
           offset);
    }
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      if (strides[d] % factor != 0) {
        fail(ErrorKind::Runtime, "view", "self.stride(", static_cast<int64_t>(d),
             ") must be divisible by ", factor, " to view ", self.dtype(), " as ", dtype,
             " (different element sizes), but got ", strides[d]);
      }
      strides[d] /= factor;
    }
    sizes.back() /= factor;
    offset /= factor;
  }
  return make_view(self, sizes, strides, offset, dtype);
}

Tensor permute(const Tensor& self, IntArrayRef dims) {
  const int64_t rank = self.dim();
  if (static_cast<int64_t>(dims.size()) != rank) {
    fail(ErrorKind::Runtime, "permute",
         "number of dimensions in the tensor input does not match the length of the desired "
         "ordering of dimensions i.e. input.dim() = ",
         rank, " is not equal to len(dims) = ", static_cast<int64_t>(dims.size()));
  }
  IntList sizes(dims.size(), 0);
  IntList strides(dims.size(), 0);
  IntList seen(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<size_t>(wrap_dim(dims[i], rank, "permute"));
    if (seen[d]++ != 0) {
      fail(ErrorKind::Runtime, "permute", "duplicate dims are not allowed, got dims=", dims);
    }
    sizes[i] = self.sizes()[d];
    strides[i] = self.strides()[d];
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim(), "transpose");
  const int64_t b = wrap_dim(dim1, self.dim(), "transpose");
  if (self.dim() == 0) {
    return alias(self);
  }
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  std::swap(strides[static_cast<size_t>(a)], strides[static_cast<size_t>(b)]);
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor expand(const Tensor& self, IntArrayRef size, bool implicit) {
  const auto rank = static_cast<int64_t>(size.size());
  const int64_t added = rank - self.dim();
  if (added < 0) {
    fail(ErrorKind::Runtime, "expand", "the number of sizes provided (", rank,
         ") must be greater or equal to the number of dimensions in the tensor (", self.dim(),
         "): size=", size, ", tensor ", self.sizes());
  }
  IntList sizes(size);
  IntList strides(size.size(), 0);
  for (int64_t d = rank - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    if (d < added) {
      if (sizes[at] < 0) {
        fail(ErrorKind::Runtime, "expand", "The expanded size of the tensor (", sizes[at],
             ") isn't allowed in a leading, non-existing dimension ", d);
      }
      continue;
    }
    const int64_t own = self.sizes()[static_cast<size_t>(d - added)];
    sizes[at] = sizes[at] == -1 ? own : sizes[at];
    if (own == sizes[at]) {
      strides[at] = self.strides()[static_cast<size_t>(d - added)];
    } else if (own != 1 || sizes[at] < 0) {
      fail(ErrorKind::Runtime, "expand", "The expanded size of the tensor (", sizes[at],
           ") must match the existing size (", own, ") at non-singleton dimension ", d,
           ".  Target sizes: ", size, ".  Tensor sizes: ", self.sizes());
    }
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor squeeze(const Tensor& self, IntArrayRef dims) {
  IntList dropped(static_cast<size_t>(std::max<int64_t>(self.dim(), 1)), 0);
  for (int64_t dim : dims) {
    int64_t& mark = dropped[static_cast<size_t>(wrap_dim(dim, self.dim(), "squeeze"))];
    if (mark != 0) {
      fail(ErrorKind::Runtime, "squeeze", "dim ", dim,
           " appears multiple times in the list of "
           "dims ",
           dims);
    }
    mark = 1;
  }
  return keep_dims(self, dropped);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const auto at = static_cast<size_t>(wrap_dim(dim, self.dim() + 1, "unsqueeze"));
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  const int64_t stride = at < sizes.size() ? sizes[at] * strides[at] : 1;
  sizes.insert(at, 1);
  strides.insert(at, stride);
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  refuse_scalar(self, "slice");
  const auto at = static_cast<size_t>(wrap_dim(dim, self.dim(), "slice"));
  if (step <= 0) {
    fail(ErrorKind::Runtime, "slice", "slice step must be positive, got step=", step);
  }
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  const int64_t first = clamp_bound(start.value_or(0), sizes[at]);
  const int64_t last = std::max(first, clamp_bound(end.value_or(INT64_MAX), sizes[at]));
  const int64_t length = last - first;
  const int64_t offset = self.storage_offset() + first * strides[at];
  sizes[at] = length / step + (length % step != 0 ? 1 : 0);
  strides[at] = checked_multiply(strides[at], step, "slice");
  return make_view(self, sizes, strides, offset);
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  refuse_scalar(self, "select");
  const auto at = static_cast<size_t>(wrap_dim(dim, self.dim(), "select"));
  const int64_t size = self.sizes()[at];
  if (index < -size || index >= size) {
    fail(ErrorKind::Index, "", "select(): index ", index, " out of range for tensor of size ",
         self.sizes(), " at dimension ", static_cast<int64_t>(at));
  }
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  const int64_t offset = self.storage_offset() + (index < 0 ? index + size : index) * strides[at];
  sizes.erase(at);
  strides.erase(at);
  return make_view(self, sizes, strides, offset);
}

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset) {
  if (size.size() != stride.size()) {
    fail(ErrorKind::Runtime, "as_strided", "mismatch in length of strides and shape: size ", size,
         ", stride ", stride);
  }
  for (int64_t s : stride) {
    if (s < 0) {
      fail(ErrorKind::Runtime, "as_strided",
           "Negative strides are not supported at the moment, got strides: ", stride);
    }
  }
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  if (offset < 0) {
    fail(ErrorKind::Runtime, "as_strided", "Tensor: invalid storage offset ", offset);
  }
  checked_numel(size, "as_strided");
  const int64_t bytes = reached_bytes(size, stride, offset, self.element_size(), "as_strided");
  if (bytes > static_cast<int64_t>(self.storage()->bytes)) {
    fail(ErrorKind::Runtime, "as_strided", "setStorage: sizes ", size, ", strides ", stride,
         ", storage offset ", offset, ", and itemsize ", self.element_size(),
         " requiring a storage size of ", bytes, " are out of bounds for storage of size ",
         static_cast<int64_t>(self.storage()->bytes));
  }
  return make_view(self, size, stride, offset);
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto a = static_cast<size_t>(wrap_dim(dim1, self.dim(), "diagonal"));
  const auto b = static_cast<size_t>(wrap_dim(dim2, self.dim(), "diagonal"));
  if (a == b) {
    fail(ErrorKind::Runtime, "diagonal", "diagonal dimensions cannot be identical ", dim1, ", ",
         dim2);
  }
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  const int64_t rows = sizes[a] + std::min<int64_t>(offset, 0);
  const int64_t columns = sizes[b] - std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(std::min(rows, columns), 0);
  int64_t at = self.storage_offset();
  if (length > 0) {
    at += offset >= 0 ? offset * strides[b] : -offset * strides[a];
  }
  const int64_t step = strides[a] + strides[b];
  sizes.erase(std::max(a, b));
  strides.erase(std::max(a, b));
  sizes.erase(std::min(a, b));
  strides.erase(std::min(a, b));
  sizes.push_back(length);
  strides.push_back(step);
  return make_view(self, sizes, strides, at);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const auto at = static_cast<size_t>(wrap_dim(dimension, self.dim(), "unfold"));
  const int64_t whole = self.dim() == 0 ? 1 : self.sizes()[at];
  if (size < 0) {
    fail(ErrorKind::Runtime, "unfold", "size is ", size, " but must be >= 0");
  }
  if (size > whole) {
    fail(ErrorKind::Runtime, "unfold", "maximum size for tensor at dimension ",
         static_cast<int64_t>(at), " is ", whole, " but size is ", size);
  }
  if (step <= 0) {
    fail(ErrorKind::Runtime, "unfold", "step is ", step, " but must be > 0");
  }
  IntList sizes(self.sizes());
  IntList strides(self.strides());
  const int64_t stride = self.dim() == 0 ? 1 : strides[at];
  if (self.dim() != 0) {
    sizes[at] = (whole - size) / step + 1;
    strides[at] = stride * step;
  }
  sizes.push_back(size);
  strides.push_back(stride);
  return make_view(self, sizes, strides, self.storage_offset());
}

}  // namespace rushlight::views
