// Runs equal calls once: later ones become uses of the first one's results.
#include <cmath>
#include <unordered_map>

#include "compile/passes.h"
#include "ops/operator.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Node;

// Whether a write lies between two uses of a storage is told by the number of writes before.
struct Writes {
  std::vector<int> count;
  std::vector<int> total;
};

bool same_attribute(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) {
    return false;
  }
  switch (a.tag()) {
    case Value::Tag::None:
      return true;
    case Value::Tag::Bool:
    case Value::Tag::Int:
    case Value::Tag::UInt:
    case Value::Tag::Complex:
      return a.to_scalar() == b.to_scalar();
    case Value::Tag::Float:
      return std::bit_cast<uint64_t>(a.to_double()) == std::bit_cast<uint64_t>(b.to_double());
    case Value::Tag::Ints:
      return a.ints() == b.ints();
    case Value::Tag::Floats:
      return a.floats() == b.floats();
    case Value::Tag::Bools:
      return a.bools() == b.bools();
    case Value::Tag::String:
      return a.text() == b.text();
    case Value::Tag::DType:
      return a.dtype() == b.dtype();
    case Value::Tag::Device:
      return a.device() == b.device();
    case Value::Tag::Layout:
      return a.layout() == b.layout();
    case Value::Tag::MemoryFormat:
      return a.memory_format() == b.memory_format();
    default:
      return false;
  }
}

}  // namespace

bool same_attributes(const Graph& graph, const Node& a, const Node& b) {
  for (int i = 0; i < a.slot_count; ++i) {
    const graph::Slot& x = graph.slot(a, i);
    if (x.count < 0 && !same_attribute(x.attribute, graph.slot(b, i).attribute)) {
      return false;
    }
  }
  return true;
}

namespace {

bool same_call(const Graph& graph, const Node& a, const Node& b) {
  if (a.op != b.op || a.slot_count != b.slot_count || a.result_count != b.result_count) {
    return false;
  }
  for (int i = 0; i < a.slot_count; ++i) {
    const graph::Slot& x = graph.slot(a, i);
    const graph::Slot& y = graph.slot(b, i);
    if (x.count != y.count || x.list != y.list) {
      return false;
    }
    for (int k = 0; k < x.count; ++k) {
      if (graph.operands[static_cast<size_t>(x.first + k)] !=
          graph.operands[static_cast<size_t>(y.first + k)]) {
        return false;
      }
    }
  }
  return same_attributes(graph, a, b);
}

class Merger {
 public:
  explicit Merger(Draft& draft) : draft_(draft), graph_(draft.graph) {
    writes_.count.resize(graph_.storages.size());
    writes_.total.resize(graph_.storages.size());
    uses_.resize(graph_.storages.size());
    for (const Node& node : graph_.nodes) {
      if (is_view(node)) {
        continue;
      }
      for_each_result(graph_, node, [&](int value) { ++writes_.total[storage(value)]; });
      for (int i = 0; i < node.slot_count; ++i) {
        const graph::Slot& slot = graph_.slot(node, i);
        for (int k = 0; k < slot.count; ++k) {
          int value = graph_.operands[static_cast<size_t>(slot.first + k)];
          if (value >= 0) {
            uses_[storage(value)].push_back(slot.first + k);
          }
        }
      }
    }
  }

  int run() {
    int count = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (is_view(node) || draft_.dropped[i]) {
        continue;
      }
      if (is_pure(node) && merge(static_cast<int>(i))) {
        draft_.dropped[i] = true;
        ++count;
        continue;
      }
      for_each_result(graph_, node, [&](int value) { ++writes_.count[storage(value)]; });
    }
    return count;
  }

 private:
  size_t storage(int value) const { return static_cast<size_t>(graph_.value(value).storage); }

  // The state of what a node reads: the same call in the same state gives the same results.
  std::vector<int> state(const Node& node) const {
    std::vector<int> made;
    for_each_operand(graph_, node,
                     [&](int value) { made.push_back(writes_.count[storage(value)]); });
    return made;
  }

  bool merge(int number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    std::vector<int> now = state(node);
    std::vector<Seen>& seen = seen_[node.op];
    for (const Seen& earlier : seen) {
      const Node& first = graph_.nodes[static_cast<size_t>(earlier.node)];
      if (earlier.state == now && same_call(graph_, first, node) && replace(first, node)) {
        draft_.merges.emplace_back(earlier.node, number);
        return true;
      }
    }
    seen.push_back({number, std::move(now)});
    return false;
  }

  bool replace(const Node& first, const Node& second) {
    for (int i = 0; i < first.result_count; ++i) {
      int a = graph_.result(first, i);
      int b = graph_.result(second, i);
      if (a < 0 || b < 0 || writes_.total[storage(a)] != 1 || writes_.total[storage(b)] != 1 ||
          draft_.live[storage(b)]) {
        return false;
      }
      for (int use : uses_[storage(b)]) {
        if (graph_.operands[static_cast<size_t>(use)] != b) {
          return false;  // through a view, which the first one's storage does not have
        }
      }
    }
    for (int i = 0; i < first.result_count; ++i) {
      int a = graph_.result(first, i);
      std::vector<int>& uses = uses_[storage(graph_.result(second, i))];
      for (int use : uses) {
        graph_.operands[static_cast<size_t>(use)] = a;
        draft_.rewrites.emplace_back(use, a);
        uses_[storage(a)].push_back(use);
      }
      uses.clear();
    }
    return true;
  }

  struct Seen {
    int node;
    std::vector<int> state;
  };
  Draft& draft_;
  Graph& graph_;
  Writes writes_;
  std::vector<std::vector<int>> uses_;  // by storage: places in Graph::operands
  std::unordered_map<const Operator*, std::vector<Seen>> seen_;
};

}  // namespace

int merge_common_subexpressions(Draft& draft) {
  return Merger(draft).run();
}

}  // namespace rushlight::compiler
