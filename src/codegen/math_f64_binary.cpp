// pow and hypot of f64.
#include "codegen/math_f64.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

// The exact product is high + low.
PairF64 product(MathBuilder& m, Value* x, Value* y) {
  Value* high = m.mul(x, y);
  return {high, m.fma(x, y, m.b.CreateFNeg(high))};
}

// x + y for |x| >= |y|, or x = 0.
PairF64 sum(MathBuilder& m, Value* x, Value* y) {
  Value* high = m.add(x, y);
  return {high, m.add(m.sub(x, high), y)};
}

// log2(x) of a finite x > 0 within 2^-64 of itself. With x = 2^k (1 + f), 1 + f in [sqrt(1/2),
// sqrt(2)), and s = f / (2 + f): k + 2 log2(e) s (1 + s^2 / 3 + s^4 q(s^2)).
PairF64 log2_pair(MathBuilder& m, Value* x) {
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  Value* tiny = m.less(x, m.c(0x1p-1022));
  Value* bits = m.bits(m.pick(tiny, m.mul(x, m.c(0x1p54)), x));
  Value* moved = m.b.CreateAdd(bits, m.i((int64_t{1023} << 52) - kRootHalf));
  Value* biased = m.b.CreateLShr(moved, m.i(52));
  Value* k = m.from_bits(m.b.CreateOr(biased, m.bits(m.c(0x1p52))));
  k = m.sub(k, m.pick(tiny, m.c(0x1p52 + 1023 + 54), m.c(0x1p52 + 1023)));
  Value* fraction = m.b.CreateAnd(moved, m.i((int64_t{1} << 52) - 1));
  Value* f = m.sub(m.from_bits(m.b.CreateAdd(fraction, m.i(kRootHalf))), m.c(1));

  PairF64 bottom = sum(m, m.c(2), f);
  Value* inverse = m.div(m.c(1), bottom.high);
  Value* s = m.mul(f, inverse);
  Value* back = m.b.CreateFNeg(s);
  Value* s_low = m.mul(m.fma(back, bottom.low, m.fma(back, bottom.high, f)), inverse);
  PairF64 z = product(m, s, s);
  z.low = m.fma(m.add(s, s), s_low, z.low);
  Value* q = m.polynomial(z.high, {0x1.9999999999996p-3, 0x1.2492492492f56p-3, 0x1.c71c71c595a15p-4,
                                   0x1.745d1829e7f56p-4, 0x1.3b13649c5a1ccp-4, 0x1.112076a6f6971p-4,
                                   0x1.de3c29d0a4d5ep-5, 0x1.ead0ffde8c7ccp-5});
  PairF64 third = product(m, z.high, m.c(0x1.5555555555555p-2));
  third.low = m.fma(z.high, m.c(0x1.5555555555555p-56), third.low);
  third.low = m.fma(z.low, m.c(0x1.5555555555555p-2), third.low);
  PairF64 p = sum(m, third.high, m.mul(m.mul(z.high, z.high), q));
  p.low = m.add(p.low, third.low);

  PairF64 head = product(m, s, m.c(2 * kLog2eF64));
  head.low = m.fma(s, m.c(0x1.777d0ffda0d24p-55), head.low);
  head.low = m.fma(s_low, m.c(2 * kLog2eF64), head.low);
  PairF64 rest = product(m, head.high, p.high);
  rest.low = m.fma(head.high, p.low, m.fma(head.low, p.high, rest.low));
  PairF64 part = sum(m, head.high, rest.high);
  part.low = m.add(part.low, m.add(head.low, rest.low));
  PairF64 whole = sum(m, k, part.high);
  return sum(m, whole.high, m.add(whole.low, part.low));
}

// 2^(y log2 |x|), the sign and the cases of C after it.
Value* emit_pow(MathBuilder& m, Value* x, Value* y) {
  constexpr double kInfinity = __builtin_inf();
  Value* size = m.abs(x);
  PairF64 log = log2_pair(m, size);
  Value* zero = m.b.CreateFCmpOEQ(size, m.c(0));
  Value* finite = m.less(size, m.c(kInfinity));
  // NaN, too, becomes a logarithm of itself.
  Value* high = m.pick(zero, m.c(-kInfinity), m.pick(finite, log.high, size));
  Value* head = m.mul(y, high);
  Value* tail = m.fma(y, log.low, m.fma(y, high, m.b.CreateFNeg(head)));
  Value* inside = m.less(m.abs(head), m.c(1080));
  Value* result =
      exp2_sum_f64(m, m.at_least(m.at_most(head, 1025), -1080), m.pick(inside, tail, m.c(0)));

  Value* even = m.mul(y, m.c(0.5));
  auto is_whole = [&](Value* v) {
    return m.b.CreateFCmpOEQ(m.b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v), v);
  };
  Value* whole = is_whole(y);
  Value* odd = m.b.CreateAnd(whole, m.b.CreateNot(is_whole(even)));
  result = m.pick(odd, m.copysign(result, x), result);
  // A finite negative base has powers with whole exponents only.
  Value* negative = m.b.CreateAnd(m.less(x, m.c(0)), finite);
  Value* undefined = m.b.CreateAnd(negative, m.b.CreateNot(whole));
  result = m.pick(undefined, m.c(__builtin_nan("")), result);
  // 1^y = x^0 = 1 even where the other is NaN, and (-1)^(+-inf) = 1.
  Value* unit = m.b.CreateFCmpOEQ(x, m.c(1));
  unit = m.b.CreateOr(unit, m.b.CreateFCmpOEQ(y, m.c(0)));
  Value* endless = m.b.CreateFCmpOEQ(m.abs(y), m.c(kInfinity));
  unit = m.b.CreateOr(unit, m.b.CreateAnd(endless, m.b.CreateFCmpOEQ(size, m.c(1))));
  return m.pick(unit, m.c(1), result);
}

Value* emit_hypot(MathBuilder& m, Value* x, Value* y) {
  constexpr double kInfinity = __builtin_inf();
  Value* a = m.abs(x);
  Value* b = m.abs(y);
  Value* swapped = m.less(a, b);
  Value* large = m.pick(swapped, b, a);
  Value* small = m.pick(swapped, a, b);
  // Powers of two that keep the squares in range.
  Value* huge = m.greater(large, m.c(0x1p500));
  Value* tiny = m.less(large, m.c(0x1p-400));
  Value* up = m.pick(huge, m.c(0x1p-600), m.pick(tiny, m.c(0x1p600), m.c(1)));
  Value* down = m.pick(huge, m.c(0x1p600), m.pick(tiny, m.c(0x1p-600), m.c(1)));
  large = m.mul(large, up);
  small = m.mul(small, up);
  Value* square = m.fma(large, large, m.mul(small, small));
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, square);
  Value* endless =
      m.b.CreateOr(m.b.CreateFCmpOEQ(a, m.c(kInfinity)), m.b.CreateFCmpOEQ(b, m.c(kInfinity)));
  return m.pick(endless, m.c(kInfinity), m.mul(root, down));
}

}  // namespace

Value* emit_binary_f64(MathBuilder& m, Op op, Value* x, Value* y) {
  switch (op) {
    case Op::Pow:
      return emit_pow(m, x, y);
    case Op::Hypot:
      return emit_hypot(m, x, y);
    case Op::Atan2:
      return emit_atan2_f64(m, x, y);
    default:
      return nullptr;
  }
}

}  // namespace rushlight::codegen
