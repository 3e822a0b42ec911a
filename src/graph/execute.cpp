#include "graph/execute.h"

#include "graph/record.h"
#include "ops/elementwise.h"
#include "ops/operator.h"
#include "tensor/pending.h"

namespace rushlight::graph {
namespace {

Tensor make_value(const ValueInfo& value, StorageImpl* storage, Device device) {
  auto* impl = new TensorImpl;
  impl->dtype = value.dtype;
  impl->device = device;
  impl->flags = value.flags | TensorImpl::kUnversioned;
  impl->rank = static_cast<int32_t>(value.sizes.size());
  impl->numel = value.numel;
  impl->offset = value.offset;
  impl->sizes = value.sizes;
  impl->strides = value.strides;
  impl->storage = storage;
  retain(storage);
  return Tensor(impl);
}

void check_result(const Node& node, const ValueInfo& wanted, const Tensor& made) {
  if (made.dtype() != wanted.dtype || !(made.sizes() == IntArrayRef(wanted.sizes))) {
    fail(ErrorKind::Internal, node.op->name(), "gave ", made.dtype(), " ", made.sizes(),
         ", though its shape rule had said ", wanted.dtype, " ", IntArrayRef(wanted.sizes));
  }
}

}  // namespace

Tensor value_of(const ValueInfo& value, StorageImpl* storage) {
  return make_value(value, storage, Device());
}

Tensor tensor_of(const Segment& segment, int value) {
  const ValueInfo& info = segment.graph.value(value);
  return value_of(info, segment.storages[static_cast<size_t>(info.storage)]);
}

StorageImpl* make_shapes_storage() {
  StorageImpl* made = make_storage(0, Device(DeviceType::Meta));
  made->bytes = SIZE_MAX / 4;
  made->resizable = false;
  return made;
}

StorageImpl* shapes_storage() {
  static StorageImpl* storage = make_shapes_storage();
  return storage;
}

Tensor shape_of(const Graph& graph, int value) {
  return make_value(graph.value(value), shapes_storage(), Device(DeviceType::Meta));
}

void allocate_storage(StorageImpl* storage) {
  fill_pending(storage, make_storage(storage->bytes, Device()));
}

void adopt_result(const Segment& segment, int value, const Tensor& made) {
  const ValueInfo& info = segment.graph.value(value);
  StorageImpl* storage = segment.storages[static_cast<size_t>(info.storage)];
  bool whole = made.storage_offset() == info.offset &&
               made.strides() == IntArrayRef(info.strides) &&
               made.storage()->bytes >= storage->bytes &&
               made.storage()->references.load(std::memory_order_acquire) == 1;
  if (whole || info.numel == 0) {
    StorageImpl* given = info.numel == 0 ? make_storage(storage->bytes, Device()) : made.storage();
    if (info.numel != 0) {
      made.impl()->storage = spent_storage();
    }
    fill_pending(storage, given);
    return;
  }
  allocate_storage(storage);
  assign(tensor_of(segment, value), made);
}

void execute_node(Segment& segment, const Node& node) {
  if (is_view(node)) {
    return;
  }
  const Graph& graph = segment.graph;
  std::vector<Value> arguments =
      arguments_of(graph, node, [&](int value) { return tensor_of(segment, value); });
  std::vector<Value> results(std::max<size_t>(1, node.op->schema.results.size()));
  Invocation inv{node.op,
                 node.form,
                 static_cast<uint8_t>(arguments.size()),
                 static_cast<uint8_t>(results.size()),
                 arguments.data(),
                 results.data()};
  if (node.form != Form::Functional) {
    inv.result_count = static_cast<uint8_t>(node.result_count);
    results.resize(static_cast<size_t>(node.result_count));
    inv.results = results.data();
    for (int i = 0; i < node.result_count; ++i) {
      results[static_cast<size_t>(i)] = Value(tensor_of(segment, graph.result(node, i)));
    }
    run_body(inv);
    return;
  }
  run_body(inv);
  int at = 0;
  auto take = [&](const Tensor& made) {
    int value = graph.result(node, at++);
    if (value >= 0) {
      check_result(node, graph.value(value), made);
      adopt_result(segment, value, made);
    }
  };
  for (Value& result : results) {
    if (result.tag() == Value::Tag::Tensors) {
      TensorList items = result.tensors();
      result = Value();
      for (const Tensor& item : items) {
        take(item);
      }
    } else if (result.is_tensor()) {
      Tensor item = result.take_tensor();
      take(item);
    } else {
      ++at;
    }
  }
}

std::vector<int> last_uses(const Graph& graph) {
  std::vector<int> last(graph.storages.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (is_view(node)) {
      continue;
    }
    auto use = [&](int value) {
      last[static_cast<size_t>(graph.value(value).storage)] = static_cast<int>(i);
    };
    for_each_operand(graph, node, use);
    for_each_result(graph, node, use);
  }
  return last;
}

void drop_storage(Segment& segment, int storage) {
  StorageImpl*& slot = segment.storages[static_cast<size_t>(storage)];
  StorageImpl* held = slot;
  slot = spent_storage();
  const StorageInfo& info = segment.graph.storages[static_cast<size_t>(storage)];
  if (info.input) {
    publish_written(held);
  } else if (!info.taken) {
    publish(held);
  }
  release(held);
}

void take_memory(Segment& segment, int made, int spent) {
  StorageImpl* target = segment.storages[static_cast<size_t>(made)];
  StorageImpl*& slot = segment.storages[static_cast<size_t>(spent)];
  RUSHLIGHT_ASSERT(!has_memory(target));
  StorageImpl* held = slot;
  publish_written(held);
  retain(target);
  slot = target;
  fill_pending(target, held);
  segment.graph.storages[static_cast<size_t>(spent)].taken = true;
}

void execute(Segment& segment) {
  std::vector<int> last = last_uses(segment.graph);
  std::vector<std::vector<int>> ends(segment.graph.nodes.size());
  for (size_t i = 0; i < last.size(); ++i) {
    if (last[i] >= 0) {
      ends[static_cast<size_t>(last[i])].push_back(static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < segment.graph.nodes.size(); ++i) {
    execute_node(segment, segment.graph.nodes[i]);
    for (int storage : ends[i]) {
      drop_storage(segment, storage);
    }
  }
}

StorageImpl* spent_storage() {
  static StorageImpl* storage = make_storage(0, Device());
  retain(storage);
  return storage;
}

}  // namespace rushlight::graph
