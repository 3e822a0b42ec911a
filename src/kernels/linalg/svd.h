// Singular value decompositions.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

enum class SvdVectors : uint8_t { None, Reduced, Full };

// A = U diag(values) V^T of a column-major m x n matrix with m >= n, which is overwritten. The n
// values come in descending order. U is m x n, or m x m where Full; V is n x n; both column-major
// without gaps, and null where None. Returns 0, or how many values did not converge: numbers that
// are not finite do not.
template <typename T>
int32_t svd(int64_t m, int64_t n, T* a, int64_t lda, SvdVectors vectors, T* u, T* values, T* v);

}  // namespace rushlight::kernels
