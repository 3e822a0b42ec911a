// A = L D L^T of symmetric matrices that need not be definite, or A = L D L^H of Hermitian ones, by
// Bunch and Kaufman's pivoting. Real symmetric matrices are both.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

// Factors the lower triangle of a column-major n x n matrix in place; D has 1 x 1 and 2 x 2 blocks.
// pivots[k] > 0: rows and columns k and pivots[k] - 1 were exchanged; pivots[k] = pivots[k + 1] <
// 0: a 2 x 2 block, k + 1 and -pivots[k] - 1 were. Returns 0, or the number (from 1) of the first
// block of D that is zero.
template <typename T>
int32_t ldl_factor(bool hermitian, int64_t n, T* a, int64_t lda, int32_t* pivots);

// Solves A X = B in place of the column-major n x count matrix B.
template <typename T>
void ldl_solve(bool hermitian, int64_t n, int64_t count, const T* a, int64_t lda,
               const int32_t* pivots, T* b, int64_t ldb);

}  // namespace rushlight::kernels
