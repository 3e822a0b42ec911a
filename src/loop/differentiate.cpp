// Symbolic reverse mode over the expression graph.
#include <rushlight/error.h>

#include <unordered_set>

#include "loop/derivatives.h"
#include "loop/kernel.h"

namespace rushlight::loop {
namespace {

Expr materialise(const Part& part) {
  return part.guard ? where(part.guard, part.value, 0) : part.value;
}

bool complementary(Expr a, Expr b) {
  return a && b &&
         ((a->op == Op::Not && same(a->inputs[0], b)) ||
          (b->op == Op::Not && same(b->inputs[0], a)));
}

// The sum of all parts: those under one guard are added before it, and the two sides of a guard
// are one Select.
Part sum(const std::vector<Part>& parts) {
  std::vector<Part> groups;
  for (const Part& part : parts) {
    size_t i = 0;
    while (i < groups.size() && !same(groups[i].guard, part.guard)) {
      ++i;
    }
    if (i == groups.size()) {
      groups.push_back(part);
    } else {
      groups[i].value = groups[i].value + part.value;
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = i + 1; j < groups.size(); ++j) {
      if (complementary(groups[i].guard, groups[j].guard)) {
        groups[i] = {where(groups[i].guard, groups[i].value, groups[j].value), {}};
        groups.erase(groups.begin() + static_cast<ptrdiff_t>(j));
      }
    }
  }
  Part total = groups[0];
  for (size_t i = 1; i < groups.size(); ++i) {
    total = {materialise(total) + materialise(groups[i]), {}};
  }
  return total;
}

bool is_differentiable(DType dtype) {
  return is_floating(dtype) || is_complex(dtype);
}

// What a node passes to an operand, by PyTorch's convention: the gradient of x + iy is
// dL/dx + i dL/dy. Of a holomorphic function that is the gradient times the conjugate of its
// derivative, so that the rules of real values hold between two conjugations.
void pass_on(Expr node, size_t input, Expr grad, std::vector<Part>& parts) {
  switch (node->op) {
    case Op::Real:
      parts.push_back({complex(grad, constant(0, grad.dtype())), {}});
      return;
    case Op::Imag:
      parts.push_back({complex(constant(0, grad.dtype()), grad), {}});
      return;
    case Op::Complex:
      parts.push_back({input == 0 ? real(grad) : imag(grad), {}});
      return;
    default:
      break;
  }
  size_t first = parts.size();
  derivative(node, input, conj(grad), parts);
  for (size_t i = first; i < parts.size(); ++i) {
    parts[i].value = conj(parts[i].value);
  }
}

class Differentiator {
 public:
  Differentiator(Expr body, const std::vector<Expr>& inputs) {
    for (Expr input : inputs) {
      if (!is_differentiable(input.dtype())) {
        fail(ErrorKind::Internal, "loop.differentiate", "an input is ", input.dtype(),
             ", not a float: ", print(input));
      }
      wanted_.insert(input.node);
    }
    order_ = post_order({&body, 1});
    for (Expr expr : order_) {
      bool active = wanted_.contains(expr.node);
      for (Expr input : expr->inputs) {
        active = active || (active_.contains(input.node) && is_differentiable(input.dtype()));
      }
      if (active) {
        active_.insert(expr.node);
      }
    }
  }

  std::vector<Expr> run(Expr body, const std::vector<Expr>& inputs, Expr grad) {
    parts_[body.node].push_back({grad, {}});
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      if (active_.contains(it->node) && is_differentiable(it->dtype()) &&
          parts_.contains(it->node)) {
        propagate(*it);
      }
    }
    std::vector<Expr> result;
    for (Expr input : inputs) {
      auto found = parts_.find(input.node);
      result.push_back(found == parts_.end() ? Expr{} : simplify(materialise(sum(found->second))));
    }
    return result;
  }

 private:
  void propagate(Expr node) {
    Part total = sum(parts_.at(node.node));
    parts_.at(node.node) = {total};
    Expr inner;
    Expr through;
    if (form_derivative(node, conj(total.value), &inner, &through) &&
        reaches_only_by(node, inner)) {
      if (active_.contains(inner.node)) {
        parts_[inner.node].push_back({conj(through), total.guard});
      }
      return;
    }
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Expr input = node->inputs[i];
      if (!active_.contains(input.node) || !is_differentiable(input.dtype())) {
        continue;
      }
      std::vector<Part> passed;
      pass_on(node, i, total.value, passed);
      for (Part part : passed) {
        parts_[input.node].push_back(both(total.guard, part));
      }
    }
  }

  // A form is taken as a whole unless one of the nodes that it spans is itself an input.
  bool reaches_only_by(Expr node, Expr inner) const {
    for (Expr e = node; !same(e, inner);) {
      Expr next;
      for (Expr input : e->inputs) {
        if (!next && input->op != Op::Const) {
          next = input;
        }
      }
      if (!next || (wanted_.contains(next.node) && !same(next, inner))) {
        return false;
      }
      e = next;
    }
    return true;
  }

  static Part both(Expr guard, Part part) {
    if (guard) {
      part.guard = part.guard && !same(part.guard, guard) ? guard & part.guard : guard;
    }
    return part;
  }

  std::vector<Expr> order_;
  std::unordered_set<const Node*> wanted_;
  std::unordered_set<const Node*> active_;  // those through which an input reaches the body
  std::unordered_map<const Node*, std::vector<Part>> parts_;
};

}  // namespace

std::vector<Expr> differentiate(Expr body, const std::vector<Expr>& inputs, Expr grad) {
  if (grad.dtype() != body.dtype() || !is_differentiable(body.dtype())) {
    fail(ErrorKind::Internal, "loop.differentiate", "the gradient is ", grad.dtype(),
         " and the body ", body.dtype());
  }
  return Differentiator(body, inputs).run(body, inputs, grad);
}

}  // namespace rushlight::loop
