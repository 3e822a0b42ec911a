// Builds the loop IR of a fused group: the expressions of its operators, each reading what those
// before it made.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "compile/fused.h"
#include "graph/execute.h"
#include "kernels/convert.h"
#include "ops/elementwise_expression.h"
#include "ops/operator.h"
#include "ops/rows_body.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Node;
using loop::Expr;

class Builder final : public ElementwiseOperands, public RowOperands {
 public:
  Builder(const Graph& graph, const KernelPlan& plan) : graph_(graph), plan_(plan) {
    size_t axes = plan.rows ? (plan.inner ? 3 : 2) : plan.flat ? 1 : 2;
    built_.kernel.axes.assign(axes, loop::AxisKind::Parallel);
    if (plan.rows) {
      built_.kernel.axes[1] = loop::AxisKind::Reduce;
    }
    for (size_t i = 0; i < plan.places.size(); ++i) {
      built_.kernel.buffers.push_back({plan.places[i].dtype, dims(i)});
    }
  }

  void add(int number) {
    number_ = number;
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    name(*node.op);
    fit_ = *node_fit(graph_, node, plan_.space);
    arguments_ = graph::arguments_of(graph_, node,
                                     [&](int value) { return graph::shape_of(graph_, value); });
    std::vector<Value> results(static_cast<size_t>(node.result_count));
    Invocation inv{node.op,
                   node.form,
                   static_cast<uint8_t>(arguments_.size()),
                   static_cast<uint8_t>(results.size()),
                   arguments_.data(),
                   results.data()};
    if (int copied = copied_argument(node); copied >= 0) {
      store(0, kernels::convert_value(load(copied), graph_.value(graph_.result(node, 0)).dtype));
      return;
    }
    if (is_elementwise(*node.op)) {
      ElementwiseTyping typing = elementwise_typing(*node.op, inv);
      typing.out = graph_.value(graph_.result(node, 0)).dtype;
      store(0, elementwise_expression(*node.op, inv, typing, *this));
      return;
    }
    const RowsBody* body = rows_body(*node.op);
    RowPlan rows = body->plan(*node.op, inv);
    body->express(arguments_.data(), rows.compute, rows.dtypes, false, *this);
  }

  BuiltKernel finish() {
    for (size_t i = 0; i < plan_.stores; ++i) {
      const Expr* value = find(plan_.places[i]);
      RUSHLIGHT_ASSERT(value != nullptr);
      built_.kernel.stores.push_back({static_cast<int>(i), indices(plan_.reduced[i]), *value});
    }
    built_.kernel = loop::simplify(built_.kernel);
    built_.cost = 0;
    for (const loop::Store& store : built_.kernel.stores) {
      built_.cost += element_cost(store.value);
    }
    return std::move(built_);
  }

  Expr load(int argument) override {
    int value = graph_.operand(graph_.nodes[static_cast<size_t>(number_)], argument);
    RUSHLIGHT_ASSERT(value >= 0);
    Place place = place_of(graph_.value(value), plan_.space, fit_);
    if (const Expr* known = find(place)) {
      return *known;
    }
    for (size_t i = 0; i < plan_.places.size(); ++i) {
      if (plan_.places[i] == place) {
        return loop::load(static_cast<int>(i), place.dtype, indices(plan_.reduced[i]));
      }
    }
    fail(ErrorKind::Internal, "compile", "a fused group reads a value that is not bound");
  }

  Expr number(int argument, DType dtype) override {
    std::vector<FusedScalar>& scalars = built_.scalars;
    for (size_t i = 0; i < scalars.size(); ++i) {
      if (scalars[i].node == number_ && scalars[i].argument == argument &&
          scalars[i].dtype == dtype) {
        return loop::scalar(static_cast<int>(i), dtype);
      }
    }
    scalars.push_back({number_, argument, dtype});
    built_.kernel.scalars.push_back(dtype);
    return loop::scalar(static_cast<int>(scalars.size()) - 1, dtype);
  }

  void store(int result, Expr value) override {
    const Node& node = graph_.nodes[static_cast<size_t>(number_)];
    const graph::ValueInfo& info = graph_.value(graph_.result(node, result));
    Fit fit = *result_fit(graph_, node, result, plan_.space);
    Place place = place_of(info, plan_.space, fit);
    // As a later load would see it: halves are rounded, as eager does between operators.
    Expr seen = loop::cast(value, info.dtype);
    for (auto& [at, expression] : known_) {
      if (at == place) {
        expression = seen;
        return;
      }
    }
    known_.emplace_back(std::move(place), seen);
  }

 private:
  const Expr* find(const Place& place) const {
    for (const auto& [at, expression] : known_) {
      if (at == place) {
        return &expression;
      }
    }
    return nullptr;
  }

  void name(const Operator& op) {
    std::string& text = built_.kernel.name;
    if (text.size() < 120) {
      text += (text.empty() ? "" : "+") + op.name();
    }
  }

  std::vector<loop::Layout> dims(size_t i) const {
    loop::Layout along = plan_.layouts[i];
    if (!plan_.rows) {
      return plan_.flat ? std::vector<loop::Layout>{along}
                        : std::vector<loop::Layout>{loop::Layout::Any, along};
    }
    bool reduced = plan_.reduced[i];
    std::vector<loop::Layout> made{loop::Layout::Any};
    if (reduced) {
      made.push_back(loop::Layout::Zero);
    } else {
      made.push_back(plan_.inner ? loop::Layout::Any : along);
    }
    if (plan_.inner) {
      made.push_back(along);
    }
    return made;
  }

