#include "loop/complex_math.h"

#include <limits>
#include <numbers>

namespace rushlight::loop {
namespace {

using std::numbers::ln10;
using std::numbers::ln2;
using std::numbers::pi;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr number(double value, Pair like) {
  return constant(value, like.real.dtype());
}

Expr hypot(Expr a, Expr b) {
  return binary(Op::Hypot, a, b);
}

Expr magnitude(Pair z) {
  return is_real(z) ? abs(z.real) : hypot(z.real, z.imag);
}

Expr argument(Pair z) {
  return binary(Op::Atan2, z.imag, z.real);
}

Pair scale(Pair z, double factor) {
  return {z.real * factor, z.imag * factor};
}

// i z and -i z: what relates the functions of the circle to those of the hyperbola.
Pair turn(Pair z) {
  return {-z.imag, z.real};
}
Pair turn_back(Pair z) {
  return {z.imag, -z.real};
}

// 1 - z and z - 1, z + 1: the sign of a zero imaginary part is kept, as branch cuts ask.
Pair one_minus(Pair z) {
  return {1 - z.real, -z.imag};
}
Pair minus_one(Pair z) {
  return {z.real - 1, z.imag};
}
Pair plus_one(Pair z) {
  return {z.real + 1, z.imag};
}

// At infinities and NaN the functions follow Annex G of the C standard.

Expr signed_like(double size, Expr sign) {
  return binary(Op::CopySign, constant(size, sign.dtype()), sign);
}

// Infinite or NaN.
Expr no_number(Expr x) {
  return isinf(x) | isnan(x);
}

Expr is_endless(Pair z) {
  return isinf(z.real) | isinf(z.imag);
}

// magnitude * (cos angle + i sin angle); an angle of 0 stays 0 at infinite magnitudes, and one that
// says nothing leaves magnitudes of 0 and infinity as they are.
Pair polar(Expr size, Expr angle) {
  Expr real = where(isinf(size) & no_number(angle), size, size * cos(angle));
  Expr none = size == 0;
  return {where(none, 0, real), where(angle == 0, angle, where(none, 0, size * sin(angle)))};
}

Pair exponential(Pair z) {
  return polar(exp(z.real), z.imag);
}

Pair exponential_minus_one(Pair z) {
  Expr half = sin(z.imag * 0.5);
  return {expm1(z.real) * cos(z.imag) - 2 * half * half, exponential(z).imag};
}

// log|1 + w| of |z|^2 = 1 + w is exact near 1, where the logarithm of |z| would cancel.
Expr log_magnitude(Pair z) {
  Expr size = hypot(z.real, z.imag);
  Expr a = max(abs(z.real), abs(z.imag));
  Expr b = min(abs(z.real), abs(z.imag));
  Expr near = 0.5 * log1p((a - 1) * (a + 1) + b * b);
  return where((size > 0.5) & (size < 2.0), near, log(size));
}

Pair logarithm(Pair z) {
  return {log_magnitude(z), argument(z)};
}

Pair logarithm_plus_one(Pair z) {
  Pair w = plus_one(z);
  Expr near = 0.5 * log1p(z.real * (z.real + 2) + z.imag * z.imag);
  Expr small = (abs(z.real) < 0.5) & (abs(z.imag) < 0.5);
  return {where(small, near, log_magnitude(w)), argument(w)};
}

Pair square_root(Pair z) {
  Expr root = sqrt(0.5 * abs(z.real) + 0.5 * hypot(z.real, z.imag));
  Expr other = where(root == 0, abs(z.imag), 0.5 * abs(z.imag) / root);
  Expr endless = isinf(z.imag);
  Expr right = z.real >= 0;
  Expr real = where(endless, abs(z.imag), where(right, root, other));
  Expr imag = where(endless, abs(z.imag), where(right, other, root));
  return {real, binary(Op::CopySign, imag, z.imag)};
}

Pair hyperbolic_sine(Pair z) {
  Expr kept = (z.real == 0) | (isinf(z.real) & no_number(z.imag));
  return {where(kept, z.real, sinh(z.real) * cos(z.imag)),
          where(z.imag == 0, z.imag, cosh(z.real) * sin(z.imag))};
}

Pair hyperbolic_cosine(Pair z) {
  Expr kept = isinf(z.real) & no_number(z.imag);
  Expr zero = signed_like(0, z.real) * signed_like(1, z.imag);
  return {where(kept, abs(z.real), cosh(z.real) * cos(z.imag)),
          where((z.imag == 0) | (z.real == 0), zero, sinh(z.real) * sin(z.imag))};
}

// Kahan's form; past `far` the real part is 1 in this precision and sinh^2 would overflow.
Pair hyperbolic_tangent(Pair z) {
  Expr far = number(z.real.dtype() == DType::Float64 ? 22.0 : 11.0, z);
  Expr x = where(abs(z.real) > far, binary(Op::CopySign, far, z.real), z.real);
  Expr slope = tan(z.imag);
  Expr beta = 1 + slope * slope;
  Expr s = sinh(x);
  Expr divisor = 1 + beta * s * s;
  Expr decay = exp(-abs(z.real));
  Expr faint = 4 * (sin(z.imag) * cos(z.imag)) * decay * decay;
  Expr beyond = abs(z.real) > far;
  Expr real = where(z.real == 0, z.real, beta * cosh(x) * s / divisor);
  Expr imag = where(z.imag == 0, z.imag, slope / divisor);
  return {where(beyond, signed_like(1, z.real), real),
          where(beyond, where(no_number(z.imag), 0, faint), imag)};
}

// Kahan: "Branch cuts for complex elementary functions".
Pair arc_sine(Pair z) {
  Pair below = square_root(one_minus(z));
  Pair above = square_root(plus_one(z));
  Expr real = binary(Op::Atan2, z.real, below.real * above.real - below.imag * above.imag);
  Expr imag = asinh(below.real * above.imag - below.imag * above.real);
  Expr endless = is_endless(z);
  Expr direction = where(endless, binary(Op::Atan2, z.real, abs(z.imag)), real);
  return {where(z.real == 0, z.real, direction),
          where(endless, signed_like(kInfinity, z.imag), imag)};
}

Pair arc_cosine(Pair z) {
  Pair below = square_root(one_minus(z));
  Pair above = square_root(plus_one(z));
  Expr real = 2 * binary(Op::Atan2, below.real, above.real);
  Expr imag = asinh(above.real * below.imag - above.imag * below.real);
  Expr endless = is_endless(z);
  Expr direction = where(endless, binary(Op::Atan2, abs(z.imag), z.real), real);
  return {where(z.real == 0, pi / 2, direction),
          where(endless, signed_like(kInfinity, -z.imag), imag)};
}

Pair hyperbolic_arc_cosine(Pair z) {
  Pair below = square_root(minus_one(z));
  Pair above = square_root(plus_one(z));
  Expr real = asinh(below.real * above.real + below.imag * above.imag);
  Expr imag = 2 * binary(Op::Atan2, below.imag, above.real);
  Expr endless = is_endless(z);
  Expr direction = where(endless, binary(Op::Atan2, z.imag, z.real), imag);
  return {where(endless, kInfinity, real),
          where(z.real == 0, signed_like(pi / 2, z.imag), direction)};
}

// By the magnitude of x, for which the logarithm's argument is not near -1.
Pair hyperbolic_arc_tangent(Pair z) {
  Expr x = abs(z.real);
  Expr y = z.imag;
  Expr gap = (1 - x) * (1 - x) + y * y;
  // Beside 1 the gap, a square, would be lost.
  Expr beside = gap < (x.dtype() == DType::Float64 ? 1e-290 : 1e-30);
  Expr near =
      where(beside, 0.5 * log(hypot(1 + x, y) / hypot(1 - x, y)), 0.25 * log1p(4 * x / gap));
  Expr imag = 0.5 * binary(Op::Atan2, 2 * y, (1 - x) * (1 + x) - y * y);
  // Where 1 + z is z, squares would overflow: the real part is that of 1 / z.
  Expr size = hypot(x, y);
  Expr real = where(size > (x.dtype() == DType::Float64 ? 0x1p54 : 0x1p25), x / size / size, near);
  Expr endless = is_endless(z);
  Expr quarter = where(isnan(y), y, signed_like(pi / 2, y));
  return {binary(Op::CopySign, where(endless | (x == 0), 0, real), z.real),
          where(endless, quarter, imag)};
}

// Zero to a power with a positive real part is zero, and to the power of zero one.
Pair at_zero(Pair base, Pair exponent, Pair power) {
  Expr zero = (base.real == 0) & (base.imag == 0);
  Expr none = (exponent.real == 0) & (exponent.imag == 0);
  Expr held = zero & ((exponent.real > 0) | none);
  return {where(held, where(none, number(1, base), number(0, base)), power.real),
          where(held, 0, power.imag)};
}

}  // namespace

bool is_real(Pair z) {
  return z.imag->op == Op::Const && z.imag->bits == 0;
}

Pair multiply(Pair a, Pair b) {
  if (is_real(b)) {
    return {a.real * b.real, is_real(a) ? a.imag : a.imag * b.real};
  }
  if (is_real(a)) {
    return {a.real * b.real, a.real * b.imag};
  }
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

Pair divide(Pair a, Pair b) {
  if (is_real(b)) {
    return {a.real / b.real, is_real(a) ? a.imag : a.imag / b.real};
  }
  Expr turned = abs(b.real) < abs(b.imag);
  Expr large = where(turned, b.imag, b.real);
  Expr small = where(turned, b.real, b.imag);
  Expr ratio = where(large == 0, small, small / large);
  Expr divisor = large + small * ratio;
  Expr first = where(turned, a.imag, a.real);
  Expr second = where(turned, a.real, a.imag);
  Expr cross = second - first * ratio;
  return {(first + second * ratio) / divisor, where(turned, -cross, cross) / divisor};
}

Pair complex_power(Pair base, Pair exponent) {
  if (exponent.real->op == Op::Const && is_real(exponent) && exponent.real->constant() == 2) {
    return multiply(base, base);
  }
  Expr size = magnitude(base);
  Expr angle = argument(base);
  if (is_real(exponent)) {
    return at_zero(base, exponent, polar(pow(size, exponent.real), angle * exponent.real));
  }
  Expr grown = pow(size, exponent.real) * exp(-exponent.imag * angle);
  Expr turned = exponent.real * angle + exponent.imag * log(size);
  return at_zero(base, exponent, polar(grown, turned));
}

Pair complex_function(Op op, Pair z) {
  switch (op) {
    case Op::Neg:
      return {-z.real, -z.imag};
    case Op::Sqrt:
      return square_root(z);
    case Op::Exp:
      return exponential(z);
    case Op::Exp2:
      return polar(exp2(z.real), z.imag * ln2);
    case Op::Expm1:
      return exponential_minus_one(z);
    case Op::Log:
      return logarithm(z);
    case Op::Log2:
      return scale(logarithm(z), 1 / ln2);
    case Op::Log10:
      return scale(logarithm(z), 1 / ln10);
    case Op::Log1p:
      return logarithm_plus_one(z);
    case Op::Sin:
      return turn_back(hyperbolic_sine(turn(z)));
    case Op::Cos:
      return hyperbolic_cosine(turn(z));
    case Op::Tan:
      return turn_back(hyperbolic_tangent(turn(z)));
    case Op::Sinh:
      return hyperbolic_sine(z);
    case Op::Cosh:
      return hyperbolic_cosine(z);
    case Op::Tanh:
      return hyperbolic_tangent(z);
    case Op::Asin:
      return arc_sine(z);
    case Op::Acos:
      return arc_cosine(z);
    case Op::Atan:
      return turn_back(hyperbolic_arc_tangent(turn(z)));
    case Op::Asinh:
      return turn_back(arc_sine(turn(z)));
    case Op::Acosh:
      return hyperbolic_arc_cosine(z);
    case Op::Atanh:
      return hyperbolic_arc_tangent(z);
    default:
      return {};
  }
}

}  // namespace rushlight::loop
