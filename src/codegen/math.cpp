#include "codegen/math.h"

namespace rushlight::codegen {

std::string_view loop_op_text(loop::Op op) {
  static constexpr std::string_view names[] = {
#define RUSHLIGHT_TEXT(op, text, arity, typing, kinds) text,
      RUSHLIGHT_LOOP_OPS(RUSHLIGHT_TEXT)
#undef RUSHLIGHT_TEXT
  };
  return names[static_cast<int>(op)];
}

llvm::Value* inline_math(llvm::IRBuilder<>& builder, loop::Op op,
                         llvm::ArrayRef<llvm::Value*> operands) {
  return nullptr;
}

}  // namespace rushlight::codegen
