#include "kernels/convert.h"

#include <array>
#include <atomic>

#include "loop/kernel.h"
#include "ops/iteration.h"
#include "runtime/kernel_cache.h"

namespace rushlight::kernels {
namespace {

using loop::Expr;
using loop::Layout;

// What a conversion's kernel depends on. A complex side has two buffers, real and imaginary.
struct Form {
  DType to;
  DType from;
  bool flat;
  Layout to_layout;
  Layout from_layout;

  size_t index() const {
    size_t at = static_cast<size_t>(to) * kDTypeCount + static_cast<size_t>(from);
    at = at * 2 + (flat ? 1 : 0);
    return (at * 3 + static_cast<size_t>(to_layout)) * 3 + static_cast<size_t>(from_layout);
  }
};

loop::Kernel build(const Form& form) {
  loop::Kernel kernel;
  kernel.name = cat("convert_", dtype_name(form.from), "_to_", dtype_name(form.to));
  kernel.axes.assign(form.flat ? 1 : 2, loop::AxisKind::Parallel);
  std::vector<Expr> at{loop::index(0)};
  if (!form.flat) {
    at.push_back(loop::index(1));
  }
  auto add_buffer = [&](DType dtype, Layout inner) {
    kernel.buffers.push_back({dtype, {}});
    if (!form.flat) {
      kernel.buffers.back().dims.push_back(Layout::Any);
    }
    kernel.buffers.back().dims.push_back(inner);
    return static_cast<int>(kernel.buffers.size()) - 1;
  };
  const DType to = real_dtype(form.to);
  const DType from = real_dtype(form.from);
  const bool to_complex = is_complex(form.to);
  const bool from_complex = is_complex(form.from);
  const int out = add_buffer(to, form.to_layout);
  const int out_imaginary = to_complex ? add_buffer(to, form.to_layout) : -1;
  const Expr real = loop::load(add_buffer(from, form.from_layout), from, at);
  const Expr imaginary =
      from_complex ? loop::load(add_buffer(from, form.from_layout), from, at) : Expr{};
  Expr value = convert_value(real, to);
  if (to == DType::Bool && from_complex) {
    value = value | convert_value(imaginary, to);
  }
  kernel.stores.push_back({out, at, value});
  if (to_complex) {
    const Expr second =
        from_complex ? convert_value(imaginary, to) : loop::constant(0, compute_dtype(to));
    kernel.stores.push_back({out_imaginary, at, second});
  }
  return kernel;
}

loop::KernelFunction find_kernel(const Form& form) {
  static std::array<std::atomic<loop::KernelFunction>, kDTypeCount * kDTypeCount * 18> known{};
  std::atomic<loop::KernelFunction>& entry = known[form.index()];
  loop::KernelFunction function = entry.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = get_kernel(build(form));
    entry.store(function, std::memory_order_release);
  }
  return function;
}

// Adds a tensor to the space: a complex one as its two parts.
void add_operand(Iteration& space, const Tensor& tensor) {
  if (!tensor.is_complex()) {
    space.add(*tensor.impl());
    return;
  }
  IntList strides(tensor.strides());
  for (int64_t& stride : strides) {
    stride *= 2;
  }
  for (int part = 0; part < 2; ++part) {
    space.add(*make_view(tensor, tensor.sizes(), strides, tensor.storage_offset() * 2 + part,
                         real_dtype(tensor.dtype()))
                   .impl());
  }
}

}  // namespace

// 8- and 16-bit integers take floats by way of 32 bits, so that values outside wrap around rather
// than depend on the instruction chosen.
Expr convert_value(Expr value, DType dtype) {
  const DType target = compute_dtype(dtype);
  if (value.dtype() == target) {
    return value;
  }
  if (target == DType::Bool) {
    return value != loop::cast(loop::constant_int(0, DType::Int32), value.dtype());
  }
  const bool narrow = is_integral(target, false) && element_size(target) < 8;
  if (narrow && is_floating(value.dtype())) {
    const DType wide =
        element_size(target) < 4 || target == DType::Int32 ? DType::Int32 : DType::Int64;
    value = loop::cast(value, wide);
  }
  return value.dtype() == target ? value : loop::cast(value, target);
}

void convert(const Tensor& target, const Tensor& source) {
  Iteration space(target.sizes());
  add_operand(space, target);
  add_operand(space, source);
  space.fold();
  const int inner = space.rank - 1;
  const Form form{target.dtype(), source.dtype(), space.flat(), space.layout(0, inner),
                  space.layout(target.is_complex() ? 2 : 1, inner)};
  run_iteration(space, find_kernel(form), nullptr, 0.7);
}

}  // namespace rushlight::kernels
