// Column-major matrices as the matrix engine sees them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/gemm.h"

namespace rushlight::kernels {

template <typename T>
inline constexpr DType kDType = std::is_same_v<T, float> ? DType::Float32 : DType::Float64;

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

// C = alpha * A B + beta * C, C being m x n, A m x k. C shares no element with A and B.
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
  gemm(m, n, k, {a.data, kDType<T>, a.rows, a.columns}, {b.data, kDType<T>, b.rows, b.columns},
       {c.data, kDType<T>, c.rows, c.columns}, epilogue);
}

}  // namespace rushlight::kernels
