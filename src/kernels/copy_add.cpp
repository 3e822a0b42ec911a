#include "kernels/copy_add.h"

#include <array>
#include <atomic>

#include "loop/kernel.h"
#include "ops/iteration.h"
#include "runtime/kernel_cache.h"

namespace rushlight::kernels {
namespace {

using loop::Expr;
using loop::Layout;

loop::Kernel build(DType dtype, bool flat, Layout to, Layout from) {
  loop::Kernel kernel;
  kernel.name = cat("add_into_", dtype_name(dtype));
  kernel.axes.assign(flat ? 1 : 2, loop::AxisKind::Parallel);
  std::vector<Expr> at{loop::index(0)};
  for (Layout inner : {to, from}) {
    kernel.buffers.push_back({dtype, {inner}});
    if (!flat) {
      kernel.buffers.back().dims.insert(kernel.buffers.back().dims.begin(), Layout::Any);
    }
  }
  if (!flat) {
    at.push_back(loop::index(1));
  }
  const Expr old = loop::load(0, dtype, at);
  const Expr added = loop::load(1, dtype, at);
  kernel.stores.push_back({0, at, dtype == DType::Bool ? old | added : old + added});
  return kernel;
}

loop::KernelFunction find_kernel(DType dtype, bool flat, Layout to, Layout from) {
  static std::array<std::atomic<loop::KernelFunction>, kDTypeCount * 18> known{};
  size_t index = static_cast<size_t>(dtype) * 2 + (flat ? 1 : 0);
  index = (index * 3 + static_cast<size_t>(to)) * 3 + static_cast<size_t>(from);
  loop::KernelFunction function = known[index].load(std::memory_order_acquire);
  if (function == nullptr) {
    function = get_kernel(build(dtype, flat, to, from));
    known[index].store(function, std::memory_order_release);
  }
  return function;
}

// One part of complex numbers as a tensor of real ones.
Tensor part_of(const Tensor& tensor, int64_t part) {
  IntList strides(tensor.strides());
  for (int64_t& stride : strides) {
    stride *= 2;
  }
  return make_view(tensor, tensor.sizes(), strides, tensor.storage_offset() * 2 + part,
                   real_dtype(tensor.dtype()));
}

}  // namespace

void add_into(const Tensor& target, const Tensor& source) {
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  if (target.is_complex()) {
    add_into(part_of(target, 0), part_of(source, 0));
    add_into(part_of(target, 1), part_of(source, 1));
    return;
  }
  Iteration space(target.sizes());
  space.add(*target.impl());
  space.add(*source.impl());
  space.fold();
  const int inner = space.rank - 1;
  run_iteration(
      space,
      find_kernel(target.dtype(), space.flat(), space.layout(0, inner), space.layout(1, inner)),
      nullptr, 0.7);
}

}  // namespace rushlight::kernels
