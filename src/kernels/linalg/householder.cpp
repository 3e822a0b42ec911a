#include "kernels/linalg/householder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/linalg/vectors.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kBlock = 32;       // reflectors applied together
constexpr int64_t kSmall = 32 * 32;  // elements for which blocks do not pay

// In double, so that squares of floats neither overflow nor vanish; doubles are scaled.
template <typename T>
double length_of(int64_t n, const T* x, int64_t step) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(x[i * step])));
  }
  const bool plain = std::is_same_v<RealOf<T>, float> || (largest < 1e140 && largest > 1e-140);
  const double scale = plain || largest == 0 || !std::isfinite(largest) ? 1 : largest;
  double sums[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < n; ++i) {
    const double part = static_cast<double>(std::abs(x[i * step])) / scale;
    sums[i % 4] += part * part;
  }
  return scale * std::sqrt((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Complex reflectors are applied one by one, for products of blocks conjugate nothing.
template <typename T>
inline constexpr bool kByBlocks = !Parts<T>::kComplex;

// T of the block: H(0) ... H(k - 1) = 1 - V T V^T. `t` is kBlock x kBlock, column-major.
template <typename T>
void make_factor(int64_t m, int64_t k, const T* v, const T* tau, T* t) {
  T products[kBlock * kBlock];
  multiply<T>(k, k, m, 1, by_columns(v, m).transposed(), by_columns(v, m), 0,
              by_columns(products, kBlock));
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t p = i; p < j; ++p) {
        sum += t[i + p * kBlock] * products[p + j * kBlock];
      }
      t[i + j * kBlock] = -tau[j] * sum;
    }
    t[j + j * kBlock] = tau[j];
    std::fill(t + j + 1 + j * kBlock, t + (j + 1) * kBlock, T(0));
  }
}

// Columns of v with their ones and zeros, which in memory have other things in their place.
template <typename T>
void copy_block(int64_t m, int64_t k, const T* v, int64_t ldv, T* made) {
  for (int64_t j = 0; j < k; ++j) {
    T* column = made + j * m;
    std::fill(column, column + j, T(0));
    column[j] = T(1);
    std::copy(v + j * ldv + j + 1, v + j * ldv + m, column + j + 1);
  }
}

template <typename T>
struct Space {
  std::vector<T> v;
  std::vector<T> products;
  std::vector<T> scaled;
};

template <typename T>
void apply_block(bool transpose, int64_t m, int64_t count, int64_t k, const T* v, int64_t ldv,
                 const T* tau, Strided<T> c, Space<T>& space) {
  space.v.resize(static_cast<size_t>(m * k));
  space.products.resize(static_cast<size_t>(k * count));
  space.scaled.resize(static_cast<size_t>(k * count));
  T factor[kBlock * kBlock];
  copy_block(m, k, v, ldv, space.v.data());
  make_factor(m, k, space.v.data(), tau, factor);
  const auto block = by_columns<const T>(space.v.data(), m);
  const auto t = by_columns<const T>(factor, kBlock);
  const auto products = by_columns(space.products.data(), k);
  const auto scaled = by_columns(space.scaled.data(), k);
  multiply<T>(k, count, m, 1, block.transposed(), c, 0, products);
  multiply<T>(k, count, k, 1, transpose ? t.transposed() : t, products, 0, scaled);
  multiply<T>(m, count, k, -1, block, scaled, 1, c);
}

// One reflector, to columns that lie one element from the next.
template <typename T>
void apply_one(int64_t m, int64_t count, const T* v, T tau, T* c, int64_t ldc) {
  if (tau == T(0)) {
    return;
  }
  const VectorOps<T>& ops = vector_ops<T>();
  for (int64_t j = 0; j < count; ++j) {
    T* column = c + j * ldc;
    T product = column[0];
    if constexpr (Parts<T>::kComplex) {
      for (int64_t i = 1; i < m; ++i) {
        product += std::conj(v[i]) * column[i];
      }
    } else {
      product += ops.dot(m - 1, v + 1, column + 1);
    }
    column[0] -= tau * product;
    ops.axpy(m - 1, -tau * product, v + 1, column + 1);
  }
}

template <typename T>
void factor_columns(int64_t m, int64_t n, int64_t k, T* a, int64_t lda, T* tau) {
  for (int64_t j = 0; j < k; ++j) {
    T* column = a + j * lda + j;
    tau[j] = make_reflector(m - j - 1, column[0], column + 1, int64_t{1});
    apply_one(m - j, n - j - 1, column, conjugate(tau[j]), column + lda, lda);
  }
}

