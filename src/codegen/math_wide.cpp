#include "codegen/math_wide.h"

#include "codegen/arithmetic.h"
#include "codegen/math_builder.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

// Polynomials are minimax fits (Remez exchange, relative to the function's value).

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2e = 0x1.71547652b82fep+0;
constexpr double kRounder = 0x1.8p52;
constexpr double kInfinity = __builtin_inf();

// log2 of positive numbers, within 2^-38 of its value; the sign of x is not looked at. Any f32 is a
// normal f64, so there are no subnormals here.
Value* log2_core(MathBuilder& m, Value* x) {
  constexpr int64_t kOne = 0x3ff0000000000000;
  constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr int64_t kTwo52 = 0x4330000000000000;
  Value* bits = m.bits(x);
  // The exponent k with x / 2^k in [sqrt(1/2), sqrt(2)), biased, since it is shifted without a
  // sign.
  Value* moved = m.b.CreateAdd(bits, m.i(kOne - kSqrtHalf));
  Value* biased = m.b.CreateLShr(moved, m.i(52));
  Value* power = m.b.CreateSub(m.b.CreateShl(biased, m.i(52)), m.i(kOne));
  Value* fraction = m.sub(m.from_bits(m.b.CreateSub(bits, power)), m.c(1));
  Value* k = m.sub(m.from_bits(m.b.CreateOr(biased, m.i(kTwo52))), m.c(0x1p52 + 1023));
  Value* q =
      m.polynomial(fraction, {0x1.71547652b58f9p+0, -0x1.71547651b6e85p-1, 0x1.ec709de33b562p-2,
                              -0x1.71547888642aep-2, 0x1.2776b6cd672a5p-2, -0x1.ec6f2df1379acp-3,
                              0x1.a61b7daa19902p-3, -0x1.7188d46973aaep-3, 0x1.481fb041fe72bp-3,
                              -0x1.23d643b657a13p-3, 0x1.0acdca284040ap-3, -0x1.13b8af68d5ba0p-3,
                              0x1.0f6322b6af9d4p-3, -0x1.1da7b45e5b682p-4});
  return m.fma(fraction, q, k);
}

Value* log_core(MathBuilder& m, Value* x) {
  return m.mul(log2_core(m, x), m.c(kLn2));
}

// 2^x, within 2^-34 of its value. Beyond +-300, where f32 has only 0 and infinity, 2^+-300.
Value* exp2_core(MathBuilder& m, Value* x) {
  x = m.at_least(m.at_most(x, 300), -300);
  Value* moved = m.add(x, m.c(kRounder));
  Value* r = m.sub(x, m.sub(moved, m.c(kRounder)));
  Value* p = m.polynomial(r, {0x1.ffffffffabc14p-1, 0x1.62e42ff11631cp-1, 0x1.ebfbe0a4ba4d9p-3,
                              0x1.c6b08aaf1d187p-5, 0x1.3b29dc42bee36p-7, 0x1.5d8a708b934dfp-10,
                              0x1.446a1f015be2bp-13, 0x1.fe178dae207e2p-17});
  // The exponent lies in the low bits of what was moved, above which nothing is left of the
  // rounder.
  return m.from_bits(m.b.CreateAdd(m.bits(p), m.b.CreateShl(m.bits(moved), m.i(52))));
}

struct Wholeness {
  Value* whole;
  Value* odd;
};

// Of |y|, an f32: what is 2^24 or more is even, infinity too.
Wholeness wholeness(MathBuilder& m, Value* size) {
  Value* far = m.b.CreateFCmpOGE(size, m.c(0x1p24));
  const auto is_whole = [&](Value* x) {
    return m.b.CreateFCmpOEQ(m.sub(m.add(x, m.c(0x1p52)), m.c(0x1p52)), x);
  };
  Value* whole = m.b.CreateOr(is_whole(size), far);
  Value* half = m.b.CreateOr(is_whole(m.mul(size, m.c(0.5))), far);
  return {whole, m.b.CreateAnd(whole, m.b.CreateNot(half))};
}

