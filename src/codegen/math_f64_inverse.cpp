// asin, acos, atan and atan2 of f64.
#include "codegen/math_f64.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

// asin(s) = s + s z p(z), z = s^2 <= 1/4: the second term.
Value* asin_tail(MathBuilder& m, Value* s, Value* z) {
  Value* p = m.polynomial(
      z, {0x1.5555555555384p-3, 0x1.333333336fe40p-4, 0x1.6db6db4196c2ap-5, 0x1.f1c72c8193950p-6,
          0x1.6e89ed874acd8p-6, 0x1.1c6c45ca35c0bp-6, 0x1.c6f61faef039fp-7, 0x1.8ef47f934582fp-7,
          0x1.aa28119943898p-8, 0x1.411310674dc23p-6, -0x1.0b8fe35339b33p-6, 0x1.0604592e73712p-5});
  return m.mul(m.mul(s, z), p);
}

// Beyond 1/2, asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)); outside [-1, 1] the root is NaN.
struct Arc {
  Value* far;   // |x| >= 1/2
  Value* half;  // (1 - |x|) / 2
  Value* base;  // |x|, or the root
  Value* tail;  // asin(base) - base
};

Arc reduce(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* far = m.b.CreateFCmpOGE(size, m.c(0.5));
  Value* half = m.fma(size, m.c(-0.5), m.c(0.5));
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, half);
  Value* base = m.pick(far, root, size);
  return {far, half, base, asin_tail(m, base, m.pick(far, half, m.mul(x, x)))};
}

Value* emit_asin(MathBuilder& m, Value* x) {
  Arc a = reduce(m, x);
  Value* near = m.add(a.base, a.tail);
  // Twice what rounding the root loses is (half - base^2) / base; where it matters, this line is
  // near enough to 1 / base.
  Value* slope = m.fma(a.half, m.c(-10), m.c(4.5));
  Value* lost = m.fma(m.b.CreateFNeg(a.base), a.base, a.half);
  Value* low = m.fma(a.tail, m.c(-2), m.c(kHalfPiLowF64));
  low = m.fma(m.b.CreateFNeg(lost), slope, low);
  Value* far = m.add(m.fma(a.base, m.c(-2), m.c(kHalfPiF64)), low);
  return m.copysign(m.pick(a.far, far, near), x);
}

Value* emit_acos(MathBuilder& m, Value* x) {
  Arc a = reduce(m, x);
  Value* negative = m.less(x, m.c(0));
  Value* sum = m.add(a.base, a.tail);
  // pi - 2 asin(base), by halves.
  Value* rest = m.sub(m.c(kHalfPiF64), m.add(a.base, m.sub(a.tail, m.c(kHalfPiLowF64))));
  Value* half = m.pick(negative, rest, sum);
  // pi / 2 - asin(x).
  Value* tail = m.copysign(a.tail, x);
  Value* near = m.sub(m.c(kHalfPiF64), m.add(x, m.sub(tail, m.c(kHalfPiLowF64))));
  return m.pick(a.far, m.add(half, half), near);
}

// atan(a) = a + tail for a in [0, 1].
Value* atan_tail(MathBuilder& m, Value* a) {
  Value* z = m.mul(a, a);
  Value* p = m.polynomial(z, {-0x1.555555555552ap-2,  0x1.9999999995aeap-3,  -0x1.24924923923b7p-3,
                              0x1.c71c718427796p-4,   -0x1.745d11fb2757bp-4, 0x1.3b136a16e2054p-4,
                              -0x1.110e6d8df069ep-4,  0x1.e1bcf7671989ep-5,  -0x1.ae644b8aeb1cdp-5,
                              0x1.82eea8645e1efp-5,   -0x1.59d7de00e92cfp-5, 0x1.2c97edc5a0ec2p-5,
                              -0x1.eb4894b8ba974p-6,  0x1.69d7b5a2ad073p-6,  -0x1.ca960e329d02ep-7,
                              0x1.dc022a76e1633p-8,   -0x1.7ea3ef253eb83p-9, 0x1.ba391c4de361ep-11,
                              -0x1.44a0a250ad582p-13, 0x1.c49d9e1031291p-17});
  return m.mul(m.mul(a, z), p);
}

Value* emit_atan(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* far = m.greater(size, m.c(1));
  Value* a = m.div(m.pick(far, m.c(1), size), m.pick(far, size, m.c(1)));
  Value* tail = atan_tail(m, a);
  Value* near = m.add(a, tail);
  Value* rest = m.sub(m.c(kHalfPiF64), m.add(a, m.sub(tail, m.c(kHalfPiLowF64))));
  return m.copysign(m.pick(far, rest, near), x);
}

}  // namespace

// The angle of (min / max) of the sizes, turned into the right eighth of the circle.
Value* emit_atan2_f64(MathBuilder& m, Value* y, Value* x) {
  Value* height = m.abs(y);
  Value* width = m.abs(x);
  Value* steep = m.greater(height, width);
  Value* top = m.pick(steep, width, height);
  Value* bottom = m.pick(steep, height, width);
  // inf / inf counts as 1, 0 / 0 as 0.
  Value* a = m.pick(m.b.CreateFCmpOEQ(top, bottom), m.c(1), m.div(top, bottom));
  a = m.pick(m.b.CreateFCmpOEQ(top, m.c(0)), m.c(0), a);
  Value* back = m.b.CreateICmpSLT(m.bits(x), m.i(0));
  Value* reversed = m.b.CreateXor(steep, back);
  Value* tail = atan_tail(m, a);
  a = m.pick(reversed, m.b.CreateFNeg(a), a);
  tail = m.pick(reversed, m.b.CreateFNeg(tail), tail);
  Value* base = m.pick(steep, m.c(kHalfPiF64), m.pick(back, m.c(2 * kHalfPiF64), m.c(0)));
  Value* base_low = m.pick(steep, m.c(kHalfPiLowF64), m.pick(back, m.c(2 * kHalfPiLowF64), m.c(0)));
  Value* angle = m.add(base, m.add(a, m.add(tail, base_low)));
  Value* unordered = m.b.CreateFCmpUNO(x, y);
  return m.copysign(m.pick(unordered, m.add(x, y), angle), y);
}

Value* emit_inverse_f64(MathBuilder& m, Op op, Value* x) {
  switch (op) {
    case Op::Asin:
      return emit_asin(m, x);
    case Op::Acos:
      return emit_acos(m, x);
    case Op::Atan:
      return emit_atan(m, x);
    default:
      return nullptr;
  }
}

}  // namespace rushlight::codegen
