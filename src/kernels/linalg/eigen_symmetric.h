// Eigenvalues and eigenvectors of symmetric matrices.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

// Of a column-major symmetric n x n matrix, both triangles of which are given. `values` gets the
// eigenvalues in ascending order; `a` the eigenvectors, a column each, of length one, or, without
// `vectors`, nothing of use. Returns 0, or how many off-diagonal elements did not converge: numbers
// that are not finite do not.
template <typename T>
int32_t eigen_symmetric(int64_t n, T* a, int64_t lda, T* values, bool vectors);

}  // namespace rushlight::kernels
