#include "loop/derivatives.h"

#include <rushlight/error.h>

#include <cmath>
#include <numbers>

namespace rushlight::loop {
namespace {

using std::numbers::ln10;
using std::numbers::ln2;
using std::numbers::pi;
const double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

// An application y = op(a, b) and the gradient g of y.
struct At {
  Expr a;
  Expr b;
  Expr y;
  Expr g;
};

Expr square(Expr x) {
  return x * x;
}

// The derivative of digamma: recurrence upwards, then the asymptotic series; reflection below 1/2.
Expr trigamma(Expr x) {
  int steps = x.dtype() == DType::Float32 ? 6 : 12;
  Expr reflected = x < 0.5;
  Expr z = where(reflected, 1 - x, x);
  Expr sum = 1 / square(z);
  for (int k = 1; k < steps; ++k) {
    sum = sum + 1 / square(z + k);
  }
  Expr w = z + steps;
  Expr r = 1 / square(w);
  constexpr double kBernoulli[] = {5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6};
  Expr series = kBernoulli[0] * r;
  for (int k = 1; k < 5; ++k) {
    series = (series + kBernoulli[k]) * r;
  }
  sum = sum + (1 + 0.5 / w + series) / w;
  return where(reflected, pi * pi / square(sin(x * pi)) - sum, sum);
}

struct UnaryRule {
  Op op;
  Expr (*rule)(const At&);
};

// Each yields g * dy/da. Forms are chosen to keep relative accuracy and to stay finite.
const UnaryRule kUnaryRules[] = {
    {Op::Neg, [](const At& n) { return -n.g; }},
    {Op::Abs, [](const At& n) { return where(n.a > 0, n.g, where(n.a < 0, -n.g, n.g * 0)); }},
    {Op::Sqrt, [](const At& n) { return n.g / (2 * n.y); }},
    {Op::Exp, [](const At& n) { return n.g * n.y; }},
    {Op::Exp2, [](const At& n) { return n.g * (n.y * ln2); }},
    {Op::Expm1, [](const At& n) { return n.g * exp(n.a); }},
    {Op::Log, [](const At& n) { return n.g / n.a; }},
    {Op::Log2, [](const At& n) { return n.g / (n.a * ln2); }},
    {Op::Log10, [](const At& n) { return n.g / (n.a * ln10); }},
    {Op::Log1p, [](const At& n) { return n.g / (n.a + 1); }},
    {Op::Sin, [](const At& n) { return n.g * cos(n.a); }},
    {Op::Cos, [](const At& n) { return n.g * -sin(n.a); }},
    {Op::Tan, [](const At& n) { return n.g * (1 + square(n.y)); }},
    {Op::Asin, [](const At& n) { return n.g * rsqrt(1 - square(n.a)); }},
    {Op::Acos, [](const At& n) { return -n.g * rsqrt(1 - square(n.a)); }},
    {Op::Atan, [](const At& n) { return n.g / (1 + square(n.a)); }},
    {Op::Sinh, [](const At& n) { return n.g * cosh(n.a); }},
    {Op::Cosh, [](const At& n) { return n.g * sinh(n.a); }},
    {Op::Tanh, [](const At& n) { return n.g * ((1 - n.y) * (1 + n.y)); }},
    {Op::Asinh, [](const At& n) { return n.g / sqrt(square(n.a) + 1); }},
    {Op::Acosh, [](const At& n) { return n.g / (sqrt(n.a - 1) * sqrt(n.a + 1)); }},
    {Op::Atanh, [](const At& n) { return n.g / (1 - square(n.a)); }},
    {Op::Erf, [](const At& n) { return n.g * (kTwoOverSqrtPi * exp(-square(n.a))); }},
    {Op::Erfc, [](const At& n) { return n.g * (-kTwoOverSqrtPi * exp(-square(n.a))); }},
    {Op::Erfinv, [](const At& n) { return n.g * (exp(square(n.y)) * (1 / kTwoOverSqrtPi)); }},
    {Op::Lgamma, [](const At& n) { return n.g * digamma(n.a); }},
    {Op::Digamma, [](const At& n) { return n.g * trigamma(n.a); }},
};

// g * dy/da and g * dy/db, the latter null where it is zero.
struct BinaryRule {
  Op op;
  Expr (*left)(const At&);
  Expr (*right)(const At&);
};

Expr sign_of(Expr x) {
  return binary(Op::CopySign, constant(1, x.dtype()), x);
}

Expr pass(const At& n) {
  return n.g;
}
Expr nothing(const At&) {
  return {};
}

const BinaryRule kBinaryRules[] = {
    {Op::Add, pass, pass},
    {Op::NextAfter, pass, nothing},
    {Op::Sub, pass, [](const At& n) { return -n.g; }},
    {Op::Mul, [](const At& n) { return n.g * n.b; }, [](const At& n) { return n.g * n.a; }},
    {Op::Div, [](const At& n) { return n.g / n.b; },
     [](const At& n) { return -n.g * (n.y / n.b); }},
    {Op::Rem, pass, [](const At& n) { return -n.g * trunc(n.a / n.b); }},
    {Op::Mod, pass, [](const At& n) { return -n.g * binary(Op::FloorDiv, n.a, n.b); }},
    {Op::Hypot, [](const At& n) { return n.g * (n.a / n.y); },
     [](const At& n) { return n.g * (n.b / n.y); }},
    {Op::CopySign,
     [](const At& n) { return where(n.a == 0, 0, n.g * (sign_of(n.a) * sign_of(n.b))); }, nothing},
};

Part power_base(const At& n) {
  if (n.b->op == Op::Const) {
    double exponent = n.b->constant();
    if (exponent == 0) {
      return {};
    }
    Expr power = exponent == 1   ? constant(1, n.a.dtype())
                 : exponent == 2 ? n.a
                 : exponent == 3 ? square(n.a)
                                 : pow(n.a, n.b - 1);
    return {n.g * (exponent * power), {}};
  }
  return {n.g * (n.b * pow(n.a, n.b - 1)), n.b != 0};
}

Part power_exponent(const At& n) {
  return {n.g * (n.y * log(n.a)), ~((n.a == 0) & (real(n.b) >= 0))};
}

Part angle(const At& n, size_t input) {
  Expr factor = input == 0 ? n.b : -n.a;
  return {n.g * (factor / (square(n.a) + square(n.b))), (n.a != 0) | (n.b != 0)};
}

bool contains_load(Expr expr) {
  for (Expr e : post_order({&expr, 1})) {
    if (e->op == Op::Load || e->op == Op::LoadIf) {
      return true;
    }
  }
  return false;
}

// Max and Min: the chosen operand gets the gradient, equal ones half each; NaN passes to both. But
// a bound, which is no tensor, takes nothing on ties, and NaN is outside of it.
Part extremum(Expr node, size_t input, Expr g) {
  Expr mine = node->inputs[input];
  Expr other = node->inputs[1 - input];
  Expr loses = node->op == Op::Max ? mine < other : mine > other;
  if (!contains_load(other)) {
    return {g, node->op == Op::Max ? mine >= other : mine <= other};
  }
  if (!contains_load(mine)) {
    return {g, node->op == Op::Max ? ~(mine <= other) : ~(mine >= other)};
  }
  return {where(mine == other, g * 0.5, g), ~loses};
}

// FMax and FMin: the first operand wins ties, and where the other is NaN.
Part ignoring_nan(Expr node, size_t input, Expr g) {
  Expr a = node->inputs[0];
  Expr b = node->inputs[1];
  Expr first = (node->op == Op::FMax ? a >= b : a <= b) | isnan(b);
  return {g, input == 0 ? first : ~first};
}

// log1p(exp(x)), sigmoid's argument or its like: true where `e` is 1 + exp(inner).
bool is_one_plus_exp(Expr e, Expr* inner) {
  if (e->op != Op::Add) {
    return false;
  }
  for (size_t i = 0; i < 2; ++i) {
    Expr one = e->inputs[i];
    Expr exponential = e->inputs[1 - i];
    if (same(one, constant(1, e.dtype())) && exponential->op == Op::Exp) {
      *inner = exponential->inputs[0];
      return true;
    }
  }
  return false;
}

}  // namespace

void derivative(Expr node, size_t input, Expr grad, std::vector<Part>& parts) {
  auto add = [&](Part part) {
    if (part.value) {
      parts.push_back(part);
    }
  };
  const std::vector<Expr>& inputs = node->inputs;
  At at{inputs[0], inputs.size() > 1 ? inputs[1] : Expr{}, node, grad};
  switch (node->op) {
    case Op::Cast:
      return add({cast(grad, inputs[0].dtype()), {}});
    case Op::Fma:
      return add({input == 2 ? grad : grad * inputs[1 - input], {}});
    case Op::Select:
      return add({grad, input == 1 ? inputs[0] : ~inputs[0]});
    case Op::LoadIf:
      return add({grad, ~inputs[0]});
    case Op::Pow:
      return add(input == 0 ? power_base(at) : power_exponent(at));
    case Op::Atan2:
      return add(angle(at, input));
    case Op::Max:
    case Op::Min:
      return add(extremum(node, input, grad));
    case Op::FMax:
    case Op::FMin:
      return add(ignoring_nan(node, input, grad));
    case Op::Reduce:
    case Op::Scan:
      fail(ErrorKind::Internal, "loop.differentiate", "cannot differentiate through `",
           info(node->op).text, "`: only element-wise bodies have derived gradients");
    default:
      break;
  }
  for (const UnaryRule& rule : kUnaryRules) {
    if (rule.op == node->op) {
      return add({rule.rule(at), {}});
    }
  }
  for (const BinaryRule& rule : kBinaryRules) {
    if (rule.op == node->op) {
      return add({(input == 0 ? rule.left : rule.right)(at), {}});
    }
  }
}

bool form_derivative(Expr node, Expr grad, Expr* inner, Expr* result) {
  // sigmoid(x) = 1 / (1 + exp(-x)): the parts' product is inf * 0 for very negative x.
  if (node->op == Op::Div && same(node->inputs[0], constant(1, node.dtype())) &&
      is_one_plus_exp(node->inputs[1], inner)) {
    Expr slope = node * (1 - node);
    bool negated = (*inner)->op == Op::Neg;
    *inner = negated ? (*inner)->inputs[0] : *inner;
    *result = grad * (negated ? slope : -slope);
    return true;
  }
  // log1p(exp(x)), log(1 + exp(x)): exp overflows long before the derivative, a sigmoid, does.
  bool log1p_exp = node->op == Op::Log1p && node->inputs[0]->op == Op::Exp;
  if (log1p_exp) {
    *inner = node->inputs[0]->inputs[0];
  }
  if (log1p_exp || (node->op == Op::Log && is_one_plus_exp(node->inputs[0], inner))) {
    *result = grad * sigmoid(*inner);
    return true;
  }
  return false;
}

}  // namespace rushlight::loop
