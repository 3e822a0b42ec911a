#include "compile/fused.h"

#include <algorithm>
#include <cstdio>

#include "graph/execute.h"
#include "graph/record.h"
#include "ops/iteration.h"
#include "ops/matmul.h"
#include "ops/operator.h"
#include "ops/row_space.h"
#include "runtime/kernel_cache.h"
#include "runtime/log.h"

namespace rushlight::compiler {

using graph::Graph;
using graph::Node;

// The operands over the sizes of one segment, folded.
struct Fused::Bound {
  KernelPlan plan;
  std::optional<Iteration> points;
  RowSpace rows;
};

namespace {

// An error tells what to report: the kernel's text, which parses back.
loop::KernelFunction function_of(const loop::Kernel& kernel) {
  try {
    return get_kernel(kernel);
  } catch (const Error& error) {
    fail(error.kind(), "compile", "the kernel of ", kernel.name,
         " could not be compiled: ", error.what(),
         "\nRUSHLIGHT_PASSES=-fusion runs without such kernels. A report needs this "
         "text:\n",
         loop::print(kernel));
  }
}

}  // namespace

int shape_value(const Graph& graph, const Group& group) {
  for (int number : group.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    int found = -1;
    auto look = [&](int value) {
      if (IntArrayRef(graph.value(value).sizes) == IntArrayRef(group.space.shape)) {
        found = value;
      }
    };
    for_each_operand(graph, node, look);
    for_each_result(graph, node, look);
    if (found >= 0) {
      return found;
    }
  }
  return -1;
}

Fused::Fused(const Graph& graph, Group group, const std::vector<bool>& stored)
    : group_(std::move(group)), shape_value_(shape_value(graph, group_)) {
  for_each_node(group_, [&](int node) {
    name_ += name_.size() == 7 ? "" : "+";
    name_ += graph.nodes[static_cast<size_t>(node)].op->name();
  });
  pattern_ = pattern_of(graph, group_.nodes, group_.space);
  find_operands(graph, stored);
  columns_ =
      !group_.space.axis.empty() && reduces_columns(places(graph, group_.space), group_.space);
}

bool Fused::fits(const Graph& graph) const {
  Space space{graph.value(shape_value_).sizes, group_.space.axis};
  if (pattern_.empty() || pattern_of(graph, group_.nodes, space) != pattern_) {
    return false;
  }
  return space.axis.empty() || reduces_columns(places(graph, space), space) == columns_;
}

std::vector<Place> Fused::places(const Graph& graph, const Space& space) const {
  std::vector<Place> made;
  for (const Operand& operand : operands_) {
    made.push_back(place_of(graph.value(operand.value), space, operand.fit));
  }
  return made;
}

void Fused::find_operands(const Graph& graph, const std::vector<bool>& stored) {
  const Space& space = group_.space;
  std::vector<Operand> loads;
  std::vector<std::pair<Place, size_t>> written;  // and its operand
  std::vector<Place> loaded;
  auto is_written = [&](const Place& place) {
    return std::any_of(written.begin(), written.end(),
                       [&](const auto& item) { return item.first == place; });
  };
  for (int number : group_.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    Fit fit = *node_fit(graph, node, space);
    for_each_operand(graph, node, [&](int value) {
      Place place = place_of(graph.value(value), space, fit);
      if (!is_written(place) && std::find(loaded.begin(), loaded.end(), place) == loaded.end()) {
        loaded.push_back(place);
        loads.push_back({value, fit, false});
      }
    });
    for (int i = 0; i < node.result_count; ++i) {
      int value = graph.result(node, i);
      Fit at = *result_fit(graph, node, i, space);
      Place place = place_of(graph.value(value), space, at);
      if (is_written(place)) {
        continue;
      }
      written.emplace_back(place, operands_.size());
      auto storage = static_cast<size_t>(place.storage);
      if (stored[storage]) {
        operands_.push_back({value, at, true});
        if (!graph.storages[storage].input && node.form == Form::Functional) {
          made_.push_back(place.storage);
        }
      }
    }
  }
  // A place that is both loaded and stored is one buffer.
  for (const Operand& load : loads) {
    Place place = place_of(graph.value(load.value), space, load.fit);
    bool stores = std::any_of(operands_.begin(), operands_.end(), [&](const Operand& operand) {
      return operand.store && place_of(graph.value(operand.value), space, operand.fit) == place;
    });
    if (!stores) {
      operands_.push_back(load);
    }
  }
}

void Fused::bind(const graph::Segment& segment, bool pointers, Bound& bound) const {
  const Graph& graph = segment.graph;
  KernelPlan& plan = bound.plan;
  plan.space.shape = graph.value(shape_value_).sizes;
  plan.space.axis = group_.space.axis;
  plan.rows = !plan.space.axis.empty();
  size_t rank = plan.space.shape.size();
  if (!plan.rows) {
    bound.points.emplace(plan.space.shape);
  } else {
    for (size_t i = 0; i < rank; ++i) {
      if (!plan.space.is_axis(i)) {
        bound.rows.outer.push_back(plan.space.shape[i]);
      } else {
        bound.rows.length *= plan.space.shape[i];
      }
    }
  }
  for (const Operand& operand : operands_) {
    const graph::ValueInfo& value = graph.value(operand.value);
    Place place = place_of(value, plan.space, operand.fit);
    int64_t item = element_size(place.dtype);
    char* data = nullptr;
    if (pointers) {
      data =
          storage_data(segment.storages[static_cast<size_t>(place.storage)]) + place.offset * item;
    }
    if (!plan.rows) {
      auto& to = bound.points->operands[static_cast<size_t>(bound.points->operand_count++)];
      to.data = data;
      to.element_size = item;
      to.unit = 1;
      std::copy(place.strides.begin(), place.strides.end(), to.strides);
    } else {
      RowOperand to;
      to.data = data;
      to.element_size = item;
      for (size_t i = 0; i < rank; ++i) {
        if (!plan.space.is_axis(i)) {
          to.outer.push_back(place.strides[i]);
        }
      }
      to.axis = axis_stride(place, plan.space).value();
      bound.rows.operands.push_back(std::move(to));
    }
    plan.stores += operand.store ? 1 : 0;
    plan.reduced.push_back(plan.rows && axis_stride(place, plan.space) == 0);
    plan.places.push_back(std::move(place));
  }
  auto layout = [](int64_t stride) {
    return stride == 0 ? loop::Layout::Zero : stride == 1 ? loop::Layout::Unit : loop::Layout::Any;
  };
  if (!plan.rows) {
    Iteration& points = *bound.points;
    points.fold();
    if (points.rank == 1 && points.sizes[0] == 1) {
      for (size_t i = 0; i < plan.stores; ++i) {
        points.operands[i].strides[0] = 1;
      }
    }
    plan.flat = points.flat();
    for (size_t i = 0; i < operands_.size(); ++i) {
      plan.layouts.push_back(points.layout(static_cast<int>(i), points.rank - 1));
    }
    return;
  }
  bound.rows.fold();
  plan.inner = bound.rows.inner >= 0;
  for (const RowOperand& operand : bound.rows.operands) {
    plan.layouts.push_back(
        layout(plan.inner ? operand.outer[static_cast<size_t>(bound.rows.inner)] : operand.axis));
  }
}

const Fused::Compiled& Fused::compiled(const Graph& graph, const Bound& bound) {
  std::vector<uint8_t> layouts;
  layouts.push_back(static_cast<uint8_t>((bound.plan.flat ? 1 : 0) | (bound.plan.inner ? 2 : 0)));
  for (size_t i = 0; i < bound.plan.layouts.size(); ++i) {
    layouts.push_back(static_cast<uint8_t>(static_cast<int>(bound.plan.layouts[i]) |
                                           (bound.plan.reduced[i] ? 4 : 0)));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Compiled& kernel : kernels_) {
      if (kernel.layouts == layouts) {
        return kernel;
      }
    }
  }
  BuiltKernel built = build_kernel(graph, group_.nodes, bound.plan);
  if (is_logged("loops")) {
    std::fprintf(stderr, "[loops] %s\n", loop::print(built.kernel).c_str());
  }
  loop::KernelFunction function = function_of(built.kernel);
  std::lock_guard<std::mutex> lock(mutex_);
  kernels_.push_back({std::move(layouts), function, std::move(built.scalars), built.cost});
  return kernels_.back();
}

