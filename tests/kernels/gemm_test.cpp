#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "matrix_fixture.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

using testing::kLayouts;
using testing::Layout;
using testing::Matrix;

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu_erf:
      return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::none:
      break;
  }
  return x;
}

struct Case {
  int64_t m;
  int64_t n;
  int64_t k;
  DType input = DType::Float32;
  DType output = DType::Float32;
  Layout a = Layout::rows;
  Layout b = Layout::rows;
  Layout c = Layout::rows;
  double alpha = 1;
  double beta = 0;
  bool addend = false;
  Activation activation = Activation::none;

  std::string text() const {
    std::string out;
    for (const int64_t number :
         {m, n, k, static_cast<int64_t>(a), static_cast<int64_t>(b), static_cast<int64_t>(c)}) {
      out += std::to_string(number) + " ";
    }
    return out + std::string(dtype_name(input)) + " " + std::string(dtype_name(output)) + " " +
           std::to_string(alpha) + " " + std::to_string(beta) + (addend ? " addend" : "");
  }
};

void expect_agrees(const Case& test) {
  std::mt19937 generator(static_cast<unsigned>(test.m * 31 + test.n * 7 + test.k));
  Matrix a(test.input, test.m, test.k, test.a);
  Matrix b(test.input, test.k, test.n, test.b);
  Matrix c(test.output, test.m, test.n, test.c);
  Matrix bias(test.output, 1, test.n, test.c);
  a.fill(generator);
  b.fill(generator);
  c.fill(generator);
  bias.fill(generator);
  const Matrix before = c;
  MatrixRef row = bias.ref();
  row.row_stride = 0;
  GemmEpilogue epilogue = {test.alpha, test.beta, test.addend ? &row : nullptr, 0.5,
                           test.activation};
  gemm(test.m, test.n, test.k, a.ref(), b.ref(), c.out(), epilogue);
  ASSERT_TRUE(c.intact()) << test.text();
  const double allowed = testing::tolerance(test.output, test.k);
  // Of large products a sample: the reference is slow. The step is prime to the sizes of tiles.
  const int64_t step = test.m * test.n * test.k > 200000 ? 37 : 1;
  for (int64_t element = 0; element < test.m * test.n; element += step) {
    const int64_t i = element / test.n;
    const int64_t j = element % test.n;
    double sum = 0;
    for (int64_t p = 0; p < test.k; ++p) {
      sum += a.at(i, p) * b.at(p, j);
    }
    double want = test.alpha * sum + (test.beta == 0 ? 0 : test.beta * before.at(i, j));
    want = activate(test.activation, want + (test.addend ? 0.5 * bias.at(0, j) : 0));
    ASSERT_NEAR(c.at(i, j), want, allowed * (1 + std::abs(want)))
        << test.text() << "at " << i << ", " << j;
  }
}

TEST(Gemm, EveryLayoutAgrees) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) {
    for (const Layout a : kLayouts) {
      for (const Layout b : kLayouts) {
        for (const Layout c : kLayouts) {
          expect_agrees({13, 19, 21, dtype, dtype, a, b, c, 1.5, 0.5, true});
        }
      }
      expect_agrees({70, 150, 90, dtype, dtype, a, a, a});
    }
  }
}

TEST(Gemm, EdgesOfTilesAgree) {
  for (int64_t m = 1; m <= 15; ++m) {
    for (int64_t n = 1; n <= 34; ++n) {
      expect_agrees({m, n, 9});
      expect_agrees({m, n, 9, DType::Float64, DType::Float64});
    }
  }
  for (const int64_t m : {61, 64, 145}) {
    for (const int64_t n : {65, 79, 96, 97}) {
      for (const int64_t k : {255, 256, 257, 520}) {
        expect_agrees({m, n, k, DType::Float32, DType::Float32, Layout::rows, Layout::columns});
        expect_agrees({m, n, k, DType::BFloat16, DType::Float32, Layout::columns, Layout::rows});
      }
    }
  }
}

TEST(Gemm, RandomCasesAgree) {
  std::mt19937 generator(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator);
  };
  const DType dtypes[] = {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16};
  for (int i = 0; i < 300; ++i) {
    const DType input = dtypes[pick(0, 3)];
    const DType output =
        input == DType::Float32 || input == DType::Float64 ? input : dtypes[2 * pick(0, 1)];
    expect_agrees({pick(1, 120), pick(1, 120), pick(1, 300), input, output, kLayouts[pick(0, 5)],
                   kLayouts[pick(0, 5)], kLayouts[pick(0, 5)], pick(0, 1) ? 1.0 : -0.75,
                   pick(0, 2) * 0.5, pick(0, 1) == 1});
  }
}

