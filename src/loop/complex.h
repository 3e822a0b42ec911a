// Complex values as pairs of real ones.
//
// Before: bodies may hold values, scalars, loads and stores of complex dtypes.
// After: there are none. A complex buffer is read as its real type, whose strides are twice those
// of the complex one: where a dimension has Layout::Unit, its index is 2 i and 2 i + 1 for the
// parts; else there is one more dimension, of two elements. Complex scalar k is two real ones in
// its place, so that later scalars move up; a real scalar stays as it is. Real kernels are returned
// unchanged.
//
// Multiplication and division by a value whose imaginary part is the constant 0 act on the parts,
// so that infinities do not become NaN by a product with that 0. Division scales by the larger part
// of the divisor (Smith). Functions have the branch cuts of C's Annex G.
#pragma once

#include "loop/kernel.h"

namespace rushlight::loop {

struct Pair {
  Expr real;
  Expr imag;
};

Kernel lower_complex(const Kernel& kernel);

// What a complex node gives for operands that are pairs: the parts of its value, or (eq, isnan,
// real, ...) a real value and no imaginary part. Error(Internal) where it has no complex meaning.
Pair complex_value(Expr node, const std::vector<Pair>& operands);

}  // namespace rushlight::loop
