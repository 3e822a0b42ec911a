// Column-major matrices as the matrix engine sees them.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/gemm.h"

namespace rushlight::kernels {

template <typename T>
inline constexpr DType kDType = std::is_same_v<T, float> ? DType::Float32 : DType::Float64;

// The type of a number's parts, and whether it has two.
template <typename T>
struct Parts {
  using Real = T;
  static constexpr bool kComplex = false;
};
template <typename T>
struct Parts<std::complex<T>> {
  using Real = T;
  static constexpr bool kComplex = true;
};

template <typename T>
T conjugate(T x) {
  if constexpr (Parts<T>::kComplex) {
    return std::conj(x);
  } else {
    return x;
  }
}
template <typename T>
using RealOf = typename Parts<T>::Real;

// A matrix that lies in memory with any strides; transposing it swaps these.
template <typename T>
struct Strided {
  T* data;
  int64_t rows;  // from one row to the next
  int64_t columns;

  Strided at(int64_t i, int64_t j) const { return {data + i * rows + j * columns, rows, columns}; }
  Strided transposed() const { return {data, columns, rows}; }
  T& operator()(int64_t i, int64_t j) const { return data[i * rows + j * columns]; }
  operator Strided<const T>() const { return {data, rows, columns}; }
};

template <typename T>
Strided<T> by_columns(T* data, int64_t lda) {
  return {data, 1, lda};
}

// C = alpha * A B + beta * C, C being m x n, A m x k. C shares no element with A and B. Products of
// complex numbers are four of their parts.
template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, double alpha,
              std::type_identity_t<Strided<const T>> a, std::type_identity_t<Strided<const T>> b,
              double beta, Strided<T> c) {
  if (m == 0 || n == 0 || (k == 0 && beta == 1)) {
    return;
  }
  GemmEpilogue epilogue;
  epilogue.alpha = alpha;
  epilogue.beta = beta;
  if constexpr (Parts<T>::kComplex) {
    using R = RealOf<T>;
    const auto part = [](const Strided<const T>& x, bool imaginary) -> MatrixRef {
      return {reinterpret_cast<const R*>(x.data) + imaginary, kDType<R>, 2 * x.rows, 2 * x.columns};
    };
    const auto add = [&](bool first, bool second) {
      const bool imaginary = first != second;
      epilogue.alpha = first && second ? -alpha : alpha;
      epilogue.beta = first ? 1 : beta;
      gemm(m, n, k, part(a, first), part(b, second),
           {reinterpret_cast<R*>(c.data) + imaginary, kDType<R>, 2 * c.rows, 2 * c.columns},
           epilogue);
    };
    add(false, false);
    add(true, true);
    add(false, true);
    add(true, false);
  } else {
    gemm(m, n, k, {a.data, kDType<T>, a.rows, a.columns}, {b.data, kDType<T>, b.rows, b.columns},
         {c.data, kDType<T>, c.rows, c.columns}, epilogue);
  }
}

}  // namespace rushlight::kernels
