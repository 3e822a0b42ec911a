// Passes: what is decided about a graph before it is run, a file each.
//
// A pass changes the draft, never the meaning: RUSHLIGHT_PASSES=-name,-other switches passes off,
// and results stay the same, bit for bit. RUSHLIGHT_LOG=passes tells what each did and how long it
// took.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compile/fusion.h"
#include "graph/recipe.h"

namespace rushlight::compiler {

// A storage that a group makes, in the memory of one that it reads for the last time.
struct Reuse {
  int group;
  int made;
  int spent;
  int made_value;
  int spent_value;
};

// What the budget for activations says of a segment (graph::Segment).
struct Activations {
  double budget = graph::kKeepAll;
  std::vector<bool> hidden;  // by storage
  std::vector<bool> lendable;
};

struct Draft {
  graph::Graph graph;         // as captured, with rewritten operands
  std::vector<bool> live;     // by storage: seen outside of the graph
  std::vector<bool> dropped;  // nodes that need not run
  // Operands (their place in Graph::operands) that are another value than the captured one.
  std::vector<std::pair<int, int>> rewrites;
  std::vector<std::pair<int, int>> merges;  // nodes that are equal calls; the second is dropped
  std::vector<Group> groups;
  std::vector<Reuse> reuses;
  Activations activations;
  std::vector<graph::Remade> remade;  // storages that are made again instead of kept; not live
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  // Returns how much it changed, for the log.
  int (*run)(Draft& draft);
};
RUSHLIGHT_API const std::vector<Pass>& all_passes();

// Makes a draft of the graph by all passes that are on.
Draft plan_graph(const graph::Graph& graph, std::vector<bool> live, Activations activations = {});

// Whether a node may move a random stream: such nodes keep their order.
bool draws(const graph::Node& node);
// Whether a node has no effect but its results: none on arguments, random streams or errors.
bool is_pure(const graph::Node& node);

// Whether two calls of one operator have equal attributes.
bool same_attributes(const graph::Graph& graph, const graph::Node& a, const graph::Node& b);
// Whether two values are the whole of their storages, element beside element.
bool share_shape(const graph::ValueInfo& made, size_t made_bytes, const graph::ValueInfo& spent,
                 size_t spent_bytes);

int eliminate_dead_code(Draft& draft);          // dead_code.cpp
int merge_common_subexpressions(Draft& draft);  // common_subexpressions.cpp
int remake_activations(Draft& draft);           // recomputation.cpp
int fuse_by_space(Draft& draft);                // fusion.cpp
int join_products(Draft& draft);                // matmul_epilogue.cpp
int reuse_memory(Draft& draft);                 // memory.cpp

}  // namespace rushlight::compiler
