#include <cmath>

#include "loop/evaluate.h"
#include "loop/kernel.h"

namespace rushlight::loop {
namespace {

bool is_const(Expr e) {
  return e->op == Op::Const;
}
bool is_float(Expr e) {
  return is_floating(e.dtype());
}
bool is_integer(Expr e) {
  return is_integral(e.dtype(), false);
}

// A float constant with these very bits (so 0 is not -0), or that integer.
bool is(Expr e, double value) {
  if (!is_const(e)) {
    return false;
  }
  return is_float(e)
             ? e->bits == std::bit_cast<uint64_t>(value)
             : same(e, constant_value(static_cast<Value>(static_cast<int64_t>(value)), e.dtype()));
}

bool all_ones(Expr e) {
  return is_const(e) && e->bits == normalize_int(-1, e.dtype());
}

// Whether every value of `from` is one of `to`, so that the conversion loses nothing.
bool embeds(DType from, DType to) {
  if (from == to || from == DType::Bool) {
    return true;
  }
  if (is_floating(from)) {
    return is_floating(to) && element_size(from) <= element_size(to);
  }
  if (is_floating(to)) {
    return element_size(from) <= (to == DType::Float64 ? 4 : 2);
  }
  return to != DType::Bool &&
         element_size(from) + (is_signed(to) && !is_signed(from)) <= element_size(to) &&
         (is_signed(to) || !is_signed(from));
}

// The type in memory that the value is known to be one of.
DType origin(Expr e) {
  bool known = e->op == Op::Load || e->op == Op::Cast;
  return known ? e->buffer : e.dtype();
}

// Ops whose results are exact or correctly rounded wherever they run; the others may be
// approximated differently by compiled code, so folding them could change bits.
bool folds_exactly(const Node& node) {
  switch (node.op) {
    case Op::Bitcast:
    case Op::Neg:
    case Op::Abs:
    case Op::Sqrt:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
    case Op::Not:
    case Op::IsNan:
    case Op::Fma:
    case Op::Select:
      return true;
    case Op::Cast: {
      bool truncates = is_float(node.inputs[0]) && is_integral(node.dtype, false);
      return !truncates || std::fabs(node.inputs[0]->constant()) < 9e18;
    }
    case Op::Pow:
    case Op::Atan2:
    case Op::Hypot:
    case Op::FloorDiv:
    case Op::Rem:
    case Op::Mod:
      return !is_floating(node.dtype);
    default:
      return info(node.op).arity == Arity::Binary;
  }
}

Expr fold(Expr e) {
  if (e->inputs.empty() || e->inputs.size() > 3 || !folds_exactly(*e.node)) {
    return {};
  }
  Value values[3] = {};
  for (size_t i = 0; i < e->inputs.size(); ++i) {
    if (!is_const(e->inputs[i])) {
      return {};
    }
    values[i] = e->inputs[i]->bits;
  }
  return constant_value(evaluate(*e.node, values), e.dtype());
}

Expr visit(Expr e);

Expr make(Op op, Expr a, Expr b) {
  return visit(binary(op, a, b));
}
Expr make(Op op, Expr a) {
  return visit(unary(op, a));
}

bool commutes(Op op, DType operands) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Eq:
    case Op::Ne:
      return true;
    case Op::Max:
    case Op::Min:
      return !is_floating(operands);  // of two zeros the second wins
    default:
      return false;
  }
}

// Each rule function returns a null Expr where no rule applies.

Expr simplify_cast(Expr e) {
  Expr x = e->inputs[0];
  if (origin(x) == e->buffer && x.dtype() == e.dtype()) {
    return x;
  }
  if (x->op != Op::Cast) {
    return {};
  }
  Expr inner = x->inputs[0];
  // The step between loses nothing, so what comes after may start from the beginning.
  if (x->buffer == x.dtype() && embeds(inner.dtype(), x.dtype())) {
    return visit(cast(inner, e->buffer));
  }
  bool integers = is_integer(inner) && is_integer(x) && is_integer(e);
  if (integers && element_size(e.dtype()) <= element_size(x.dtype())) {
    return visit(cast(inner, e->buffer));  // both wrap, the second at least as much
  }
  return {};
}

