// Drawings of graphs, as text for Graphviz.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace rushlight::graph {

// A directed graph: a box a node, its operator and what it gives in it, and an ellipse an input.
// Arrows lead along memory: from the last node that wrote what is read, marked where it is written
// again. Views are boxes of their own. `dot -Tsvg` draws it.
std::string to_dot(const Graph& graph, std::string_view name = "graph");

}  // namespace rushlight::graph
