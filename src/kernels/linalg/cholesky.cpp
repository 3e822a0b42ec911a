#include "kernels/linalg/cholesky.h"

#include <cmath>

#include "kernels/linalg/triangular.h"
#include "kernels/linalg/vectors.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kBlock = 32;    // factored column by column
constexpr int64_t kSquare = 128;  // of a symmetric update, made whole

template <typename T>
int32_t factor_columns(int64_t n, T* a, int64_t lda) {
  for (int64_t j = 0; j < n; ++j) {
    T* column = a + j * lda;
    if (!(std::real(column[j]) > 0)) {
      return static_cast<int32_t>(j + 1);
    }
    const RealOf<T> root = std::sqrt(std::real(column[j]));
    column[j] = root;
    for (int64_t i = j + 1; i < n; ++i) {
      column[i] /= root;
    }
    for (int64_t k = j + 1; k < n; ++k) {
      vector_ops<T>().axpy(n - k, -conjugate(column[k]), column + k, a + k * lda + k);
    }
  }
  return 0;
}

// The lower triangle of C (n x n) less that of A A^T, A having k columns.
template <typename T>
void subtract_square(int64_t n, int64_t k, Strided<const T> a, Strided<T> c) {
  if (n <= kSquare) {
    multiply<T>(n, n, k, -1, a, a.transposed(), 1, c);
    return;
  }
  const int64_t half = n / 2;
  subtract_square<T>(half, k, a, c);
  multiply<T>(n - half, half, k, -1, a.at(half, 0), a.transposed(), 1, c.at(half, 0));
  subtract_square<T>(n - half, k, a.at(half, 0), c.at(half, half));
}

}  // namespace

template <typename T>
int32_t cholesky_factor(int64_t n, T* a, int64_t lda) {
  // The products below conjugate nothing.
  if (n <= kBlock || Parts<T>::kComplex) {
    return factor_columns(n, a, lda);
  }
  const int64_t half = (n / 2 + kBlock - 1) / kBlock * kBlock;
  if (const int32_t info = cholesky_factor(half, a, lda); info != 0) {
    return info;
  }
  const Strided<T> whole = by_columns(a, lda);
  const Strided<T> below = whole.at(half, 0);
  // L21 L11^T = A21
  solve_lower<T>(half, n - half, whole, false, below.transposed());
  subtract_square<T>(n - half, half, below, whole.at(half, half));
  const int32_t info = cholesky_factor(n - half, a + half + half * lda, lda);
  return info == 0 ? 0 : info + static_cast<int32_t>(half);
}

template int32_t cholesky_factor<float>(int64_t, float*, int64_t);
template int32_t cholesky_factor<double>(int64_t, double*, int64_t);
template int32_t cholesky_factor<std::complex<float>>(int64_t, std::complex<float>*, int64_t);
template int32_t cholesky_factor<std::complex<double>>(int64_t, std::complex<double>*, int64_t);

}  // namespace rushlight::kernels
