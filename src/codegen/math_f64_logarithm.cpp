// log, log2, log10, log1p and what follows from them: asinh, acosh, atanh.
#include "codegen/math_f64.h"
#include "codegen/math_shared.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)

struct Logarithm {
  Value* exponent;  // k, as a float
  Value* biased;    // k + 1023
  Value* fraction;  // f, with x = 2^k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2))
};

Logarithm split(MathBuilder& m, Value* x) {
  Value* moved = m.b.CreateAdd(m.bits(x), m.i((int64_t{1023} << 52) - kRootHalf));
  Value* biased = m.b.CreateLShr(moved, m.i(52));
  // Below 2^52 an integer in the low bits of 2^52 becomes a float by a subtraction.
  Value* k = m.from_bits(m.b.CreateOr(biased, m.bits(m.c(0x1p52))));
  Value* low = m.b.CreateAnd(moved, m.i((int64_t{1} << 52) - 1));
  Value* fraction = m.from_bits(m.b.CreateAdd(low, m.i(kRootHalf)));
  return {m.sub(k, m.c(0x1p52 + 1023)), biased, m.sub(fraction, m.c(1))};
}

// Subnormal numbers are scaled up first.
Logarithm split_any(MathBuilder& m, Value* x) {
  Value* tiny = m.less(x, m.c(0x1p-1022));
  Logarithm l = split(m, m.pick(tiny, m.mul(x, m.c(0x1p54)), x));
  l.exponent = m.sub(l.exponent, m.pick(tiny, m.c(54), m.c(0)));
  return l;
}

// log(1 + f) = f + tail, where the tail is -f^2 / 2 + ..., by s = f / (2 + f).
Value* log_tail(MathBuilder& m, Value* f, Value* s) {
  Value* z = m.mul(s, s);
  Value* p = m.polynomial(
      z, {0x1.5555555555593p-1, 0x1.999999997fa02p-2, 0x1.2492494229b7dp-2, 0x1.c71c51d838c73p-3,
          0x1.7466499aa2db0p-3, 0x1.39a097bab7fa7p-3, 0x1.2f11675b1efd8p-3});
  Value* half_square = m.mul(m.mul(f, f), m.c(0.5));
  return m.fma(s, m.fma(z, p, half_square), m.b.CreateFNeg(half_square));
}

Value* log_tail(MathBuilder& m, Value* f) {
  return log_tail(m, f, m.div(f, m.add(f, m.c(2))));
}

Value* emit_log(MathBuilder& m, Value* x) {
  Logarithm l = split_any(m, x);
  Value* tail = m.fma(l.exponent, m.c(kLn2LowF64), log_tail(m, l.fraction));
  Value* sum = m.fma(l.exponent, m.c(kLn2HighF64), m.add(l.fraction, tail));
  return log_special(m, x, sum);
}

// A constant in two parts.
struct Factor {
  double high;
  double low;
};

// k * base + factor * log(1 + f).
Value* emit_log_of_base(MathBuilder& m, Value* x, Factor factor, Factor base) {
  Logarithm l = split_any(m, x);
  Value* tail = log_tail(m, l.fraction);
  Value* small = m.fma(l.fraction, m.c(factor.low), m.mul(tail, m.c(factor.high)));
  small = m.fma(l.exponent, m.c(base.low), small);
  Value* sum = m.fma(l.fraction, m.c(factor.high), small);
  return log_special(m, x, m.fma(l.exponent, m.c(base.high), sum));
}

// 1 + a + a_low as a float and what rounding lost.
PairF64 one_plus(MathBuilder& m, Value* a, Value* a_low) {
  Value* u = m.add(a, m.c(1));
  Value* part = m.sub(u, m.c(1));
  Value* lost = m.add(m.sub(m.c(1), m.sub(u, part)), m.sub(a, part));
  return {u, a_low ? m.add(lost, a_low) : lost};
}

Value* emit_log1p(MathBuilder& m, Value* x) {
  PairF64 u = one_plus(m, x, nullptr);
  Value* result = log_special(m, u.high, log_sum_f64(m, u.high, u.low, nullptr));
  return m.pick(m.less(m.abs(x), m.c(0x1p-54)), x, result);
}

// log1p(x + x^2 / (1 + sqrt(1 + x^2))); log(x) + log(2) where x^2 hides the 1.
Value* emit_asinh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* big = m.greater(size, m.c(0x1p28));
  Value* square = m.mul(size, size);
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, m.add(square, m.c(1)));
  Value* more = m.div(square, m.add(root, m.c(1)));
  Value* sum = m.add(size, more);
  PairF64 u = one_plus(m, sum, m.add(m.sub(size, sum), more));
  Value* log = log_sum_f64(m, m.pick(big, size, u.high), m.pick(big, m.c(0), u.low),
                           m.pick(big, m.c(1), m.c(0)));
  Value* finite = m.less(size, m.c(__builtin_inf()));
  Value* small = m.less(size, m.c(0x1p-28));
  return m.copysign(m.pick(small, size, m.pick(finite, log, size)), x);
}

