// e^A of square matrices.
#pragma once

#include <cstdint>
#include <vector>

namespace rushlight::kernels {

// Of a column-major n x n matrix, by Pade approximation with scaling and squaring (Higham 2005), in
// double whatever the tensors hold. NaN throughout where a number is not finite.
std::vector<double> matrix_exponential(int64_t n, std::vector<double> a);

}  // namespace rushlight::kernels