TEST(Gemm, DeepProductsCrossSlabs) {
  for (const DType dtype : {DType::Float32, DType::BFloat16}) {
    expect_agrees({70, 80, 4100, dtype, dtype, Layout::rows, Layout::columns, Layout::rows, 1, 1});
    expect_agrees({7, 40, 9000, dtype, dtype});
  }
  expect_agrees({530, 500, 4200});
}

// Few sums of many steps are added up in parts.
TEST(Gemm, LongSumsAgree) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    for (const Layout layout : {Layout::rows, Layout::columns}) {
      expect_agrees({1, 1, 200001, dtype, dtype, layout, layout});
      expect_agrees({1, 5, 140000, dtype, dtype, layout, layout, Layout::rows, 0.5, 0.5, true});
      expect_agrees({7, 1, 131072, dtype, dtype, layout, layout});
    }
  }
}

// Every element is told of once, when it holds its final value, however the product is made.
// Small matrices are multiplied where they lie, a row of C being one vector.
TEST(Gemm, SmallProductsAgree) {
  for (const DType dtype : {DType::Float32, DType::Float64}) {
    for (const Layout layout : kLayouts) {
      for (int64_t m = 1; m <= 17; m += 4) {
        for (int64_t n = 1; n <= 17; n += 2) {
          for (const int64_t k : {1, 2, 3, 4, 5, 16, 17}) {
            expect_agrees({m, n, k, dtype, dtype, layout, Layout::rows, Layout::rows, -0.5});
            expect_agrees({m, n, k, dtype, dtype, Layout::rows, layout, layout});
          }
        }
      }
    }
  }
}

// Few sums of many steps in both directions: parts of the depth are dot products.
TEST(Gemm, DeepProductsOfFewRowsAndColumnsAgree) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    for (const Layout layout : kLayouts) {
      expect_agrees({2, 2, 4096, dtype, dtype, layout, Layout::rows});
      expect_agrees({3, 8, 9001, dtype, dtype, layout, layout, layout, 0.5, 0.5, true});
      expect_agrees({5, 7, 4095, dtype, dtype, Layout::rows, layout});
    }
  }
}

TEST(Gemm, TellsOfEachBlockOnce) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size size : {Size{300, 700, 600}, Size{1, 500, 30}, Size{500, 1, 30}, Size{3, 200, 40},
                          Size{40, 50, 0}, Size{600, 530, 1100}}) {
    std::vector<float> a(static_cast<size_t>(size.m * size.k), 1);
    std::vector<float> b(static_cast<size_t>(size.k * size.n), 1);
    std::vector<float> c(static_cast<size_t>(size.m * size.n), -1);
    std::vector<int> told(c.size());
    const auto done = [&](int64_t row, int64_t col, int64_t rows, int64_t cols) {
      for (int64_t i = row; i < row + rows; ++i) {
        for (int64_t j = col; j < col + cols; ++j) {
          const auto at = static_cast<size_t>(i * size.n + j);
          told[at] += c[at] == static_cast<float>(size.k) ? 1 : 100;
        }
      }
    };
    const BlockDone reference(done);
    GemmEpilogue epilogue;
    epilogue.done = &reference;
    const DType f32 = DType::Float32;
    gemm(size.m, size.n, size.k, {a.data(), f32, size.k, 1}, {b.data(), f32, size.n, 1},
         {c.data(), f32, size.n, 1}, epilogue);
    EXPECT_TRUE(std::all_of(told.begin(), told.end(), [](int count) { return count == 1; }))
        << size.m << " " << size.n << " " << size.k;
  }
}

// Several slabs of A share what was packed of B, whose last panel is not a whole number of vectors.
TEST(Gemm, SlabsSharePackedColumns) {
  for (const Layout layout : {Layout::rows, Layout::columns}) {
    expect_agrees({1100, 260, 1000, DType::Float32, DType::Float32, layout});
    expect_agrees({1100, 260, 1000, DType::BFloat16, DType::BFloat16, layout});
  }
}

TEST(Gemm, VectorsAgree) {
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) {
    for (const Layout layout : kLayouts) {
      expect_agrees({1, 333, 129, dtype, dtype, Layout::rows, layout, Layout::rows, 2, 0.5, true});
      expect_agrees({333, 1, 129, dtype, dtype, layout, Layout::spread, Layout::spread});
      expect_agrees({1, 1, 1000, dtype, dtype, layout, Layout::columns});
    }
    expect_agrees({1, 3000, 70, dtype, dtype});
    expect_agrees({3000, 1, 70, dtype, dtype});
  }
}

