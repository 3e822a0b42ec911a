// The tiles of the widest level with vectors that every machine has: their shape (14 rows, two
// vectors of 64 bytes) and edges are tested also where the level's own instructions are missing.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

// Vectors cross no boundary between object files.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace rushlight::wide {

// The compiler splits these vectors into those of its target.
template <typename Element>
struct Vector {
  using T = Element;
  typedef T R __attribute__((vector_size(64)));
  static constexpr int kWidth = 64 / sizeof(T);

  static R zero() { return R{}; }
  static R set1(T x) { return x - R{}; }
  static R fma(const R& a, const R& b, const R& c) { return a * b + c; }
  static R load(const T* p) { return load_first(p, kWidth); }
  static void store(T* p, const R& x) { store_first(p, x, kWidth); }
  static R load_first(const T* p, int64_t n) {
    R x{};
    std::memcpy(&x, p, static_cast<size_t>(n) * sizeof(T));
    return x;
  }
  static void store_first(T* p, const R& x, int64_t n) {
    std::memcpy(p, &x, static_cast<size_t>(n) * sizeof(T));
  }
};

}  // namespace rushlight::wide

#define RUSHLIGHT_LEVEL wide
#include "kernels/gemm_tile.h"

namespace rushlight {
namespace {

constexpr int kRows = 14;

template <typename T>
void expect_agrees(int64_t m, int64_t n, int64_t k, bool packed) {
  using V = wide::Vector<T>;
  constexpr int64_t kCols = 2 * V::kWidth;
  const int64_t down = (m + kRows - 1) / kRows * kRows;
  const int64_t across = (n + kCols - 1) / kCols * kCols;
  std::mt19937 generator(static_cast<unsigned>(m + n));
  std::uniform_int_distribution<int> whole(-4, 4);
  std::vector<T> a(static_cast<size_t>(down * k));
  std::vector<T> b(static_cast<size_t>(across * k));
  std::vector<T> c(static_cast<size_t>(m * (n + 1)), 3);
  for (auto* matrix : {&a, &b}) {
    for (T& element : *matrix) {
      element = static_cast<T>(whole(generator));
    }
  }
  const auto right = [&](int64_t p, int64_t j) {
    return b[static_cast<size_t>(j / kCols * kCols * k + p * kCols + j % kCols)];
  };
  // Unpacked, the rows of A are contiguous.
  const auto left = [&](int64_t i, int64_t p) {
    return a[static_cast<size_t>(packed ? i / kRows * kRows * k + p * kRows + i % kRows
                                        : i * k + p)];
  };
  if (packed) {
    wide::block<V, kRows>(m, n, k, a.data(), b.data(), 2, 0.5, c.data(), n + 1);
  } else {
    for (int64_t j = 0; j < n; j += kCols) {
      const int64_t cols = n - j < kCols ? n - j : kCols;
      wide::strip<V, kRows>(m, cols, k, a.data(), k, 1, b.data() + j * k, kCols, 2, 0.5,
                            c.data() + j, n + 1);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T want = 1.5;
      for (int64_t p = 0; p < k; ++p) {
        want += 2 * left(i, p) * right(p, j);
      }
      ASSERT_EQ(c[static_cast<size_t>(i * (n + 1) + j)], want) << m << " " << n << " at " << i;
    }
    ASSERT_EQ(c[static_cast<size_t>(i * (n + 1) + n)], 3) << "beyond the edge";
  }
}

TEST(GemmTile, WideTilesAgreeAtEveryEdge) {
  for (const bool packed : {true, false}) {
    for (int64_t m = 1; m <= 30; ++m) {
      for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 64, 65}) {
        expect_agrees<float>(m, n, 5, packed);
      }
    }
  }
}

}  // namespace
}  // namespace rushlight
