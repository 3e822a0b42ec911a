// f32 functions whose exact way is cheaper, or simpler, through f64: on vectors or scalars, with
// the same bits in every lane and on every target. Bounds: see math.h.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "loop/node.h"

namespace rushlight::codegen {

class Arithmetic;

// Emits `op` of f32 operands, scalars or vectors, or returns null where it is not one of these.
llvm::Value* wide_math(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, loop::Op op,
                       llvm::ArrayRef<llvm::Value*> operands);

// C's fmod of f32, exactly.
llvm::Value* emit_fmod(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, llvm::Value* x,
                       llvm::Value* y);

}  // namespace rushlight::codegen