// log1p(t + sqrt(t (t + 2))) with t = x - 1; log(x) + log(2) where x^2 hides the 1.
Value* emit_acosh(MathBuilder& m, Value* x) {
  Value* big = m.greater(x, m.c(0x1p28));
  Value* t = m.sub(x, m.c(1));
  Value* more = m.add(t, m.c(2));
  Value* square = m.mul(t, more);
  Value* root = m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, square);
  // The root's low part, by one step of Newton; a zero root has none.
  Value* left =
      m.add(m.fma(m.b.CreateFNeg(root), root, square), m.fma(t, more, m.b.CreateFNeg(square)));
  Value* zero = m.b.CreateFCmpOEQ(root, m.c(0));
  Value* root_low = m.div(m.mul(left, m.c(0.5)), m.pick(zero, m.c(1), root));
  Value* sum = m.add(root, t);
  // Either may be the larger.
  Value* part = m.sub(sum, t);
  Value* lost = m.add(m.sub(t, m.sub(sum, part)), m.sub(root, part));
  PairF64 u = one_plus(m, sum, m.add(lost, root_low));
  Value* log = log_sum_f64(m, m.pick(big, x, u.high), m.pick(big, m.c(0), u.low),
                           m.pick(big, m.c(1), m.c(0)));
  Value* valid = m.b.CreateFCmpOGE(x, m.c(1));
  Value* finite = m.less(x, m.c(__builtin_inf()));
  return m.pick(valid, m.pick(finite, log, x), m.c(__builtin_nan("")));
}

// log1p(2 x / (1 - x)) / 2.
Value* emit_atanh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* top = m.add(size, size);
  Value* bottom = m.sub(m.c(1), size);
  Value* bottom_low = m.sub(m.sub(m.c(1), bottom), size);
  Value* inverse = m.div(m.c(1), bottom);
  Value* quotient = m.mul(top, inverse);
  Value* back = m.b.CreateFNeg(quotient);
  Value* rest = m.fma(back, bottom_low, m.fma(back, bottom, top));
  PairF64 u = one_plus(m, quotient, m.mul(rest, inverse));
  Value* half = m.mul(log_sum_f64(m, u.high, u.low, nullptr), m.c(0.5));
  Value* one = m.b.CreateFCmpOEQ(size, m.c(1));
  Value* inside = m.less(size, m.c(1));
  Value* edge = m.pick(one, m.c(__builtin_inf()), m.c(__builtin_nan("")));
  Value* result = m.pick(m.less(size, m.c(0x1p-28)), size, m.pick(inside, half, edge));
  return m.copysign(result, x);
}

}  // namespace

Value* log_sum_f64(MathBuilder& m, Value* u, Value* low, Value* extra) {
  Logarithm l = split(m, u);
  Value* s = m.div(l.fraction, m.add(l.fraction, m.c(2)));
  // low / u = low 2^-k / (1 + f), the last by its series in s: 1 - 2 s + 2 s^2. By halves, so that
  // 2^-1024 / 2 does not go below zero.
  Value* down = m.from_bits(m.b.CreateShl(m.b.CreateSub(m.i(2 * 1023 + 1), l.biased), m.i(52)));
  Value* inverse = m.fma(s, m.sub(s, m.c(1)), m.c(0.5));
  Value* tail = m.fma(m.mul(low, down), inverse, log_tail(m, l.fraction, s));
  Value* k = extra ? m.add(l.exponent, extra) : l.exponent;
  tail = m.fma(k, m.c(kLn2LowF64), tail);
  return m.fma(k, m.c(kLn2HighF64), m.add(l.fraction, tail));
}

Value* emit_logarithm_f64(MathBuilder& m, Op op, Value* x) {
  switch (op) {
    case Op::Log:
      return emit_log(m, x);
    case Op::Log2:
      return emit_log_of_base(m, x, {kLog2eF64, 0x1.777d0ffda0d24p-56}, {1, 0});
    case Op::Log10:
      return emit_log_of_base(m, x, {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57},
                              {0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59});
    case Op::Log1p:
      return emit_log1p(m, x);
    case Op::Asinh:
      return emit_asinh(m, x);
    case Op::Acosh:
      return emit_acosh(m, x);
    case Op::Atanh:
      return emit_atanh(m, x);
    default:
      return nullptr;
  }
}

}  // namespace rushlight::codegen
