// The functions of `VectorOps` for one CPU level. Include after its vectors, with its target set.
#pragma once

#include "kernels/linalg/vectors.h"

namespace rushlight::kernels::RUSHLIGHT_LEVEL {

using rushlight::RUSHLIGHT_LEVEL::F32;
using rushlight::RUSHLIGHT_LEVEL::F64;

template <typename V>
struct Code {
  using T = typename V::T;
  using R = typename V::R;
  static constexpr int64_t kWidth = V::kWidth;
  static constexpr int64_t kVectors = kPanelRows<T> / kWidth;

  static T dot(int64_t n, const T* x, const T* y) {
    R sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    int64_t i = 0;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      for (int64_t k = 0; k < 4; ++k) {
        sums[k] = V::fma(V::load(x + i + k * kWidth), V::load(y + i + k * kWidth), sums[k]);
      }
    }
    for (; i < n; i += kWidth) {
      const int64_t left = n - i < kWidth ? n - i : kWidth;
      sums[0] = V::fma(V::load_first(x + i, left), V::load_first(y + i, left), sums[0]);
    }
    return V::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  // Lanes compare with vector types' own operators: a NaN loses every comparison, and is looked for
  // apart.
  static int64_t largest(int64_t n, const T* x) {
    R most = V::zero();
    auto nan = most != most;
    int64_t i = 0;
    for (; i < n; i += kWidth) {
      const R v = i + kWidth <= n ? V::load(x + i) : V::load_first(x + i, n - i);
      const R size = v < V::zero() ? -v : v;
      nan |= v != v;
      most = size > most ? size : most;
    }
    T best = 0;
    bool any_nan = false;
    for (int64_t k = 0; k < kWidth; ++k) {
      best = most[k] > best ? most[k] : best;
      any_nan = any_nan || nan[k] != 0;
    }
    for (i = 0; i < n; ++i) {
      if (any_nan ? x[i] != x[i] : x[i] == best || x[i] == -best) {
        break;
      }
    }
    return i;
  }

  static void axpy(int64_t n, T a, const T* x, T* y) {
    const R factor = V::set1(a);
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      V::store(y + i, V::fma(factor, V::load(x + i), V::load(y + i)));
    }
    if (i < n) {
      const int64_t left = n - i;
      V::store_first(y + i, V::fma(factor, V::load_first(x + i, left), V::load_first(y + i, left)),
                     left);
    }
  }