// C's pow, case for case.
Value* emit_pow(MathBuilder& m, Value* x, Value* y) {
  Value* size = m.abs(x);
  Value* zero = m.b.CreateFCmpOEQ(size, m.c(0));
  Value* endless = m.b.CreateFCmpOEQ(size, m.c(kInfinity));
  Value* log = m.pick(zero, m.c(-kInfinity), log2_core(m, size));
  log = m.pick(endless, m.c(kInfinity), log);
  log = m.pick(m.b.CreateFCmpUNO(x, x), x, log);
  Value* result = exp2_core(m, m.mul(log, y));

  auto [whole, odd] = wholeness(m, m.abs(y));
  Value* below = m.less(x, m.c(0));
  Value* finite = m.less(size, m.c(kInfinity));
  Value* nowhere = m.b.CreateAnd(m.b.CreateAnd(below, finite), m.b.CreateNot(whole));
  result = m.pick(nowhere, m.c(__builtin_nan("")), result);
  result = m.pick(odd, m.copysign(result, x), result);
  Value* one = m.b.CreateOr(m.b.CreateFCmpOEQ(x, m.c(1)), m.b.CreateFCmpOEQ(y, m.c(0)));
  Value* unit = m.b.CreateFCmpOEQ(size, m.c(1));
  Value* forever = m.b.CreateFCmpOEQ(m.abs(y), m.c(kInfinity));
  one = m.b.CreateOr(one, m.b.CreateAnd(unit, forever));
  return m.pick(one, m.c(1), result);
}

Value* emit_hypot(MathBuilder& m, Value* x, Value* y) {
  Value* sum = m.fma(x, x, m.mul(y, y));
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, sum);
  const auto endless = [&](Value* v) { return m.b.CreateFCmpOEQ(m.abs(v), m.c(kInfinity)); };
  return m.pick(m.b.CreateOr(endless(x), endless(y)), m.c(kInfinity), root);
}

// Half the logarithm of (1 + x) / (1 - x), and the series where that loses bits.
Value* emit_atanh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* ratio = m.div(m.add(m.c(1), size), m.sub(m.c(1), size));
  Value* far = m.mul(log2_core(m, ratio), m.c(0.5 * kLn2));
  Value* near = m.fma(m.mul(m.mul(size, size), size), m.c(1.0 / 3), size);
  Value* result = m.pick(m.less(size, m.c(0x1p-10)), near, far);
  result = m.pick(m.b.CreateFCmpOEQ(size, m.c(1)), m.c(kInfinity), result);
  Value* outside = m.b.CreateFCmpUGT(size, m.c(1));
  return m.pick(outside, m.c(__builtin_nan("")), m.copysign(result, x));
}

Value* emit_asinh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* square = m.mul(size, size);
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, m.add(square, m.c(1)));
  Value* far = log_core(m, m.add(size, root));
  Value* near = m.fma(m.mul(square, size), m.c(-1.0 / 6), size);
  Value* result = m.pick(m.less(size, m.c(0x1p-10)), near, far);
  // Infinity and NaN stay.
  result = m.pick(m.less(size, m.c(kInfinity)), result, size);
  return m.copysign(result, x);
}

Value* emit_acosh(MathBuilder& m, Value* x) {
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, m.fma(x, x, m.c(-1)));
  Value* result = log_core(m, m.add(x, root));
  result = m.pick(m.less(x, m.c(kInfinity)), result, x);
  return m.pick(m.less(x, m.c(1)), m.c(__builtin_nan("")), result);
}

// exp(-x^2) times a smooth function of (x - 3) / (x + 3).
Value* emit_erfc(MathBuilder& m, Value* x) {
  Value* size = m.at_most(m.abs(x), 10.5);
  Value* t = m.div(m.sub(size, m.c(3)), m.add(size, m.c(3)));
  Value* scaled =
      m.polynomial(t, {0x1.6e9827d0293e5p-3, -0x1.4e102bb4dbadcp-2, 0x1.f6ff21a638668p-3,
                       -0x1.336ff4324f10dp-3, 0x1.258ad101da098p-4, -0x1.8fa8b984820cap-6,
                       0x1.17e81ffe1773dp-8, 0x1.7585157ab3b60p-11, -0x1.3bcf1908cd2ccp-11,
                       0x1.03215f8ab979cp-15, 0x1.161657cadaaaep-14, 0x1.491b2c4af8e84p-18});
  Value* tail = m.mul(scaled, exp2_core(m, m.mul(m.mul(size, size), m.c(-kLog2e))));
  Value* result = m.pick(m.less(x, m.c(0)), m.sub(m.c(2), tail), tail);
  return m.pick(m.b.CreateFCmpUNO(x, x), x, result);
}

