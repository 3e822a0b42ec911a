// The functions that generated code calls, found by name when an object is loaded.
//
// Each works on `count` values: out[i] = f(a[i]) or f(a[i], b[i]). Arrays do not overlap. f32
// functions compute in f64 and round once, lgamma and digamma several at a time (math_gamma.h); f64
// ones are the C library's.
#pragma once

#include <string_view>

namespace rushlight {

// The address of `rushlight_math_...` or of one of the C library's functions; null if unknown.
void* find_helper(std::string_view symbol);

}  // namespace rushlight
