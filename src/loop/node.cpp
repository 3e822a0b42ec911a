#include "loop/node.h"

#include <rushlight/error.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "loop/evaluate.h"
#include "loop/hash.h"

namespace rushlight::loop {
namespace {

constexpr OpInfo kOps[] = {
#define RUSHLIGHT_ROW(op, text, arity, typing, kinds) {text, Arity::arity, Typing::typing, kinds},
    RUSHLIGHT_LOOP_OPS(RUSHLIGHT_ROW)
#undef RUSHLIGHT_ROW
};

constexpr std::string_view kCombineTexts[] = {
#define RUSHLIGHT_ROW(kind, text) text,
    RUSHLIGHT_LOOP_COMBINES(RUSHLIGHT_ROW)
#undef RUSHLIGHT_ROW
};

// Operators and dtypes enter by name, so that a new table row moves no hash.
uint64_t structural_hash(const Node& node) {
  uint64_t h = mix_hash(0, info(node.op).text);
  h = mix_hash(h, rushlight::info(node.dtype).ir_name);
  h = mix_hash(h, rushlight::info(node.buffer).ir_name);
  h = mix_hash(h, node.slot);
  h = mix_hash(h, combine_text(node.combine));
  h = mix_hash(h, node.bits);
  for (Expr input : node.inputs) {
    h = mix_hash(h, input->hash);
  }
  return h;
}

struct NodeHash {
  size_t operator()(const Node* node) const { return node->hash; }
};

struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    if (a->op != b->op || a->dtype != b->dtype || a->buffer != b->buffer || a->slot != b->slot ||
        a->combine != b->combine || a->bits != b->bits || a->inputs.size() != b->inputs.size()) {
      return false;
    }
    for (size_t i = 0; i < a->inputs.size(); ++i) {
      if (!same(a->inputs[i], b->inputs[i])) {
        return false;
      }
    }
    return true;
  }
};

struct Shard {
  std::mutex mutex;
  std::unordered_set<const Node*, NodeHash, NodeEqual> nodes;
};
constexpr size_t kShards = 16;

// Never destroyed: nodes may be used by other static destructors and by threads that outlive main.
Shard& shard(uint64_t hash) {
  static Shard* shards = new Shard[kShards];
  return shards[(hash >> 56) % kShards];
}

Expr intern(Node node) {
  node.hash = structural_hash(node);
  Shard& home = shard(node.hash);
  std::lock_guard lock(home.mutex);
  auto found = home.nodes.find(&node);
  if (found != home.nodes.end()) {
    return {*found};
  }
  const Node* kept = new Node(std::move(node));
  home.nodes.insert(kept);
  return {kept};
}

Node leaf(Op op, DType dtype) {
  return {op, dtype, dtype, 0, Combine::Sum, 0, 0, {}};
}

template <typename... Parts>
[[noreturn]] void misuse(Op op, const Parts&... parts) {
  fail(ErrorKind::Internal, cat("loop.", info(op).text), parts...);
}

void require(Op op, Expr operand) {
  if (!operand) {
    misuse(op, "an operand is null");
  }
}

void require_value_dtype(Op op, DType dtype) {
  if (compute_dtype(dtype) != dtype) {
    misuse(op, "a value cannot be ", dtype,
           ": half and float8 types occur in memory only, compute in float32");
  }
}

bool allows(std::string_view kinds, DType dtype) {
  char kind = dtype == DType::Bool ? 'b' : is_floating(dtype) ? 'f' : is_complex(dtype) ? 'c' : 'i';
  return kinds.find(kind) != std::string_view::npos;
}

void require_kind(Op op, DType dtype) {
  if (!allows(info(op).kinds, dtype)) {
    misuse(op, "not defined on ", dtype);
  }
}

uint8_t require_slot(Op op, int slot) {
  if (slot < 0 || slot > 255) {
    misuse(op, "number ", slot, " is outside 0..255");
  }
  return static_cast<uint8_t>(slot);
}

void require_same(Op op, Expr a, Expr b) {
  if (a.dtype() != b.dtype()) {
    misuse(op, "operands differ in dtype: ", a.dtype(), " and ", b.dtype());
  }
}

void require_condition(Op op, Expr condition) {
  require(op, condition);
  if (condition.dtype() != DType::Bool) {
    misuse(op, "the condition must be bool, got ", condition.dtype());
  }
}

void require_indices(Op op, std::span<const Expr> indices) {
  for (Expr index : indices) {
    require(op, index);
    if (index.dtype() != DType::Int64) {
      misuse(op, "an index must be int64, got ", index.dtype());
    }
  }
}

Node load_node(Op op, int buffer, DType memory) {
  Node node = leaf(op, compute_dtype(memory));
  node.buffer = memory;
  node.slot = require_slot(op, buffer);
  return node;
}

DType result_dtype(Op op, DType operand) {
  return info(op).typing == Typing::Bool ? DType::Bool : operand;
}

