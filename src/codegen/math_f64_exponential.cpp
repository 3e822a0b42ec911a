// exp, exp2, expm1, tanh, sinh and cosh of f64.
#include "codegen/math_f64.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

WholeF64 nearest_f64(MathBuilder& m, Value* x, Value* factor) {
  Value* rounder = m.c(kRounderF64);
  Value* moved = factor ? m.fma(x, factor, rounder) : m.add(x, rounder);
  return {m.sub(moved, rounder), m.b.CreateSub(m.bits(moved), m.bits(rounder))};
}

Value* power_of_two_f64(MathBuilder& m, Value* exponent) {
  return m.from_bits(m.b.CreateShl(m.b.CreateAdd(exponent, m.i(1023)), m.i(52)));
}

// In two steps, by halves of the exponent. The sum is positive, so that a logical shift halves it;
// AVX2 has no other for 64 bits.
Value* scale_f64(MathBuilder& m, Value* y, Value* exponent) {
  Value* biased = m.b.CreateAdd(exponent, m.i(2 * 1023));
  Value* half = m.b.CreateLShr(biased, m.i(1));
  Value* rest = m.b.CreateSub(biased, half);
  Value* first = m.from_bits(m.b.CreateShl(half, m.i(52)));
  Value* second = m.from_bits(m.b.CreateShl(rest, m.i(52)));
  return m.mul(m.mul(y, first), second);
}

namespace {

// exp(r) - 1 for |r| <= ln(2) / 2, within 2^-57.
Value* exp_tail(MathBuilder& m, Value* r) {
  Value* q = m.polynomial(
      r, {0x1.000000000000cp-1, 0x1.5555555555558p-3, 0x1.555555554fdb9p-5, 0x1.111111110ff4fp-7,
          0x1.6c16c1862ea0ap-10, 0x1.a01a01ab222f4p-13, 0x1.a0199525a4e8fp-16,
          0x1.71de0700b76fdp-19, 0x1.28b19cf4070bcp-22, 0x1.af4145b33ac89p-26});
  return m.fma(m.mul(r, r), q, r);
}

Value* exp_core(MathBuilder& m, Value* r) {
  return m.add(exp_tail(m, r), m.c(1));
}

// x - whole * ln 2. The first step is exact.
Value* reduce_by_ln2(MathBuilder& m, Value* x, Value* whole) {
  Value* r = m.fma(whole, m.c(-kLn2HighF64), x);
  return m.fma(whole, m.c(-kLn2LowF64), r);
}

Value* emit_exp(MathBuilder& m, Value* x) {
  x = m.at_least(m.at_most(x, 710), -746);
  WholeF64 n = nearest_f64(m, x, m.c(kLog2eF64));
  return scale_f64(m, exp_core(m, reduce_by_ln2(m, x, n.value)), n.word);
}

Value* emit_exp2(MathBuilder& m, Value* x) {
  return exp2_sum_f64(m, m.at_least(m.at_most(x, 1025), -1080), nullptr);
}

Value* emit_expm1(MathBuilder& m, Value* x) {
  // Halved, so that 2^1024 stays in range.
  PairF64 half = expm1_f64(m, m.at_least(m.at_most(x, 710), -44), 1);
  Value* sum = m.add(half.high, half.low);
  return m.pick(m.less(m.abs(x), m.c(0x1p-54)), x, m.add(sum, sum));
}

// T / (2 - T) with T = 1 - exp(-2 |x|), which never exceeds 1.
Value* emit_tanh(MathBuilder& m, Value* x) {
  Value* size = m.at_most(m.abs(x), 22);
  PairF64 e = expm1_f64(m, m.mul(size, m.c(-2)), 0);
  Value* top = m.b.CreateFNeg(e.high);
  Value* bottom = m.add(m.c(2), e.high);
  Value* inverse = m.div(m.c(1), bottom);
  Value* quotient = m.mul(top, inverse);
  // What the quotient leaves over, with the low parts of both.
  Value* low = m.add(m.add(m.sub(m.c(2), bottom), e.high), e.low);
  Value* rest = m.sub(m.fma(m.b.CreateFNeg(quotient), bottom, top), e.low);
  rest = m.fma(m.b.CreateFNeg(quotient), low, rest);
  Value* result = m.fma(rest, inverse, quotient);
  return m.copysign(m.pick(m.less(size, m.c(0x1p-28)), size, result), x);
}

// With E = exp(|x|) - 1: sinh = (E + E / (E + 1)) / 2, cosh = (E + 1 + 1 / (E + 1)) / 2, all by
// quarters, so that they overflow only where the result does.
Value* emit_sinh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  PairF64 e = expm1_f64(m, m.at_most(size, 710.5), 2);
  Value* other = m.div(e.high, m.fma(e.high, m.c(4), m.c(1)));
  Value* sum = m.add(e.high, m.add(other, e.low));
  Value* result = m.pick(m.less(size, m.c(0x1p-28)), size, m.add(sum, sum));
  return m.copysign(result, x);
}

