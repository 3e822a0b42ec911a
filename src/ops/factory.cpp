// Fresh tensors of one value.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/operator.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

DType dtype_or_default(const TensorOptions& options) {
  return options.dtype_.value_or(default_dtype());
}

Tensor empty_sizes(IntArrayRef size, const TensorOptions& options,
                   std::optional<MemoryFormat> format) {
  const DType dtype = dtype_or_default(options);
  const Device device = options.device_.value_or(Device());
  if (!format || *format == MemoryFormat::Contiguous) {
    return make_tensor(size, dtype, device);
  }
  if (*format == MemoryFormat::Preserve) {
    fail(ErrorKind::Runtime, "empty", "unsupported memory format option Preserve");
  }
  checked_numel(size, "empty");
  return make_strided(size, strides_for(size, *format, "empty"), dtype, device);
}

Tensor empty_strides(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  if (size.size() != stride.size()) {
    fail(ErrorKind::Runtime, "empty_strided", "dimensionality of sizes (",
         static_cast<int64_t>(size.size()), ") must match dimensionality of strides (",
         static_cast<int64_t>(stride.size()), ")");
  }
  checked_numel(size, "empty_strided");
  for (int64_t s : stride) {
    if (s < 0) {
      fail(ErrorKind::Runtime, "empty_strided",
           "Negative strides are not supported at the moment, got strides: ", stride);
    }
  }
  return make_strided(size, stride, dtype_or_default(options), options.device_.value_or(Device()));
}

// Strides of a tensor whose dimensions lie in memory in the order of `layout`, outermost first.
Tensor empty_ordered(IntArrayRef size, IntArrayRef layout, const TensorOptions& options) {
  const auto rank = static_cast<int64_t>(size.size());
  if (size.size() != layout.size()) {
    fail(ErrorKind::Runtime, "empty_permuted",
         "Number of dimensions in size does not match the length of the physical_layout; i.e. "
         "len(size) = ",
         rank, " is not equal to len(physical_layout) = ", layout.size());
  }
  checked_numel(size, "empty_permuted");
  IntList strides(size.size(), 0);
  IntList seen(size.size(), 0);
  int64_t step = 1;
  for (size_t i = layout.size(); i-- > 0;) {
    const int64_t dim = layout[i];
    if (dim < 0 || dim >= rank) {
      fail(ErrorKind::Runtime, "empty_permuted", "Dimension out of range (expected to be between ",
           "0 and ", rank - 1, ", but got ", dim, " at index ", i,
           "). Negative dimensions do not count from the last here.");
    }
    const auto at = static_cast<size_t>(dim);
    if (seen[at]++ != 0) {
      fail(ErrorKind::Runtime, "empty_permuted", "Duplicate dim not allowed, got ", layout);
    }
    strides[at] = step;
    step *= std::max<int64_t>(size[at], 1);
  }
  return make_strided(size, strides, dtype_or_default(options), options.device_.value_or(Device()));
}

Tensor filled(IntArrayRef size, const Scalar& value, DType dtype, Device device) {
  Tensor made = make_tensor(size, dtype, device);
  kernels::fill(made, value);
  return made;
}

Tensor zeros_sizes(IntArrayRef size, const TensorOptions& options) {
  return kernels::make_zeros(size, dtype_or_default(options), options.device_.value_or(Device()));
}

Tensor ones_sizes(IntArrayRef size, const TensorOptions& options) {
  return filled(size, 1, dtype_or_default(options), options.device_.value_or(Device()));
}

Tensor full_sizes(IntArrayRef size, Scalar value, const TensorOptions& options) {
  return filled(size, value, options.dtype_.value_or(value.dtype()),
                options.device_.value_or(Device()));
}

Tensor empty_as(const Tensor& self, const TensorOptions& options,
                std::optional<MemoryFormat> format) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  const IntList strides = wanted == MemoryFormat::Preserve
                              ? preserved_strides(self.sizes(), self.strides())
                              : strides_for(self.sizes(), wanted, "empty_like");
  return make_strided(self.sizes(), strides, options.dtype_.value_or(self.dtype()),
                      options.device_.value_or(self.device()));
}

