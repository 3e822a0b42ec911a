// Eigenvalues and eigenvectors of general real matrices.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace rushlight::kernels {

// Of a column-major n x n matrix. `values` has n numbers, complex pairs with the positive imaginary
// part first. `vectors`, null where not wanted, is n x n, a column each: of length one, the largest
// element of a complex one real. Returns 0, or how many values did not converge: numbers that are
// not finite do not.
int32_t eigen_general(int64_t n, std::vector<double> a, std::complex<double>* values,
                      std::complex<double>* vectors);

}  // namespace rushlight::kernels
