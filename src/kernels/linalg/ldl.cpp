#include "kernels/linalg/ldl.h"

#include <algorithm>
#include <cmath>

#include "kernels/linalg/matrix.h"
#include "kernels/linalg/vectors.h"

namespace rushlight::kernels {
namespace {

template <typename T>
struct Lower {
  T* a;
  int64_t lda;
  T& operator()(int64_t i, int64_t j) const { return a[i + j * lda]; }
};

// How the two kinds differ: what stands on the other side of the diagonal is the number itself, or
// its conjugate; then the diagonal is real, whatever its imaginary parts say.
template <typename T, bool kHermitian>
struct Kind {
  static constexpr bool kConjugates = kHermitian && Parts<T>::kComplex;

  static T mirror(T x) {
    if constexpr (kConjugates) {
      return std::conj(x);
    } else {
      return x;
    }
  }
  static T diagonal(T x) {
    if constexpr (kConjugates) {
      return T(x.real());
    } else {
      return x;
    }
  }
};

struct Pivot {
  int64_t row;
  int64_t size;  // of the block; 0: the column is zero
};

// Of complex numbers the sum of the parts' sizes, which is what decides in LAPACK.
template <typename T>
RealOf<T> size_of(T x) {
  if constexpr (Parts<T>::kComplex) {
    return std::fabs(x.real()) + std::fabs(x.imag());
  } else {
    return std::fabs(x);
  }
}

// Which element, or which block of two, makes the growth of the rest smallest.
template <typename K, typename T>
Pivot choose_pivot(int64_t n, int64_t k, Lower<T> a) {
  using R = RealOf<T>;
  const R alpha = (R(1) + std::sqrt(R(17))) / R(8);
  const R here = size_of(K::diagonal(a(k, k)));
  int64_t row = k;
  R largest = 0;
  for (int64_t i = k + 1; i < n; ++i) {
    if (size_of(a(i, k)) > largest) {
      largest = size_of(a(i, k));
      row = i;
    }
  }
  if (std::max(here, largest) == R(0) || std::isnan(here)) {
    return {k, 0};
  }
  if (here >= alpha * largest) {
    return {k, 1};
  }
  R beside = 0;
  for (int64_t j = k; j < row; ++j) {
    beside = std::max(beside, size_of(a(row, j)));
  }
  for (int64_t i = row + 1; i < n; ++i) {
    beside = std::max(beside, size_of(a(i, row)));
  }
  if (here >= alpha * largest * (largest / beside)) {
    return {k, 1};
  }
  return {row, size_of(K::diagonal(a(row, row))) >= alpha * beside ? 1 : 2};
}

// Exchanges rows and columns i < j of the lower triangle that begins at column k.
template <typename K, typename T>
void exchange(int64_t n, int64_t k, int64_t i, int64_t j, Lower<T> a) {
  for (int64_t r = j + 1; r < n; ++r) {
    std::swap(a(r, i), a(r, j));
  }
  for (int64_t r = i + 1; r < j; ++r) {
    const T other = K::mirror(a(r, i));
    a(r, i) = K::mirror(a(j, r));
    a(j, r) = other;
  }
  a(j, i) = K::mirror(a(j, i));
  std::swap(a(i, i), a(j, j));
  if (k != i) {
    std::swap(a(i, k), a(j, k));
  }
}

template <typename K, typename T>
void eliminate_one(int64_t n, int64_t k, Lower<T> a) {
  const T factor = T(1) / a(k, k);
  for (int64_t j = k + 1; j < n; ++j) {
    vector_ops<T>().axpy(n - j, -factor * K::mirror(a(j, k)), &a(j, k), &a(j, j));
    a(j, j) = K::diagonal(a(j, j));
  }
  for (int64_t i = k + 1; i < n; ++i) {
    a(i, k) *= factor;
  }
}

template <typename K, typename T>
void eliminate_two(int64_t n, int64_t k, Lower<T> a) {
  const T beside = a(k + 1, k);
  const T first = a(k + 1, k + 1) / beside;
  const T second = a(k, k) / K::mirror(beside);
  const T factor = T(1) / (first * second - T(1));
  for (int64_t j = k + 2; j < n; ++j) {
    const T x = factor * (first * a(j, k) - a(j, k + 1)) / K::mirror(beside);
    const T y = factor * (second * a(j, k + 1) - a(j, k)) / beside;
    vector_ops<T>().axpy(n - j, -K::mirror(x), &a(j, k), &a(j, j));
    vector_ops<T>().axpy(n - j, -K::mirror(y), &a(j, k + 1), &a(j, j));
    a(j, k) = x;
    a(j, k + 1) = y;
    a(j, j) = K::diagonal(a(j, j));
  }
}

template <typename T>
void swap_rows(int64_t count, int64_t i, int64_t j, T* b, int64_t ldb) {
  for (int64_t c = 0; c < count && i != j; ++c) {
    std::swap(b[i + c * ldb], b[j + c * ldb]);
  }
}

template <typename K, typename T>
int32_t factor(int64_t n, Lower<T> a, int32_t* pivots) {
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = K::diagonal(a(i, i));
  }
  int32_t info = 0;
  for (int64_t k = 0; k < n;) {
    const Pivot pivot = choose_pivot<K>(n, k, a);
    if (pivot.size == 0) {
      info = info == 0 ? static_cast<int32_t>(k + 1) : info;
      pivots[k] = static_cast<int32_t>(k + 1);
      ++k;
      continue;
    }
    const int64_t at = k + pivot.size - 1;
    if (pivot.row != at) {
      exchange<K>(n, k, at, pivot.row, a);
    }
    const auto number = static_cast<int32_t>(pivot.row + 1);
    if (pivot.size == 1) {
      eliminate_one<K>(n, k, a);
      pivots[k] = number;
    } else {
      eliminate_two<K>(n, k, a);
      pivots[k] = pivots[k + 1] = -number;
    }
    k += pivot.size;
  }
  return info;
}

// x becomes D^-1 x, of the block at k.
template <typename K, typename T>
void solve_block(int64_t k, int64_t size, Lower<const T> a, T* x) {
  if (size == 1) {
    x[0] /= K::diagonal(a(k, k));
    return;
  }
  const T beside = a(k + 1, k);
  const T above = K::mirror(beside);
  const T first = K::diagonal(a(k, k)) / above;
  const T second = K::diagonal(a(k + 1, k + 1)) / beside;
  const T divisor = first * second - T(1);
  const T upper = x[0] / above;
  const T lower = x[1] / beside;
  x[0] = (second * upper - lower) / divisor;
  x[1] = (first * lower - upper) / divisor;
}

template <typename K, typename T>
T mirrored_dot(int64_t n, const T* column, const T* x) {
  if constexpr (K::kConjugates) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += std::conj(column[i]) * x[i];
    }
    return sum;
  } else {
    return vector_ops<T>().dot(n, column, x);
  }
}

