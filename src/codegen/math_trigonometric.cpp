#include "codegen/math_trigonometric.h"

#include "codegen/arithmetic.h"
#include "codegen/math_builder.h"
#include "codegen/math_shared.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

// Beyond these a reduction loses bits that an f32 result needs: in f32 the quarter turns of sines
// and cosines, in f64 those of tangents.
constexpr double kLargest = 0x1p19;
constexpr double kLargestWide = 0x1p28;
constexpr double kRounder = 0x1.8p23;
constexpr double kRounderWide = 0x1.8p52;

// pi / 2 as a sum of three f32.
constexpr double kHalfPi = 0x1.921fb6p+0;
constexpr double kHalfPiLow = -0x1.777a5cp-25;
constexpr double kHalfPiLeast = -0x1.ee59dap-50;

// Sine and cosine of f32 by f32 alone. What is left of x beyond whole quarter turns is high + low.
// Its first step is exact, since the difference is a multiple of the last bit of x or of pi / 2.
Value* emit_f32(MathBuilder& m, Op op, Value* x) {
  Value* moved = m.fma(x, m.c(0x1.45f306p-1), m.c(kRounder));
  Value* turns = m.sub(moved, m.c(kRounder));
  Value* first = m.fma(turns, m.c(-kHalfPi), x);
  Value* second = m.mul(turns, m.c(-kHalfPiLow));
  Value* second_low = m.fma(turns, m.c(-kHalfPiLow), m.b.CreateFNeg(second));
  Value* high = m.add(first, second);
  Value* lost = m.add(m.add(m.sub(first, high), second), second_low);
  Value* low = m.fma(turns, m.c(-kHalfPiLeast), lost);

  Value* z = m.mul(high, high);
  Value* s = m.polynomial(z, {-0x1.555556p-3, 0x1.111166p-7, -0x1.a04738p-13, 0x1.76daecp-19});
  Value* sine = m.add(high, m.fma(m.mul(z, high), s, low));
  // 1 - high^2 / 2 + (z^2 q - high low), in which only the last sum rounds much.
  Value* q = m.polynomial(z, {0x1.555544p-5, -0x1.6c08b6p-10, 0x1.98fa1ep-16});
  Value* small = m.fma(m.mul(z, z), q, m.mul(m.b.CreateFNeg(high), low));
  Value* cosine = m.add(m.fma(m.mul(high, m.c(-0.5)), high, small), m.c(1));
  // The quarter turns are the last bits of what was moved.
  Value* quadrant = m.bits(moved);
  Value* odd = m.b.CreateICmpNE(m.b.CreateAnd(quadrant, m.i(1)), m.i(0));
  Value* result = turned(m, op, quadrant, odd, sine, cosine);
  // The sine of -0 is -0, which the reduction loses.
  return op == Op::Sin ? m.pick(m.b.CreateFCmpOEQ(x, m.c(0)), x, result) : result;
}

Value* emit_tan(MathBuilder& m, Value* x) {
  Value* moved = m.fma(x, m.c(0x1.45f306dc9c883p-1), m.c(kRounderWide));
  Value* turns = m.sub(moved, m.c(kRounderWide));
  Value* r = m.fma(turns, m.c(-0x1.921fb54442d18p+0), x);
  r = m.fma(turns, m.c(-0x1.1a62633145c07p-54), r);
  Value* z = m.mul(r, r);
  Value* s = m.polynomial(z, {-0x1.5555554cb9e4bp-3, 0x1.111108964a7e0p-7, -0x1.a00f9da70399ap-13,
                              0x1.6cd858b51c5dbp-19});
  Value* sine = m.fma(m.mul(z, r), s, r);
  Value* q = m.polynomial(z, {0x1.5555554f4e3c7p-5, -0x1.6c16b898c39f7p-10, 0x1.a0112023219a5p-16,
                              -0x1.242ad54b5c5cfp-22});
  Value* cosine = m.fma(m.mul(z, z), q, m.fma(z, m.c(-0.5), m.c(1)));
  Value* odd = m.b.CreateICmpNE(m.b.CreateAnd(m.bits(moved), m.i(1)), m.i(0));
  Value* top = m.pick(odd, cosine, sine);
  Value* bottom = m.pick(odd, m.b.CreateFNeg(sine), cosine);
  return m.div(top, bottom);
}

}  // namespace

// Arguments too large for the reduction are rare: only then the C library is called.
Value* emit_trigonometric(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Op op, Value* x) {
  MathBuilder m(builder, x);
  if (op != Op::Tan) {
    Value* common = emit_f32(m, op, x);
    Value* large = m.greater(m.abs(x), m.c(kLargest));
    return arithmetic.call_rare_lanes(op == Op::Sin ? "sin_f32" : "cos_f32", {x}, large, common);
  }
  Value* wide = builder.CreateFPExt(x, arithmetic.like(builder.getDoubleTy(), x));
  MathBuilder wide_m(builder, wide);
  Value* common = builder.CreateFPTrunc(emit_tan(wide_m, wide), x->getType());
  // The tangent of -0 is -0, which the reduction loses.
  common = m.pick(builder.CreateFCmpOEQ(x, m.c(0)), x, common);
  Value* large = m.greater(m.abs(x), m.c(kLargestWide));
  return arithmetic.call_rare_lanes("tan_f32", {x}, large, common);
}

}  // namespace rushlight::codegen