Expr simplify_unary(Expr e) {
  Expr x = e->inputs[0];
  switch (e->op) {
    case Op::Neg:
      return x->op == Op::Neg ? x->inputs[0] : Expr{};
    case Op::Abs:
      if (x->op == Op::Abs || !is_signed(x.dtype())) {
        return x;
      }
      return x->op == Op::Neg ? make(Op::Abs, x->inputs[0]) : Expr{};
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round: {
      bool whole = x->op == Op::Floor || x->op == Op::Ceil || x->op == Op::Trunc ||
                   x->op == Op::Round ||
                   (x->op == Op::Cast && is_integral(x->inputs[0].dtype(), true));
      return whole ? x : Expr{};
    }
    case Op::Not:
      if (x->op == Op::Not) {
        return x->inputs[0];
      }
      if (x->op == Op::Eq || x->op == Op::Ne) {
        return make(x->op == Op::Eq ? Op::Ne : Op::Eq, x->inputs[0], x->inputs[1]);
      }
      return {};
    default:
      return {};
  }
}

Expr simplify_float(Expr e) {
  Expr a = e->inputs[0];
  Expr b = e->inputs[1];
  switch (e->op) {
    case Op::Add:
      if (is(b, -0.0)) {
        return a;
      }
      if (b->op == Op::Neg) {
        return make(Op::Sub, a, b->inputs[0]);
      }
      return a->op == Op::Neg ? make(Op::Sub, b, a->inputs[0]) : Expr{};
    case Op::Sub:
      if (is(b, 0.0)) {
        return a;
      }
      if (is(a, -0.0)) {
        return make(Op::Neg, b);
      }
      return b->op == Op::Neg ? make(Op::Add, a, b->inputs[0]) : Expr{};
    case Op::Mul:
      if (is(b, 1)) {
        return a;
      }
      if (is(b, -1)) {
        return make(Op::Neg, a);
      }
      if (a->op == Op::Neg && b->op == Op::Neg) {
        return make(Op::Mul, a->inputs[0], b->inputs[0]);
      }
      // A constant takes the sign in.
      return a->op == Op::Neg && is_const(b) ? make(Op::Mul, a->inputs[0], make(Op::Neg, b))
                                             : Expr{};
    case Op::Div: {
      if (!is_const(b)) {
        return {};
      }
      // Dividing by a power of two is multiplying by its reciprocal, where that is normal.
      int exponent = 0;
      double fraction = std::frexp(b->constant(), &exponent);
      int limit = e.dtype() == DType::Float32 ? 120 : 1000;
      bool power = std::fabs(fraction) == 0.5 && std::abs(exponent) < limit;
      return power ? make(Op::Mul, a, constant(1 / b->constant(), e.dtype())) : Expr{};
    }
    case Op::Pow:
      if (is(b, 0.0) || is(b, -0.0)) {
        return constant(1, e.dtype());
      }
      return is(b, 1) ? a : Expr{};
    case Op::Max:
    case Op::Min:
    case Op::FMax:
    case Op::FMin:
      return same(a, b) ? a : Expr{};
    default:
      return {};
  }
}

// Comparisons of an integer or bool with itself.
Expr simplify_reflexive(Expr e) {
  switch (e->op) {
    case Op::Eq:
    case Op::Le:
    case Op::Ge:
      return constant_int(1, DType::Bool);
    case Op::Ne:
    case Op::Lt:
    case Op::Gt:
      return constant_int(0, DType::Bool);
    case Op::Sub:
    case Op::Xor:
      return constant_int(0, e.dtype());
    case Op::And:
    case Op::Or:
    case Op::Max:
    case Op::Min:
      return e->inputs[0];
    default:
      return {};
  }
}

// (x op c) op d == x op (c op d), for operators that associate.
Expr reassociate(Expr e) {
  Expr a = e->inputs[0];
  Expr b = e->inputs[1];
  bool applies = a->op == e->op && is_const(b) && is_const(a->inputs[1]);
  return applies ? make(e->op, a->inputs[0], make(e->op, a->inputs[1], b)) : Expr{};
}

