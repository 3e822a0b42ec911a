// Running the nodes of a segment one by one: what the debugging back ends do wholly, and others
// for the nodes that they have nothing better for.
#pragma once

#include "graph/capture.h"

namespace rushlight::graph {

// The tensor of a value; its storage must have its memory. Writes to it bump no version: capture
// has counted them.
Tensor tensor_of(const Segment& segment, int value);
// The tensor of such a value over a storage.
Tensor value_of(const ValueInfo& value, StorageImpl* storage);
// Memory that is not there, for tensors whose shape alone is wanted: a new one, and one for all.
StorageImpl* make_shapes_storage();
StorageImpl* shapes_storage();
// The same without memory, for what follows from shapes and dtypes alone.
Tensor shape_of(const Graph& graph, int value);

// A node's arguments, with tensors made by `make(value)`.
template <typename F>
std::vector<Value> arguments_of(const Graph& graph, const Node& node, F&& make) {
  std::vector<Value> values;
  values.reserve(static_cast<size_t>(node.slot_count));
  for (int i = 0; i < node.slot_count; ++i) {
    const Slot& slot = graph.slot(node, i);
    if (slot.count < 0) {
      values.push_back(slot.attribute);
      continue;
    }
    TensorList list;
    for (int k = 0; k < slot.count; ++k) {
      int value = graph.operands[static_cast<size_t>(slot.first + k)];
      list.push_back(value < 0 ? Tensor() : make(value));
    }
    values.push_back(slot.list ? Value(std::move(list)) : Value(std::move(list[0])));
  }
  return values;
}

// Gives a pending storage memory of its size, its contents undefined. (It stays pending until the
// segment has no more use for it.)
void allocate_storage(StorageImpl* storage);
// Gives the pending storage of `value` the contents of `made`, which has its shape.
void adopt_result(const Segment& segment, int value, const Tensor& made);

// Runs one node by its operator's body. Views do nothing.
void execute_node(Segment& segment, const Node& node);

// By storage: the last node that reads or writes it, -1 where none does.
std::vector<int> last_uses(const Graph& graph);
// Drops the segment's own reference, so that memory that nobody else holds is free for the next
// node. The storage must not be used again.
void drop_storage(Segment& segment, int storage);

// Gives the pending storage `made` the memory of `spent`, which from now on is that storage too.
void take_memory(Segment& segment, int made, int spent);
// A storage of nothing, which stands in the place of a dropped one: a new reference.
StorageImpl* spent_storage();

// Runs all nodes in order: eager's results, bit for bit.
RUSHLIGHT_API void execute(Segment& segment);

}  // namespace rushlight::graph
