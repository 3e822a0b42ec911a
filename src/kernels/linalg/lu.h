// P A = L U with partial pivoting, by halves.
#pragma once

#include <cstdint>

#include "kernels/linalg/matrix.h"

namespace rushlight::kernels {

// Factors a column-major m x n matrix in place: U on and above the diagonal, L below it, its ones
// not stored. Row i was exchanged with row pivots[i] - 1, for i from 0 to min(m, n) - 1. Without
// `pivot` no rows are exchanged. Returns 0, or the number (from 1) of the first zero on U's
// diagonal; the factorisation is complete all the same.
template <typename T>
int32_t lu_factor(int64_t m, int64_t n, T* a, int64_t lda, int32_t* pivots, bool pivot);

// Exchanges rows of n columns as `pivots` says, from the first to the last or the reverse.
template <typename T>
void exchange_rows(int64_t n, T* a, int64_t row_stride, int64_t column_stride,
                   const int32_t* pivots, int64_t count, bool reverse);

// Solves A X = B, or A^T X = B where `transpose`, in place of B, which has `count` columns; A is
// n x n and factored.
template <typename T>
void lu_solve(int64_t n, int64_t count, const T* lu, int64_t lda, const int32_t* pivots,
              bool transpose, Strided<T> b);

}  // namespace rushlight::kernels
