// Copies, conversions, fills, and changes of a tensor's own memory.
#include "kernels/copy.h"

#include <rushlight/generated/functions.h>

#include <algorithm>

#include "ops/operator.h"
#include "ops/written.h"
#include "ops/zero_gradient.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

void check_copy(const Tensor& self, const Tensor& src, bool) {
  if (self.sizes() != src.sizes()) {
    const IntList shape = broadcast_shapes(self.sizes(), src.sizes(), "copy_");
    if (!(self.sizes() == IntArrayRef(shape))) {
      fail(ErrorKind::Runtime, "copy_", "output with shape ", self.sizes(),
           " doesn't match the broadcast shape ", shape);
    }
  }
  if (src.is_meta() && !self.is_meta()) {
    fail(ErrorKind::NotImplemented, "copy_", "Cannot copy out of meta tensor; no data!");
  }
}

// The functional form has no use for the elements of `self`, so it does not copy them.
void copy_body(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  const Tensor& src = inv.arguments[1].tensor();
  check_copy(self, src, false);
  if (inv.form == Form::Inplace) {
    check_no_internal_overlap(self, "copy_");
    check_no_partial_overlap(self, src, "copy_");
  } else if (inv.form == Form::Functional) {
    inv.results[0] =
        Value(make_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()),
                           self.dtype(), self.device()));
  } else {
    prepare_written(inv);
  }
  kernels::copy(inv.results[0].tensor(), src);
}

void check_fill_value(const Tensor& self, const Tensor& value) {
  if (value.dim() != 0) {
    fail(ErrorKind::Runtime, "fill_",
         "fill_ only supports 0-dimension value tensor but got tensor ", "with ", value.dim(),
         " dimensions.");
  }
}

void check_diagonal(const Tensor& self, Scalar, bool) {
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, "fill_diagonal_", "dimensions must larger than 1, got ", self.dim());
  }
  for (int64_t size : self.sizes()) {
    if (self.dim() > 2 && size != self.size(0)) {
      fail(ErrorKind::Runtime, "fill_diagonal_",
           "all dimensions of input must be of equal length, got ", self.sizes());
    }
  }
}

// With `wrap` the diagonal of a tall matrix begins again after each block of columns.
void fill_diagonal_in(const Tensor& target, Scalar value, bool wrap) {
  const int64_t rows = target.size(0);
  const int64_t columns = target.size(1);
  int64_t stride = 0;
  int64_t length = std::min(rows, columns);
  for (int64_t d = 0; d < target.dim(); ++d) {
    stride += target.stride(d);
  }
  kernels::fill(make_view(target, {length}, {stride}, target.storage_offset()), value);
  if (!wrap || target.dim() != 2) {
    return;
  }
  for (int64_t first = columns + 1; first < rows; first += columns + 1) {
    length = std::min(rows - first, columns);
    const int64_t offset = target.storage_offset() + first * target.stride(0);
    kernels::fill(make_view(target, {length}, {stride}, offset), value);
  }
}

Tensor clone_format(const Tensor& self, std::optional<MemoryFormat> format) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  const IntList strides = wanted == MemoryFormat::Preserve
                              ? preserved_strides(self.sizes(), self.strides())
                              : strides_for(self.sizes(), wanted, "clone");
  Tensor made = make_strided(self.sizes(), strides, self.dtype(), self.device());
  kernels::copy(made, self);
  return made;
}

Tensor contiguous_format(const Tensor& self, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) {
    fail(ErrorKind::Runtime, "contiguous",
         "preserve memory format is unsupported by the contiguous operator");
  }
  return self.is_contiguous(format) ? self : clone(self, format);
}

Tensor to_copy(const Tensor& self, const TensorOptions& options, bool,
               std::optional<MemoryFormat> format) {
  const Device device = options.device_.value_or(self.device());
  if (self.is_meta() && !device.is_meta()) {
    fail(ErrorKind::NotImplemented, "to", "Cannot copy out of meta tensor; no data!");
  }
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  const IntList strides = wanted == MemoryFormat::Preserve
                              ? preserved_strides(self.sizes(), self.strides())
                              : strides_for(self.sizes(), wanted, "to");
  Tensor made = make_strided(self.sizes(), strides, options.dtype_.value_or(self.dtype()), device);
  kernels::copy(made, self);
  return made;
}