  std::vector<Expr> indices(bool reduced) const {
    if (!plan_.rows) {
      return plan_.flat ? std::vector<Expr>{loop::index(0)}
                        : std::vector<Expr>{loop::index(0), loop::index(1)};
    }
    std::vector<Expr> made{loop::index(0),
                           reduced ? loop::constant_int(0, DType::Int64) : loop::index(1)};
    if (plan_.inner) {
      made.push_back(loop::index(2));
    }
    return made;
  }

  const Graph& graph_;
  const KernelPlan& plan_;
  BuiltKernel built_;
  std::vector<std::pair<Place, Expr>> known_;
  // Of the node at hand.
  int number_ = 0;
  Fit fit_ = Fit::Full;
  std::vector<Value> arguments_;
};

// The depth of reductions below each node: those of one depth share a pass over the row.
int reduce_depth(Expr node, std::unordered_map<const loop::Node*, int>& depths) {
  auto found = depths.find(node.node);
  if (found != depths.end()) {
    return found->second;
  }
  int depth = 0;
  for (const Expr& input : node->inputs) {
    depth = std::max(depth, reduce_depth(input, depths));
  }
  depth += node->op == loop::Op::Reduce ? 1 : 0;
  depths[node.node] = depth;
  return depth;
}

// Marks in `passes` the pass of every node that `root` computes without crossing a reduction.
void mark_pass(Expr root, int pass, std::unordered_map<const loop::Node*, uint64_t>& passes) {
  uint64_t bit = uint64_t{1} << std::min(pass, 63);
  if ((passes[root.node] & bit) != 0 || root->op == loop::Op::Reduce) {
    return;
  }
  passes[root.node] |= bit;
  for (const Expr& input : root->inputs) {
    mark_pass(input, pass, passes);
  }
}

bool varies(Expr node, std::unordered_map<const loop::Node*, bool>& seen) {
  auto found = seen.find(node.node);
  if (found != seen.end()) {
    return found->second;
  }
  bool result = node->op == loop::Op::Load || (node->op == loop::Op::Index && node->slot == 1);
  if (node->op != loop::Op::Reduce && node->op != loop::Op::Load) {
    for (const Expr& input : node->inputs) {
      result = varies(input, seen) || result;
    }
  }
  seen[node.node] = result;
  return result;
}

}  // namespace

namespace {

// A kernel of the nodes that is good for estimates: its layouts are any.
BuiltKernel sketch(const Graph& graph, const std::vector<int>& nodes, const Space& space,
                   const std::function<bool(int)>& stored) {
  KernelPlan plan;
  plan.space = space;
  plan.rows = !space.axis.empty();
  auto add = [&](int value, Fit fit, bool store) {
    Place place = place_of(graph.value(value), space, fit);
    for (size_t i = 0; i < plan.places.size(); ++i) {
      if (plan.places[i] == place) {
        return;
      }
    }
    plan.places.push_back(std::move(place));
    plan.reduced.push_back(plan.rows && axis_stride(plan.places.back(), space) == 0);
    plan.layouts.push_back(loop::Layout::Any);
    plan.stores += store ? 1 : 0;
  };
  for (int number : nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    for (int i = 0; i < node.result_count; ++i) {
      int value = graph.result(node, i);
      if (stored(graph.value(value).storage)) {
        add(value, *result_fit(graph, node, i, space), true);
      }
    }
  }
  for (int number : nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    for_each_operand(graph, node,
                     [&](int value) { add(value, *node_fit(graph, node, space), false); });
  }
  return build_kernel(graph, nodes, plan);
}

}  // namespace

double node_cost(const Graph& graph, int node) {
  std::optional<Wanted> wanted = wanted_space(graph, graph.nodes[static_cast<size_t>(node)]);
  return sketch(graph, {node}, {wanted->shape, wanted->axis}, [](int) { return true; }).cost;
}

double repeated_cost(const Graph& graph, const std::vector<int>& nodes, const Space& space,
                     const std::function<bool(int)>& stored) {
  BuiltKernel built = sketch(graph, nodes, space, stored);
  std::unordered_map<const loop::Node*, int> depths;
  std::unordered_map<const loop::Node*, uint64_t> passes;
  std::vector<Expr> all = loop::post_order(loop::roots(built.kernel));
  int most = 0;
  for (Expr node : all) {
    most = std::max(most, reduce_depth(node, depths));
  }
  for (Expr node : all) {
    if (node->op == loop::Op::Reduce) {
      mark_pass(node->inputs[0], depths[node.node], passes);
    }
  }
  for (const loop::Store& store : built.kernel.stores) {
    mark_pass(store.value, most + 1, passes);
  }
  std::unordered_map<const loop::Node*, bool> seen;
  double cost = 0;
  for (Expr node : all) {
    int times = std::popcount(passes[node.node]);
    if (times > 1 && !node->inputs.empty() && node->op != loop::Op::Load && varies(node, seen)) {
      cost += (times - 1) * operation_cost(node);
    }
  }
  return cost;
}

BuiltKernel build_kernel(const Graph& graph, const std::vector<int>& nodes,
                         const KernelPlan& plan) {
  Builder builder(graph, plan);
  for (int node : nodes) {
    builder.add(node);
  }
  return builder.finish();
}

}  // namespace rushlight::compiler
