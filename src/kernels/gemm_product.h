// One product of floating matrices on its way through the engine, in compute type T.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/gemm_engine.h"
#include "kernels/gemm_tiles.h"

namespace rushlight {

inline MatrixRef offset(const MatrixRef& x, int64_t row, int64_t col) {
  const int64_t elements = row * x.row_stride + col * x.col_stride;
  const auto* bytes = static_cast<const char*>(x.data) + elements * element_size(x.dtype);
  return {bytes, x.dtype, x.row_stride, x.col_stride};
}

inline MutableMatrixRef offset(const MutableMatrixRef& x, int64_t row, int64_t col) {
  const int64_t elements = row * x.row_stride + col * x.col_stride;
  auto* bytes = static_cast<char*>(x.data) + elements * element_size(x.dtype);
  return {bytes, x.dtype, x.row_stride, x.col_stride};
}

inline MatrixRef transposed(const MatrixRef& x) {
  return {x.data, x.dtype, x.col_stride, x.row_stride};
}

inline MutableMatrixRef transposed(const MutableMatrixRef& x) {
  return {x.data, x.dtype, x.col_stride, x.row_stride};
}

template <typename T>
constexpr DType kComputeDType = sizeof(T) == 4 ? DType::Float32 : DType::Float64;

template <typename T>
struct Product {
  const GemmEngine<T>& engine;
  int64_t m;
  int64_t n;
  int64_t k;
  MatrixRef a;
  MatrixRef b;
  MutableMatrixRef c;
  MatrixRef addend;  // without data where there is none
  T alpha;
  T beta;
  T addend_scale;
  Activation activation;
  const BlockDone* done;
  const TileEngine* tiles = nullptr;  // where the product is one of tiles
  TileScheme scheme = TileScheme::whole;

  // Whether tiles may be written to C itself, rather than to a buffer of type T.
  bool direct() const { return c.dtype == kComputeDType<T> && c.col_stride == 1; }
  bool finishes() const { return addend.data != nullptr || activation != Activation::none; }
  T* c_at(int64_t row, int64_t col) const {
    return static_cast<T*>(c.data) + row * c.row_stride + col * c.col_stride;
  }
};

// Completes rows x cols elements of C at (row, col) from `sums`, which hold alpha A B and, where C
// is direct, beta C. They are changed on the way; they may be C itself.
template <typename T>
void finish(const Product<T>& product, int64_t row, int64_t col, int64_t rows, int64_t cols,
            T* sums, int64_t sums_stride);

// The product of a vector (m == 1) and B, where B has a unit stride.
template <typename T>
void multiply_vector(const Product<T>& product);

// Few sums of many steps: parts of the depth are dot products, added up in order.
template <typename T>
bool is_deep(const Product<T>& product);
template <typename T>
void multiply_deep(const Product<T>& product);

// Any product with k > 0.
template <typename T>
void multiply_blocks(const Product<T>& product);

// Integers: see `gemm`.
void multiply_integers(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
                       const MutableMatrixRef& c, const GemmEpilogue& epilogue);

}  // namespace rushlight
