// lgamma and digamma of many f32 values: what the helpers of generated code call.
//
// Computed in f64 and rounded once, within 1 ULP of the exact value: positive numbers by
// polynomials, several at a time where the CPU multiplies and adds in one step; others as in
// loop/special.h.
#pragma once

#include <cstdint>

namespace rushlight {

// out[i] = f(a[i]) for i < count; the arrays do not overlap.
void lgamma_values(float* out, const float* a, int64_t count);
void digamma_values(float* out, const float* a, int64_t count);

}  // namespace rushlight
