// What the matrix engine needs from a CPU level: one table of functions for each compute type.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

#include "kernels/gemm.h"

namespace rushlight {

// Products are cut at multiples of this many k. It is part of the numeric contract: the same at
// every level and for every path, so that FMA levels give equal bits. Deeper blocks read and write
// C less often, shallower ones keep panels of B nearer.
inline constexpr int64_t kGemmDepth = 384;

// Products of small matrices, each `*_batch` elements after the one before: m and k are at most
// kSmallSize, n at most the engine's `vector_small`. C = alpha * A B, one chain in k.
inline constexpr int64_t kSmallSize = 16;
template <typename T>
struct SmallProducts {
  int64_t batch, m, n, k;
  const T* a;
  int64_t a_batch, a_row, a_col;
  const T* b;
  int64_t b_batch, b_row, b_col;
  T* c;
  int64_t c_batch, c_row, c_col;
  T alpha;
};

// Panels: A is packed as [ceil(m / rows)][k][rows], B as [ceil(n / cols)][k][cols], with zeros
// where a panel reaches over the edge of its matrix.
template <typename T>
struct GemmEngine {
  int rows;
  int cols;

  // C = alpha * A B + beta * C, of packed panels. C has unit column stride and is not read where
  // beta is 0. The product is one chain in k, so k is at most kGemmDepth except for tests.
  void (*block)(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T alpha, T beta, T* c,
                int64_t c_stride);

  // The same of an unpacked A and one panel of B with any distance between its rows: n is at most
  // `cols`, and B must be readable to a whole number of vectors (`vector` elements).
  int vector;
  void (*strip)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row_stride,
                int64_t a_col_stride, const T* b, int64_t b_stride, T alpha, T beta, T* c,
                int64_t c_stride);

  // out[p * width + i] = source[i * item_stride + p * depth_stride], zero for items <= i < width;
  // more items go to further panels, each `depth * width` elements after the one before.
  void (*pack)(DType dtype, const void* source, int64_t item_stride, int64_t depth_stride,
               int64_t items, int64_t depth, int64_t width, T* out);

  // out[i] = sum over p of matrix[i * stride + p] * x[p], added up in a fixed tree.
  void (*dot_rows)(DType dtype, const void* matrix, int64_t stride, int64_t rows, int64_t k,
                   const T* x, T* out);
  // out[j] = sum over p of x[p] * matrix[p * stride + j], in ascending p.
  void (*sum_rows)(DType dtype, const void* matrix, int64_t stride, int64_t cols, int64_t k,
                   const T* x, T* out);

  int vector_small;
  void (*small)(const SmallProducts<T>& products);

  // Rows of n elements. `out` of add_row and activate_row is changed in place.
  void (*load_row)(DType dtype, const void* source, int64_t stride, int64_t n, T* out);
  void (*store_row)(DType dtype, const T* source, int64_t n, void* out, int64_t stride);
  void (*add_row)(const T* addend, T scale, int64_t n, T* out);
  void (*activate_row)(Activation activation, int64_t n, T* out);
};

// The table for `cpu_level()`.
template <typename T>
const GemmEngine<T>& gemm_engine();
template <>
const GemmEngine<float>& gemm_engine<float>();
template <>
const GemmEngine<double>& gemm_engine<double>();

namespace base {
extern const GemmEngine<float> engine_f32;
extern const GemmEngine<double> engine_f64;
}  // namespace base

#if defined(__x86_64__)
namespace v3 {
extern const GemmEngine<float> engine_f32;
extern const GemmEngine<double> engine_f64;
}  // namespace v3

// Differs from v3 in tiles and packing: the rest is bound by memory.
namespace v4 {
GemmEngine<float> engine_f32();
GemmEngine<double> engine_f64();
}  // namespace v4
#endif

}  // namespace rushlight
