#include "codegen/math_inverse.h"

namespace rushlight::codegen {

using llvm::Value;

namespace {

// Polynomials are minimax fits (Remez exchange, relative to the function's value), rounded to f32
// coefficient by coefficient with the rest refitted. Multiples of pi are sums of two f32.

struct Parts {
  double high;
  double low;
};
constexpr Parts kPi = {0x1.921fb6p+1, -0x1.777a5cp-24};
constexpr Parts kHalfPi = {0x1.921fb6p+0, -0x1.777a5cp-25};

// asin(x) - x for |x| <= 1/2, where z = x^2.
Value* asin_tail(MathBuilder& m, Value* x, Value* z) {
  Value* p = m.polynomial(z, {0x1.55554cp-3, 0x1.3338acp-4, 0x1.6ca756p-5, 0x1.04d2a2p-5,
                              0x1.d52df2p-7, 0x1.34bde6p-5});
  return m.mul(m.mul(x, z), p);
}

// Of |x| > 1/2: root = sqrt((1 - |x|) / 2), so that asin(|x|) = pi / 2 - 2 asin(root).
struct Far {
  Value* root;
  Value* tail;
};

Far far_from_zero(MathBuilder& m, Value* size) {
  Value* z = m.fma(size, m.c(-0.5), m.c(0.5));
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, z);
  return {root, asin_tail(m, root, z)};
}

// atan(t) - t for 0 <= t <= 1.
Value* atan_tail(MathBuilder& m, Value* t) {
  Value* z = m.mul(t, t);
  Value* p =
      m.polynomial(z, {-0x1.55553ep-2, 0x1.9991e4p-3, -0x1.242084p-3, 0x1.c08c1ap-4, -0x1.580816p-4,
                       0x1.da24ep-5, -0x1.fd7014p-6, 0x1.64117ep-7, -0x1.d32f3cp-10});
  return m.mul(m.mul(t, z), p);
}

// high + low - (t + tail), the small parts first.
Value* from_parts(MathBuilder& m, Parts whole, Value* t, Value* tail) {
  return m.sub(m.c(whole.high), m.add(t, m.sub(tail, m.c(whole.low))));
}

}  // namespace

Value* emit_asin(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* near = m.add(size, asin_tail(m, size, m.mul(size, size)));
  Far f = far_from_zero(m, size);
  Value* far = from_parts(m, kHalfPi, m.add(f.root, f.root), m.add(f.tail, f.tail));
  return m.copysign(m.pick(m.b.CreateFCmpOLE(size, m.c(0.5)), near, far), x);
}

Value* emit_acos(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* middle = from_parts(m, kHalfPi, x, asin_tail(m, x, m.mul(x, x)));
  Far f = far_from_zero(m, size);
  Value* root = m.add(f.root, f.root);
  Value* tail = m.add(f.tail, f.tail);
  Value* below = from_parts(m, kPi, root, tail);
  Value* outer = m.pick(m.less(x, m.c(0)), below, m.add(root, tail));
  return m.pick(m.b.CreateFCmpOLE(size, m.c(0.5)), middle, outer);
}

Value* emit_atan(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* steep = m.greater(size, m.c(1));
  Value* t = m.pick(steep, m.div(m.c(1), size), size);
  Value* tail = atan_tail(m, t);
  Value* result = m.pick(steep, from_parts(m, kHalfPi, t, tail), m.add(t, tail));
  return m.copysign(result, x);
}

Value* emit_atan2(MathBuilder& m, Value* y, Value* x) {
  Value* up = m.abs(y);
  Value* along = m.abs(x);
  Value* steep = m.greater(up, along);
  Value* most = m.pick(steep, up, along);
  Value* t = m.div(m.pick(steep, along, up), most);
  // 0 / 0 and inf / inf.
  t = m.pick(m.b.CreateFCmpOEQ(most, m.c(0)), m.c(0), t);
  Value* endless = m.c(__builtin_inf());
  Value* both = m.b.CreateAnd(m.b.CreateFCmpOEQ(up, endless), m.b.CreateFCmpOEQ(along, endless));
  t = m.pick(both, m.c(1), t);
  Value* tail = atan_tail(m, t);
  // x below zero, -0 too.
  Value* left = m.b.CreateICmpSLT(m.bits(x), m.i(0));
  Value* flat = m.pick(left, from_parts(m, kPi, t, tail), m.add(t, tail));
  // Steep: pi / 2 plus or minus what is there.
  const auto turned = [&](Value* v) { return m.pick(left, m.b.CreateFNeg(v), v); };
  Value* upright = from_parts(m, kHalfPi, turned(t), turned(tail));
  Value* result = m.copysign(m.pick(steep, upright, flat), y);
  Value* nowhere = m.b.CreateFCmpUNO(x, y);
  return m.pick(nowhere, m.c(__builtin_nan("")), result);
}

}  // namespace rushlight::codegen
