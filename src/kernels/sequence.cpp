#include "kernels/sequence.h"

#include <array>
#include <atomic>

#include "kernels/convert.h"
#include "ops/iteration.h"
#include "runtime/kernel_cache.h"

namespace rushlight::kernels {
namespace {

using loop::Expr;

enum class Form : uint8_t { Integers, Range, Steps };
constexpr size_t kForms = 3;

DType computed_in(DType dtype, Form form) {
  const bool single = form == Form::Steps && compute_dtype(dtype) == DType::Float32;
  return form == Form::Integers ? DType::Int64 : single ? DType::Float32 : DType::Float64;
}

loop::Kernel build(DType dtype, Form form) {
  const DType compute = computed_in(dtype, form);
  loop::Kernel kernel;
  kernel.name = cat(form == Form::Steps ? "steps_" : "range_", dtype_name(dtype));
  kernel.axes = {loop::AxisKind::Parallel};
  kernel.buffers.push_back({dtype, {loop::Layout::Unit}});
  kernel.scalars = {compute, compute};
  const Expr position = loop::index(0);
  const Expr first = loop::scalar(0, compute);
  Expr value;
  if (form == Form::Steps) {
    // first, step, last, and how many elements are counted from the first.
    kernel.scalars = {compute, compute, compute, DType::Int64};
    const Expr step = loop::scalar(1, compute);
    const Expr behind = loop::extent(0) - loop::constant_int(1, DType::Int64) - position;
    value = loop::select(position < loop::scalar(3, DType::Int64),
                         first + step * loop::cast(position, compute),
                         loop::scalar(2, compute) - step * loop::cast(behind, compute));
  } else {
    value = first + loop::cast(position, compute) * loop::scalar(1, compute);
  }
  kernel.stores.push_back({0, {position}, convert_value(value, dtype)});
  return kernel;
}

loop::KernelFunction find_kernel(DType dtype, Form form) {
  static std::array<std::atomic<loop::KernelFunction>, kDTypeCount * kForms> known{};
  auto& entry = known[static_cast<size_t>(dtype) * kForms + static_cast<size_t>(form)];
  loop::KernelFunction function = entry.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = get_kernel(build(dtype, form));
    entry.store(function, std::memory_order_release);
  }
  return function;
}

void run(const Tensor& target, Form form, const uint64_t* scalars) {
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  Iteration space(target.sizes());
  space.add(*target.impl());
  space.fold();
  run_iteration(space, find_kernel(target.dtype(), form), scalars);
}

template <typename T>
T step_of(T first, T last, int64_t count) {
  return count > 1 ? (last - first) / static_cast<T>(count - 1) : T{0};
}

}  // namespace

void fill_range(const Tensor& target, int64_t first, int64_t step) {
  const uint64_t scalars[] = {static_cast<uint64_t>(first), static_cast<uint64_t>(step)};
  run(target, Form::Integers, scalars);
}

void fill_range(const Tensor& target, double first, double step) {
  const uint64_t scalars[] = {Scalar(first).kernel_bits(DType::Float64),
                              Scalar(step).kernel_bits(DType::Float64)};
  run(target, Form::Range, scalars);
}

void fill_steps(const Tensor& target, double first, double last) {
  const int64_t count = target.numel();
  const DType compute = computed_in(target.dtype(), Form::Steps);
  const double step = compute == DType::Float32
                          ? step_of(static_cast<float>(first), static_cast<float>(last), count)
                          : step_of(first, last, count);
  const int64_t ahead = count == 1 ? 1 : count / 2;
  const uint64_t scalars[] = {Scalar(first).kernel_bits(compute), Scalar(step).kernel_bits(compute),
                              Scalar(last).kernel_bits(compute), static_cast<uint64_t>(ahead)};
  run(target, Form::Steps, scalars);
}

}  // namespace rushlight::kernels
