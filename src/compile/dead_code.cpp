// Leaves out nodes whose results nobody reads, here or outside.
#include "compile/passes.h"

namespace rushlight::compiler {

int eliminate_dead_code(Draft& draft) {
  const graph::Graph& graph = draft.graph;
  std::vector<bool> needed(draft.live);
  int count = 0;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const graph::Node& node = graph.nodes[i];
    if (is_view(node)) {
      continue;
    }
    auto storage = [&](int value) { return static_cast<size_t>(graph.value(value).storage); };
    // A write into memory that nobody sees has no effect either, so the form does not count.
    bool writes = node.form != Form::Functional && node.result_count != 0;
    graph::Node functional = node;
    functional.form = Form::Functional;
    bool wanted = !is_pure(functional);
    for_each_result(graph, node, [&](int value) { wanted = wanted || needed[storage(value)]; });
    if (!wanted) {
      draft.dropped[i] = true;
      ++count;
      continue;
    }
    for_each_operand(graph, node, [&](int value) { needed[storage(value)] = true; });
    if (writes) {
      for_each_result(graph, node, [&](int value) { needed[storage(value)] = true; });
    }
  }
  return count;
}

}  // namespace rushlight::compiler
