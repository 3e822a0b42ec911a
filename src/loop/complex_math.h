// Functions of complex numbers, as expressions of their parts.
#pragma once

#include "loop/complex.h"

namespace rushlight::loop {

// Null where `op` is no function of complex numbers.
Pair complex_function(Op op, Pair z);
Pair complex_power(Pair base, Pair exponent);
Pair multiply(Pair a, Pair b);
Pair divide(Pair a, Pair b);

// Whether the imaginary part is the constant 0.
bool is_real(Pair z);

}  // namespace rushlight::loop
