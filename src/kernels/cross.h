// Cross products.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

// to = a x b for vectors of three elements `inner` apart, in contiguous blocks (outer, 3, inner).
// Each product and difference is rounded.
void cross(float* to, const float* a, const float* b, int64_t outer, int64_t inner);
void cross(double* to, const double* a, const double* b, int64_t outer, int64_t inner);

}  // namespace rushlight::kernels
