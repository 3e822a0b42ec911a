#include "codegen/math_trigonometric.h"

#include "codegen/arithmetic.h"
#include "codegen/math_builder.h"
#include "codegen/math_shared.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

// Beyond this many quarter turns the two-part reduction loses bits that an f32 result needs.
constexpr double kLargest = 0x1p28;
constexpr double kRounder = 0x1.8p52;

Value* emit_f64(MathBuilder& m, Op op, Value* x) {
  Value* moved = m.fma(x, m.c(0x1.45f306dc9c883p-1), m.c(kRounder));
  Value* turns = m.sub(moved, m.c(kRounder));
  Value* quadrant = m.b.CreateSub(m.bits(moved), m.bits(m.c(kRounder)));
  Value* r = m.fma(turns, m.c(-0x1.921fb54442d18p+0), x);
  r = m.fma(turns, m.c(-0x1.1a62633145c07p-54), r);
  Value* z = m.mul(r, r);
  Value* s = m.polynomial(z, {-0x1.5555554cb9e4bp-3, 0x1.111108964a7e0p-7, -0x1.a00f9da70399ap-13,
                              0x1.6cd858b51c5dbp-19});
  Value* sine = m.fma(m.mul(z, r), s, r);
  Value* q = m.polynomial(z, {0x1.5555554f4e3c7p-5, -0x1.6c16b898c39f7p-10, 0x1.a0112023219a5p-16,
                              -0x1.242ad54b5c5cfp-22});
  Value* cosine = m.fma(m.mul(z, z), q, m.fma(z, m.c(-0.5), m.c(1)));
  Value* odd = m.b.CreateICmpNE(m.b.CreateAnd(quadrant, m.i(1)), m.i(0));
  if (op == Op::Tan) {
    Value* top = m.pick(odd, cosine, sine);
    Value* bottom = m.pick(odd, m.b.CreateFNeg(sine), cosine);
    return m.div(top, bottom);
  }
  return turned(m, op, quadrant, odd, sine, cosine);
}

}  // namespace

// Arguments too large for the reduction are rare: only then the C library is called.
Value* emit_trigonometric(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Op op, Value* x) {
  Value* wide = builder.CreateFPExt(x, arithmetic.like(builder.getDoubleTy(), x));
  MathBuilder m(builder, wide);
  Value* common = builder.CreateFPTrunc(emit_f64(m, op, wide), x->getType());
  // Sine and tangent of -0 are -0, which the reduction loses.
  if (op != Op::Cos) {
    Value* zero = builder.CreateFCmpOEQ(x, llvm::ConstantFP::get(x->getType(), 0));
    common = builder.CreateSelect(zero, x, common);
  }
  MathBuilder narrow(builder, x);
  Value* large = builder.CreateFCmpOGT(narrow.abs(x), narrow.c(kLargest));
  const char* name = op == Op::Sin ? "sin_f32" : op == Op::Cos ? "cos_f32" : "tan_f32";
  return arithmetic.call_rare_lanes(name, {x}, large, common);
}

}  // namespace rushlight::codegen
