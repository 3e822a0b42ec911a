// Random well-typed expressions and kernels, with values that provoke edge cases.
#pragma once

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "loop/evaluate.h"
#include "loop/kernel.h"

namespace rushlight::loop::testing {

inline constexpr int64_t kPoints = 23;

class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : random_(seed) {
    for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                        DType::Float8E5M2, DType::Int32, DType::Int64, DType::UInt8, DType::Int8,
                        DType::UInt64, DType::Int16, DType::Bool}) {
      kernel_.buffers.push_back({dtype, {Layout::Unit}});
    }
    kernel_.axes = {AxisKind::Parallel, AxisKind::Reduce};
    kernel_.scalars = {DType::Float32, DType::Int64};
  }

  // Stores random expressions of random types, over axis 0.
  Kernel kernel(int stores) {
    Kernel result = kernel_;
    result.name = "random";
    for (int i = 0; i < stores; ++i) {
      Expr value = expr(value_dtype(), 5);
      result.buffers.push_back({value.dtype(), {Layout::Unit}});
      Expr mask = pick(4) == 0 ? expr(DType::Bool, 2) : Expr{};
      int buffer = static_cast<int>(result.buffers.size()) - 1;
      result.stores.push_back({buffer, {index(0)}, value, StoreMode::Set, mask});
    }
    return result;
  }

  Expr expr(DType dtype, int depth) {
    if (depth == 0) {
      return leaf(dtype);
    }
    switch (pick(14)) {
      case 0:
        return leaf(dtype);
      case 1:
        return select(expr(DType::Bool, depth - 1), expr(dtype, depth - 1), expr(dtype, depth - 1));
      case 2:
        return converted(dtype, depth);
      case 3:
        return dtype == DType::Bool ? leaf(dtype) : folded(dtype, depth);
      case 4:
        return guarded(dtype, depth);
      default:
        return applied(dtype, depth);
    }
  }

  DType value_dtype() {
    constexpr DType kAll[] = {DType::Float32, DType::Float64, DType::Int32,  DType::Int64,
                              DType::UInt8,   DType::Int8,    DType::UInt64, DType::Bool};
    return kAll[pick(std::size(kAll))];
  }

  Value value(DType dtype) {
    if (is_floating(dtype)) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      constexpr double kSpecial[] = {0.0, -0.0, 1,     -1,    2,         0.5,        3,
                                     -4,  10,   1e-40, 6.5e4, kInfinity, -kInfinity, NAN};
      size_t choice = pick(std::size(kSpecial) + 8);
      double x = choice < std::size(kSpecial)
                     ? kSpecial[choice]
                     : std::uniform_real_distribution<double>(-5, 5)(random_);
      return normalize_float(x, dtype);
    }
    constexpr int64_t kSpecial[] = {0, 1, -1, 2, 3, -7, 100, 31, 64, INT64_MAX, INT64_MIN};
    size_t choice = pick(std::size(kSpecial) + 3);
    int64_t x = choice < std::size(kSpecial) ? kSpecial[choice] : static_cast<int64_t>(random_());
    return normalize_int(x, dtype);
  }

  size_t pick(size_t count) { return random_() % count; }

 private:
  Expr leaf(DType dtype) {
    if (pick(3) == 0) {
      return constant_value(value(dtype), dtype);
    }
    if (dtype == DType::Int64 && pick(3) == 0) {
      return pick(3) == 0 ? extent(1) : pick(2) ? index(0) : scalar(1, DType::Int64);
    }
    if (dtype == DType::Float32 && pick(4) == 0) {
      return scalar(0, DType::Float32);
    }
    std::vector<int> fitting;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (compute_dtype(kernel_.buffers[i].dtype) == dtype) {
        fitting.push_back(static_cast<int>(i));
      }
    }
    int buffer = fitting[pick(fitting.size())];
    return load(buffer, kernel_.buffers[static_cast<size_t>(buffer)].dtype, {index(0)});
  }

  Expr converted(DType dtype, int depth) {
    if (dtype == DType::Float32 && pick(2)) {
      constexpr DType kNarrow[] = {DType::Float16, DType::BFloat16, DType::Float8E4M3FN};
      return cast(expr(dtype, depth - 1), kNarrow[pick(3)]);
    }
    DType from = value_dtype();
    // What a float too large for an integer becomes is left open, so no pass need keep it.
    return is_floating(from) && is_integral(dtype, false) ? leaf(dtype)
                                                          : cast(expr(from, depth - 1), dtype);
  }

  Expr folded(DType dtype, int depth) {
    constexpr Combine kCombines[] = {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min};
    return reduce(kCombines[pick(4)], 1, expr(dtype, std::min(depth - 1, 2)));
  }

  Expr guarded(DType dtype, int depth) {
    Expr l = leaf(dtype);
    if (l->op != Op::Load) {
      return l;
    }
    return load_if(expr(DType::Bool, depth - 1), leaf(dtype), l->slot, l->buffer, {index(0)});
  }

  Expr applied(DType dtype, int depth) {
    char kind = dtype == DType::Bool ? 'b' : is_floating(dtype) ? 'f' : 'i';
    for (;;) {
      Op op = static_cast<Op>(pick(kOpCount));
      const OpInfo& row = info(op);
      bool comparison = row.typing == Typing::Bool;
      if (row.typing == Typing::Own || (comparison && dtype != DType::Bool)) {
        continue;
      }
      DType operands = comparison ? value_dtype() : dtype;
      char wanted = operands == DType::Bool ? 'b' : is_floating(operands) ? 'f' : kind;
      wanted = comparison && is_integral(operands, false) ? 'i' : wanted;
      if (row.kinds.find(wanted) == std::string_view::npos) {
        continue;
      }
      Expr a = expr(operands, depth - 1);
      if (row.arity == Arity::Unary) {
        return unary(op, a);
      }
      Expr b = pick(8) == 0 ? a : expr(operands, depth - 1);
      return row.arity == Arity::Binary ? binary(op, a, b) : fma(a, b, expr(operands, depth - 1));
    }
  }

  Kernel kernel_;
  std::mt19937_64 random_;
};