void Fused::prepare(const graph::Segment& segment) {
  Bound bound;
  bind(segment, false, bound);
  compiled(segment.graph, bound);
}

int Fused::product_storage(const Graph& graph) const {
  if (group_.product < 0) {
    return -1;
  }
  const Node& product = graph.nodes[static_cast<size_t>(group_.product)];
  return graph.value(graph.result(product, 0)).storage;
}

void Fused::run(graph::Segment& segment) {
  // Storages that took the memory of others have it already, but must not be bound as empty.
  for (int storage : made_) {
    StorageImpl* made = segment.storages[static_cast<size_t>(storage)];
    if (!graph::has_memory(made)) {
      graph::allocate_storage(made);
    }
  }
  if (group_.product >= 0) {
    run_with_product(segment);
    return;
  }
  Bound bound;
  bind(segment, true, bound);
  run_bound(segment, bound);
}

namespace {

std::vector<uint64_t> scalar_bits(const Graph& graph, const std::vector<FusedScalar>& scalars) {
  std::vector<uint64_t> bits;
  bits.reserve(scalars.size());
  for (const FusedScalar& scalar : scalars) {
    const Node& node = graph.nodes[static_cast<size_t>(scalar.node)];
    bits.push_back(
        graph.slot(node, scalar.argument).attribute.to_scalar().kernel_bits(scalar.dtype));
  }
  return bits;
}

}  // namespace