Tensor full_as(const Tensor& self, Scalar value, const TensorOptions& options,
               std::optional<MemoryFormat> format) {
  Tensor made = empty_as(self, options, format);
  kernels::fill(made, value);
  return made;
}

Tensor zeros_as(const Tensor& self, const TensorOptions& options,
                std::optional<MemoryFormat> format) {
  Tensor made = empty_as(self, options, format);
  kernels::zero(made);
  return made;
}

Tensor ones_as(const Tensor& self, const TensorOptions& options,
               std::optional<MemoryFormat> format) {
  return full_as(self, 1, options, format);
}

DType dtype_like(const Tensor& self, const TensorOptions& options) {
  return options.dtype_.value_or(self.dtype());
}

Device device_like(const Tensor& self, const TensorOptions& options) {
  return options.device_.value_or(self.device());
}

Tensor new_empty_sizes(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  return make_tensor(size, dtype_like(self, options), device_like(self, options));
}

Tensor new_empty_strides(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                         const TensorOptions& options) {
  return empty_strides(size, stride,
                       TensorOptions(dtype_like(self, options)).device(device_like(self, options)));
}

Tensor new_full_sizes(const Tensor& self, IntArrayRef size, Scalar value,
                      const TensorOptions& options) {
  return filled(size, value, dtype_like(self, options), device_like(self, options));
}

Tensor new_zeros_sizes(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  return kernels::make_zeros(size, dtype_like(self, options), device_like(self, options));
}

Tensor new_ones_sizes(const Tensor& self, IntArrayRef size, const TensorOptions& options) {
  return new_full_sizes(self, size, 1, options);
}

}  // namespace

RUSHLIGHT_OPERATORS(factory) {
  op("empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kFunction | kOut)
      .doc("A tensor whose elements are not set.")
      .kernel(empty_sizes)
      .not_differentiable();
  op("empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction)
      .doc("A tensor with given strides whose elements are not set.")
      .kernel(empty_strides)
      .not_differentiable();
  op("empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction)
      .doc(
          "A tensor whose elements are not set and whose dimensions lie in memory in a given "
          "order, outermost first.")
      .kernel(empty_ordered)
      .not_differentiable();
  op("zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("A tensor of zeros.")
      .kernel(zeros_sizes)
      .not_differentiable();
  op("ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("A tensor of ones.")
      .kernel(ones_sizes)
      .not_differentiable();
  op("full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("A tensor of one number; its dtype follows from the number where none is given.")
      .kernel(full_sizes)
      .not_differentiable();
  op("empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kFunction)
      .doc("A tensor with the shape of another whose elements are not set.")
      .kernel(empty_as)
      .not_differentiable();
  op("zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kFunction)
      .doc("A tensor of zeros with the shape of another.")
      .kernel(zeros_as)
      .not_differentiable();
  op("ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kFunction)
      .doc("A tensor of ones with the shape of another.")
      .kernel(ones_as)
      .not_differentiable();
  op("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kFunction)
      .doc("A tensor of one number with the shape of another.")
      .kernel(full_as)
      .not_differentiable();
  op("new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kMethod)
      .doc("A tensor of this one's dtype and device whose elements are not set.")
      .kernel(new_empty_sizes)
      .not_differentiable();
  op("new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kMethod)
      .doc("A tensor of this one's dtype and device with given strides whose elements are not set.")
      .kernel(new_empty_strides)
      .not_differentiable();
  op("new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kMethod)
      .doc("A tensor of one number with this one's dtype and device.")
      .kernel(new_full_sizes)
      .not_differentiable();
  op("new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kMethod)
      .doc("A tensor of zeros with this one's dtype and device.")
      .kernel(new_zeros_sizes)
      .not_differentiable();
  op("new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kMethod)
      .doc("A tensor of ones with this one's dtype and device.")
      .kernel(new_ones_sizes)
      .not_differentiable();
  op("scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction)
      .doc("A 0-dim tensor of a number, of the default dtype where none is given.")
      .kernel([](Scalar s, const TensorOptions& options) {
        return filled({}, s, dtype_or_default(options), options.device_.value_or(Device()));
      })
      .not_differentiable();
}

}  // namespace rushlight
