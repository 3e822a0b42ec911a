#include "codegen/math.h"

#include "codegen/arithmetic.h"
#include "codegen/math_builder.h"
#include "codegen/math_inverse.h"
#include "codegen/math_shared.h"
#include "codegen/math_trigonometric.h"
#include "codegen/math_wide.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

std::string_view loop_op_text(Op op) {
  static constexpr std::string_view names[] = {
#define RUSHLIGHT_TEXT(op, text, arity, typing, kinds) text,
      RUSHLIGHT_LOOP_OPS(RUSHLIGHT_TEXT)
#undef RUSHLIGHT_TEXT
  };
  return names[static_cast<int>(op)];
}

namespace {

// Polynomials are minimax fits (weighted least squares iterated to equal ripples), rounded to f32
// coefficient by coefficient with the rest refitted.

constexpr double kLog2e = 1.44269504088896341;
constexpr double kLn2High =
    0x1.62e4p-1;  // few bits, so that products with small integers are exact
constexpr double kLn2Low = 0x1.7f7d1cf8p-20;

// Adding 1.5 * 2^23 leaves the integer nearest to a small number in the low bits.
constexpr double kRounder = 12582912;

struct Split {
  Value* whole;     // nearest integer, as a float
  Value* exponent;  // the same, as an integer
};

Split nearest(MathBuilder& m, Value* x, Value* factor) {
  Value* moved = factor ? m.fma(x, factor, m.c(kRounder)) : m.add(x, m.c(kRounder));
  Value* exponent = m.b.CreateSub(m.bits(moved), m.bits(m.c(kRounder)));
  return {m.sub(moved, m.c(kRounder)), exponent};
}

Value* power_of_two(MathBuilder& m, Value* exponent) {
  return m.from_bits(m.b.CreateShl(m.b.CreateAdd(exponent, m.i(127)), m.i(23)));
}

// y * 2^exponent in two steps, so that neither factor leaves the range of normal numbers before the
// product does.
Value* scale(MathBuilder& m, Value* y, Value* exponent) {
  Value* half = m.b.CreateAShr(exponent, m.i(1));
  Value* rest = m.b.CreateSub(exponent, half);
  return m.mul(m.mul(y, power_of_two(m, half)), power_of_two(m, rest));
}

// x - whole * ln 2.
Value* reduce_by_ln2(MathBuilder& m, Value* x, Value* whole) {
  Value* r = m.fma(whole, m.c(-kLn2High), x);
  return m.fma(whole, m.c(-kLn2Low), r);
}

// exp(r) - 1 for |r| <= ln(2) / 2.
Value* exp_core(MathBuilder& m, Value* r) {
  Value* q =
      m.polynomial(r, {0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558aep-5, 0x1.12398p-7, 0x1.6a4f28p-10});
  return m.fma(m.mul(r, r), q, r);
}

Value* emit_exp(MathBuilder& m, Value* x) {
  x = m.at_least(m.at_most(x, 89), -104);
  Split n = nearest(m, x, m.c(kLog2e));
  Value* r = reduce_by_ln2(m, x, n.whole);
  return scale(m, m.add(exp_core(m, r), m.c(1)), n.exponent);
}

// exp of a number known to lie in [-80, 80]: one scaling step.
Value* emit_exp_middle(MathBuilder& m, Value* x) {
  Split n = nearest(m, x, m.c(kLog2e));
  Value* r = reduce_by_ln2(m, x, n.whole);
  return m.mul(m.add(exp_core(m, r), m.c(1)), power_of_two(m, n.exponent));
}

Value* emit_exp2(MathBuilder& m, Value* x) {
  x = m.at_least(m.at_most(x, 129), -151);
  Split n = nearest(m, x, nullptr);
  Value* r = m.sub(x, n.whole);
  Value* q = m.polynomial(r, {0x1.62e43p-1, 0x1.ebfbdcp-3, 0x1.c6af7ap-5, 0x1.3b2dd2p-7,
                              0x1.5f0946p-10, 0x1.417a5cp-13});
  return scale(m, m.fma(r, q, m.c(1)), n.exponent);
}

Value* emit_expm1(MathBuilder& m, Value* x) {
  Value* bounded = m.at_least(m.at_most(x, 89), -20);
  Split n = nearest(m, bounded, m.c(kLog2e));
  Value* r = reduce_by_ln2(m, bounded, n.whole);
  Value* q =
      m.polynomial(r, {0x1.fffffep-2, 0x1.5554b4p-3, 0x1.5556f6p-5, 0x1.122538p-7, 0x1.6b97a6p-10});
  Value* core = m.fma(m.mul(r, r), q, r);
  // 2^n core + (2^n - 1), by halves so that n = 128 stays in range.
  Value* half = power_of_two(m, m.b.CreateSub(n.exponent, m.i(1)));
  Value* sum = m.fma(core, half, m.sub(half, m.c(0.5)));
  return m.pick(m.less(m.abs(x), m.c(0x1p-24)), x, m.add(sum, sum));
}

struct Logarithm {
  Value* exponent;  // k, as a float
  Value* fraction;  // f, with x = 2^k (1 + f) and 1 + f in [sqrt(1/2), sqrt(2))
};

Logarithm split(MathBuilder& m, Value* x) {
  Value* bits = m.bits(x);
  Value* moved = m.b.CreateSub(bits, m.i(0x3f3504f3));
  Value* k = m.b.CreateAShr(moved, m.i(23));
  Value* fraction = m.from_bits(m.b.CreateSub(bits, m.b.CreateShl(k, m.i(23))));
  return {m.b.CreateSIToFP(k, m.real), m.sub(fraction, m.c(1))};
}

// Subnormal numbers are scaled up first.
Logarithm split_any(MathBuilder& m, Value* x) {
  Value* tiny = m.less(x, m.c(0x1p-126));
  Logarithm l = split(m, m.pick(tiny, m.mul(x, m.c(0x1p23)), x));
  l.exponent = m.pick(tiny, m.sub(l.exponent, m.c(23)), l.exponent);
  return l;
}

// log(1 + f) = f + tail, where the tail is -f^2 / 2 + ...
Value* log_tail(MathBuilder& m, Value* f) {
  Value* p =
      m.polynomial(f, {0x1.555548p-2, -0x1.000006p-2, 0x1.99a476p-3, -0x1.555c46p-3, 0x1.233ba8p-3,
                       -0x1.fc2884p-4, 0x1.e6bf38p-4, -0x1.de02d6p-4, 0x1.14763ap-4});
  Value* square = m.mul(f, f);
  return m.fma(m.mul(f, p), square, m.mul(square, m.c(-0.5)));
}

Value* emit_log(MathBuilder& m, Value* x) {
  Logarithm l = split_any(m, x);
  Value* tail = m.fma(l.exponent, m.c(kLn2Low), log_tail(m, l.fraction));
  Value* sum = m.fma(l.exponent, m.c(kLn2High), m.add(l.fraction, tail));
  return log_special(m, x, sum);
}

// k * high + (k * low + factor * log(1 + f)), the factor in two parts.
Value* emit_log_of_base(MathBuilder& m, Value* x, double factor, double high, double low) {
  Logarithm l = split_any(m, x);
  double factor_high = static_cast<float>(factor);
  Value* tail = log_tail(m, l.fraction);
  Value* small = m.fma(l.fraction, m.c(factor - factor_high), m.mul(tail, m.c(factor_high)));
  small = m.fma(l.exponent, m.c(low), small);
  Value* sum = m.fma(l.fraction, m.c(factor_high), small);
  return log_special(m, x, m.fma(l.exponent, m.c(high), sum));
}

Value* emit_log1p(MathBuilder& m, Value* x) {
  Value* u = m.add(x, m.c(1));
  Logarithm l = split(m, u);
  // What rounding 1 + x lost, as a part of u.
  Value* big = m.greater(x, m.c(1));
  Value* lost = m.pick(big, m.sub(m.c(1), m.sub(u, x)), m.sub(x, m.sub(u, m.c(1))));
  Value* correction = m.div(lost, u);
  Value* tail = m.fma(l.exponent, m.c(kLn2Low), m.add(log_tail(m, l.fraction), correction));
  Value* sum = m.fma(l.exponent, m.c(kLn2High), m.add(l.fraction, tail));
  Value* result = log_special(m, u, sum);
  return m.pick(m.less(m.abs(x), m.c(0x1p-24)), x, result);
}

Value* emit_tanh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* square = m.mul(x, x);
  Value* p = m.polynomial(
      square, {-0x1.555532p-2, 0x1.1106fcp-3, -0x1.b83738p-5, 0x1.5207b8p-6, -0x1.75619ap-8});
  Value* near = m.fma(m.mul(square, size), p, size);
  Value* bounded = m.at_most(size, 10);
  Value* e = emit_exp_middle(m, m.add(bounded, bounded));
  Value* far = m.sub(m.c(1), m.div(m.c(2), m.add(e, m.c(1))));
  return m.copysign(m.pick(m.less(size, m.c(0.625)), near, far), x);
}

