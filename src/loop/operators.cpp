// The operators and functions that bodies are written with.
#include <limits>

#include "loop/node.h"

namespace rushlight::loop {

#define RUSHLIGHT_OPERATOR(symbol, op)      \
  Expr operator symbol(Expr a, Expr b) {    \
    return binary(Op::op, a, b);            \
  }                                         \
  Expr operator symbol(Expr a, double b) {  \
    return a symbol constant(b, a.dtype()); \
  }
RUSHLIGHT_OPERATOR(+, Add)
RUSHLIGHT_OPERATOR(-, Sub)
RUSHLIGHT_OPERATOR(*, Mul)
RUSHLIGHT_OPERATOR(/, Div)
RUSHLIGHT_OPERATOR(<, Lt)
RUSHLIGHT_OPERATOR(<=, Le)
RUSHLIGHT_OPERATOR(>, Gt)
RUSHLIGHT_OPERATOR(>=, Ge)
RUSHLIGHT_OPERATOR(==, Eq)
RUSHLIGHT_OPERATOR(!=, Ne)
#undef RUSHLIGHT_OPERATOR

Expr operator+(double a, Expr b) {
  return constant(a, b.dtype()) + b;
}
Expr operator-(double a, Expr b) {
  return constant(a, b.dtype()) - b;
}
Expr operator*(double a, Expr b) {
  return constant(a, b.dtype()) * b;
}
Expr operator/(double a, Expr b) {
  return constant(a, b.dtype()) / b;
}

Expr operator-(Expr a) {
  return unary(Op::Neg, a);
}
Expr operator~(Expr a) {
  return unary(Op::Not, a);
}
Expr operator&(Expr a, Expr b) {
  return binary(Op::And, a, b);
}
Expr operator|(Expr a, Expr b) {
  return binary(Op::Or, a, b);
}
Expr operator^(Expr a, Expr b) {
  return binary(Op::Xor, a, b);
}

#define RUSHLIGHT_FUNCTION(name, op) \
  Expr name(Expr x) {                \
    return unary(Op::op, x);         \
  }
RUSHLIGHT_FUNCTION(sqrt, Sqrt)
RUSHLIGHT_FUNCTION(floor, Floor)
RUSHLIGHT_FUNCTION(ceil, Ceil)
RUSHLIGHT_FUNCTION(trunc, Trunc)
RUSHLIGHT_FUNCTION(round, Round)
RUSHLIGHT_FUNCTION(exp, Exp)
RUSHLIGHT_FUNCTION(exp2, Exp2)
RUSHLIGHT_FUNCTION(expm1, Expm1)
RUSHLIGHT_FUNCTION(log, Log)
RUSHLIGHT_FUNCTION(log2, Log2)
RUSHLIGHT_FUNCTION(log10, Log10)
RUSHLIGHT_FUNCTION(log1p, Log1p)
RUSHLIGHT_FUNCTION(sin, Sin)
RUSHLIGHT_FUNCTION(cos, Cos)
RUSHLIGHT_FUNCTION(tan, Tan)
RUSHLIGHT_FUNCTION(asin, Asin)
RUSHLIGHT_FUNCTION(acos, Acos)
RUSHLIGHT_FUNCTION(atan, Atan)
RUSHLIGHT_FUNCTION(sinh, Sinh)
RUSHLIGHT_FUNCTION(cosh, Cosh)
RUSHLIGHT_FUNCTION(tanh, Tanh)
RUSHLIGHT_FUNCTION(asinh, Asinh)
RUSHLIGHT_FUNCTION(acosh, Acosh)
RUSHLIGHT_FUNCTION(atanh, Atanh)
RUSHLIGHT_FUNCTION(erf, Erf)
RUSHLIGHT_FUNCTION(erfc, Erfc)
RUSHLIGHT_FUNCTION(erfinv, Erfinv)
RUSHLIGHT_FUNCTION(lgamma, Lgamma)
RUSHLIGHT_FUNCTION(digamma, Digamma)
RUSHLIGHT_FUNCTION(isnan, IsNan)
#undef RUSHLIGHT_FUNCTION

Expr abs(Expr x) {
  return is_complex(x.dtype()) ? binary(Op::Hypot, real(x), imag(x)) : unary(Op::Abs, x);
}
Expr conj(Expr x) {
  return is_complex(x.dtype()) ? complex(real(x), -imag(x)) : x;
}
Expr rsqrt(Expr x) {
  return 1 / sqrt(x);
}
Expr sigmoid(Expr x) {
  if (is_complex(x.dtype())) {
    // By the exponential that does not overflow: infinity over infinity is NaN.
    Expr right = real(x) >= 0.0;
    Expr small = exp(where(right, -x, x));
    return where(right, 1.0, small) / (1.0 + small);
  }
  return 1 / (1 + exp(-x));
}
Expr isinf(Expr x) {
  if (is_complex(x.dtype())) {
    return isinf(real(x)) | isinf(imag(x));
  }
  return abs(x) == std::numeric_limits<double>::infinity();
}
Expr max(Expr a, Expr b) {
  return binary(Op::Max, a, b);
}
Expr min(Expr a, Expr b) {
  return binary(Op::Min, a, b);
}
Expr pow(Expr a, Expr b) {
  return binary(Op::Pow, a, b);
}

Expr where(Expr condition, Expr a, Expr b) {
  return select(condition, a, b);
}
Expr where(Expr condition, Expr a, double b) {
  return select(condition, a, constant(b, a.dtype()));
}
Expr where(Expr condition, double a, Expr b) {
  return select(condition, constant(a, b.dtype()), b);
}

}  // namespace rushlight::loop
