#include "ops/flex_open.h"

#include <rushlight/generated/functions.h>

namespace rushlight {

using loop::Expr;
using loop::Node;
using loop::Op;

namespace {

Tensor positions(int64_t count, size_t dim) {
  IntList shape{1, 1, 1, 1};
  shape[dim] = count;
  return reshape(arange(Scalar(count), TensorOptions(DType::Int32)), shape);
}

Tensor constant(const Node& node) {
  Scalar number = is_floating(node.dtype)     ? Scalar(node.constant())
                  : node.dtype == DType::Bool ? Scalar(node.bits != 0)
                                              : Scalar(static_cast<int64_t>(node.bits));
  return full({}, number, TensorOptions(node.dtype));
}

Tensor unary(const Node& node, const Tensor& x) {
  switch (node.op) {
#define RUSHLIGHT_CASE(op, function) \
  case Op::op:                       \
    return function(x);
    RUSHLIGHT_CASE(Neg, neg)
    RUSHLIGHT_CASE(Abs, abs)
    RUSHLIGHT_CASE(Sqrt, sqrt)
    RUSHLIGHT_CASE(Floor, floor)
    RUSHLIGHT_CASE(Ceil, ceil)
    RUSHLIGHT_CASE(Trunc, trunc)
    RUSHLIGHT_CASE(Round, round)
    RUSHLIGHT_CASE(Exp, exp)
    RUSHLIGHT_CASE(Exp2, exp2)
    RUSHLIGHT_CASE(Expm1, expm1)
    RUSHLIGHT_CASE(Log, log)
    RUSHLIGHT_CASE(Log2, log2)
    RUSHLIGHT_CASE(Log10, log10)
    RUSHLIGHT_CASE(Log1p, log1p)
    RUSHLIGHT_CASE(Sin, sin)
    RUSHLIGHT_CASE(Cos, cos)
    RUSHLIGHT_CASE(Tan, tan)
    RUSHLIGHT_CASE(Asin, asin)
    RUSHLIGHT_CASE(Acos, acos)
    RUSHLIGHT_CASE(Atan, atan)
    RUSHLIGHT_CASE(Sinh, sinh)
    RUSHLIGHT_CASE(Cosh, cosh)
    RUSHLIGHT_CASE(Tanh, tanh)
    RUSHLIGHT_CASE(Asinh, asinh)
    RUSHLIGHT_CASE(Acosh, acosh)
    RUSHLIGHT_CASE(Atanh, atanh)
    RUSHLIGHT_CASE(Erf, erf)
    RUSHLIGHT_CASE(Erfc, erfc)
    RUSHLIGHT_CASE(Erfinv, erfinv)
    RUSHLIGHT_CASE(Lgamma, lgamma)
    RUSHLIGHT_CASE(Digamma, digamma)
    RUSHLIGHT_CASE(Not, bitwise_not)
    RUSHLIGHT_CASE(IsNan, isnan)
    case Op::Cast:
      return to(to(x, node.buffer), node.dtype);
    default:
      return {};
  }
}

// Expressions give 0 where integers are divided by 0; operators raise.
template <typename F>
Tensor divided(const Node& node, const Tensor& a, const Tensor& b, F&& divide) {
  if (!is_integral(node.dtype, false)) {
    return divide(a, b);
  }
  Tensor none = eq(b, Scalar(0));
  return masked_fill(divide(a, masked_fill(b, none, Scalar(1))), none, Scalar(0));
}

#undef RUSHLIGHT_CASE

Tensor binary(const Node& node, const Tensor& a, const Tensor& b) {
  switch (node.op) {
#define RUSHLIGHT_CASE(op, function) \
  case Op::op:                       \
    return function(a, b);
    RUSHLIGHT_CASE(Add, add)
    RUSHLIGHT_CASE(Sub, sub)
    RUSHLIGHT_CASE(Mul, mul)
    RUSHLIGHT_CASE(Pow, pow)
    RUSHLIGHT_CASE(Atan2, atan2)
    RUSHLIGHT_CASE(Hypot, hypot)
    RUSHLIGHT_CASE(CopySign, copysign)
    RUSHLIGHT_CASE(NextAfter, nextafter)
    RUSHLIGHT_CASE(Max, maximum)
    RUSHLIGHT_CASE(Min, minimum)
    RUSHLIGHT_CASE(FMax, fmax)
    RUSHLIGHT_CASE(FMin, fmin)
    RUSHLIGHT_CASE(And, bitwise_and)
    RUSHLIGHT_CASE(Or, bitwise_or)
    RUSHLIGHT_CASE(Xor, bitwise_xor)
    RUSHLIGHT_CASE(Shl, bitwise_left_shift)
    RUSHLIGHT_CASE(Shr, bitwise_right_shift)
    RUSHLIGHT_CASE(Eq, eq)
    RUSHLIGHT_CASE(Ne, ne)
    RUSHLIGHT_CASE(Lt, lt)
    RUSHLIGHT_CASE(Le, le)
    RUSHLIGHT_CASE(Gt, gt)
    RUSHLIGHT_CASE(Ge, ge)
#undef RUSHLIGHT_CASE
    case Op::Div:
      return divided(node, a, b, [&](const Tensor& x, const Tensor& y) {
        return is_floating(node.dtype) ? div(x, y) : div(x, y, "trunc");
      });
    case Op::FloorDiv:
      return divided(node, a, b,
                     [](const Tensor& x, const Tensor& y) { return floor_divide(x, y); });
    case Op::Rem:
      return divided(node, a, b, [](const Tensor& x, const Tensor& y) { return fmod(x, y); });
    case Op::Mod:
      return divided(node, a, b, [](const Tensor& x, const Tensor& y) { return remainder(x, y); });
    default:
      return {};
  }
}

}  // namespace

FlexTensors::FlexTensors(const Tensor& scores, const TensorList& captures) : captures_(captures) {
  scalars_[kFlexScore] = scores;
  for (size_t d = 0; d < 4; ++d) {
    scalars_[kFlexBatch + d] = positions(scores.size(static_cast<int64_t>(d)), d);
  }
}

TensorList FlexTensors::indices(Expr load) {
  TensorList list;
  for (Expr index : load->inputs) {
    list.push_back(value(index));
  }
  return list;
}

Tensor FlexTensors::compute(const Node& node) {
  auto input = [&](size_t i) -> const Tensor& { return done_.at(node.inputs[i].node); };
  switch (node.op) {
    case Op::Const:
      return constant(node);
    case Op::Scalar:
      return scalars_[node.slot];
    case Op::Load: {
      const Tensor& captured = captures_[node.slot];
      TensorList list;
      for (Expr index : node.inputs) {
        list.push_back(done_.at(index.node));
      }
      return to(list.empty() ? captured : index(captured, list), node.dtype);
    }
    case Op::Fma:
      return add(mul(input(0), input(1)), input(2));
    case Op::Select:
      return where(input(0), input(1), input(2));
    default:
      break;
  }
  Tensor made = node.inputs.size() == 1   ? unary(node, input(0))
                : node.inputs.size() == 2 ? binary(node, input(0), input(1))
                                          : Tensor();
  if (!made.defined()) {
    fail(ErrorKind::NotImplemented, "flex_attention",
         "gradients of gradients are not offered for functions that contain ",
         loop::info(node.op).text);
  }
  return made;
}

Tensor FlexTensors::value(Expr expr) {
  for (Expr part : loop::post_order({&expr, 1})) {
    if (!done_.contains(part.node)) {
      done_[part.node] = compute(*part.node);
    }
  }
  return done_.at(expr.node);
}

}  // namespace rushlight