// Memory for a kernel whose buffers are one-dimensional, filled from `values`.
class Memory {
 public:
  Memory(const Kernel& kernel, RandomKernel& values) {
    for (const Buffer& buffer : kernel.buffers) {
      size_t size = static_cast<size_t>(element_size(buffer.dtype));
      std::vector<unsigned char> bytes(size * kPoints);
      for (size_t i = 0; i < kPoints; ++i) {
        write_memory(&bytes[i * size], buffer.dtype, values.value(compute_dtype(buffer.dtype)));
      }
      bytes_.push_back(std::move(bytes));
    }
  }

  void run(const Kernel& kernel) {
    std::vector<void*> buffers;
    std::vector<const int64_t*> strides;
    static const int64_t kUnit = 1;
    for (auto& bytes : bytes_) {
      buffers.push_back(bytes.data());
      strides.push_back(&kUnit);
    }
    const int64_t extents[] = {kPoints, 5};
    const uint64_t scalars[] = {std::bit_cast<uint32_t>(1.5f), static_cast<uint64_t>(-3)};
    interpret(kernel, {buffers.data(), strides.data(), extents, scalars}, 0, kPoints);
  }

  Value at(const Kernel& kernel, size_t buffer, size_t i) const {
    DType dtype = kernel.buffers[buffer].dtype;
    Value value = read_memory(&bytes_[buffer][i * static_cast<size_t>(element_size(dtype))], dtype);
    return is_floating(dtype) ? normalize_float(as_double(value), DType::Float64) : value;
  }

 private:
  std::vector<std::vector<unsigned char>> bytes_;
};

}  // namespace rushlight::loop::testing