Expr simplify_integer(Expr e) {
  Expr a = e->inputs[0];
  Expr b = e->inputs[1];
  if (same(a, b)) {
    if (Expr result = simplify_reflexive(e)) {
      return result;
    }
  }
  switch (e->op) {
    case Op::Add:
    case Op::Xor:
      return is(b, 0) ? a : reassociate(e);
    case Op::Sub:
      return is_const(b) ? make(Op::Add, a, make(Op::Neg, b)) : Expr{};
    case Op::Mul:
      return is(b, 1) ? a : is(b, 0) ? b : reassociate(e);
    case Op::Div:
    case Op::FloorDiv:
      return is(b, 1) ? a : Expr{};
    case Op::Rem:
    case Op::Mod:
      return is(b, 1) ? constant_int(0, e.dtype()) : Expr{};
    case Op::Pow:
      return is(b, 1) ? a : is(b, 0) ? constant_int(1, e.dtype()) : Expr{};
    case Op::Shl:
    case Op::Shr:
      return is(b, 0) ? a : Expr{};
    case Op::And:
      return all_ones(b) ? a : is(b, 0) ? b : reassociate(e);
    case Op::Or:
      return is(b, 0) ? a : all_ones(b) ? b : reassociate(e);
    case Op::Max:
    case Op::Min:
      return reassociate(e);
    case Op::Eq:
    case Op::Ne:
      if (e->inputs[0].dtype() == DType::Bool && is_const(b)) {
        return bool(b->bits) == (e->op == Op::Eq) ? a : make(Op::Not, a);
      }
      return {};
    default:
      return {};
  }
}

Expr simplify_binary(Expr e) {
  Expr a = e->inputs[0];
  Expr b = e->inputs[1];
  if (is_const(a) && commutes(e->op, a.dtype())) {
    return make(e->op, b, a);
  }
  return is_float(a) ? simplify_float(e) : simplify_integer(e);
}

Expr simplify_select(Expr e) {
  Expr condition = e->inputs[0];
  Expr a = e->inputs[1];
  Expr b = e->inputs[2];
  if (same(a, b)) {
    return a;
  }
  if (is_const(condition)) {
    return condition->bits ? a : b;
  }
  if (condition->op == Op::Not) {
    return visit(select(condition->inputs[0], b, a));
  }
  if (a.dtype() == DType::Bool && is_const(a) && is_const(b)) {
    return a->bits ? condition : make(Op::Not, condition);
  }
  // An arm that asks again knows the answer.
  if (a->op == Op::Select && same(a->inputs[0], condition)) {
    return visit(select(condition, a->inputs[1], b));
  }
  if (b->op == Op::Select && same(b->inputs[0], condition)) {
    return visit(select(condition, a, b->inputs[2]));
  }
  return {};
}

Expr simplify_load_if(Expr e) {
  Expr mask = e->inputs[0];
  if (!is_const(mask)) {
    return {};
  }
  std::vector<Expr> indices(e->inputs.begin() + 2, e->inputs.end());
  return mask->bits ? load(e->slot, e->buffer, std::move(indices)) : e->inputs[1];
}

// A node with simplified inputs, simplified. Rules recurse only into nodes that they make. The
// rules are those of real values: complex ones wait until they are pairs.
Expr visit(Expr e) {
  for (Expr input : e->inputs) {
    if (is_complex(input.dtype())) {
      return e;
    }
  }
  if (is_complex(e.dtype())) {
    return e;
  }
  if (Expr folded = fold(e)) {
    return folded;
  }
  Expr result;
  if (e->op == Op::Cast) {
    result = simplify_cast(e);
  } else if (e->op == Op::Select) {
    result = simplify_select(e);
  } else if (e->op == Op::LoadIf) {
    result = simplify_load_if(e);
  } else if (info(e->op).arity == Arity::Binary) {
    result = simplify_binary(e);
  } else if (info(e->op).arity == Arity::Unary && info(e->op).typing != Typing::Own) {
    result = simplify_unary(e);
  }
  return result ? result : e;
}

}  // namespace

Expr simplify(Expr expr) {
  return rewrite(expr, visit);
}

Kernel simplify(const Kernel& kernel) {
  Kernel result = kernel;
  for (Store& store : result.stores) {
    for (Expr& index : store.indices) {
      index = simplify(index);
    }
    store.value = simplify(store.value);
    store.mask = store.mask ? simplify(store.mask) : store.mask;
    if (store.mask && is_const(store.mask) && store.mask->bits) {
      store.mask = {};
    }
  }
  return result;
}

}  // namespace rushlight::loop
