#include "loop/complex.h"

#include <rushlight/error.h>

#include <algorithm>

#include "loop/complex_math.h"

namespace rushlight::loop {
namespace {

bool is_complex_node(Expr expr) {
  return is_complex(expr.dtype()) ||
         std::any_of(expr->inputs.begin(), expr->inputs.end(),
                     [](Expr input) { return is_complex(input.dtype()); });
}

Pair add(Pair a, Pair b) {
  return {a.real + b.real, is_real(b) ? a.imag : is_real(a) ? b.imag : a.imag + b.imag};
}

Pair subtract(Pair a, Pair b) {
  return {a.real - b.real, is_real(b) ? a.imag : is_real(a) ? -b.imag : a.imag - b.imag};
}

Pair choose(Expr condition, Pair a, Pair b) {
  return {select(condition, a.real, b.real), select(condition, a.imag, b.imag)};
}

ptrdiff_t unit_dim(const Buffer& buffer) {
  return std::find(buffer.dims.begin(), buffer.dims.end(), Layout::Unit) - buffer.dims.begin();
}

// Where a part of an element of a complex buffer lies: elements that follow one another are 2
// apart, which is said in the index; else a dimension of its own tells the parts apart.
std::vector<Expr> part_indices(const Buffer& buffer, std::vector<Expr> indices, int64_t part) {
  const auto at = static_cast<size_t>(unit_dim(buffer));
  const auto number = [](int64_t value) { return constant_int(value, DType::Int64); };
  if (at < indices.size()) {
    indices[at] = indices[at] * number(2) + number(part);
  } else {
    indices.push_back(number(part));
  }
  return indices;
}

Buffer lower_buffer(Buffer buffer) {
  if (!is_complex(buffer.dtype)) {
    return buffer;
  }
  if (static_cast<size_t>(unit_dim(buffer)) == buffer.dims.size()) {
    buffer.dims.push_back(Layout::Unit);
  }
  buffer.dtype = real_dtype(buffer.dtype);
  return buffer;
}

// The nodes of a kernel as pairs; real nodes have no second part.
class Lowering {
 public:
  explicit Lowering(const Kernel& kernel) : kernel_(kernel) {
    int slot = 0;
    for (DType dtype : kernel.scalars) {
      slots_.push_back(slot);
      slot += is_complex(dtype) ? 2 : 1;
    }
  }

  Pair lower(Expr root) {
    for (Expr expr : post_order({&root, 1})) {
      if (!done_.contains(expr.node)) {
        done_.emplace(expr.node, visit(expr));
      }
    }
    return done_.at(root.node);
  }

 private:
  Pair visit(Expr expr) const {
    if (expr->op == Op::Scalar) {
      return scalar_parts(expr);
    }
    std::vector<Pair> operands;
    for (Expr input : expr->inputs) {
      operands.push_back(done_.at(input.node));
    }
    if (expr->op == Op::Load && is_complex(expr.dtype())) {
      return load_parts(expr, operands);
    }
    if (is_complex_node(expr)) {
      return complex_value(expr, operands);
    }
    std::vector<Expr> inputs;
    for (const Pair& operand : operands) {
      inputs.push_back(operand.real);
    }
    return {with_inputs(expr, std::move(inputs)), {}};
  }

  Pair scalar_parts(Expr expr) const {
    int slot = expr->slot < slots_.size() ? slots_[expr->slot] : expr->slot;
    DType part = real_dtype(expr.dtype());
    return {scalar(slot, part), is_complex(expr.dtype()) ? scalar(slot + 1, part) : Expr{}};
  }

  Pair load_parts(Expr expr, const std::vector<Pair>& operands) const {
    std::vector<Expr> indices;
    for (const Pair& operand : operands) {
      indices.push_back(operand.real);
    }
    const Buffer& buffer = kernel_.buffers[expr->slot];
    DType memory = real_dtype(expr->buffer);
    return {load(expr->slot, memory, part_indices(buffer, indices, 0)),
            load(expr->slot, memory, part_indices(buffer, indices, 1))};
  }

  const Kernel& kernel_;
  std::vector<int> slots_;
  std::unordered_map<const Node*, Pair> done_;
};

std::vector<DType> lower_scalars(const std::vector<DType>& scalars) {
  std::vector<DType> result;
  for (DType dtype : scalars) {
    result.insert(result.end(), is_complex(dtype) ? 2 : 1, real_dtype(dtype));
  }
  return result;
}

}  // namespace

Pair complex_value(Expr node, const std::vector<Pair>& operands) {
  const auto at = [&](size_t i) { return operands[i]; };
  switch (node->op) {
    case Op::Const:
      return {constant(node->constant(), real_dtype(node.dtype())),
              constant(0, real_dtype(node.dtype()))};
    case Op::Complex:
      return {at(0).real, at(1).real};
    case Op::Real:
      return {at(0).real, {}};
    case Op::Imag:
      return {at(0).imag, {}};
    case Op::IsNan:
      return {isnan(at(0).real) | isnan(at(0).imag), {}};
    case Op::Add:
      return add(at(0), at(1));
    case Op::Sub:
      return subtract(at(0), at(1));
    case Op::Mul:
      return multiply(at(0), at(1));
    case Op::Div:
      return divide(at(0), at(1));
    case Op::Pow:
      return complex_power(at(0), at(1));
    case Op::Eq:
      return {(at(0).real == at(1).real) & (at(0).imag == at(1).imag), {}};
    case Op::Ne:
      return {(at(0).real != at(1).real) | (at(0).imag != at(1).imag), {}};
    case Op::Select:
      return choose(at(0).real, at(1), at(2));
    default:
      break;
  }
  Pair value = info(node->op).arity == Arity::Unary ? complex_function(node->op, at(0)) : Pair{};
  if (!value.real) {
    fail(ErrorKind::Internal, cat("loop.", info(node->op).text), "not defined on complex values");
  }
  return value;
}

Kernel lower_complex(const Kernel& kernel) {
  Kernel result = kernel;
  Lowering lowering(kernel);
  result.scalars = lower_scalars(kernel.scalars);
  for (Buffer& buffer : result.buffers) {
    buffer = lower_buffer(buffer);
  }
  result.stores.clear();
  for (Store store : kernel.stores) {
    for (Expr& index : store.indices) {
      index = lowering.lower(index).real;
    }
    store.mask = store.mask ? lowering.lower(store.mask).real : store.mask;
    const Pair value = lowering.lower(store.value);
    store.value = value.real;
    const Buffer& buffer = kernel.buffers[static_cast<size_t>(store.buffer)];
    if (!is_complex(buffer.dtype)) {
      result.stores.push_back(store);
      continue;
    }
    const std::vector<Expr> indices = store.indices;
    store.indices = part_indices(buffer, indices, 0);
    result.stores.push_back(store);
    store.indices = part_indices(buffer, indices, 1);
    store.value = value.imag ? value.imag : constant(0, value.real.dtype());
    result.stores.push_back(std::move(store));
  }
  return result;
}

}  // namespace rushlight::loop
