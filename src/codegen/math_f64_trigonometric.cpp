// sin, cos and tan of f64.
#include "codegen/arithmetic.h"
#include "codegen/math_f64.h"
#include "codegen/math_shared.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

// pi / 2 in three parts. The product of the second with up to 2^20 quarter turns is exact; beyond,
// the C library is called.
constexpr double kSecond = 0x1.1a626331p-54;
constexpr double kThird = 0x1.1701b839a2520p-88;
constexpr double kLargest = 0x1.9p20;

Value* emit_common(MathBuilder& m, Op op, Value* x) {
  WholeF64 n = nearest_f64(m, x, m.c(0x1.45f306dc9c883p-1));
  // x - n pi / 2 = r + low. The first step is exact, as n pi / 2 cancels all but the last bits.
  Value* first = m.fma(n.value, m.c(-kHalfPiF64), x);
  Value* second = m.mul(n.value, m.c(kSecond));
  Value* r = m.sub(first, second);
  Value* low = m.fma(n.value, m.c(-kThird), m.sub(m.sub(first, r), second));
  Value* z = m.mul(r, r);
  Value* s =
      m.polynomial(z, {-0x1.5555555555549p-3, 0x1.111111110f894p-7, -0x1.a01a019c1275ap-13,
                       0x1.71de35771c510p-19, -0x1.ae5e64fa6e70fp-26, 0x1.5d9276a0d35c0p-33});
  Value* c =
      m.polynomial(z, {0x1.555555555554cp-5, -0x1.6c16c16c15210p-10, 0x1.a01a019cbcd03p-16,
                       -0x1.27e4f8103cdabp-22, 0x1.1ee9ef4b97e06p-29, -0x1.8faffd6053087p-37});
  // cos r = (1 - z / 2) + z^2 c - r low, with what rounding the first part loses.
  Value* half = m.mul(z, m.c(0.5));
  Value* head = m.sub(m.c(1), half);
  Value* lost = m.sub(m.sub(m.c(1), head), half);
  lost = m.fma(m.b.CreateFNeg(r), low, lost);
  Value* cosine_tail = m.fma(m.mul(z, z), c, lost);
  Value* cosine = m.add(head, cosine_tail);
  // sin r = r + r z s + low cos r. The sign is that of r, -0 included.
  Value* sine_tail = m.fma(m.mul(r, z), s, m.mul(low, head));
  Value* sine = m.copysign(m.add(r, sine_tail), r);
  Value* quadrant = n.word;
  Value* odd = m.b.CreateICmpNE(m.b.CreateAnd(quadrant, m.i(1)), m.i(0));
  if (op == Op::Tan) {
    Value* top = m.pick(odd, cosine, sine);
    Value* bottom = m.pick(odd, m.b.CreateFNeg(sine), cosine);
    // What rounding both, and their quotient, loses.
    Value* sine_low = m.add(m.sub(r, sine), sine_tail);
    Value* cosine_low = m.add(m.sub(head, cosine), cosine_tail);
    Value* top_low = m.pick(odd, cosine_low, sine_low);
    Value* bottom_low = m.pick(odd, m.b.CreateFNeg(sine_low), cosine_low);
    Value* inverse = m.div(m.c(1), bottom);
    Value* quotient = m.mul(top, inverse);
    Value* back = m.b.CreateFNeg(quotient);
    Value* rest = m.fma(back, bottom_low, m.add(m.fma(back, bottom, top), top_low));
    return m.copysign(m.fma(rest, inverse, quotient), quotient);
  }
  return turned(m, op, quadrant, odd, sine, cosine);
}

}  // namespace

Value* emit_trigonometric_f64(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Op op, Value* x) {
  if (op != Op::Sin && op != Op::Cos && op != Op::Tan) {
    return nullptr;
  }
  MathBuilder m(builder, x);
  const char* name = op == Op::Sin ? "sin_f64" : op == Op::Cos ? "cos_f64" : "tan_f64";
  Value* large = m.greater(m.abs(x), m.c(kLargest));
  return arithmetic.call_rare_lanes(name, {x}, large, emit_common(m, op, x));
}

}  // namespace rushlight::codegen
