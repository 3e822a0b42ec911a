// Reductions, scans and scatters, compiled against the interpreter.
#include <gtest/gtest.h>

#include "agreement.h"

namespace rushlight::testing {
namespace {

using loop::AxisKind;
using loop::Combine;
using loop::Expr;
using loop::index;
using loop::Kernel;
using loop::Layout;
using loop::reduce;
using loop::StoreMode;

const int64_t kLengths[] = {0, 1, 2, 15, 16, 31, 63, 64, 65, 100, 127, 128, 129, 200};

Expr i64(int64_t value) {
  return loop::constant_int(value, DType::Int64);
}

// out[p] = combine over the last axis.
Kernel rows(DType dtype, Combine combine) {
  Kernel kernel{"rows", {AxisKind::Parallel, AxisKind::Reduce}, {}, {}, {}};
  kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}}, {dtype, {Layout::Unit}}};
  Expr x = loop::load(0, dtype, {index(0), index(1)});
  kernel.stores = {{1, {index(0)}, reduce(combine, 1, x)}};
  return kernel;
}

TEST(Reduce, RowsOfEveryTypeAndCombine) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int64,
                      DType::Int32, DType::UInt8, DType::Int16}) {
    for (Combine combine : {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min}) {
      for (int64_t n : kLengths) {
        for (bool special : {false, true}) {
          Problem problem{rows(dtype, combine), {3, n}, {{3, n}, {3}}};
          problem.special = special;
          expect_agreement(problem);
        }
      }
    }
  }
  for (Combine combine : {Combine::Or, Combine::And}) {
    for (int64_t n : kLengths) {
      expect_agreement({rows(DType::Bool, combine), {3, n}, {{3, n}, {3}}});
    }
  }
}

TEST(Reduce, ColumnsOfEveryTypeAndCombine) {
  for (DType dtype :
       {DType::Float32, DType::Float64, DType::BFloat16, DType::Int64, DType::UInt8}) {
    for (Combine combine : {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min}) {
      Kernel kernel{"columns", {AxisKind::Reduce, AxisKind::Parallel}, {}, {}, {}};
      kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}}, {dtype, {Layout::Unit}}};
      Expr x = loop::load(0, dtype, {index(0), index(1)});
      kernel.stores = {{1, {index(1)}, reduce(combine, 0, x)}};
      for (int64_t n : kLengths) {
        Problem problem{kernel, {9, n}, {{9, n}, {n}}};
        problem.special = n % 2 == 0;
        expect_agreement(problem);
      }
    }
  }
}

TEST(Reduce, StridedRowsAndTwoAxes) {
  Kernel kernel = rows(DType::Float32, Combine::Sum);
  kernel.buffers[0].dims = {Layout::Unit, Layout::Any};
  Kernel both{"both", {AxisKind::Parallel, AxisKind::Reduce, AxisKind::Reduce}, {}, {}, {}};
  both.buffers = {{DType::Float32, {Layout::Any, Layout::Any, Layout::Unit}},
                  {DType::Float32, {Layout::Unit}}};
  Expr x = loop::load(0, DType::Float32, {index(0), index(1), index(2)});
  both.stores = {{1, {index(0)}, reduce(Combine::Sum, 1, reduce(Combine::Sum, 2, x))}};
  for (int64_t n : kLengths) {
    expect_agreement({kernel, {5, n}, {{5, n}, {5}}, {}, 0, 0, false});
    expect_agreement({both, {2, 4, n}, {{2, 4, n}, {2}}, {}, 0, 0, false});
  }
}

TEST(Reduce, WholeArray) {
  Kernel kernel{"all", {AxisKind::Reduce}, {}, {}, {}};
  kernel.buffers = {{DType::Float32, {Layout::Unit}}, {DType::Float32, {}}};
  Expr x = loop::load(0, DType::Float32, {index(0)});
  kernel.stores = {{1, {}, reduce(Combine::Sum, 0, x * x)}};
  for (int64_t n : kLengths) {
    expect_agreement({kernel, {n}, {{n}, {}}, {}, 0, 0, false});
  }
}

// Stores along the reduced axis see the finished reductions, and one reduction may use another.
TEST(Reduce, NormalisesRowsAndColumns) {
  for (int axis : {0, 1}) {
    DType dtype = DType::Float32;
    Kernel kernel{"norm", {AxisKind::Parallel, AxisKind::Parallel}, {}, {}, {}};
    kernel.axes[static_cast<size_t>(axis)] = AxisKind::Reduce;
    kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}},
                      {dtype, {Layout::Unit}},
                      {dtype, {Layout::Any, Layout::Unit}},
                      {dtype, {Layout::Unit}}};
    Expr x = loop::load(0, dtype, {index(0), index(1)});
    Expr weight = loop::load(1, dtype, {index(1)});
    Expr n = loop::cast(loop::extent(axis), dtype);
    Expr mean = reduce(Combine::Sum, axis, x) / n;
    Expr centred = x - mean;
    Expr variance = reduce(Combine::Sum, axis, centred * centred) / n;
    Expr scale = loop::rsqrt(variance + 1e-5);
    kernel.stores = {{2, {index(0), index(1)}, centred * scale * weight},
                     {3, {index(1 - axis)}, scale}};
    for (int64_t n : {1, 7, 40, 64, 130}) {
      int64_t others = axis == 1 ? 3 : n;
      Problem problem{kernel, {3, n}, {{3, n}, {n}, {3, n}, {others}}};
      problem.special = false;
      expect_agreement(problem);
    }
  }
}