  // Four columns share the loads of x; each is added up as a column alone is.
  static void dot_columns(int64_t m, int64_t n, const T* a, int64_t lda, const T* x, T* y) {
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
      const T* column = a + j * lda;
      R sums[4][2];
      for (auto& sum : sums) {
        sum[0] = sum[1] = V::zero();
      }
      int64_t i = 0;
      for (; i + 2 * kWidth <= m; i += 2 * kWidth) {
        const R x0 = V::load(x + i);
        const R x1 = V::load(x + i + kWidth);
        for (int64_t k = 0; k < 4; ++k) {
          sums[k][0] = V::fma(V::load(column + k * lda + i), x0, sums[k][0]);
          sums[k][1] = V::fma(V::load(column + k * lda + i + kWidth), x1, sums[k][1]);
        }
      }
      for (; i < m; i += kWidth) {
        const int64_t left = m - i < kWidth ? m - i : kWidth;
        const R part = V::load_first(x + i, left);
        for (int64_t k = 0; k < 4; ++k) {
          sums[k][0] = V::fma(V::load_first(column + k * lda + i, left), part, sums[k][0]);
        }
      }
      for (int64_t k = 0; k < 4; ++k) {
        y[j + k] = V::sum(sums[k][0] + sums[k][1]);
      }
    }
    for (; j < n; ++j) {
      y[j] = dot_pairs(m, a + j * lda, x);
    }
  }

  static T dot_pairs(int64_t m, const T* column, const T* x) {
    R first = V::zero();
    R second = V::zero();
    int64_t i = 0;
    for (; i + 2 * kWidth <= m; i += 2 * kWidth) {
      first = V::fma(V::load(column + i), V::load(x + i), first);
      second = V::fma(V::load(column + i + kWidth), V::load(x + i + kWidth), second);
    }
    for (; i < m; i += kWidth) {
      const int64_t left = m - i < kWidth ? m - i : kWidth;
      first = V::fma(V::load_first(column + i, left), V::load_first(x + i, left), first);
    }
    return V::sum(first + second);
  }

  static void add_columns(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, const T* x,
                          int64_t x_step, T* y) {
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
      const T* column = a + j * lda;
      R factors[4];
      for (int64_t k = 0; k < 4; ++k) {
        factors[k] = V::set1(alpha * x[(j + k) * x_step]);
      }
      int64_t i = 0;
      for (; i + kWidth <= m; i += kWidth) {
        R sum = V::load(y + i);
        for (int64_t k = 0; k < 4; ++k) {
          sum = V::fma(factors[k], V::load(column + k * lda + i), sum);
        }
        V::store(y + i, sum);
      }
      if (i < m) {
        const int64_t left = m - i;
        R sum = V::load_first(y + i, left);
        for (int64_t k = 0; k < 4; ++k) {
          sum = V::fma(factors[k], V::load_first(column + k * lda + i, left), sum);
        }
        V::store_first(y + i, sum, left);
      }
    }
    for (; j < n; ++j) {
      axpy(m, alpha * x[j * x_step], a + j * lda, y);
    }
  }

  static void rank_one(int64_t m, int64_t n, T alpha, const T* x, const T* y, int64_t y_step, T* a,
                       int64_t lda) {
    for (int64_t j = 0; j < n; ++j) {
      axpy(m, alpha * y[j * y_step], x, a + j * lda);
    }
  }

  static void rotate(int64_t count, const T* c, const T* s, T* panel, int64_t at, int64_t step) {
    T* column = panel + at * kPanelRows<T>;
    const int64_t distance = step * kPanelRows<T>;
    R carried[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) {
      carried[v] = V::load(column + v * kWidth);
    }
    for (int64_t k = 0; k < count; ++k) {
      const R cosine = V::set1(c[k]);
      const R sine = V::set1(s[k]);
      const R minus = V::set1(-s[k]);
      for (int64_t v = 0; v < kVectors; ++v) {
        const R y = V::load(column + distance + v * kWidth);
        V::store(column + v * kWidth, V::fma(cosine, carried[v], sine * y));
        carried[v] = V::fma(cosine, y, minus * carried[v]);
      }
      column += distance;
    }
    for (int64_t v = 0; v < kVectors; ++v) {
      V::store(column + v * kWidth, carried[v]);
    }
  }

  static void solve(int64_t n, const T* l, bool unit, T* panel) {
    for (int64_t i = 0; i < n; ++i) {
      T* row = panel + i * kPanelRows<T>;
      R sums[kVectors];
      for (int64_t v = 0; v < kVectors; ++v) {
        sums[v] = V::load(row + v * kWidth);
      }
      for (int64_t j = 0; j < i; ++j) {
        const R factor = V::set1(-l[i * n + j]);
        const T* other = panel + j * kPanelRows<T>;
        for (int64_t v = 0; v < kVectors; ++v) {
          sums[v] = V::fma(factor, V::load(other + v * kWidth), sums[v]);
        }
      }
      const R divisor = V::set1(unit ? T(1) : l[i * n + i]);
      for (int64_t v = 0; v < kVectors; ++v) {
        V::store(row + v * kWidth, sums[v] / divisor);
      }
    }
  }

  // Squares of a vector's width are turned in registers.
  static void load_panel(int64_t n, int64_t width, const T* columns, int64_t lda, T* panel) {
    constexpr int64_t kWide = kPanelRows<T>;
    const int64_t rows = n / kWidth * kWidth;
    for (int64_t j = 0; j < kWide; j += kWidth) {
      const int64_t there = width - j < 0 ? 0 : width - j < kWidth ? width - j : kWidth;
      for (int64_t i = 0; i < rows; i += kWidth) {
        R square[kWidth];
#pragma GCC unroll 16
        for (int64_t k = 0; k < kWidth; ++k) {
          square[k] = k < there ? V::load(columns + (j + k) * lda + i) : V::zero();
        }
        V::transpose(square);
#pragma GCC unroll 16
        for (int64_t k = 0; k < kWidth; ++k) {
          V::store(panel + (i + k) * kWide + j, square[k]);
        }
      }
      for (int64_t i = rows; i < n; ++i) {
        for (int64_t k = 0; k < kWidth; ++k) {
          panel[i * kWide + j + k] = k < there ? columns[(j + k) * lda + i] : T(0);
        }
      }
    }
  }

  static void store_panel(int64_t n, int64_t width, const T* panel, T* columns, int64_t lda) {
    constexpr int64_t kWide = kPanelRows<T>;
    const int64_t rows = n / kWidth * kWidth;
    for (int64_t j = 0; j < width; j += kWidth) {
      const int64_t there = width - j < kWidth ? width - j : kWidth;
      for (int64_t i = 0; i < rows; i += kWidth) {
        R square[kWidth];
#pragma GCC unroll 16
        for (int64_t k = 0; k < kWidth; ++k) {
          square[k] = V::load(panel + (i + k) * kWide + j);
        }
        V::transpose(square);
#pragma GCC unroll 16
        for (int64_t k = 0; k < kWidth; ++k) {
          if (k < there) {
            V::store(columns + (j + k) * lda + i, square[k]);
          }
        }
      }
      for (int64_t i = rows; i < n; ++i) {
        for (int64_t k = 0; k < there; ++k) {
          columns[(j + k) * lda + i] = panel[i * kWide + j + k];
        }
      }
    }
  }

  static constexpr VectorOps<T> table() {
    return {dot,      largest, axpy,  dot_columns, add_columns,
            rank_one, rotate,  solve, load_panel,  store_panel};
  }
};

extern const VectorOps<float> vectors_f32 = Code<F32>::table();
extern const VectorOps<double> vectors_f64 = Code<F64>::table();

}  // namespace rushlight::kernels::RUSHLIGHT_LEVEL
