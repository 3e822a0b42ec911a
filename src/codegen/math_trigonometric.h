// sin and cos of f32 values, computed in f32, and tan, computed in f64.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "loop/node.h"

namespace rushlight::codegen {

class Arithmetic;

llvm::Value* emit_trigonometric(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, loop::Op op,
                                llvm::Value* x);

}  // namespace rushlight::codegen
