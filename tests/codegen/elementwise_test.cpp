// Kernels whose axes are all parallel, compiled against the interpreter.
#include <gtest/gtest.h>

#include "agreement.h"

namespace rushlight::testing {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::index;
using loop::Kernel;
using loop::Layout;
using loop::Op;

const DType kMemoryTypes[] = {DType::Bool,           DType::UInt8,         DType::Int8,
                              DType::UInt16,         DType::Int16,         DType::UInt32,
                              DType::Int32,          DType::UInt64,        DType::Int64,
                              DType::Float8E4M3FN,   DType::Float8E5M2,    DType::Float8E4M3FNUZ,
                              DType::Float8E5M2FNUZ, DType::Float8E8M0FNU, DType::Float16,
                              DType::BFloat16,       DType::Float32,       DType::Float64};

// out[i] = value over one axis, all buffers contiguous.
Problem flat(std::vector<DType> dtypes, Expr value, int64_t n) {
  Kernel kernel{"flat", {AxisKind::Parallel}, {}, {}, {}};
  std::vector<std::vector<int64_t>> sizes;
  for (DType dtype : dtypes) {
    kernel.buffers.push_back({dtype, {Layout::Unit}});
    sizes.push_back({n});
  }
  kernel.stores.push_back({static_cast<int>(dtypes.size()) - 1, {index(0)}, value});
  return {kernel, {n}, sizes};
}

Expr at(int buffer, DType dtype) {
  return loop::load(buffer, dtype, {index(0)});
}

TEST(Elementwise, AddsAtEveryLength) {
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Int64, DType::Int8}) {
    Expr sum = at(0, dtype) + at(1, dtype);
    for (int64_t n = 0; n <= 130; ++n) {
      expect_agreement(flat({dtype, dtype, dtype}, sum, n));
    }
  }
}

TEST(Elementwise, CastsBetweenAllTypes) {
  for (DType from : kMemoryTypes) {
    for (DType to : kMemoryTypes) {
      Problem problem = flat({from, to}, loop::cast(at(0, from), to), 77);
      // Casts of values outside of the integer's range have no specified result.
      problem.special = !is_floating(from) || is_floating(to);
      expect_agreement(problem);
    }
  }
}

TEST(Elementwise, RoundsThroughHalfTypes) {
  for (DType half : {DType::Float16, DType::BFloat16, DType::Float8E4M3FN, DType::Float8E5M2,
                     DType::Float8E4M3FNUZ, DType::Float8E5M2FNUZ, DType::Float8E8M0FNU}) {
    Expr x = at(0, DType::Float32);
    expect_agreement(flat({DType::Float32, DType::Float32}, loop::cast(x * 37.0, half), 200));
  }
}

TEST(Elementwise, AppliesEveryExactFloatOperation) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Float16}) {
    Expr a = at(0, dtype);
    Expr b = at(1, dtype);
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::FloorDiv, Op::Rem, Op::Mod, Op::Max,
                  Op::Min, Op::FMax, Op::FMin, Op::CopySign, Op::NextAfter}) {
      expect_agreement(flat({dtype, dtype, dtype}, loop::binary(op, a, b), 300));
    }
    for (Op op : {Op::Neg, Op::Abs, Op::Sqrt, Op::Floor, Op::Ceil, Op::Trunc, Op::Round}) {
      expect_agreement(flat({dtype, dtype}, loop::unary(op, a), 300));
    }
    expect_agreement(flat({dtype, dtype, dtype}, loop::fma(a, b, a), 300));
    expect_agreement(flat({dtype, DType::Bool}, loop::isnan(a), 300));
  }
}

TEST(Elementwise, AppliesEveryIntegerOperation) {
  for (DType dtype : {DType::UInt8, DType::Int8, DType::UInt16, DType::Int16, DType::UInt32,
                      DType::Int32, DType::UInt64, DType::Int64}) {
    Expr a = at(0, dtype);
    Expr b = at(1, dtype);
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::FloorDiv, Op::Rem, Op::Mod, Op::Max,
                  Op::Min, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::Pow}) {
      expect_agreement(flat({dtype, dtype, dtype}, loop::binary(op, a, b), 203));
    }
    for (Op op : {Op::Neg, Op::Abs, Op::Not}) {
      expect_agreement(flat({dtype, dtype}, loop::unary(op, a), 203));
    }
  }
}

TEST(Elementwise, ComparesAndSelects) {
  for (DType dtype : kMemoryTypes) {
    Expr a = at(0, dtype);
    Expr b = at(1, dtype);
    for (Op op : {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge}) {
      expect_agreement(flat({dtype, dtype, DType::Bool}, loop::binary(op, a, b), 99));
    }
    expect_agreement(flat({dtype, dtype, dtype}, loop::select(a == b, a, b), 99));
  }
}

TEST(Elementwise, ReadsScalarsAndIndices) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int32, DType::Int64, DType::UInt8}) {
    Problem problem = flat({dtype, dtype},
                           at(0, dtype) + loop::scalar(0, dtype) + loop::cast(index(0), dtype), 70);
    problem.kernel.scalars = {dtype};
    problem.scalars = {3};
    expect_agreement(problem);
  }
}

