#include "ops/elementwise_expression.h"

#include <unordered_set>

#include "ops/signature.h"

namespace rushlight {
namespace {

using loop::Expr;

bool contains(const std::vector<int>& list, int value) {
  for (int item : list) {
    if (item == value) {
      return true;
    }
  }
  return false;
}

Expr as(Expr x, DType dtype) {
  return x.dtype() == dtype ? x : loop::cast(x, dtype);
}

class Expression final : public Elementwise {
 public:
  Expression(const Operator& op, const Invocation& inv, Rule rule,
             const std::vector<int>& conditions, DType compute, ElementwiseOperands& operands)
      : op_(op),
        inv_(inv),
        rule_(rule),
        conditions_(conditions),
        compute_(compute),
        operands_(operands) {}

  Expr raw(int argument) override {
    const Value& value = inv_.arguments[argument];
    if (value.is_tensor()) {
      Expr loaded = operands_.load(argument);
      return contains(conditions_, argument) ? as(loaded, DType::Bool) : loaded;
    }
    if (!value.is_number()) {
      fail(ErrorKind::Internal, op_.name(), "its body reads argument ", argument,
           ", which was not given");
    }
    bool widens =
        !is_floating(compute_) && !is_complex(compute_) && value.to_scalar().is_floating_point();
    return scalar(argument, widens ? default_dtype() : compute_);
  }

  Expr in(int argument) override {
    if (!inv_.arguments[argument].is_tensor() && rule_ != Rule::Logical) {
      return scalar(argument, dtype());
    }
    return as(raw(argument), dtype());
  }

  Expr scalar(int argument) override { return scalar(argument, dtype()); }
  Expr scalar(int argument, DType dtype) override {
    return operands_.number(argument, compute_dtype(dtype));
  }
  DType dtype() const override {
    return rule_ == Rule::Logical ? DType::Bool : compute_dtype(compute_);
  }
  DType promoted() const override { return compute_; }
  const Value& attribute(int argument) override { return inv_.arguments[argument]; }

 private:
  const Operator& op_;
  const Invocation& inv_;
  Rule rule_;
  const std::vector<int>& conditions_;
  DType compute_;
  ElementwiseOperands& operands_;
};

}  // namespace

Expr build_expression(const Operator& op, const Invocation& inv, Rule rule,
                      const std::vector<int>& conditions, const ElementwiseFunction& function,
                      const ElementwiseTyping& typing, ElementwiseOperands& operands) {
  Expression view(op, inv, rule, conditions, typing.compute, operands);
  try {
    Expr value = function(view);
    bool typed = rule == Rule::Promote || rule == Rule::Float;
    if (typed && typing.out != typing.compute && value.dtype() != typing.compute &&
        value.dtype() == compute_dtype(typing.compute)) {
      value = loop::cast(value, typing.compute);  // a wider out= holds the result of the halves
    }
    return as(value, compute_dtype(typing.out));
  } catch (const Error& error) {
    // The body has no meaning in this dtype, which the operator's own words should say.
    if (error.op().rfind("loop.", 0) != 0) {
      throw;
    }
    fail(ErrorKind::NotImplemented, op.name(), "not implemented for '",
         scalar_type_name(typing.compute), "' (", error.what(), ")");
  }
}

double operation_cost(Expr node) {
  bool heavy = node->op >= loop::Op::Exp && node->op <= loop::Op::Digamma;
  return node->inputs.empty() ? 0 : heavy ? 2.5 : 0.2;
}

double element_cost(Expr root) {
  std::unordered_set<const loop::Node*> seen;
  std::vector<Expr> stack{root};
  double total = 0.5;
  while (!stack.empty()) {
    Expr at = stack.back();
    stack.pop_back();
    if (!seen.insert(at.node).second) {
      continue;
    }
    total += operation_cost(at);
    stack.insert(stack.end(), at->inputs.begin(), at->inputs.end());
  }
  return total;
}

}  // namespace rushlight