Expr over_axis(Op op, Combine combine, int axis, Expr body) {
  require(op, body);
  DType dtype = body.dtype();
  bool logical = combine == Combine::Or || combine == Combine::And;
  bool arithmetic = combine == Combine::Sum || combine == Combine::Prod;
  if ((logical && is_floating(dtype)) || (arithmetic && dtype == DType::Bool)) {
    misuse(op, combine_text(combine), " is not defined on ", dtype);
  }
  Node node = leaf(op, dtype);
  node.slot = require_slot(op, axis);
  node.combine = combine;
  node.inputs = {body};
  return intern(std::move(node));
}

Expr part(Op op, Expr x) {
  require_kind(op, x.dtype());
  Node node = leaf(op, real_dtype(x.dtype()));
  node.inputs = {x};
  return intern(std::move(node));
}

Expr axis_leaf(Op op, int axis) {
  Node node = leaf(op, DType::Int64);
  node.slot = require_slot(op, axis);
  return intern(std::move(node));
}

}  // namespace

const OpInfo& info(Op op) {
  return kOps[static_cast<int>(op)];
}

std::string_view combine_text(Combine combine) {
  return kCombineTexts[static_cast<int>(combine)];
}

bool is_value_dtype(DType dtype) {
  return !is_complex(dtype) && compute_dtype(dtype) == dtype;
}

Expr constant(double value, DType dtype) {
  require_value_dtype(Op::Const, dtype);
  Node node = leaf(Op::Const, dtype);
  if (is_floating(dtype) || is_complex(dtype)) {
    node.bits = normalize_float(value, real_dtype(dtype));
    return intern(std::move(node));
  }
  bool fits = std::trunc(value) == value && std::fabs(value) <= 9007199254740992.0;
  if (fits) {
    node.bits = normalize_int(static_cast<int64_t>(value), dtype);
    fits = is_signed(dtype) ? static_cast<double>(static_cast<int64_t>(node.bits)) == value
                            : static_cast<double>(node.bits) == value;
  }
  if (!fits) {
    misuse(Op::Const, value, " is no value of ", dtype);
  }
  return intern(std::move(node));
}

Expr constant_int(int64_t value, DType dtype) {
  if (!is_integral(dtype, true)) {
    misuse(Op::Const, "expected an integer or bool dtype, got ", dtype);
  }
  Node node = leaf(Op::Const, dtype);
  node.bits = normalize_int(value, dtype);
  return intern(std::move(node));
}

Expr constant_value(Value value, DType dtype) {
  return is_floating(dtype) ? constant(as_double(value), dtype)
                            : constant_int(static_cast<int64_t>(value), dtype);
}

Expr scalar(int slot, DType dtype) {
  require_value_dtype(Op::Scalar, dtype);
  Node node = leaf(Op::Scalar, dtype);
  node.slot = require_slot(Op::Scalar, slot);
  return intern(std::move(node));
}

Expr index(int axis) {
  return axis_leaf(Op::Index, axis);
}

Expr extent(int axis) {
  return axis_leaf(Op::Extent, axis);
}

Expr load(int buffer, DType memory, std::vector<Expr> indices) {
  Node node = load_node(Op::Load, buffer, memory);
  require_indices(Op::Load, indices);
  node.inputs = std::move(indices);
  return intern(std::move(node));
}

Expr load_if(Expr mask, Expr other, int buffer, DType memory, std::vector<Expr> indices) {
  Node node = load_node(Op::LoadIf, buffer, memory);
  require_condition(Op::LoadIf, mask);
  require(Op::LoadIf, other);
  require_indices(Op::LoadIf, indices);
  if (other.dtype() != node.dtype) {
    misuse(Op::LoadIf, "`other` must be ", node.dtype, ", got ", other.dtype());
  }
  indices.insert(indices.begin(), {mask, other});
  node.inputs = std::move(indices);
  return intern(std::move(node));
}

Expr cast(Expr x, DType dtype) {
  require(Op::Cast, x);
  if (x.dtype() == dtype) {
    return x;
  }
  if (is_complex(dtype)) {
    Expr part = cast(real(x), real_dtype(dtype));
    return complex(part, is_complex(x.dtype()) ? cast(imag(x), real_dtype(dtype))
                                               : constant(0, real_dtype(dtype)));
  }
  if (is_complex(x.dtype())) {
    return dtype == DType::Bool ? x != 0.0 : cast(real(x), dtype);
  }
  Node node = leaf(Op::Cast, compute_dtype(dtype));
  node.buffer = dtype;
  node.inputs = {x};
  return intern(std::move(node));
}

Expr bitcast(Expr x, DType dtype) {
  require(Op::Bitcast, x);
  require_value_dtype(Op::Bitcast, dtype);
  require_kind(Op::Bitcast, x.dtype());
  require_kind(Op::Bitcast, dtype);
  if (element_size(dtype) != element_size(x.dtype())) {
    misuse(Op::Bitcast, "sizes differ: ", x.dtype(), " to ", dtype);
  }
  if (x.dtype() == dtype) {
    return x;
  }
  Node node = leaf(Op::Bitcast, dtype);
  node.inputs = {x};
  return intern(std::move(node));
}