// `self` itself where it has all that is asked for.
Tensor convert_to(const Tensor& self, DType dtype, Device device, bool copy,
                  std::optional<MemoryFormat> format) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  const bool in_place = wanted == MemoryFormat::Preserve || self.is_contiguous(wanted);
  if (!copy && in_place && self.dtype() == dtype && self.device() == device) {
    return self;
  }
  return _to_copy(self, TensorOptions(dtype).device(device), false, format);
}

void refuse_gradients(const Tensor& self, std::string_view op) {
  if (self.requires_grad()) {
    fail(ErrorKind::Runtime, op, "cannot resize variables that require grad");
  }
}

Tensor resize_body(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> format) {
  refuse_gradients(self, "resize_");
  checked_numel(size, "resize_");
  resize_in_place(self, size);
  if (format && *format != MemoryFormat::Preserve) {
    self.impl()->strides = strides_for(size, *format, "resize_");
    self.impl()->refresh();
  }
  return self;
}

Tensor set_storage(const Tensor& self, const Tensor& source, IntArrayRef sizes, IntArrayRef strides,
                   int64_t offset) {
  if (thread_state.grad_mode && self.requires_grad() && self.is_leaf()) {
    fail(ErrorKind::Runtime, "",
         "a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (self.dtype() != source.dtype()) {
    fail(ErrorKind::Runtime, "set_", "Could not set tensor of type ", source.dtype(),
         " to a tensor of type ", self.dtype());
  }
  if (self.storage() != source.storage()) {
    retain(source.storage());
    release(self.impl()->storage);
    self.impl()->storage = source.storage();
    self.impl()->device = source.device();
  }
  self.impl()->sizes = IntList(sizes);
  self.impl()->strides = IntList(strides);
  self.impl()->offset = offset;
  self.impl()->refresh();
  return self;
}

Tensor set_range(const Tensor& self, const Tensor& source, int64_t offset, IntArrayRef size,
                 IntArrayRef stride) {
  const IntList strides = stride.empty() ? contiguous_strides(size) : IntList(stride);
  if (strides.size() != size.size() || offset < 0) {
    fail(ErrorKind::Runtime, "set_", "sizes ", size, ", strides ", strides, " and storage offset ",
         offset, " do not fit each other");
  }
  const int64_t bytes = reached_bytes(size, strides, offset, source.element_size(), "set_");
  if (bytes > static_cast<int64_t>(source.storage()->bytes)) {
    fail(ErrorKind::Runtime, "set_", "setStorage: sizes ", size, ", strides ", strides,
         ", storage offset ", offset, ", and itemsize ", source.element_size(),
         " requiring a storage size of ", bytes, " are out of bounds for storage of size ",
         static_cast<int64_t>(source.storage()->bytes));
  }
  return set_storage(self, source, size, strides, offset);
}

}  // namespace

