// Math functions expanded in line: polynomials on vectors or scalars, with the same operations, and
// so the same bits, in every lane and on every target.
//
// Errors of the f32 functions, in units in the last place against the exact value, over all floats
// (tests/codegen/math_test.cpp samples them):
//
//   function       bound  range where it is finite and not constant; elsewhere, exactly
//   exp            1      [-103.97, 88.72]: 0 below, inf above; subnormal results included
//   exp2           2      [-150, 128): likewise
//   expm1          2      [-17, 88.72]: -1 below, inf above; x itself for tiny x
//   log            1      (0, inf), subnormals included; -inf at 0, NaN below, inf at inf
//   log2, log10    2      likewise
//   log1p          2      (-1, inf); x itself for tiny x
//   tanh           2      [-9.1, 9.1]: +-1 beyond
//   erf            2      [-3.93, 3.93]: +-1 beyond
//   sin, cos, tan  1      all finite values; NaN at +-inf
//   asin, acos     2      [-1, 1]; NaN outside
//   atan, atan2    2      all
//   sinh, cosh     2      [-89.41, 89.41]: +-inf beyond
//   asinh, acosh,  1      all; NaN where they are not defined
//   atanh, erfinv  1      likewise; +-inf at +-1
//   erfc           1      [-3.83, 10.06]: 2 below, 0 above; subnormal results included
//   pow, hypot     1      all, with C's special cases
//
// Those of the f64 functions (math_f64.h; tests/codegen/math_f64_test.cpp), over all f64 values but
// as noted. Found: the largest error of 4 million samples.
//
//   function       bound  found   function       bound  found   function       bound  found
//   exp            1.5    1.01    sinh           2      1.65    asin           2      1.59
//   exp2           2      1.36    cosh           2      1.01    acos           2      1.19
//   expm1          2      1.01    tanh           2      1.42    atan           2      1.49
//   log            1.5    0.83    sin            1.5    0.78    atan2          2      1.50
//   log2           2      1.06    cos            1.5    0.76    asinh          2      1.23
//   log10          2      0.94    tan            2      0.95    acosh          2      1.13
//   log1p          2      0.88    erf            2      1.45    atanh          2      0.87
//   pow            1.5    1.40    erfc           2      1.79    hypot          2      0.96
//
// Beyond 1.6e6, sin, cos and tan of f64 are the C library's.
//
// NaN gives NaN. Zeros keep their sign where the function is odd. The other functions are calls to
// runtime/math_helpers.cpp (f32: computed in f64, 1 ULP).
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string_view>

#include "loop/node.h"

namespace rushlight::codegen {

class Arithmetic;

// Emits `op` of f32 operands, scalars or vectors, or returns null where it is not expanded in line.
llvm::Value* inline_math(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, loop::Op op,
                         llvm::ArrayRef<llvm::Value*> operands);

// The op's name in loop IR text, without linking the loop floor.
std::string_view loop_op_text(loop::Op op);

}  // namespace rushlight::codegen
