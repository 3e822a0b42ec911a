// A = L L^T of symmetric positive-definite matrices, by halves.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

// Factors a column-major n x n matrix in place, reading and writing its lower triangle; the strict
// upper one is scratch and undefined afterwards. Returns 0, or the order of the first leading minor
// that is not positive-definite; then L is complete up to there.
template <typename T>
int32_t cholesky_factor(int64_t n, T* a, int64_t lda);

}  // namespace rushlight::kernels
