// erf and erfc of f64.
#include "codegen/math_f64.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

constexpr double kNear = 0.9375;

// erf(x) - x for |x| < kNear.
Value* near_tail(MathBuilder& m, Value* x) {
  Value* p = m.polynomial(m.mul(x, x),
                          {0x1.06eba8214db68p-3, -0x1.812746b03799ap-2, 0x1.ce2f21a03f44dp-4,
                           -0x1.b82ce3118bf73p-6, 0x1.565bcce94e6eep-8, -0x1.c02dad9551c9bp-11,
                           0x1.f9a2737d6bc08p-14, -0x1.f4c5850221626p-17, 0x1.b94af3e409c00p-20,
                           -0x1.5a9c2c9f9cac9p-23, 0x1.cc1b1aa81bf10p-27, -0x1.86d6f4a5b77c7p-31});
  return m.mul(x, p);
}

Value* emit_erf(MathBuilder& m, Value* x) {
  Value* size = m.abs(x);
  Value* near = m.add(size, near_tail(m, size));
  // 1 - erfc, whose logarithm is smooth: in |x| - 1, weighted by erfc.
  Value* bounded = m.at_most(size, 5.95);
  Value* q = m.polynomial(
      m.sub(bounded, m.c(1)),
      {-0x1.d97fbf27aa2a1p+0, -0x1.51c9b0006c23fp+1, -0x1.afabc11a28f3dp-1, -0x1.5477f09ca28e9p-5,
       0x1.48c9d40bd2001p-7, -0x1.033f69a94abaap-9, 0x1.f1b4c200943edp-13, 0x1.b8be8e4d04e0ap-16,
       -0x1.c75e4eb41b0f2p-16, 0x1.417ca80d4736cp-17, -0x1.10016a3bf967cp-19, 0x1.e88c1fbdf0354p-24,
       0x1.f4247a7c237a5p-24, -0x1.063b78ac856b1p-24, 0x1.35b25698c4c62p-26, -0x1.f192e3c834258p-29,
       0x1.0d92b06903c14p-31, -0x1.64cee4773cf84p-35, 0x1.b3bb034a659c3p-40});
  Value* far = m.sub(m.c(1), exp_middle_f64(m, q));
  return m.copysign(m.pick(m.less(size, m.c(kNear)), near, far), x);
}

// Far out erfc(x) = exp(-x^2) g(t) / (x + 3) with t = 1/4 - 6 / (x + 3), so centred that rounding
// g's terms costs least; what rounding x^2, x + 3 and t loses goes into the exponential.
Value* emit_erfc(MathBuilder& m, Value* x) {
  Value* near = m.sub(m.sub(m.c(1), x), near_tail(m, x));

  Value* size = m.at_most(m.abs(x), 28);
  Value* bottom = m.add(size, m.c(3));
  Value* bottom_low = m.sub(size, m.sub(bottom, m.c(3)));
  Value* inverse = m.div(m.c(1), bottom);
  Value* square = m.mul(size, size);
  Value* lost = m.fma(size, size, m.b.CreateFNeg(square));
  // 1 / (x + 3) = inverse (1 + error).
  Value* error = m.fma(m.b.CreateFNeg(bottom), inverse, m.c(1));
  error = m.fma(m.b.CreateFNeg(bottom_low), inverse, error);
  Value* turned = m.mul(inverse, m.c(-6));
  Value* t = m.add(turned, m.c(0.25));
  Value* t_low = m.add(m.sub(turned, t), m.c(0.25));
  t_low = m.add(t_low, m.fma(inverse, m.c(-6), m.b.CreateFNeg(turned)));
  t_low = m.fma(turned, error, t_low);
  // By about this much the logarithm of g changes with t.
  Value* slope = m.fma(t, m.c(0.39), m.c(-0.55));
  Value* correction = m.fma(t_low, slope, m.sub(error, lost));
  // The first terms one by one, two of them with what rounding them loses: theirs is most.
  Value* g =
      m.polynomial(t, {0x1.ead05c65872c1p-9, -0x1.1effc4e995be9p-11, -0x1.38e642003039fp-13,
                       0x1.1c5e2ea2aeff4p-13, -0x1.4872f299218bbp-15, -0x1.eea0803950e2ep-19,
                       0x1.0b4327673e35bp-17, -0x1.1b96c4c3529a0p-18, -0x1.175cf0b19e4abp-18,
                       -0x1.1a92799a47fd6p-18, -0x1.4ab56299a76a7p-18, -0x1.b0c6fb7252830p-19,
                       -0x1.36b3d0c8e8ebep-20, -0x1.dcff657bdf302p-23, -0x1.377a4f84dea0fp-26});
  for (double next :
       {-0x1.b99d6d61b4d5fp-7, 0x1.332a0847d819ep-5, -0x1.6c43dfcfefeabp-4, 0x1.8081f2a910e1dp-3}) {
    g = m.fma(t, g, m.c(next));
  }
  constexpr double kSecond = -0x1.721194930ef38p-2;
  constexpr double kFirst = 0x1.49c22b3a245d9p-1;
  Value* second = m.fma(t, g, m.c(kSecond));
  Value* second_low = m.fma(t, g, m.sub(m.c(kSecond), second));
  Value* first = m.fma(t, second, m.c(kFirst));
  Value* first_low = m.fma(t, second, m.sub(m.c(kFirst), first));
  first_low = m.fma(t, second_low, first_low);
  Value* factor = m.mul(first, inverse);
  Value* factor_low = m.fma(first, inverse, m.b.CreateFNeg(factor));
  factor_low = m.fma(first_low, inverse, factor_low);
  Value* far = exp_product_f64(m, m.b.CreateFNeg(square), correction, {factor, factor_low});
  far = m.pick(m.less(x, m.c(0)), m.sub(m.c(2), far), far);
  return m.pick(m.less(m.abs(x), m.c(0.8125)), near, far);
}

}  // namespace

Value* emit_error_f64(MathBuilder& m, Op op, Value* x) {
  switch (op) {
    case Op::Erf:
      return emit_erf(m, x);
    case Op::Erfc:
      return emit_erfc(m, x);
    default:
      return nullptr;
  }
}

}  // namespace rushlight::codegen
