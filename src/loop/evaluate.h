// What each operator does to values: the one definition, shared by the interpreter and by constant
// folding.
//
// A value is 64 bits, as in Node::bits: integers extended to 64 bits by their own sign, bool 0 or
// 1, floats as the bits of the f64 that equals them. f32 arithmetic rounds to f32; f32
// transcendental functions are computed in f64 and rounded, so they err by 0.5 ULP and a trace. f64
// ones are the C library's (under 1 ULP for the common ones, lgamma and pow a few), save erfinv (4
// ULP) and digamma (1e-14 relative, absolute near its zeros), which are ours.
#pragma once

#include <cstdint>

#include "loop/node.h"

namespace rushlight::loop {

using Value = uint64_t;

Expr constant_value(Value value, DType dtype);

// The value of a float dtype nearest to `value`; every NaN becomes the one quiet NaN.
Value normalize_float(double value, DType dtype);
// The value of an integer dtype equal to `value` modulo 2^width; for bool whether it is not 0.
Value normalize_int(int64_t value, DType dtype);

inline double as_double(Value value) {
  return std::bit_cast<double>(value);
}

// `node`'s value from those of its inputs, for every op that reads neither memory, arguments nor
// axes: Cast, Bitcast, Fma, Select and all plain unary and binary ops.
Value evaluate(const Node& node, const Value* inputs);

Value evaluate_binary(Op op, DType operands, Value a, Value b);

// The element of Combine that changes nothing, and the combination of two values.
Value identity(Combine combine, DType dtype);
Value combine_values(Combine combine, DType dtype, Value a, Value b);

// Conversion as by Cast; either dtype may be a half or float8 type (then the value is an f32's).
Value convert(Value value, DType from, DType to);

// Memory access at the element type: Load's and Store's conversions.
Value read_memory(const void* address, DType memory);
void write_memory(void* address, DType memory, Value value);

// Scalar arguments as KernelArgs has them.
Value from_argument(uint64_t bits, DType dtype);

}  // namespace rushlight::loop