template <typename K, typename T>
void solve(int64_t n, int64_t count, Lower<const T> a, const int32_t* pivots, T* b, int64_t ldb) {
  for (int64_t k = 0; k < n;) {
    const int64_t size = pivots[k] > 0 ? 1 : 2;
    swap_rows(count, k + size - 1, std::abs(pivots[k]) - 1, b, ldb);
    for (int64_t c = 0; c < count; ++c) {
      T* x = b + c * ldb + k;
      const int64_t rest = n - k - size;
      for (int64_t j = 0; j < size && rest > 0; ++j) {
        vector_ops<T>().axpy(rest, -x[j], &a(k + size, k + j), x + size);
      }
      solve_block<K>(k, size, a, x);
    }
    k += size;
  }
  for (int64_t k = n - 1; k >= 0;) {
    const int64_t size = pivots[k] > 0 ? 1 : 2;
    for (int64_t c = 0; c < count && k + 1 < n; ++c) {
      T* x = b + c * ldb;
      for (int64_t j = k - size + 1; j <= k; ++j) {
        x[j] -= mirrored_dot<K, T>(n - k - 1, &a(k + 1, j), x + k + 1);
      }
    }
    swap_rows(count, k, std::abs(pivots[k]) - 1, b, ldb);
    k -= size;
  }
}

}  // namespace

template <typename T>
int32_t ldl_factor(bool hermitian, int64_t n, T* data, int64_t lda, int32_t* pivots) {
  const Lower<T> a{data, lda};
  return hermitian ? factor<Kind<T, true>>(n, a, pivots) : factor<Kind<T, false>>(n, a, pivots);
}

template <typename T>
void ldl_solve(bool hermitian, int64_t n, int64_t count, const T* data, int64_t lda,
               const int32_t* pivots, T* b, int64_t ldb) {
  const Lower<const T> a{data, lda};
  hermitian ? solve<Kind<T, true>>(n, count, a, pivots, b, ldb)
            : solve<Kind<T, false>>(n, count, a, pivots, b, ldb);
}

#define RUSHLIGHT_INSTANTIATE(T)                                                            \
  template int32_t ldl_factor<T>(bool, int64_t, T*, int64_t, int32_t*);                     \
  template void ldl_solve<T>(bool, int64_t, int64_t, const T*, int64_t, const int32_t*, T*, \
                             int64_t);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
RUSHLIGHT_INSTANTIATE(std::complex<float>)
RUSHLIGHT_INSTANTIATE(std::complex<double>)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::kernels
