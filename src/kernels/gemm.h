// The matrix engine: packed, cache-blocked, register-tiled products of strided matrices.
//
// Results have the same bits for any number of threads: each element of C is one chain of fused
// multiply-adds in ascending k, cut at fixed multiples of a block, wherever it lies in C. Halves on
// a CPU with matrix tiles, and f32 where MatmulPrecision asks for them, are added up as those do
// (gemm_tiles.h), by blocks as fixed.
// Matrices are borrowed pointers; C must not overlap A, B or the addend, save that the addend may
// be C itself. Sizes must be non-negative, strides are in elements and may be zero or negative.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

#include "runtime/function_ref.h"

namespace rushlight {

struct MatrixRef {
  const void* data;
  DType dtype;
  int64_t row_stride;
  int64_t col_stride;
};

struct MutableMatrixRef {
  void* data;
  DType dtype;
  int64_t row_stride;
  int64_t col_stride;
};

enum class Activation : uint8_t { none, relu, gelu_erf, gelu_tanh, silu };

// Told of a block of C that is complete: its first row and column, its rows and columns. Blocks
// cover C once; calls come from the threads that made them, while these are in their caches.
using BlockDone = FunctionRef<void(int64_t, int64_t, int64_t, int64_t)>;

// What becomes of a product: C = activation(alpha * A B + beta * C + addend_scale * addend).
// C is not read where beta is 0. The addend may be a full matrix, or a vector with one stride 0
// (a bias of each column has row_stride 0). Integer products convert the factors to int64.
struct GemmEpilogue {
  double alpha = 1;
  double beta = 0;
  const MatrixRef* addend = nullptr;
  double addend_scale = 1;
  Activation activation = Activation::none;
  const BlockDone* done = nullptr;  // of `gemm` alone
};

// How factors of f32 products are kept. `highest`: whole, in chains that have the same bits on
// every CPU. Fewer bits are kept only where that is faster, on a CPU with matrix tiles: `high` at
// least 16, `medium` at least 8. `split` makes use of tiles as well, and keeps all 24 bits in three
// parts.
enum class MatmulPrecision : uint8_t { highest, split, high, medium };
void set_f32_matmul_precision(MatmulPrecision precision);
MatmulPrecision f32_matmul_precision();

// Whether `gemm` takes operands of this dtype: f32, f64, f16, bf16, i64, i32, i16, i8, u8.
bool gemm_supports(DType dtype);

// C (m x n) from A (m x k) and B (k x n). A and B have one dtype. C has the same dtype, or, where
// that is f16 or bf16, any of f32, f16, bf16; so has the addend. f16 and bf16 are accumulated in
// f32 and rounded once, to nearest even. Integers wrap around; they take no activation.
// With k == 0 the product is zero.
void gemm(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
          const MutableMatrixRef& c, const GemmEpilogue& epilogue = {});

// `batch` independent products; matrix i of an operand starts i times its batch stride (in
// elements) after the first. Stride 0 shares an operand, except for C.
struct BatchStrides {
  int64_t a;
  int64_t b;
  int64_t c;
  int64_t addend = 0;
};
void gemm_batched(int64_t batch, const BatchStrides& strides, int64_t m, int64_t n, int64_t k,
                  const MatrixRef& a, const MatrixRef& b, const MutableMatrixRef& c,
                  const GemmEpilogue& epilogue = {});

}  // namespace rushlight