Expr complex(Expr real, Expr imag) {
  require(Op::Complex, real);
  require(Op::Complex, imag);
  require_same(Op::Complex, real, imag);
  require_kind(Op::Complex, real.dtype());
  Node node =
      leaf(Op::Complex, real.dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64);
  node.inputs = {real, imag};
  return intern(std::move(node));
}

Expr real(Expr x) {
  require(Op::Real, x);
  return is_complex(x.dtype()) ? part(Op::Real, x) : x;
}

Expr imag(Expr x) {
  require(Op::Imag, x);
  return part(Op::Imag, x);
}

Expr unary(Op op, Expr x) {
  if (op == Op::Real || op == Op::Imag) {
    return part(op, x);
  }
  if (info(op).arity != Arity::Unary || info(op).typing == Typing::Own) {
    misuse(op, "cannot be made by unary()");
  }
  require(op, x);
  require_kind(op, x.dtype());
  Node node = leaf(op, result_dtype(op, x.dtype()));
  node.inputs = {x};
  return intern(std::move(node));
}

Expr binary(Op op, Expr a, Expr b) {
  if (op == Op::Complex) {
    return complex(a, b);
  }
  if (info(op).arity != Arity::Binary) {
    misuse(op, "cannot be made by binary()");
  }
  require(op, a);
  require(op, b);
  require_same(op, a, b);
  require_kind(op, a.dtype());
  Node node = leaf(op, result_dtype(op, a.dtype()));
  node.inputs = {a, b};
  return intern(std::move(node));
}

Expr fma(Expr a, Expr b, Expr c) {
  for (Expr operand : {a, b, c}) {
    require(Op::Fma, operand);
    require_same(Op::Fma, a, operand);
    require_kind(Op::Fma, operand.dtype());
  }
  Node node = leaf(Op::Fma, a.dtype());
  node.inputs = {a, b, c};
  return intern(std::move(node));
}

Expr select(Expr condition, Expr a, Expr b) {
  require_condition(Op::Select, condition);
  require(Op::Select, a);
  require(Op::Select, b);
  require_same(Op::Select, a, b);
  Node node = leaf(Op::Select, a.dtype());
  node.inputs = {condition, a, b};
  return intern(std::move(node));
}

Expr reduce(Combine combine, int axis, Expr body) {
  return over_axis(Op::Reduce, combine, axis, body);
}

Expr scan(Combine combine, int axis, Expr body) {
  return over_axis(Op::Scan, combine, axis, body);
}

Expr with_inputs(Expr expr, std::vector<Expr> inputs) {
  const Node& node = *expr.node;
  bool changed = inputs.size() != node.inputs.size();
  for (size_t i = 0; !changed && i < inputs.size(); ++i) {
    changed = !same(inputs[i], node.inputs[i]);
  }
  if (!changed) {
    return expr;
  }
  size_t fixed = static_cast<size_t>(info(node.op).arity);
  if (fixed < 4 && inputs.size() != fixed) {
    misuse(node.op, "takes ", fixed, " operands, got ", inputs.size());
  }
  switch (node.op) {
    case Op::Load:
      return load(node.slot, node.buffer, std::move(inputs));
    case Op::LoadIf: {
      if (inputs.size() < 2) {
        misuse(node.op, "takes a mask and `other` first");
      }
      std::vector<Expr> indices(inputs.begin() + 2, inputs.end());
      return load_if(inputs[0], inputs[1], node.slot, node.buffer, std::move(indices));
    }
    case Op::Cast:
      return cast(inputs[0], node.buffer);
    case Op::Bitcast:
      return bitcast(inputs[0], node.dtype);
    case Op::Fma:
      return fma(inputs[0], inputs[1], inputs[2]);
    case Op::Select:
      return select(inputs[0], inputs[1], inputs[2]);
    case Op::Reduce:
    case Op::Scan:
      return over_axis(node.op, node.combine, node.slot, inputs[0]);
    default:
      return fixed == 1 ? unary(node.op, inputs[0]) : binary(node.op, inputs[0], inputs[1]);
  }
}

std::vector<Expr> post_order(std::span<const Expr> roots) {
  std::vector<Expr> order;
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<const Node*, size_t>> path;  // a node and its next input to visit
  for (Expr root : roots) {
    if (root && seen.insert(root.node).second) {
      path.emplace_back(root.node, 0);
    }
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == node->inputs.size()) {
        order.push_back({node});
        path.pop_back();
        continue;
      }
      const Node* input = node->inputs[next++].node;
      if (seen.insert(input).second) {
        path.emplace_back(input, 0);
      }
    }
  }
  return order;
}

}  // namespace rushlight::loop
