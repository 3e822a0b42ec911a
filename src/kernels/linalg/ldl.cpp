#include "kernels/linalg/ldl.h"

#include <algorithm>
#include <cmath>

#include "kernels/linalg/vectors.h"

namespace rushlight::kernels {
namespace {

template <typename T>
struct Lower {
  T* a;
  int64_t lda;
  T& operator()(int64_t i, int64_t j) const { return a[i + j * lda]; }
};

struct Pivot {
  int64_t row;
  int64_t size;  // of the block; 0: the column is zero
};

// Which element, or which block of two, makes the growth of the rest smallest.
template <typename T>
Pivot choose_pivot(int64_t n, int64_t k, Lower<T> a) {
  const T alpha = (T(1) + std::sqrt(T(17))) / T(8);
  const T here = std::fabs(a(k, k));
  int64_t row = k;
  T largest = 0;
  for (int64_t i = k + 1; i < n; ++i) {
    if (std::fabs(a(i, k)) > largest) {
      largest = std::fabs(a(i, k));
      row = i;
    }
  }
  if (std::max(here, largest) == T(0) || std::isnan(here)) {
    return {k, 0};
  }
  if (here >= alpha * largest) {
    return {k, 1};
  }
  T beside = 0;
  for (int64_t j = k; j < row; ++j) {
    beside = std::max(beside, std::fabs(a(row, j)));
  }
  for (int64_t i = row + 1; i < n; ++i) {
    beside = std::max(beside, std::fabs(a(i, row)));
  }
  if (here >= alpha * largest * (largest / beside)) {
    return {k, 1};
  }
  return {row, std::fabs(a(row, row)) >= alpha * beside ? 1 : 2};
}

// Exchanges rows and columns i < j of the lower triangle that begins at column k.
template <typename T>
void exchange(int64_t n, int64_t k, int64_t i, int64_t j, Lower<T> a) {
  for (int64_t r = j + 1; r < n; ++r) {
    std::swap(a(r, i), a(r, j));
  }
  for (int64_t r = i + 1; r < j; ++r) {
    std::swap(a(r, i), a(j, r));
  }
  std::swap(a(i, i), a(j, j));
  if (k != i) {
    std::swap(a(i, k), a(j, k));
  }
}

template <typename T>
void eliminate_one(int64_t n, int64_t k, Lower<T> a) {
  const T factor = T(1) / a(k, k);
  for (int64_t j = k + 1; j < n; ++j) {
    vector_ops<T>().axpy(n - j, -factor * a(j, k), &a(j, k), &a(j, j));
  }
  for (int64_t i = k + 1; i < n; ++i) {
    a(i, k) *= factor;
  }
}

template <typename T>
void eliminate_two(int64_t n, int64_t k, Lower<T> a) {
  const T beside = a(k + 1, k);
  const T first = a(k + 1, k + 1) / beside;
  const T second = a(k, k) / beside;
  const T factor = T(1) / (first * second - T(1)) / beside;
  for (int64_t j = k + 2; j < n; ++j) {
    const T x = factor * (first * a(j, k) - a(j, k + 1));
    const T y = factor * (second * a(j, k + 1) - a(j, k));
    vector_ops<T>().axpy(n - j, -x, &a(j, k), &a(j, j));
    vector_ops<T>().axpy(n - j, -y, &a(j, k + 1), &a(j, j));
    a(j, k) = x;
    a(j, k + 1) = y;
  }
}

template <typename T>
void swap_rows(int64_t count, int64_t i, int64_t j, T* b, int64_t ldb) {
  for (int64_t c = 0; c < count && i != j; ++c) {
    std::swap(b[i + c * ldb], b[j + c * ldb]);
  }
}

}  // namespace

template <typename T>
int32_t ldl_factor(int64_t n, T* data, int64_t lda, int32_t* pivots) {
  const Lower<T> a{data, lda};
  int32_t info = 0;
  for (int64_t k = 0; k < n;) {
    const Pivot pivot = choose_pivot(n, k, a);
    if (pivot.size == 0) {
      info = info == 0 ? static_cast<int32_t>(k + 1) : info;
      pivots[k] = static_cast<int32_t>(k + 1);
      ++k;
      continue;
    }
    const int64_t at = k + pivot.size - 1;
    if (pivot.row != at) {
      exchange(n, k, at, pivot.row, a);
    }
    const auto number = static_cast<int32_t>(pivot.row + 1);
    if (pivot.size == 1) {
      eliminate_one(n, k, a);
      pivots[k] = number;
    } else {
      eliminate_two(n, k, a);
      pivots[k] = pivots[k + 1] = -number;
    }
    k += pivot.size;
  }
  return info;
}

template <typename T>
void ldl_solve(int64_t n, int64_t count, const T* data, int64_t lda, const int32_t* pivots, T* b,
               int64_t ldb) {
  const VectorOps<T>& ops = vector_ops<T>();
  const Lower<const T> a{data, lda};
  for (int64_t k = 0; k < n;) {
    const int64_t size = pivots[k] > 0 ? 1 : 2;
    swap_rows(count, k + size - 1, std::abs(pivots[k]) - 1, b, ldb);
    for (int64_t c = 0; c < count; ++c) {
      T* x = b + c * ldb + k;
      const int64_t rest = n - k - size;
      for (int64_t j = 0; j < size; ++j) {
        if (rest > 0) {
          ops.axpy(rest, -x[j], &a(k + size, k + j), x + size);
        }
      }
      if (size == 1) {
        x[0] /= a(k, k);
        continue;
      }
      const T beside = a(k + 1, k);
      const T first = a(k, k) / beside;
      const T second = a(k + 1, k + 1) / beside;
      const T divisor = first * second - T(1);
      const T upper = x[0] / beside;
      const T lower = x[1] / beside;
      x[0] = (second * upper - lower) / divisor;
      x[1] = (first * lower - upper) / divisor;
    }
    k += size;
  }
  for (int64_t k = n - 1; k >= 0;) {
    const int64_t size = pivots[k] > 0 ? 1 : 2;
    for (int64_t c = 0; c < count && k + 1 < n; ++c) {
      T* x = b + c * ldb;
      for (int64_t j = k - size + 1; j <= k; ++j) {
        x[j] -= ops.dot(n - k - 1, &a(k + 1, j), x + k + 1);
      }
    }
    swap_rows(count, k, std::abs(pivots[k]) - 1, b, ldb);
    k -= size;
  }
}

template int32_t ldl_factor<float>(int64_t, float*, int64_t, int32_t*);
template int32_t ldl_factor<double>(int64_t, double*, int64_t, int32_t*);
template void ldl_solve<float>(int64_t, int64_t, const float*, int64_t, const int32_t*, float*,
                               int64_t);
template void ldl_solve<double>(int64_t, int64_t, const double*, int64_t, const int32_t*, double*,
                                int64_t);

}  // namespace rushlight::kernels
