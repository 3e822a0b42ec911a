#include "codegen/math_f64.h"

#include "codegen/arithmetic.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

Value* inline_math_f64(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Op op,
                       llvm::ArrayRef<Value*> operands) {
  Value* x = operands[0];
  MathBuilder m(builder, x);
  if (operands.size() == 2) {
    return emit_binary_f64(m, op, x, operands[1]);
  }
  if (operands.size() != 1) {
    return nullptr;
  }
  for (auto* emit : {emit_exponential_f64, emit_logarithm_f64, emit_inverse_f64, emit_error_f64}) {
    if (Value* v = emit(m, op, x)) {
      return v;
    }
  }
  return emit_trigonometric_f64(arithmetic, builder, op, x);
}

}  // namespace rushlight::codegen
