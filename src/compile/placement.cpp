// Where a graph's nodes and values lie in iteration spaces.
#include <algorithm>

#include "compile/fusion.h"
#include "graph/execute.h"
#include "ops/elementwise_expression.h"
#include "ops/operator.h"
#include "ops/rows_body.h"

namespace rushlight::compiler {

using graph::Graph;
using graph::Node;

namespace {

bool is_dense(const graph::ValueInfo& value) {
  for (size_t i = 0; i < value.sizes.size(); ++i) {
    if (value.strides[i] == 0 && value.sizes[i] > 1) {
      return false;
    }
  }
  return true;
}

// Whether one's neighbours along the last dimension are not the other's.
bool moves_elements(const graph::ValueInfo& from, const graph::ValueInfo& to) {
  bool plain = (from.flags & to.flags & TensorImpl::kContiguous) != 0;
  return !plain && !from.sizes.empty() && !to.sizes.empty() && from.sizes.back() != 1 &&
         from.strides.back() != to.strides.back();
}

std::optional<Wanted> wanted_elementwise(const Graph& graph, const Node& node) {
  const graph::ValueInfo& result = graph.value(graph.result(node, 0));
  if (!is_dense(result) || is_complex(result.dtype)) {
    return std::nullopt;
  }
  // Transpositions have kernels of their own, which take memory in blocks.
  int copied = copied_argument(node);
  int source = copied < 0 ? -1 : graph.operand(node, copied);
  if (copied >= 0 && (source < 0 || moves_elements(graph.value(source), result))) {
    return std::nullopt;
  }
  return Wanted{result.sizes, {}};
}

std::optional<Wanted> wanted_rows(const Graph& graph, const Node& node) {
  const RowsBody* body = rows_body(*node.op);
  if (node.form != Form::Functional || body->spec().scans) {
    return std::nullopt;
  }
  std::vector<Value> arguments =
      graph::arguments_of(graph, node, [&](int value) { return graph::shape_of(graph, value); });
  std::vector<Value> results(node.op->schema.results.size());
  Invocation inv{node.op,
                 node.form,
                 static_cast<uint8_t>(arguments.size()),
                 static_cast<uint8_t>(results.size()),
                 arguments.data(),
                 results.data()};
  if (splits_rows(*node.op, inv)) {
    return std::nullopt;
  }
  RowPlan plan = body->plan(*node.op, inv);
  if (plan.shape.empty() || plan.axis_dims.empty()) {
    return std::nullopt;
  }
  if (!body->spec().ordered) {
    // Eager takes the axis dimensions by stride; where that is not their order, so are its sums.
    IntList order(plan.axis_dims);
    order_by_stride(arguments[static_cast<size_t>(body->roles().tensors[0])].tensor(),
                    plan.shape.size(), order);
    if (!(IntArrayRef(order) == IntArrayRef(plan.axis_dims))) {
      return std::nullopt;
    }
  }
  Wanted wanted{plan.shape, plan.axis_dims};
  Space space{wanted.shape, wanted.axis};
  bool folds = true;
  for_each_operand(graph, node, [&](int value) {
    folds = folds && axis_stride(place_of(graph.value(value), space, Fit::Full), space).has_value();
  });
  return folds ? std::optional<Wanted>(wanted) : std::nullopt;
}

}  // namespace

int copied_argument(const Node& node) {
  static const Operator* to_copy = &find_operator("_to_copy");
  static const Operator* clone = &find_operator("clone");
  static const Operator* copy = &find_operator("copy");
  return node.op == to_copy || node.op == clone ? 0 : node.op == copy ? 1 : -1;
}

bool is_pointwise(const Node& node) {
  return is_elementwise(*node.op) || copied_argument(node) >= 0;
}

std::optional<Wanted> wanted_space(const Graph& graph, const Node& node) {
  bool empty = false;
  bool complex = false;
  auto look = [&](int value) {
    empty = empty || graph.value(value).numel == 0;
    complex = complex || is_complex(graph.value(value).dtype);
  };
  for_each_operand(graph, node, look);
  for_each_result(graph, node, look);
  if (empty || complex || node.result_count == 0) {
    return std::nullopt;
  }
  if (is_pointwise(node)) {
    return wanted_elementwise(graph, node);
  }
  if (node.op->kind == Kind::Reduction && rows_body(*node.op) != nullptr) {
    return wanted_rows(graph, node);
  }
  return std::nullopt;
}

// As the row operator reduces alone, by eager.
bool node_reduces_columns(const Graph& graph, const Node& node, const Space& space) {
  std::vector<Place> own;
  for (int i = 0; i < node.result_count; ++i) {
    own.push_back(
        place_of(graph.value(graph.result(node, i)), space, *result_fit(graph, node, i, space)));
  }
  for_each_operand(graph, node, [&](int value) {
    own.push_back(place_of(graph.value(value), space, Fit::Full));
  });
  return reduces_columns(own, space);
}

std::optional<Fit> node_fit(const Graph& graph, const Node& node, const Space& space) {
  if (is_pointwise(node)) {
    return fit_shape(space, graph.value(graph.result(node, 0)).sizes);
  }
  return Fit::Full;
}

std::optional<Fit> result_fit(const Graph& graph, const Node& node, int i, const Space& space) {
  if (is_pointwise(node)) {
    return node_fit(graph, node, space);
  }
  if (rows_body(*node.op)->spec().results[static_cast<size_t>(i)].shape == RowShape::Full) {
    return Fit::Full;
  }
  bool kept = graph.value(graph.result(node, i)).sizes.size() == space.shape.size();
  return kept ? Fit::Kept : Fit::Removed;
}

std::vector<int> pattern_of(const Graph& graph, const std::vector<int>& nodes, const Space& space) {
  std::vector<int> pattern;
  std::vector<Place> places;
  auto enter = [&](int value, Fit fit) {
    Place place = place_of(graph.value(value), space, fit);
    auto at = std::find(places.begin(), places.end(), place);
    pattern.push_back(static_cast<int>(at - places.begin()));
    if (at == places.end()) {
      places.push_back(std::move(place));
    }
  };
  for (int number : nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    std::optional<Wanted> wanted = wanted_space(graph, node);
    std::optional<Fit> fit = wanted ? node_fit(graph, node, space) : std::nullopt;
    if (!fit ||
        (!wanted->axis.empty() && !(IntArrayRef(wanted->shape) == IntArrayRef(space.shape) &&
                                    IntArrayRef(wanted->axis) == IntArrayRef(space.axis)))) {
      return {};
    }
    pattern.push_back(static_cast<int>(*fit));
    for_each_operand(graph, node, [&](int value) { enter(value, *fit); });
    for (int i = 0; i < node.result_count; ++i) {
      enter(graph.result(node, i), *result_fit(graph, node, i, space));
    }
    if (!wanted->axis.empty()) {
      pattern.push_back(node_reduces_columns(graph, node, space) ? 1 : 0);
    }
  }
  if (!space.axis.empty()) {
    for (const Place& place : places) {
      if (!axis_stride(place, space)) {
        return {};
      }
    }
  }
  return pattern;
}

}  // namespace rushlight::compiler
