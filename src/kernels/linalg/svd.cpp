#include "kernels/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/linalg/bidiagonal.h"
#include "kernels/linalg/householder.h"

namespace rushlight::kernels {
namespace {

template <typename T>
bool all_finite(int64_t m, int64_t n, const T* a, int64_t lda) {
  bool finite = true;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      finite = finite && std::isfinite(a[i + j * lda]);
    }
  }
  return finite;
}

// The values in descending order; where each was, and whether it was negative.
template <typename T>
void order_values(const std::vector<double>& d, std::vector<int64_t>& order,
                  std::vector<uint8_t>& negative, T* values) {
  order.resize(d.size());
  negative.resize(d.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
    return std::fabs(d[static_cast<size_t>(x)]) > std::fabs(d[static_cast<size_t>(y)]);
  });
  for (size_t i = 0; i < d.size(); ++i) {
    negative[i] = std::signbit(d[i]) ? 1 : 0;
    values[i] = static_cast<T>(std::fabs(d[static_cast<size_t>(order[i])]));
  }
}

// With U of m rows and `columns` columns, n of which are rotated.
template <typename T>
int32_t svd_square(int64_t m, int64_t n, T* a, int64_t lda, int64_t columns, T* u, T* values,
                   T* v) {
  Bidiagonal<T> reduced(m, n, a, lda);
  if (u != nullptr) {
    form_q(m, columns, n, a, lda, reduced.left_tau.data(), u, m);
    std::fill(v, v + n * n, T(0));
    v[0] = T(1);
    if (n > 1) {
      form_q(n - 1, n - 1, n - 1, reduced.rows.data() + 1, n, reduced.right_tau.data(), v + n + 1,
             n);
    }
  }
  Rotations<T> left(u != nullptr ? m : 0, n, u, m);
  Rotations<T> right(u != nullptr ? n : 0, n, v, n);
  const int32_t failed = diagonalise(reduced.diagonal, reduced.beside, left, right);
  std::vector<int64_t> order;
  std::vector<uint8_t> negative;
  order_values(reduced.diagonal, order, negative, values);
  left.finish(order, {}, u, m);
  right.finish(order, negative, v, n);
  return failed;
}

constexpr int64_t kSmall = 48 * 48;

// Small matrices of floats are decomposed in double: it costs little more, and small values keep
// their digits.
int32_t svd_widened(int64_t m, int64_t n, const float* a, int64_t lda, SvdVectors vectors, float* u,
                    float* values, float* v) {
  const int64_t columns = vectors == SvdVectors::Full ? m : n;
  const bool wanted = vectors != SvdVectors::None;
  std::vector<double> wide(static_cast<size_t>(m * n));
  for (int64_t j = 0; j < n; ++j) {
    std::copy_n(a + j * lda, m, wide.data() + j * m);
  }
  std::vector<double> left(static_cast<size_t>(wanted ? m * columns : 0));
  std::vector<double> right(static_cast<size_t>(wanted ? n * n : 0));
  std::vector<double> found(static_cast<size_t>(n));
  const int32_t failed =
      svd<double>(m, n, wide.data(), m, vectors, left.data(), found.data(), right.data());
  std::copy(left.begin(), left.end(), u);
  std::copy(right.begin(), right.end(), v);
  std::copy(found.begin(), found.end(), values);
  return failed;
}

}  // namespace

template <typename T>
int32_t svd(int64_t m, int64_t n, T* a, int64_t lda, SvdVectors vectors, T* u, T* values, T* v) {
  if (!all_finite(m, n, a, lda)) {
    std::fill(values, values + n, std::numeric_limits<T>::quiet_NaN());
    return static_cast<int32_t>(n);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (m * n <= kSmall) {
      return svd_widened(m, n, a, lda, vectors, u, values, v);
    }
  }
  const int64_t columns = vectors == SvdVectors::Full ? m : n;
  T* const wanted = vectors == SvdVectors::None ? nullptr : u;
  // Of much taller matrices R alone is decomposed.
  if (m < n + n / 2 || n < 2) {
    return svd_square(m, n, a, lda, columns, wanted, values, v);
  }
  std::vector<T> tau(static_cast<size_t>(n));
  qr_factor(m, n, a, lda, tau.data());
  std::vector<T> r(static_cast<size_t>(n * n), T(0));
  for (int64_t j = 0; j < n; ++j) {
    std::copy(a + j * lda, a + j * lda + j + 1, r.data() + j * n);
  }
  if (wanted == nullptr) {
    return svd_square<T>(n, n, r.data(), n, n, nullptr, values, nullptr);
  }
  std::vector<T> inner(static_cast<size_t>(n * n));
  const int32_t failed = svd_square(n, n, r.data(), n, n, inner.data(), values, v);
  std::fill(u, u + m * columns, T(0));
  for (int64_t j = 0; j < columns; ++j) {
    if (j < n) {
      std::copy_n(inner.data() + j * n, n, u + j * m);
    } else {
      u[j * m + j] = T(1);
    }
  }
  apply_reflectors(false, m, columns, n, a, lda, tau.data(), by_columns(u, m));
  return failed;
}

template int32_t svd<float>(int64_t, int64_t, float*, int64_t, SvdVectors, float*, float*, float*);
template int32_t svd<double>(int64_t, int64_t, double*, int64_t, SvdVectors, double*, double*,
                             double*);

}  // namespace rushlight::kernels