TEST(Gemm, ActivationsAgree) {
  for (const Activation activation :
       {Activation::relu, Activation::gelu_erf, Activation::gelu_tanh, Activation::silu}) {
    for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
      expect_agrees({65, 37, 40, dtype, dtype, Layout::rows, Layout::rows, Layout::rows, 3, 0, true,
                     activation});
      expect_agrees({1, 37, 40, dtype, dtype, Layout::rows, Layout::rows, Layout::rows, 3, 0, true,
                     activation});
    }
  }
}

TEST(Gemm, AddendMayBeAMatrixOrAColumn) {
  std::mt19937 generator(3);
  Matrix a(DType::Float32, 9, 5);
  Matrix b(DType::Float32, 5, 11);
  Matrix full(DType::Float32, 9, 11, Layout::columns);
  Matrix column(DType::Float32, 9, 1);
  a.fill(generator);
  b.fill(generator);
  full.fill(generator);
  column.fill(generator);
  MatrixRef spread_column = column.ref();
  spread_column.col_stride = 0;
  const MatrixRef whole = full.ref();
  Matrix plain(DType::Float32, 9, 11);
  Matrix c(DType::Float32, 9, 11);
  gemm(9, 11, 5, a.ref(), b.ref(), plain.out());
  for (const bool matrix : {true, false}) {
    gemm(9, 11, 5, a.ref(), b.ref(), c.out(), {1, 0, matrix ? &whole : &spread_column, 2});
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 11; ++j) {
        const double added = matrix ? full.at(i, j) : column.at(i, 0);
        ASSERT_NEAR(c.at(i, j), plain.at(i, j) + 2 * added, 1e-5);
      }
    }
  }
}

TEST(Gemm, ZeroSizesAndZeroDepth) {
  for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Int32}) {
    expect_agrees({0, 4, 3, dtype, dtype});
    expect_agrees({4, 0, 3, dtype, dtype});
    expect_agrees({4, 5, 0, dtype, dtype});
  }
  expect_agrees({4, 5, 0, DType::Float32, DType::Float32, Layout::rows, Layout::rows, Layout::rows,
                 1, 0.5, true});
  expect_agrees({1, 5, 0, DType::BFloat16, DType::BFloat16, Layout::rows, Layout::rows,
                 Layout::spread, 1, 0.5, true});
}

TEST(Gemm, BetaZeroDoesNotReadC) {
  for (const int64_t size : {3, 100}) {
    Matrix a(DType::Float32, size, size);
    Matrix b(DType::Float32, size, size);
    for (const DType dtype : {DType::Float32, DType::BFloat16}) {
      Matrix c(dtype, size, size);
      std::mt19937 generator(1);
      a.fill(generator);
      b.fill(generator);
      for (int64_t i = 0; i < size; ++i) {
        c.set(i, i, std::numeric_limits<double>::quiet_NaN());
      }
      gemm(size, size, size, a.ref(), b.ref(), c.out());
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_FALSE(std::isnan(c.at(i, i)));
      }
    }
  }
}

TEST(Gemm, NanAndInfinitySpreadAlongTheirRowAndColumnOnly) {
  for (const int64_t size : {5, 90}) {
    Matrix a(DType::Float32, size, size);
    Matrix b(DType::Float32, size, size);
    Matrix c(DType::Float32, size, size);
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        a.set(i, j, 1);
        b.set(i, j, 1);
      }
    }
    a.set(1, 2, std::numeric_limits<double>::quiet_NaN());
    b.set(3, 4, std::numeric_limits<double>::infinity());
    gemm(size, size, size, a.ref(), b.ref(), c.out());
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) {
        if (i == 1) {
          ASSERT_TRUE(std::isnan(c.at(i, j)));
        } else if (j == 4) {
          ASSERT_TRUE(std::isinf(c.at(i, j)));
        } else {
          ASSERT_EQ(c.at(i, j), static_cast<double>(size));
        }
      }
    }
  }
}

TEST(Gemm, IntegersWrapAround) {
  for (const DType dtype : {DType::Int64, DType::Int32, DType::Int16, DType::Int8, DType::UInt8}) {
    for (const Layout layout : kLayouts) {
      const int64_t m = 7;
      const int64_t n = 300;
      const int64_t k = 40;
      Matrix a(dtype, m, k, layout);
      Matrix b(dtype, k, n, layout);
      Matrix c(dtype, m, n, layout);
      std::mt19937 generator(5);
      a.fill(generator);
      b.fill(generator);
      c.fill(generator);
      const Matrix before = c;
      gemm(m, n, k, a.ref(), b.ref(), c.out(), {2, 3});
      ASSERT_TRUE(c.intact());
      Matrix want(dtype, 1, 1);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 3 * before.at(i, j);
          for (int64_t p = 0; p < k; ++p) {
            sum += 2 * a.at(i, p) * b.at(p, j);
          }
          const double modulus = std::ldexp(1.0, 8 * static_cast<int>(element_size(dtype)));
          const double least = is_signed(dtype) ? -modulus / 2 : 0;
          double wrapped = std::fmod(sum, modulus);
          if (wrapped < least) {
            wrapped += modulus;
          }
          if (wrapped >= least + modulus) {
            wrapped -= modulus;
          }
          ASSERT_EQ(c.at(i, j), wrapped) << dtype_name(dtype);
        }
      }
    }
  }
}