TEST(Elementwise, WalksTwoAxesOfEveryLayout) {
  const Layout all[] = {Layout::Zero, Layout::Unit, Layout::Any};
  for (DType dtype : {DType::Float32, DType::Float16, DType::Int64}) {
    for (Layout outer : {Layout::Zero, Layout::Any}) {
      for (Layout a : all) {
        for (Layout out : {Layout::Unit, Layout::Any}) {
          Kernel kernel{"walk", {AxisKind::Parallel, AxisKind::Parallel}, {}, {}, {}};
          kernel.buffers = {{dtype, {outer, a}},
                            {dtype, {Layout::Any, Layout::Unit}},
                            {dtype, {Layout::Any, out}}};
          Expr x = loop::load(0, dtype, {index(0), index(1)});
          Expr y = loop::load(1, dtype, {index(0), index(1)});
          kernel.stores.push_back({2, {index(0), index(1)}, x * y + x});
          for (int64_t n : {1, 7, 16, 33, 130}) {
            expect_agreement({kernel, {3, n}, {{3, n}, {3, n}, {3, n}}});
          }
        }
      }
    }
  }
}

TEST(Elementwise, TransposesAndFlips) {
  for (DType dtype : {DType::Float32, DType::UInt8, DType::Float64, DType::BFloat16}) {
    Kernel kernel{"transpose", {AxisKind::Parallel, AxisKind::Parallel}, {}, {}, {}};
    kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}}, {dtype, {Layout::Any, Layout::Unit}}};
    Expr x = loop::load(0, dtype, {index(1), index(0)});
    kernel.stores.push_back({1, {index(0), index(1)}, x});
    Kernel flip = kernel;
    Expr back = loop::extent(1) - loop::constant_int(1, DType::Int64) - index(1);
    flip.stores[0].value = loop::load(0, dtype, {index(0), back});
    for (int64_t rows : {1, 5, 16, 40, 67}) {
      for (int64_t columns : {1, 15, 32, 65, 100}) {
        expect_agreement({kernel, {rows, columns}, {{columns, rows}, {rows, columns}}});
        expect_agreement({flip, {rows, columns}, {{rows, columns}, {rows, columns}}});
      }
    }
  }
}

TEST(Elementwise, Gathers) {
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Int64}) {
    Kernel kernel{"gather", {AxisKind::Parallel, AxisKind::Parallel}, {}, {}, {}};
    kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}},
                      {DType::Int64, {Layout::Any, Layout::Unit}},
                      {dtype, {Layout::Any, Layout::Unit}}};
    Expr which = loop::load(1, DType::Int64, {index(0), index(1)});
    kernel.stores.push_back({2, {index(0), index(1)}, loop::load(0, dtype, {which, index(1)})});
    Kernel rows = kernel;  // an embedding: the index is the same along the row
    rows.buffers[1].dims = {Layout::Any, Layout::Zero};
    for (int64_t n : {1, 8, 31, 64, 129}) {
      Problem problem{kernel, {4, n}, {{11, n}, {4, n}, {4, n}}};
      problem.index_limit = 11;
      if (dtype != DType::Int64) {
        expect_agreement(problem);
      }
      problem.kernel = rows;
      expect_agreement(problem);
    }
  }
}

TEST(Elementwise, LoadsUnderMasks) {
  for (DType dtype : {DType::Float32, DType::UInt8, DType::Float16, DType::Float64}) {
    Expr three = loop::constant_int(3, DType::Int64);
    Expr i = index(1);
    Expr inside = (i >= three) & (i < loop::extent(1) - three);
    Expr row = index(0) > loop::constant_int(1, DType::Int64);
    Expr other = loop::cast(loop::constant(7.3, DType::Float32), compute_dtype(dtype));
    Kernel kernel{"pad", {AxisKind::Parallel, AxisKind::Parallel}, {}, {}, {}};
    kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}}, {dtype, {Layout::Any, Layout::Unit}}};
    Expr moved = i - three;
    std::vector<Expr> values = {
        loop::load_if(inside, other, 0, dtype, {index(0), moved}),
        loop::load_if(row, other, 0, dtype,
                      {index(0) - 2 * loop::constant_int(1, DType::Int64), i}),
        loop::load_if(inside, other, 0, dtype, {index(0), loop::extent(1) - three - i}),
        loop::load_if(inside, other, 0, dtype, {index(0), three - three})};
    for (Expr value : values) {
      kernel.stores = {{1, {index(0), i}, value}};
      for (int64_t n : {1, 6, 7, 30, 40, 100}) {
        expect_agreement({kernel, {5, n}, {{5, n}, {5, n}}});
      }
    }
  }
}

TEST(Elementwise, StoresUnderMasksAndToSeveralBuffers) {
  DType dtype = DType::Float32;
  Expr x = at(0, dtype);
  Problem problem = flat({dtype, dtype, DType::Int32, dtype}, x * 2.0, 0);
  problem.kernel.stores.push_back({1, {index(0)}, x + 1.0, loop::StoreMode::Set, x > 0.0});
  problem.kernel.stores.push_back({2, {index(0)}, loop::cast(index(0), DType::Int32)});
  for (int64_t n : {1, 15, 16, 64, 100}) {
    problem.extents = {n};
    problem.sizes = {{n}, {n}, {n}, {n}};
    expect_agreement(problem);
  }
}

}  // namespace
}  // namespace rushlight::testing
