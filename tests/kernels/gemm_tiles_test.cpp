// Products whose factors may be taken apart into bf16: on CPUs without matrix tiles they are chains
// like all others, and must hold to the same bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/gemm.h"
#include "matrix_fixture.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

using testing::kLayouts;
using testing::Layout;
using testing::Matrix;
using testing::PrecisionGuard;

// The greatest error of c, in parts of the sum of |a| |b|.
double error_of(const Matrix& a, const Matrix& b, const Matrix& c, double alpha, double beta,
                const Matrix& before) {
  double worst = 0;
  const int64_t depth = a.cols();
  for (int64_t element = 0; element < c.rows() * c.cols(); element += 7) {
    const int64_t i = element / c.cols();
    const int64_t j = element % c.cols();
    double sum = 0;
    double size = 0;
    for (int64_t p = 0; p < depth; ++p) {
      sum += a.at(i, p) * b.at(p, j);
      size += std::abs(a.at(i, p) * b.at(p, j));
    }
    const double old = beta == 0 ? 0 : beta * before.at(i, j);
    const double error = std::abs(c.at(i, j) - alpha * sum - old);
    worst = std::max(worst, error / (std::abs(alpha) * size + std::abs(old)));
  }
  return worst;
}

struct Kind {
  DType dtype;
  MatmulPrecision precision;
  double bound;
};
constexpr Kind kKinds[] = {{DType::BFloat16, MatmulPrecision::highest, 0x1p-20},
                           {DType::Float16, MatmulPrecision::highest, 0x1p-16},
                           {DType::Float32, MatmulPrecision::split, 0x1p-20},
                           {DType::Float32, MatmulPrecision::highest, 0x1p-20},
                           {DType::Float32, MatmulPrecision::high, 0x1p-15},
                           {DType::Float32, MatmulPrecision::medium, 0x1p-7}};

TEST(GemmTiles, EveryLayoutHoldsItsBound) {
  std::mt19937 generator(11);
  for (const Kind& kind : kKinds) {
    const PrecisionGuard guard(kind.precision);
    for (const Layout left : kLayouts) {
      for (const Layout right : kLayouts) {
        Matrix a(kind.dtype, 47, 75, left);
        Matrix b(kind.dtype, 75, 50, right);
        Matrix c(DType::Float32, 47, 50);
        a.fill(generator);
        b.fill(generator);
        gemm(47, 50, 75, a.ref(), b.ref(), c.out());
        ASSERT_TRUE(c.intact());
        ASSERT_LE(error_of(a, b, c, 1, 0, c), kind.bound);
      }
    }
  }
}

TEST(GemmTiles, SizesAndFactorsHoldTheirBound) {
  struct Size {
    int64_t m, n, k;
  };
  std::mt19937 generator(12);
  for (const Kind& kind : kKinds) {
    const PrecisionGuard guard(kind.precision);
    for (const Size size :
         {Size{32, 32, 32}, Size{33, 47, 1057}, Size{48, 65, 513}, Size{600, 64, 40},
          Size{64, 600, 2100}, Size{530, 500, 700}, Size{130, 160, 129}, Size{300, 700, 1100}}) {
      for (const bool scaled : {false, true}) {
        const double alpha = scaled ? -0.75 : 1;
        const double beta = scaled ? 0.5 : 0;
        Matrix a(kind.dtype, size.m, size.k);
        Matrix b(kind.dtype, size.k, size.n, Layout::columns);
        Matrix c(DType::Float32, size.m, size.n, Layout::padded_rows);
        a.fill(generator);
        b.fill(generator);
        c.fill(generator);
        const Matrix before = c;
        gemm(size.m, size.n, size.k, a.ref(), b.ref(), c.out(), {alpha, beta});
        ASSERT_TRUE(c.intact());
        ASSERT_LE(error_of(a, b, c, alpha, beta, before), kind.bound) << size.m << " " << size.k;
      }
    }
  }
}

// Infinity times the zero that is left of an exact number would be NaN.
TEST(GemmTiles, InfinityAndNanStayInTheirRowAndColumn) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int64_t kSize = 1100;  // several slabs
  constexpr int64_t kDepth = 1040;
  constexpr int64_t kCols = 80;
  for (const Kind& kind : kKinds) {
    const PrecisionGuard guard(kind.precision);
    Matrix a(kind.dtype, kSize, kDepth);
    Matrix b(kind.dtype, kDepth, kCols);
    Matrix c(DType::Float32, kSize, kCols);
    for (int64_t p = 0; p < kDepth; ++p) {
      for (int64_t i = 0; i < kSize; ++i) {
        a.set(i, p, 0.5);
      }
      for (int64_t j = 0; j < kCols; ++j) {
        b.set(p, j, j == 7 ? 0 : 1);
      }
    }
    a.set(1000, 3, kInfinity);
    a.set(1001, 1030, -kInfinity);
    a.set(2, 5, std::numeric_limits<double>::quiet_NaN());
    gemm(kSize, kCols, kDepth, a.ref(), b.ref(), c.out());
    for (int64_t i = 0; i < kSize; ++i) {
      for (int64_t j = 0; j < kCols; ++j) {
        const bool special = i == 2 || i == 1000 || i == 1001;
        if (i == 2 || (special && j == 7)) {
          ASSERT_TRUE(std::isnan(c.at(i, j))) << i << " " << j;
        } else if (special) {
          ASSERT_EQ(c.at(i, j), i == 1000 ? kInfinity : -kInfinity);
        } else {
          ASSERT_EQ(c.at(i, j), j == 7 ? 0 : 0.5 * kDepth);
        }
      }
    }
  }
}

