// Lets a result take over the memory of an operand that its kernel reads for the last time, element
// for element: one buffer in the cache instead of two.
#include <algorithm>

#include "compile/fused.h"
#include "compile/passes.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Node;

struct Touch {
  Place place;
  bool written;
  int value;
};

std::vector<Touch> touches_of(const Graph& graph, const Group& group) {
  std::vector<Touch> made;
  for (int number : group.nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    Fit fit = *node_fit(graph, node, group.space);
    for_each_operand(graph, node, [&](int value) {
      made.push_back({place_of(graph.value(value), group.space, fit), false, value});
    });
    for (int i = 0; i < node.result_count; ++i) {
      Fit at = *result_fit(graph, node, i, group.space);
      int value = graph.result(node, i);
      made.push_back({place_of(graph.value(value), group.space, at), true, value});
    }
  }
  return made;
}

}  // namespace

bool share_shape(const graph::ValueInfo& made, size_t made_bytes, const graph::ValueInfo& spent,
                 size_t spent_bytes) {
  int64_t item = element_size(made.dtype);
  return made_bytes == spent_bytes && item == element_size(spent.dtype) && made.offset == 0 &&
         spent.offset == 0 && static_cast<size_t>(made.numel * item) == made_bytes &&
         IntArrayRef(made.sizes) == IntArrayRef(spent.sizes) &&
         IntArrayRef(made.strides) == IntArrayRef(spent.strides);
}

int reuse_memory(Draft& draft) {
  const Graph& graph = draft.graph;
  Users users = users_of(graph, draft.dropped);
  std::vector<int> group_of(graph.nodes.size(), -1);
  for (size_t i = 0; i < draft.groups.size(); ++i) {
    for_each_node(draft.groups[i],
                  [&](int node) { group_of[static_cast<size_t>(node)] = static_cast<int>(i); });
  }
  auto ends_at = [&](int storage, int group) {
    for (int user : users[static_cast<size_t>(storage)]) {
      if (group_of[static_cast<size_t>(user)] > group) {
        return false;
      }
    }
    return true;
  };
  for (size_t g = 0; g < draft.groups.size(); ++g) {
    const Group& group = draft.groups[g];
    if (!group.fuses) {
      continue;
    }
    auto number = static_cast<int>(g);
    std::vector<Touch> touches = touches_of(graph, group);
    // What a product reads is needed up to the last block of it.
    std::vector<int> taken;
    int product = -1;  // its storage: made by the group itself, and for it
    if (group.product >= 0) {
      const Node& node = graph.nodes[static_cast<size_t>(group.product)];
      product = graph.value(graph.result(node, 0)).storage;
      for_each_operand(graph, node,
                       [&](int value) { taken.push_back(graph.value(value).storage); });
    }
    for (const Touch& made : touches) {
      const graph::StorageInfo& info = graph.storages[static_cast<size_t>(made.place.storage)];
      bool fresh =
          made.written && !info.input && made.place.storage != product &&
          is_stored(made.place.storage, group.nodes, users, draft.live) &&
          group_of[static_cast<size_t>(users[static_cast<size_t>(made.place.storage)].front())] ==
              number;
      // Written again in place, it is made once.
      bool made_already =
          std::any_of(draft.reuses.begin(), draft.reuses.end(),
                      [&](const Reuse& reuse) { return reuse.made == made.place.storage; });
      if (!fresh || made_already) {
        continue;
      }
      for (const Touch& read : touches) {
        int spent = read.place.storage;
        bool fits =
            !read.written && !draft.live[static_cast<size_t>(spent)] &&
            std::find(taken.begin(), taken.end(), spent) == taken.end() && ends_at(spent, number) &&
            IntArrayRef(read.place.strides) == IntArrayRef(made.place.strides) &&
            share_shape(graph.value(made.value), info.bytes, graph.value(read.value),
                        graph.storages[static_cast<size_t>(spent)].bytes) &&
            (spent == product ||
             group_of[static_cast<size_t>(users[static_cast<size_t>(spent)].front())] != number);
        for (const Touch& other : touches) {
          fits = fits &&
                 (other.place.storage != spent || (!other.written && other.place == read.place));
        }
        if (fits) {
          taken.push_back(spent);
          draft.reuses.push_back({number, made.place.storage, spent, made.value, read.value});
          break;
        }
      }
    }
  }
  return static_cast<int>(draft.reuses.size());
}

}  // namespace rushlight::compiler