template <typename T>
T make_real_reflector(int64_t n, T& alpha, T* x, int64_t step, double below) {
  if (below == 0) {
    return T(0);
  }
  const double first = alpha;
  const double beta = -std::copysign(std::hypot(first, below), first);
  const double divisor = first - beta;
  for (int64_t i = 0; i < n; ++i) {
    x[i * step] = static_cast<T>(static_cast<double>(x[i * step]) / divisor);
  }
  alpha = static_cast<T>(beta);
  return static_cast<T>(-divisor / beta);
}

// The reflector makes beta real.
template <typename T>
T make_complex_reflector(int64_t n, T& alpha, T* x, int64_t step, double below) {
  const std::complex<double> first(alpha);
  if (below == 0 && first.imag() == 0) {
    return T(0);
  }
  const double beta = -std::copysign(std::hypot(std::abs(first), below), first.real());
  const std::complex<double> divisor = first - beta;
  for (int64_t i = 0; i < n; ++i) {
    x[i * step] = T(std::complex<double>(x[i * step]) / divisor);
  }
  alpha = T(static_cast<RealOf<T>>(beta));
  return T((beta - first) / beta);
}

}  // namespace

template <typename T>
T make_reflector(int64_t n, T& alpha, T* x, int64_t step) {
  const double below = length_of(n, x, step);
  if constexpr (Parts<T>::kComplex) {
    return make_complex_reflector(n, alpha, x, step, below);
  } else {
    return make_real_reflector(n, alpha, x, step, below);
  }
}

template <typename T>
void qr_factor(int64_t m, int64_t n, T* a, int64_t lda, T* tau) {
  const int64_t k = std::min(m, n);
  if (k <= kBlock || m * n <= kSmall || !kByBlocks<T>) {
    factor_columns(m, std::min(n, k), k, a, lda, tau);
    if (n > k) {
      apply_reflectors<T>(true, m, n - k, k, a, lda, tau, by_columns(a + k * lda, lda));
    }
    return;
  }
  Space<T> space;
  for (int64_t at = 0; at < k; at += kBlock) {
    const int64_t width = std::min(kBlock, k - at);
    T* panel = a + at * lda + at;
    factor_columns(m - at, width, width, panel, lda, tau + at);
    if (at + width < n) {
      apply_block(true, m - at, n - at - width, width, panel, lda, tau + at,
                  by_columns(panel + width * lda, lda), space);
    }
  }
}

template <typename T>
void apply_reflectors(bool transpose, int64_t m, int64_t count, int64_t k, const T* v, int64_t ldv,
                      const T* tau, Strided<T> c) {
  if (count == 0) {
    return;
  }
  if (c.rows == 1 && (m * std::max(k, count) <= kSmall || !kByBlocks<T>)) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t j = transpose ? i : k - 1 - i;
      const T factor = transpose ? conjugate(tau[j]) : tau[j];
      apply_one(m - j, count, v + j * ldv + j, factor, c.data + j, c.columns);
    }
    return;
  }
  Space<T> space;
  const int64_t blocks = (k + kBlock - 1) / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t at = (transpose ? b : blocks - 1 - b) * kBlock;
    apply_block(transpose, m - at, count, std::min(kBlock, k - at), v + at * ldv + at, ldv,
                tau + at, c.at(at, 0), space);
  }
}

template <typename T>
void form_q(int64_t m, int64_t n, int64_t k, const T* v, int64_t ldv, const T* tau, T* q,
            int64_t ldq) {
  for (int64_t j = 0; j < n; ++j) {
    std::fill(q + j * ldq, q + j * ldq + m, T(0));
    q[j * ldq + j] = T(1);
  }
  // Columns before a block's first are still those of the identity, which it leaves alone.
  Space<T> space;
  const bool small = m * n <= kSmall || !kByBlocks<T>;
  const int64_t step = small ? 1 : kBlock;
  for (int64_t at = (k - 1) / step * step; at >= 0 && k > 0; at -= step) {
    if (small) {
      apply_one(m - at, n - at, v + at * ldv + at, tau[at], q + at * ldq + at, ldq);
    } else {
      apply_block(false, m - at, n - at, std::min(step, k - at), v + at * ldv + at, ldv, tau + at,
                  by_columns(q + at * ldq + at, ldq), space);
    }
  }
}

#define RUSHLIGHT_INSTANTIATE(T)                                                                  \
  template T make_reflector<T>(int64_t, T&, T*, int64_t);                                         \
  template void qr_factor<T>(int64_t, int64_t, T*, int64_t, T*);                                  \
  template void apply_reflectors<T>(bool, int64_t, int64_t, int64_t, const T*, int64_t, const T*, \
                                    Strided<T>);                                                  \
  template void form_q<T>(int64_t, int64_t, int64_t, const T*, int64_t, const T*, T*, int64_t);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
RUSHLIGHT_INSTANTIATE(std::complex<float>)
RUSHLIGHT_INSTANTIATE(std::complex<double>)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::kernels