RUSHLIGHT_OPERATORS(copy) {
  op("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", kInplace | kOut)
      .doc("The elements of `src`, broadcast to the shape and converted to the dtype of `self`.")
      .kernel_into(copy_body)
      .gradient("", [](Gradient& g) { g.set(1, g.grad()); });
  op("fill.Scalar(Tensor self, Scalar value) -> Tensor", kFunction | kInplace | kOut)
      .doc("A number in every element.")
      .kernel_into(written(
          +[](const Tensor&, Scalar) {}, kernels::fill, Overlap::Allow, Fresh::AsGiven))
      .gradient("", zero_gradient)
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "FillBackward2" : "FillBackward0";
      });
  op("fill.Tensor(Tensor self, Tensor value) -> Tensor", kFunction | kInplace | kOut)
      .doc("The number of a 0-dim tensor in every element.")
      .kernel_into(written(check_fill_value, kernels::copy, Overlap::Allow, Fresh::AsGiven))
      .gradient("",
                [](Gradient& g) {
                  zero_gradient(g);
                  g.set(1, g.grad());
                })
      .node([](const Invocation& inv) {
        return inv.form == Form::Inplace ? "FillBackward3" : "FillBackward1";
      });
  op("zero(Tensor self) -> Tensor", kInplace | kOut | kInplaceFunction)
      .doc("Zero in every element.")
      .kernel_into(written(
          +[](const Tensor&) {}, kernels::zero, Overlap::Allow))
      .gradient("", zero_gradient);
  op("fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", kInplace)
      .doc("A number along the main diagonal.")
      .kernel_into(written(check_diagonal, fill_diagonal_in))
      .gradient("", [](Gradient& g) { g.set(0, fill_diagonal(g.grad(), 0, g.flag(2))); });
  op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", kFunction | kMethod)
      .doc("A copy in memory of its own; dense strides are kept where no format is given.")
      .kernel(clone_format)
      .gradient("", [](Gradient& g) { g.set(0, g.grad()); });
  op("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
     kMethod)
      .doc("The tensor itself where it is contiguous, else a contiguous copy.")
      .composition(contiguous_format);
  op("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", kMethod)
      .doc("The tensor itself, or converted to a dtype: there is no layout but the strided one.")
      .composition([](const Tensor& self, std::optional<DType> dtype, std::optional<bool>) {
        return to(self, dtype.value_or(self.dtype()));
      });
  op("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     kInternal)
      .doc("A copy with another dtype or device.")
      .kernel(to_copy)
      .gradient("", [](Gradient& g) { g.set(0, g.grad()); });
  op("to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     kMethod)
      .doc("Converted to a dtype or device; the tensor itself where nothing changes.")
      .composition([](const Tensor& self, const TensorOptions& options, bool, bool copy,
                      std::optional<MemoryFormat> format) {
        return convert_to(self, options.dtype_.value_or(self.dtype()),
                          options.device_.value_or(self.device()), copy, format);
      });
  op("to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, "
     "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     kMethod)
      .doc("Converted to a device and dtype; the tensor itself where nothing changes.")
      .composition([](const Tensor& self, Device device, DType dtype, bool, bool copy,
                      std::optional<MemoryFormat> format) {
        return convert_to(self, dtype, device, copy, format);
      });
  op("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     kMethod)
      .doc("Converted to a dtype; the tensor itself where nothing changes.")
      .composition(
          [](const Tensor& self, DType dtype, bool, bool copy, std::optional<MemoryFormat> format) {
            return convert_to(self, dtype, self.device(), copy, format);
          });
  op("to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     kMethod)
      .doc("Converted to the dtype and device of `other`.")
      .composition([](const Tensor& self, const Tensor& other, bool, bool copy,
                      std::optional<MemoryFormat> format) {
        return convert_to(self, other.dtype(), other.device(), copy, format);
      });
  op("type_as(Tensor self, Tensor other) -> Tensor", kMethod)
      .doc("Converted to the dtype of `other`.")
      .composition([](const Tensor& self, const Tensor& other) {
        return convert_to(self, other.dtype(), other.device(), false, std::nullopt);
      });
  op("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
     kMethod)
      .doc(
          "Changes the tensor's own shape, growing its memory where needed; new elements are not "
          "set.")
      .kernel(resize_body)
      .not_differentiable();
  op("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
     "Tensor(a!)",
     kFunction | kMethod)
      .doc("Changes the tensor's own shape to that of another.")
      .kernel([](const Tensor& self, const Tensor& other, std::optional<MemoryFormat> format) {
        return resize_body(self, other.sizes(), format);
      })
      .not_differentiable();
  op("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", kMethod)
      .doc("Makes the tensor show the memory of another, with its shape.")
      .kernel([](const Tensor& self, const Tensor& source) {
        return set_storage(self, source, source.sizes(), source.strides(), source.storage_offset());
      })
      .not_differentiable();
  op("set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, "
     "SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
     kMethod)
      .doc("Makes the tensor show a part of the memory of another.")
      .kernel(set_range)
      .not_differentiable();
  op("set_(Tensor(a!) self) -> Tensor(a!)", kMethod)
      .doc("Makes the tensor empty, with memory of its own.")
      .kernel([](const Tensor& self) {
        const Tensor empty = make_tensor({0}, self.dtype(), self.device());
        return set_storage(self, empty, empty.sizes(), empty.strides(), 0);
      })
      .not_differentiable();
}

}  // namespace rushlight