// Half of exp(|x|), which is in range where the result is.
Value* half_exp(MathBuilder& m, Value* size) {
  Value* bounded = m.at_most(size, 90);
  Split n = nearest(m, bounded, m.c(kLog2e));
  Value* r = reduce_by_ln2(m, bounded, n.whole);
  return scale(m, m.add(exp_core(m, r), m.c(1)), m.b.CreateSub(n.exponent, m.i(1)));
}

Value* emit_sinh(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* square = m.mul(x, x);
  Value* p = m.polynomial(square, {0x1.555556p-3, 0x1.1110ep-7, 0x1.a022bcp-13, 0x1.756c1ep-19});
  Value* near = m.fma(m.mul(square, size), p, size);
  Value* half = half_exp(m, size);
  Value* far = m.sub(half, m.div(m.c(0.25), half));
  return m.copysign(m.pick(m.less(size, m.c(1)), near, far), x);
}

Value* emit_cosh(MathBuilder& m, Value* x) {
  Value* half = half_exp(m, m.abs(x));
  return m.add(half, m.div(m.c(0.25), half));
}

// 1 - exp(-s), where s = -log(1 - erf(|x|)) is |x| times a polynomial, whose first coefficient is
// given in two parts. Small results come from exp(-s) - 1 without its one, so nothing cancels.
Value* emit_erf(MathBuilder& m, Value* x) {
  Value* size = m.at_most(m.abs(x), 4);
  Value* p =
      m.horner(size, {-0x1.d09e1ep-25, 0x1.45f2fap-1, 0x1.a4fa4ap-4, -0x1.39ccap-6, -0x1.51684ep-13,
                      0x1.b52048p-10, -0x1.4bebcp-11, 0x1.edb5cep-14, -0x1.36d674p-17});
  Value* s = m.b.CreateFNeg(m.fma(size, m.c(0x1.20dd76p+0), m.mul(size, p)));
  Split n = nearest(m, s, m.c(kLog2e));
  Value* power = power_of_two(m, n.exponent);
  Value* core = exp_core(m, reduce_by_ln2(m, s, n.whole));
  return m.copysign(m.fma(m.b.CreateFNeg(power), core, m.sub(m.c(1), power)), x);
}

}  // namespace

