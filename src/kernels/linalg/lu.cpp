#include "kernels/linalg/lu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/linalg/triangular.h"
#include "kernels/linalg/vectors.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kBlock = 16;           // columns eliminated one by one
constexpr int64_t kFew = 8;              // rows of a small matrix
constexpr int64_t kExchanges = 1 << 14;  // worth a task

template <typename T>
void scale_below(int64_t n, T pivot, T* x) {
  // The reciprocal of a very small number would overflow.
  if (std::abs(pivot) >= std::numeric_limits<RealOf<T>>::min()) {
    const T factor = T(1) / pivot;
    for (int64_t i = 0; i < n; ++i) {
      x[i] *= factor;
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    x[i] /= pivot;
  }
}

// The same of matrices so small that calls would take longer than their numbers.
template <typename T>
int32_t factor_few(int64_t m, int64_t n, T* a, int64_t lda, int32_t* pivots, bool pivot) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* column = a + j * lda;
    int64_t row = j;
    for (int64_t i = j + 1; pivot && i < m; ++i) {
      const bool first_nan = std::isnan(column[i]) && !std::isnan(column[row]);
      row = std::fabs(column[i]) > std::fabs(column[row]) || first_nan ? i : row;
    }
    pivots[j] = static_cast<int32_t>(row + 1);
    if (column[row] == T(0)) {
      info = info == 0 ? static_cast<int32_t>(j + 1) : info;
      continue;
    }
    for (int64_t k = 0; row != j && k < n; ++k) {
      std::swap(a[j + k * lda], a[row + k * lda]);
    }
    scale_below(m - j - 1, column[j], column + j + 1);
    for (int64_t k = j + 1; k < n; ++k) {
      const T factor = a[j + k * lda];
      for (int64_t i = j + 1; i < m; ++i) {
        a[i + k * lda] -= factor * column[i];
      }
    }
  }
  return info;
}

template <typename T>
int32_t factor_columns(int64_t m, int64_t n, T* a, int64_t lda, int32_t* pivots, bool pivot) {
  if constexpr (!Parts<T>::kComplex) {
    if (m <= kFew) {
      return factor_few(m, n, a, lda, pivots, pivot);
    }
  }
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* column = a + j * lda;
    const int64_t row = pivot ? j + vector_ops<T>().largest(m - j, column + j) : j;
    pivots[j] = static_cast<int32_t>(row + 1);
    if (column[row] == T(0)) {
      info = info == 0 ? static_cast<int32_t>(j + 1) : info;
      continue;
    }
    if (row != j) {
      for (int64_t k = 0; k < n; ++k) {
        std::swap(a[j + k * lda], a[row + k * lda]);
      }
    }
    scale_below(m - j - 1, column[j], column + j + 1);
    vector_ops<T>().rank_one(m - j - 1, n - j - 1, T(-1), column + j + 1, column + j + lda, lda,
                             column + j + 1 + lda, lda);
  }
  return info;
}

}  // namespace

template <typename T>
void exchange_rows(int64_t n, T* a, int64_t row_stride, int64_t column_stride,
                   const int32_t* pivots, int64_t count, bool reverse) {
  const int64_t grain = std::max<int64_t>(1, kExchanges / std::max<int64_t>(count, 1));
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) {
      T* column = a + j * column_stride;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t i = reverse ? count - 1 - k : k;
        const int64_t other = pivots[i] - 1;
        if (other != i) {
          std::swap(column[i * row_stride], column[other * row_stride]);
        }
      }
    }
  });
}

template <typename T>
int32_t lu_factor(int64_t m, int64_t n, T* a, int64_t lda, int32_t* pivots, bool pivot) {
  const int64_t rank = std::min(m, n);
  if (rank <= kBlock) {
    const int32_t info = factor_columns(m, rank, a, lda, pivots, pivot);
    if (n > rank) {
      T* rest = a + rank * lda;
      exchange_rows(n - rank, rest, 1, lda, pivots, rank, false);
      solve_lower<T>(rank, n - rank, by_columns<const T>(a, lda), true, by_columns(rest, lda));
    }
    return info;
  }
  const int64_t half = (rank / 2 + kBlock - 1) / kBlock * kBlock;
  int32_t info = lu_factor(m, half, a, lda, pivots, pivot);
  T* right = a + half * lda;
  const auto left = by_columns<const T>(a, lda);
  if (pivot) {
    exchange_rows(n - half, right, 1, lda, pivots, half, false);
  }
  solve_lower<T>(half, n - half, left, true, by_columns(right, lda));
  multiply<T>(m - half, n - half, half, -1, left.at(half, 0), by_columns<const T>(right, lda), 1,
              by_columns(right + half, lda));
  const int32_t below = lu_factor(m - half, n - half, right + half, lda, pivots + half, pivot);
  if (pivot) {
    exchange_rows(half, a + half, 1, lda, pivots + half, rank - half, false);
  }
  for (int64_t i = half; i < rank; ++i) {
    pivots[i] += static_cast<int32_t>(half);
  }
  return info != 0 || below == 0 ? info : below + static_cast<int32_t>(half);
}

template <typename T>
void lu_solve(int64_t n, int64_t count, const T* lu, int64_t lda, const int32_t* pivots,
              bool transpose, Strided<T> b) {
  const auto factors = by_columns(lu, lda);
  if (!transpose) {
    exchange_rows(count, b.data, b.rows, b.columns, pivots, n, false);
    solve_lower<T>(n, count, factors, true, b);
    solve_upper<T>(n, count, factors, false, b);
    return;
  }
  solve_lower<T>(n, count, factors.transposed(), false, b);
  solve_upper<T>(n, count, factors.transposed(), true, b);
  exchange_rows(count, b.data, b.rows, b.columns, pivots, n, true);
}

#define RUSHLIGHT_INSTANTIATE(T)                                                       \
  template void lu_solve<T>(int64_t, int64_t, const T*, int64_t, const int32_t*, bool, \
                            Strided<T>);                                               \
  template int32_t lu_factor<T>(int64_t, int64_t, T*, int64_t, int32_t*, bool);        \
  template void exchange_rows<T>(int64_t, T*, int64_t, int64_t, const int32_t*, int64_t, bool)
RUSHLIGHT_INSTANTIATE(float);
RUSHLIGHT_INSTANTIATE(double);
RUSHLIGHT_INSTANTIATE(std::complex<float>);
RUSHLIGHT_INSTANTIATE(std::complex<double>);
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::kernels
