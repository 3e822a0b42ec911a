// Fusion by iteration space: which nodes of a graph run together in one kernel.
#pragma once

#include <vector>

#include "compile/space.h"
#include "graph/graph.h"

namespace rushlight::compiler {

struct Group {
  std::vector<int> nodes;  // in the order of the program
  bool fuses = false;      // false: one node, run by its operator
  Space space;             // of the first plan; its axis holds for all shapes
  // A node that makes a matrix product: the kernel runs on each block of it as soon as it is there.
  int product = -1;
};

// Calls `visit(node)` for all that the group runs.
template <typename F>
void for_each_node(const Group& group, F&& visit) {
  if (group.product >= 0) {
    visit(group.product);
  }
  for (int node : group.nodes) {
    visit(node);
  }
}

// The argument that a node copies, converted to the dtype of its result; -1 where it does more.
int copied_argument(const graph::Node& node);
// Whether each element of the node's result follows from one of each operand.
bool is_pointwise(const graph::Node& node);

// What a node needs of a space; nothing where it cannot be fused.
struct Wanted {
  IntList shape;
  IntList axis;
};
std::optional<Wanted> wanted_space(const graph::Graph& graph, const graph::Node& node);

// Whether a row operator, alone as eager runs it, reduces column by column.
bool node_reduces_columns(const graph::Graph& graph, const graph::Node& node, const Space& space);

// How the operands of a node lie in a space, and its result number i; nothing where they do not.
std::optional<Fit> node_fit(const graph::Graph& graph, const graph::Node& node, const Space& space);
std::optional<Fit> result_fit(const graph::Graph& graph, const graph::Node& node, int i,
                              const Space& space);

// How the nodes' values lie in the space: equal patterns make the same kernel. Empty where the
// nodes do not run together in the space.
std::vector<int> pattern_of(const graph::Graph& graph, const std::vector<int>& nodes,
                            const Space& space);

// Which nodes touch each storage, in order; dropped ones do not count.
using Users = std::vector<std::vector<int>>;
Users users_of(const graph::Graph& graph, const std::vector<bool>& dropped);
// Whether a storage that the nodes (in order) write must be in memory afterwards.
bool is_stored(int storage, const std::vector<int>& nodes, const Users& users,
               const std::vector<bool>& live);

}  // namespace rushlight::compiler