Value* inline_math(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, Op op,
                   llvm::ArrayRef<Value*> operands) {
  Value* x = operands[0];
  MathBuilder m(builder, x);
  switch (op) {
    case Op::Exp:
      return emit_exp(m, x);
    case Op::Exp2:
      return emit_exp2(m, x);
    case Op::Expm1:
      return emit_expm1(m, x);
    case Op::Log:
      return emit_log(m, x);
    case Op::Log2:
      return emit_log_of_base(m, x, kLog2e, 1, 0);
    case Op::Log10:
      return emit_log_of_base(m, x, 0.434294481903251828, 0x1.344p-2, 0x1.3509f79fef312p-18);
    case Op::Log1p:
      return emit_log1p(m, x);
    case Op::Tanh:
      return emit_tanh(m, x);
    case Op::Erf:
      return emit_erf(m, x);
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
      return emit_trigonometric(arithmetic, builder, op, x);
    case Op::Sinh:
      return emit_sinh(m, x);
    case Op::Cosh:
      return emit_cosh(m, x);
    case Op::Asin:
      return emit_asin(m, x);
    case Op::Acos:
      return emit_acos(m, x);
    case Op::Atan:
      return emit_atan(m, x);
    case Op::Atan2:
      return emit_atan2(m, x, operands[1]);
    default:
      return wide_math(arithmetic, builder, op, operands);
  }
}

}  // namespace rushlight::codegen
