#include "codegen/math_shared.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

Value* log_special(MathBuilder& m, Value* x, Value* result) {
  const double infinity = __builtin_inf();
  Value* zero = m.b.CreateFCmpOEQ(x, m.c(0));
  // x < 0 and NaN give NaN; inf stays.
  Value* good = m.greater(x, m.c(0));
  Value* finite = m.less(x, m.c(infinity));
  result = m.pick(m.b.CreateAnd(good, finite), result, m.pick(good, x, m.c(__builtin_nan(""))));
  return m.pick(zero, m.c(-infinity), result);
}

Value* turned(MathBuilder& m, Op op, Value* quadrant, Value* odd, Value* sine, Value* cosine) {
  if (op == Op::Cos) {
    quadrant = m.b.CreateAdd(quadrant, m.i(1));
    odd = m.b.CreateNot(odd);
  }
  Value* magnitude = m.pick(odd, cosine, sine);
  const int64_t to_sign = m.word->getScalarSizeInBits() - 2;
  Value* sign = m.b.CreateShl(m.b.CreateAnd(quadrant, m.i(2)), m.i(to_sign));
  return m.from_bits(m.b.CreateXor(m.bits(magnitude), sign));
}

}  // namespace rushlight::codegen
