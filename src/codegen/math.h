// Math functions expanded in line: polynomials on vectors or scalars, with the same operations, and
// so the same bits, in every lane and on every target.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string_view>

#include "loop/node.h"

namespace rushlight::codegen {

// Emits `op` of the operands (f32, scalar or vector) or returns null where it is not expanded in
// line; then the caller emits a call to src/runtime/math_helpers.cpp.
llvm::Value* inline_math(llvm::IRBuilder<>& builder, loop::Op op,
                         llvm::ArrayRef<llvm::Value*> operands);

// The op's name in loop IR text, without linking the loop floor.
std::string_view loop_op_text(loop::Op op);

}  // namespace rushlight::codegen
