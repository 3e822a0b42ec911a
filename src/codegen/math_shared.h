// What math functions of f32 and of f64 have in common.
#pragma once

#include "codegen/math_builder.h"
#include "loop/node.h"

namespace rushlight::codegen {

// `result` where x is positive and finite; the logarithm's limits and NaN elsewhere.
llvm::Value* log_special(MathBuilder& m, llvm::Value* x, llvm::Value* result);

// The sine (or, for Op::Cos, the cosine) of an angle `quadrant` quarter turns beyond the one whose
// sine and cosine are given. `odd`: whether that number is.
llvm::Value* turned(MathBuilder& m, loop::Op op, llvm::Value* quadrant, llvm::Value* odd,
                    llvm::Value* sine, llvm::Value* cosine);

}  // namespace rushlight::codegen