// The product first, wholly, where the kernel goes over memory in another order than its rows.
void Fused::run_with_product(graph::Segment& segment) {
  const Graph& graph = segment.graph;
  const Node& product = graph.nodes[static_cast<size_t>(group_.product)];
  int result = graph.result(product, 0);
  StorageImpl* storage = segment.storages[static_cast<size_t>(product_storage(graph))];
  if (!graph::has_memory(storage)) {
    graph::allocate_storage(storage);
  }
  Tensor out = graph::tensor_of(segment, result);
  std::vector<Value> arguments = graph::arguments_of(
      graph, product, [&](int value) { return graph::tensor_of(segment, value); });
  Bound bound;
  bind(segment, true, bound);
  int64_t cols = product_columns(*product.op, arguments.data(), out);
  int64_t rows = cols == 0 ? 0 : out.numel() / cols;
  // The operand that is the product, element beside element.
  int place = -1;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (bound.plan.places[i].storage == graph.value(result).storage) {
      place =
          place == -1 && bound.points->operands[i].data == out.data() ? static_cast<int>(i) : -2;
    }
  }
  if (place < 0 || !has_rows(*bound.points, place, rows, cols)) {
    run_product(*product.op, arguments.data(), out, [](int64_t, int64_t, int64_t, int64_t) {});
    run_bound(segment, bound);
    return;
  }
  const Compiled& kernel = compiled(graph, bound);
  std::vector<uint64_t> scalars = scalar_bits(graph, kernel.scalars);
  run_product(*product.op, arguments.data(), out,
              [&](int64_t row, int64_t col, int64_t height, int64_t width) {
                run_block(*bound.points, cols, {row, col, height, width}, kernel.function,
                          scalars.data());
              });
}

void Fused::run_bound(const graph::Segment& segment, const Bound& bound) {
  const Compiled& kernel = compiled(segment.graph, bound);
  std::vector<uint64_t> scalars = scalar_bits(segment.graph, kernel.scalars);
  if (bound.plan.rows) {
    run_rows(bound.rows, kernel.function, scalars.data(), std::max(2.0, kernel.cost));
  } else {
    run_iteration(*bound.points, kernel.function, scalars.data(), kernel.cost);
  }
}

}  // namespace rushlight::compiler
