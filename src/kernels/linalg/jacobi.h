// Eigenvalues of Hermitian matrices and singular values of complex ones, by Jacobi's rotations:
// short, and exact to the last digits of small values.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "kernels/linalg/svd.h"

namespace rushlight::kernels {

using ComplexMatrix = std::vector<std::complex<double>>;  // column-major, without gaps

// As eigen_symmetric, of a Hermitian n x n matrix: `a` becomes its eigenvectors.
int32_t eigen_hermitian(int64_t n, ComplexMatrix& a, double* values);

// As svd: A = U diag(values) V^T of an m x n matrix with m >= n, V^T having orthonormal rows.
int32_t svd_complex(int64_t m, int64_t n, ComplexMatrix a, SvdVectors vectors, ComplexMatrix& u,
                    double* values, ComplexMatrix& v);

}  // namespace rushlight::kernels