// Three bf16 hold an f32, so numbers whose products and sums are exact in f32 stay exact.
TEST(GemmTiles, ThreePartsAreExactWhereF32Is) {
  const PrecisionGuard guard(MatmulPrecision::split);
  constexpr int64_t kSize = 144;
  std::mt19937 generator(14);
  std::uniform_int_distribution<int> whole(-(1 << 23), 1 << 23);
  std::uniform_int_distribution<int> small(-300, 300);
  Matrix a(DType::Float32, kSize, kSize);
  Matrix identity(DType::Float32, kSize, kSize);
  Matrix b(DType::Float32, kSize, kSize);
  for (int64_t i = 0; i < kSize; ++i) {
    for (int64_t j = 0; j < kSize; ++j) {
      a.set(i, j, 2 * whole(generator) + 1);  // all 24 bits
      b.set(i, j, small(generator));
      identity.set(i, j, i == j ? 1 : 0);
    }
  }
  Matrix c(DType::Float32, kSize, kSize);
  gemm(kSize, kSize, kSize, a.ref(), identity.ref(), c.out());
  EXPECT_EQ(error_of(a, identity, c, 1, 0, c), 0);
  gemm(kSize, kSize, kSize, identity.ref(), a.ref(), c.out());
  EXPECT_EQ(error_of(identity, a, c, 1, 0, c), 0);
  gemm(kSize, kSize, kSize, b.ref(), b.ref(), c.out());
  EXPECT_EQ(error_of(b, b, c, 1, 0, c), 0);
}

// The largest error is of the size of that of a chain of f32 multiply-adds, from the smallest
// numbers to the largest.
TEST(GemmTiles, ThreePartsAreAsNearAsChains) {
  constexpr int64_t kSize = 144;
  constexpr int64_t kDepth = 700;
  std::mt19937 generator(15);
  std::normal_distribution<double> normal;
  for (const double spread : {0.0, 1.0, 8.0}) {
    for (const int scale : {0, -38, -70, -120, 50, 63, 70}) {
      Matrix a(DType::Float32, kSize, kDepth);
      Matrix b(DType::Float32, kDepth, kSize);
      for (int64_t p = 0; p < kDepth; ++p) {
        for (int64_t i = 0; i < kSize; ++i) {
          const double size = std::exp(spread * normal(generator));
          a.set(i, p, std::ldexp(normal(generator) * size, scale));
          b.set(p, i, std::ldexp(normal(generator), scale > 0 ? -scale / 2 : 0));
        }
      }
      double error[2];
      for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::split}) {
        const PrecisionGuard guard(precision);
        Matrix c(DType::Float32, kSize, kSize);
        gemm(kSize, kSize, kDepth, a.ref(), b.ref(), c.out());
        error[precision == MatmulPrecision::split] = error_of(a, b, c, 1, 0, c);
      }
      EXPECT_LE(error[1], 2 * error[0]) << spread << " " << scale;
    }
  }
}

TEST(GemmTiles, TheLargestNumbersStayFinite) {
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::split,
                                          MatmulPrecision::high, MatmulPrecision::medium}) {
    const PrecisionGuard guard(precision);
    constexpr float kMost = std::numeric_limits<float>::max();
    constexpr int64_t kSize = 136;
    Matrix a(DType::Float32, kSize, kSize);
    Matrix b(DType::Float32, kSize, kSize);
    Matrix c(DType::Float32, kSize, kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      for (int64_t j = 0; j < kSize; ++j) {
        a.set(i, j, i == j ? kMost : 0);
        b.set(i, j, i == j ? 0.5 : 0);
      }
    }
    gemm(kSize, kSize, kSize, a.ref(), b.ref(), c.out());
    for (int64_t i = 0; i < kSize; ++i) {
      ASSERT_EQ(c.at(i, i), 0.5 * kMost);
    }
  }
}

TEST(GemmTiles, ThreadsDoNotChangeBits) {
  std::mt19937 generator(13);
  for (const Kind& kind : kKinds) {
    const PrecisionGuard guard(kind.precision);
    Matrix a(kind.dtype, 300, 700);
    Matrix b(kind.dtype, 700, 450);
    a.fill(generator);
    b.fill(generator);
    b.set(5, 5, std::numeric_limits<double>::infinity());  // some slabs are no tiles
    const int before = num_threads();
    Matrix first(kind.dtype, 300, 450);
    for (const int threads : {1, 2, 3, 8}) {
      set_num_threads(threads);
      Matrix c(kind.dtype, 300, 450);
      gemm(300, 450, 700, a.ref(), b.ref(), c.out());
      if (threads == 1) {
        first = c;
      }
      EXPECT_TRUE(c.same_bits(first)) << threads;
    }
    set_num_threads(before);
  }
}

}  // namespace
}  // namespace rushlight
