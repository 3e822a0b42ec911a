// Eigenvalues and eigenvectors of general complex matrices.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace rushlight::kernels {

// Of a column-major n x n matrix. `vectors`, null where not wanted, is n x n, a column each: of
// length one, its largest element real. Returns 0, or how many values did not converge: numbers
// that are not finite do not.
int32_t eigen_complex(int64_t n, std::vector<std::complex<double>> a, std::complex<double>* values,
                      std::complex<double>* vectors);

}  // namespace rushlight::kernels
