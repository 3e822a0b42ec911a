// A captured program: operator calls in the order in which they were made.
//
// A Graph is what eager would have done, written down: nodes run one after the other, and in-place
// forms write. Values are tensors seen as memory: a storage, and how the tensor lies in it. Views
// are values of their base's storage, so a node that views has no work to do; what a write changes
// is what reads the same storage later. Back ends need no functional form: they ask which nodes
// touch which storages.
//
// Shapes are those of the capture. Plans that are made for one graph serve those of other sizes:
// the structural hash is there with sizes and without.
#pragma once

#include <rushlight/value.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/invocation.h"

namespace rushlight::graph {

// How a tensor lies in a storage. Two tensors with equal fields are the same value.
struct ValueInfo {
  int storage = -1;
  DType dtype = DType::Float32;
  uint8_t flags = 0;  // TensorImpl's contiguous and wrapped-number flags
  int64_t offset = 0;
  int64_t numel = 1;
  IntList sizes;
  IntList strides;
  int next = -1;  // another value of the same storage
};

struct StorageInfo {
  int last_value = -1;  // head of the list of its values
  bool input = false;   // was there before the graph
  bool taken = false;   // while it runs: its memory went to another storage
  size_t bytes = 0;
};

// One argument of a node: tensors by number, anything else as it was given.
struct Slot {
  Value attribute;  // None where the argument is a tensor or a list of tensors
  int first = 0;    // in Graph::operands
  int count = -1;   // -1: not a tensor; a list counts its items
  bool list = false;
};

struct Node {
  const Operator* op;
  Form form;
  int first_slot = 0;
  int slot_count = 0;
  int first_result = 0;  // in Graph::results; Inplace and Out: the values written
  int result_count = 0;
  int line = -1;  // in Graph::lines, where they are kept
};

struct Hash {
  uint64_t low = 0x9E3779B97F4A7C15ull;
  uint64_t high = 0xC2B2AE3D27D4EB4Full;
  void mix(uint64_t value) {
    low = (low ^ value) * 0xFF51AFD7ED558CCDull;
    low ^= low >> 32;
    high = (high + value) * 0xC4CEB9FE1A85EC53ull;
    high ^= high >> 29;
  }
  bool operator==(const Hash& other) const { return low == other.low && high == other.high; }
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Slot> slots;
  std::vector<int> operands;  // values; -1: None
  std::vector<int> results;   // values; a list result has one an item; -1: not a tensor
  std::vector<ValueInfo> values;
  std::vector<StorageInfo> storages;
  std::vector<std::string> lines;

  const ValueInfo& value(int id) const { return values[static_cast<size_t>(id)]; }
  const Slot& slot(const Node& node, int argument) const {
    return slots[static_cast<size_t>(node.first_slot + argument)];
  }
  int result(const Node& node, int i) const {
    return results[static_cast<size_t>(node.first_result + i)];
  }
  // The value of a tensor argument; -1 where it is none.
  int operand(const Node& node, int argument) const {
    const Slot& at = slot(node, argument);
    return at.count == 1 && !at.list ? operands[static_cast<size_t>(at.first)] : -1;
  }
  void clear();
};

// Calls `visit(value)` for each tensor that the node is given.
template <typename F>
void for_each_operand(const Graph& graph, const Node& node, F&& visit) {
  for (int i = 0; i < node.slot_count; ++i) {
    const Slot& slot = graph.slot(node, i);
    for (int k = 0; k < slot.count; ++k) {
      int value = graph.operands[static_cast<size_t>(slot.first + k)];
      if (value >= 0) {
        visit(value);
      }
    }
  }
}

template <typename F>
void for_each_result(const Graph& graph, const Node& node, F&& visit) {
  for (int i = 0; i < node.result_count; ++i) {
    int value = graph.result(node, i);
    if (value >= 0) {
      visit(value);
    }
  }
}

// Whether the node only looks at memory in another way.
bool is_view(const Node& node);

// Over what decides how a graph is carried out: operators, attributes, how values share storages,
// dtypes, and sizes and strides; of numbers that kernels take at run time, which are equal. Without
// `sizes`: of sizes and strides only whether they are 0, 1 or more, and no attributes but those
// that kernels are built from; graphs that differ in sizes alone then agree, and so may others.
Hash structural_hash(const Graph& graph, bool sizes = true);

// Empty where the graph is well formed; else what is wrong, with the node's text.
std::string verify(const Graph& graph);

// Text form: parse(print(g)) prints the same, and runs the same.
std::string print(const Graph& graph);
std::string print(const Graph& graph, const Node& node);
Graph parse(std::string_view text);  // Error(Value) with line and column

}  // namespace rushlight::graph