// The exponentials are kept from the sum to the store: in the output, or apart where it is
// narrower.
TEST(Reduce, SoftmaxOfEveryFloatType) {
  for (DType in : {DType::Float32, DType::BFloat16, DType::Float16}) {
    for (DType out : {DType::Float32, DType::BFloat16, DType::Float16}) {
      for (int64_t n : kLengths) {
        Kernel kernel{"softmax", {AxisKind::Parallel, AxisKind::Reduce}, {}, {}, {}};
        kernel.buffers = {{in, {Layout::Any, Layout::Unit}}, {out, {Layout::Any, Layout::Unit}}};
        Expr x = loop::cast(loop::load(0, in, {index(0), index(1)}), DType::Float32);
        Expr e = loop::exp(x - reduce(Combine::Max, 1, x));
        kernel.stores = {{1, {index(0), index(1)}, e / reduce(Combine::Sum, 1, e)}};
        Problem problem{kernel, {3, n}, {{3, n}, {3, n}}};
        problem.special = false;
        problem.ulp = out == DType::Float32 ? 4 : 1;
        expect_agreement(problem);
      }
    }
  }
}

TEST(Reduce, FindsTheFirstLargest) {
  for (DType dtype : {DType::Float32, DType::Int64, DType::UInt8}) {
    Kernel kernel{"argmax", {AxisKind::Parallel, AxisKind::Reduce}, {}, {}, {}};
    kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}}, {DType::Int64, {Layout::Unit}}};
    Expr x = loop::load(0, dtype, {index(0), index(1)});
    Expr most = reduce(Combine::Max, 1, x);
    Expr place = loop::select(x == most, index(1), i64(INT64_MAX));
    kernel.stores = {{1, {index(0)}, reduce(Combine::Min, 1, place)}};
    for (int64_t n : {1, 5, 64, 100, 200}) {
      Problem problem{kernel, {4, n}, {{4, n}, {4}}};
      problem.special = false;
      expect_agreement(problem);
    }
  }
}

TEST(Scan, AlongRowsAndColumns) {
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Int64}) {
    for (int axis : {0, 1}) {
      for (Combine combine : {Combine::Sum, Combine::Prod, Combine::Max}) {
        Kernel kernel{"scan", {AxisKind::Parallel, AxisKind::Parallel}, {}, {}, {}};
        kernel.axes[static_cast<size_t>(axis)] = AxisKind::Scan;
        kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}},
                          {dtype, {Layout::Any, Layout::Unit}}};
        Expr x = loop::load(0, dtype, {index(0), index(1)});
        Expr running = loop::scan(combine, axis, x);
        kernel.stores = {{1, {index(0), index(1)}, running + x}};
        for (int64_t n : {1, 9, 40, 130}) {
          for (int64_t m : {1, 6, 19}) {
            Problem problem{kernel, {m, n}, {{m, n}, {m, n}}};
            problem.special = combine == Combine::Max;
            expect_agreement(problem);
          }
        }
      }
    }
  }
}

TEST(Scan, CompactsByRunningCount) {
  // out[count of set masks before i] = x[i] where the mask is set.
  Kernel kernel{"compact", {AxisKind::Scan}, {}, {}, {}};
  kernel.buffers = {{DType::Float32, {Layout::Unit}},
                    {DType::Bool, {Layout::Unit}},
                    {DType::Float32, {Layout::Unit}}};
  Expr keep = loop::load(1, DType::Bool, {index(0)});
  Expr count = loop::scan(Combine::Sum, 0, loop::cast(keep, DType::Int64));
  kernel.stores = {
      {2, {count - i64(1)}, loop::load(0, DType::Float32, {index(0)}), StoreMode::Set, keep}};
  expect_agreement({kernel, {75}, {{75}, {75}, {75}}});
}

TEST(Scatter, AccumulatesInOrder) {
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Int32}) {
    for (StoreMode mode :
         {StoreMode::Set, StoreMode::Add, StoreMode::Mul, StoreMode::Max, StoreMode::Min}) {
      // index_add: the index is one a row.
      Kernel kernel{"index_add", {AxisKind::Scan, AxisKind::Parallel}, {}, {}, {}};
      kernel.buffers = {{dtype, {Layout::Any, Layout::Unit}},
                        {DType::Int64, {Layout::Unit}},
                        {dtype, {Layout::Any, Layout::Unit}}};
      Expr which = loop::load(1, DType::Int64, {index(0)});
      Expr x = loop::load(0, dtype, {index(0), index(1)});
      kernel.stores = {{2, {which, index(1)}, x, mode}};
      // scatter_add: the index is one an element, and collides along its own column only.
      Kernel own = kernel;
      own.buffers[1].dims = {Layout::Any, Layout::Unit};
      own.stores[0].indices[0] = loop::load(1, DType::Int64, {index(0), index(1)});
      // all into one row
      Kernel row{"row", {AxisKind::Scan}, {}, {}, {}};
      row.buffers = {
          {dtype, {Layout::Unit}}, {DType::Int64, {Layout::Unit}}, {dtype, {Layout::Unit}}};
      row.stores = {{2, {which}, loop::load(0, dtype, {index(0)}), mode}};
      for (int64_t n : {1, 17, 64, 129}) {
        Problem problem{kernel, {20, n}, {{20, n}, {20}, {5, n}}};
        problem.index_limit = 5;
        problem.special = false;
        expect_agreement(problem);
        problem.kernel = own;
        problem.sizes[1] = {20, n};
        expect_agreement(problem);
        Problem one{row, {n}, {{n}, {n}, {5}}, {}, 5, 0, false};
        expect_agreement(one);
      }
    }
  }
}

}  // namespace
}  // namespace rushlight::testing
