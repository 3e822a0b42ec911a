// Inverse trigonometric functions of f32, by f32 alone. Bounds: see math.h.
#pragma once

#include "codegen/math_builder.h"

namespace rushlight::codegen {

llvm::Value* emit_asin(MathBuilder& m, llvm::Value* x);
llvm::Value* emit_acos(MathBuilder& m, llvm::Value* x);
llvm::Value* emit_atan(MathBuilder& m, llvm::Value* x);
llvm::Value* emit_atan2(MathBuilder& m, llvm::Value* y, llvm::Value* x);

}  // namespace rushlight::codegen