Value* emit_cosh(MathBuilder& m, Value* x) {
  PairF64 e = expm1_f64(m, m.at_most(m.abs(x), 710.5), 2);
  Value* t = m.add(e.high, m.c(0.25));
  Value* lost = m.add(m.add(m.sub(m.c(0.25), t), e.high), e.low);
  Value* sum = m.add(t, m.add(m.div(m.c(0.0625), t), lost));
  return m.add(sum, sum);
}

}  // namespace

Value* exp_middle_f64(MathBuilder& m, Value* x) {
  WholeF64 n = nearest_f64(m, x, m.c(kLog2eF64));
  Value* core = exp_core(m, reduce_by_ln2(m, x, n.value));
  return m.mul(core, power_of_two_f64(m, n.word));
}

Value* exp_product_f64(MathBuilder& m, Value* x, Value* low, PairF64 factor) {
  WholeF64 n = nearest_f64(m, x, m.c(kLog2eF64));
  Value* tail = exp_tail(m, m.add(reduce_by_ln2(m, x, n.value), low));
  Value* core = m.add(m.c(1), tail);
  Value* core_low = m.add(m.sub(m.c(1), core), tail);
  Value* product = m.mul(core, factor.high);
  Value* lost = m.fma(core, factor.high, m.b.CreateFNeg(product));
  lost = m.fma(core_low, factor.high, m.fma(core, factor.low, lost));
  return scale_f64(m, m.add(product, lost), n.word);
}

Value* exp2_sum_f64(MathBuilder& m, Value* head, Value* tail) {
  WholeF64 n = nearest_f64(m, head, nullptr);
  Value* r = m.sub(head, n.value);
  r = tail ? m.add(r, tail) : r;
  Value* q = m.polynomial(r, {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5abp-3, 0x1.c6b08d704a224p-5,
                              0x1.3b2ab6fb9ee0ap-7, 0x1.5d87fe785d388p-10, 0x1.43091312b8d93p-13,
                              0x1.ffcbfdd28f499p-17, 0x1.62bfbdcc318e6p-20, 0x1.b521eb78153f9p-24,
                              0x1.e62c4b8d26526p-28, 0x1.ee8c35b37a1c1p-32});
  return scale_f64(m, m.fma(r, q, m.c(1)), n.word);
}

PairF64 expm1_f64(MathBuilder& m, Value* x, int halvings) {
  WholeF64 n = nearest_f64(m, x, m.c(kLog2eF64));
  Value* first = m.fma(n.value, m.c(-kLn2HighF64), x);
  Value* r = m.fma(n.value, m.c(-kLn2LowF64), first);
  Value* r_low = m.fma(n.value, m.c(-kLn2LowF64), m.sub(first, r));
  Value* q = m.polynomial(r, {0x1.0000000000000p-1, 0x1.555555555555ap-3, 0x1.555555555555dp-5,
                              0x1.111111110f2c5p-7, 0x1.6c16c16c1165dp-10, 0x1.a01a01b19e5cep-13,
                              0x1.a01a01c7d5136p-16, 0x1.71ddf39f5a946p-19, 0x1.27e482f90268dp-22,
                              0x1.af677b1df34a1p-26, 0x1.20148eb547833p-29});
  Value* p = m.mul(m.mul(r, r), q);
  Value* high = m.add(r, p);
  Value* low = m.add(m.sub(r, high), p);
  low = m.add(low, m.fma(r_low, high, r_low));
  // 2^n high + (2^n - 1), and what rounding it loses.
  Value* power = power_of_two_f64(m, m.b.CreateSub(n.word, m.i(halvings)));
  Value* offset = m.sub(power, m.c(1.0 / (1 << halvings)));
  Value* sum = m.fma(power, high, offset);
  Value* lost = m.fma(power, high, m.sub(offset, sum));
  return {sum, m.fma(power, low, lost)};
}

Value* emit_exponential_f64(MathBuilder& m, Op op, Value* x) {
  switch (op) {
    case Op::Exp:
      return emit_exp(m, x);
    case Op::Exp2:
      return emit_exp2(m, x);
    case Op::Expm1:
      return emit_expm1(m, x);
    case Op::Tanh:
      return emit_tanh(m, x);
    case Op::Sinh:
      return emit_sinh(m, x);
    case Op::Cosh:
      return emit_cosh(m, x);
    default:
      return nullptr;
  }
}

}  // namespace rushlight::codegen