TEST(Gemm, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  struct Shape {
    int64_t m;
    int64_t n;
    int64_t k;
  };
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) {
    for (const Shape& shape :
         {Shape{200, 300, 600}, Shape{768, 128, 130}, Shape{17, 900, 400}, Shape{1, 5000, 300},
          Shape{5000, 1, 300}, Shape{900, 20, 300}, Shape{1, 1, 300000}, Shape{1, 3, 150000},
          Shape{530, 400, 500}, Shape{480, 200, 1300}}) {
      for (const Layout layout : {Layout::rows, Layout::columns}) {
        Matrix a(dtype, shape.m, shape.k, layout);
        Matrix b(dtype, shape.k, shape.n, layout);
        Matrix first(dtype, shape.m, shape.n);
        std::mt19937 generator(11);
        a.fill(generator);
        b.fill(generator);
        set_num_threads(1);
        gemm(shape.m, shape.n, shape.k, a.ref(), b.ref(), first.out());
        for (const int threads : {2, 3, 8}) {
          set_num_threads(threads);
          Matrix c(dtype, shape.m, shape.n);
          gemm(shape.m, shape.n, shape.k, a.ref(), b.ref(), c.out());
          ASSERT_TRUE(c.same_bits(first)) << threads << " threads, m = " << shape.m;
        }
      }
    }
  }
  set_num_threads(before);
}

TEST(Gemm, BatchesAgreeWithSingleProducts) {
  for (const int64_t batch : {0, 1, 3, 40}) {
    for (const bool shared : {false, true}) {
      const int64_t m = 11;
      const int64_t n = 18;
      const int64_t k = 23;
      Matrix a(DType::Float32, batch * m, k);
      Matrix b(DType::Float32, (shared ? 1 : batch) * k, n);
      Matrix c(DType::Float32, batch * m, n);
      Matrix bias(DType::Float32, batch, n);
      std::mt19937 generator(2);
      a.fill(generator);
      b.fill(generator);
      bias.fill(generator);
      MatrixRef row = bias.ref();
      row.row_stride = 0;
      gemm_batched(batch, {m * k, shared ? 0 : k * n, m * n, n}, m, n, k, a.ref(), b.ref(), c.out(),
                   {1, 0, &row});
      for (int64_t i = 0; i < batch; ++i) {
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t j = 0; j < n; ++j) {
            double want = bias.at(i, j);
            for (int64_t p = 0; p < k; ++p) {
              want += a.at(i * m + r, p) * b.at((shared ? 0 : i * k) + p, j);
            }
            ASSERT_NEAR(c.at(i * m + r, j), want, 1e-5);
          }
        }
      }
    }
  }
}

TEST(Gemm, BatchesOfSmallMatricesAreTheSingleProducts) {
  constexpr int64_t batch = 300;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{3, 3, 3}, {4, 1, 4}, {1, 6, 2}, {9, 5, 16}, {2, 12, 7}}) {
    Matrix a(DType::Float32, batch * m, k);
    Matrix b(DType::Float32, batch * k, n);
    Matrix together(DType::Float32, batch * m, n);
    Matrix apart(DType::Float32, batch * m, n);
    std::mt19937 generator(4);
    a.fill(generator);
    b.fill(generator);
    const auto part = [](const auto& matrix, int64_t i, int64_t stride) {
      auto moved = matrix;
      moved.data = static_cast<float*>(const_cast<void*>(matrix.data)) + i * stride;
      return moved;
    };
    gemm_batched(batch, {m * k, k * n, m * n}, m, n, k, a.ref(), b.ref(), together.out());
    for (int64_t i = 0; i < batch; ++i) {
      gemm(m, n, k, part(a.ref(), i, m * k), part(b.ref(), i, k * n), part(apart.out(), i, m * n));
      for (int64_t element = 0; element < m * n; ++element) {
        const int64_t r = i * m + element / n;
        const int64_t j = element % n;
        double want = 0;
        for (int64_t p = 0; p < k; ++p) {
          want += a.at(r, p) * b.at(i * k + p, j);
        }
        // One product sums in the order of its layout; a batch of small ones by chains.
        ASSERT_NEAR(together.at(r, j), apart.at(r, j), 2e-5);
        ASSERT_NEAR(together.at(r, j), want, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace rushlight