// x times a function of w = -log(1 - x^2), in two pieces (Giles, Approximating the erfinv
// function).
Value* emit_erfinv(MathBuilder& m, Value* x) {
  Value* rest = m.fma(m.b.CreateFNeg(x), x, m.c(1));
  Value* w = m.mul(log2_core(m, rest), m.c(-kLn2));
  Value* near = m.polynomial(
      w, {0x1.c5bf891b20bf7p-1, 0x1.db29fb6b4bf5ap-3, 0x1.7a72b53a9652ap-7, -0x1.320ce9e15f367p-9,
          -0x1.0d388b007a109p-13, 0x1.8b7ac4d259a08p-15, 0x1.8a77eec14f86dp-20,
          -0x1.539f9220b0a3dp-21, -0x1.cf7f5429648d2p-23, 0x1.551d6e3c06f15p-24,
          -0x1.714672e224d31p-27, 0x1.89fd5bbca4548p-31, -0x1.5bc75dffc684fp-36});
  Value* s = m.sub(m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, w), m.c(3));
  Value* far = m.polynomial(
      s, {0x1.6a9efc04d2a2ep+1, 0x1.006dc279fff5ep+0, 0x1.35777efa7145fp-7, -0x1.f459261a1924dp-8,
          0x1.754df90411421p-8, -0x1.d9199ba7e48d3p-9, 0x1.7f252b7bcc549p-10,
          -0x1.14d493dc26fabp-15, -0x1.3125021e30bc7p-12, 0x1.9d1d39265f3bcp-14});
  Value* result = m.mul(x, m.pick(m.less(w, m.c(5)), near, far));
  Value* size = m.abs(x);
  result = m.pick(m.b.CreateFCmpOEQ(size, m.c(1)), m.copysign(m.c(kInfinity), x), result);
  return m.pick(m.b.CreateFCmpUGT(size, m.c(1)), m.c(__builtin_nan("")), result);
}

}  // namespace

Value* wide_math(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Op op,
                 llvm::ArrayRef<Value*> operands) {
  const auto widened = [&](Value* x) {
    return builder.CreateFPExt(x, arithmetic.like(builder.getDoubleTy(), x));
  };
  const auto unary = [&](Value* (*emit)(MathBuilder&, Value*)) {
    Value* x = widened(operands[0]);
    MathBuilder m(builder, x);
    return builder.CreateFPTrunc(emit(m, x), operands[0]->getType());
  };
  const auto binary = [&](Value* (*emit)(MathBuilder&, Value*, Value*)) {
    Value* x = widened(operands[0]);
    Value* y = widened(operands[1]);
    MathBuilder m(builder, x);
    return builder.CreateFPTrunc(emit(m, x, y), operands[0]->getType());
  };
  switch (op) {
    case Op::Pow:
      return binary(emit_pow);
    case Op::Hypot:
      return binary(emit_hypot);
    case Op::Asinh:
      return unary(emit_asinh);
    case Op::Acosh:
      return unary(emit_acosh);
    case Op::Atanh:
      return unary(emit_atanh);
    case Op::Erfc:
      return unary(emit_erfc);
    case Op::Erfinv:
      return unary(emit_erfinv);
    default:
      return nullptr;
  }
}

// The whole quotient is exact below 2^29, or one too large where the quotient was rounded up to it;
// its product with y then has 53 bits. Larger ones are rare, and what is no number goes with them.
Value* emit_fmod(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Value* x, Value* y) {
  llvm::Type* type = arithmetic.like(builder.getDoubleTy(), x);
  Value* wide = builder.CreateFPExt(x, type);
  MathBuilder m(builder, wide);
  Value* size = m.abs(wide);
  Value* step = m.abs(builder.CreateFPExt(y, type));
  Value* quotient = builder.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, m.div(size, step));
  Value* rest = m.fma(builder.CreateFNeg(quotient), step, size);
  rest = m.pick(m.less(rest, m.c(0)), m.add(rest, step), rest);
  rest = m.pick(builder.CreateFCmpOEQ(step, m.c(kInfinity)), size, rest);
  Value* common = builder.CreateFPTrunc(m.copysign(rest, wide), x->getType());
  Value* rare = builder.CreateFCmpUGE(quotient, m.c(0x1p29));
  return arithmetic.call_rare_lanes("fmod_f32", {x, y}, rare, common);
}

}  // namespace rushlight::codegen
