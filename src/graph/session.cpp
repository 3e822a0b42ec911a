// Sessions of threads, and what a segment is made of.
#include <rushlight/profiler.h>

#include <algorithm>

#include "graph/execute.h"
#include "graph/recipe.h"
#include "graph/record.h"

namespace rushlight::graph {

void release_pending(StorageImpl*) {}

void release_failure(StorageImpl* storage) {
  delete static_cast<Failure*>(storage->context);
}

bool has_memory(StorageImpl* storage) {
  auto release = std::atomic_ref(storage->release).load(std::memory_order_acquire);
  return release != release_pending && release != release_failure && release != release_recipe;
}

void publish(StorageImpl* storage) {
  if (has_memory(storage) && !publish_lent(storage)) {
    storage->pending.store(false, std::memory_order_release);
  }
}

bool is_made_by(const Session& session, StorageImpl* storage) {
  return storage->pending.load(std::memory_order_relaxed) &&
         std::atomic_ref(storage->context).load(std::memory_order_relaxed) == &session;
}

namespace {

struct Sessions {
  std::mutex mutex;
  std::vector<Session*> all;
  std::vector<Session*> spare;  // of threads that are over, for threads to come
};

Sessions& sessions() {
  static auto* made = new Sessions;  // threads may outlive static objects
  return *made;
}

}  // namespace

Lease::Lease() {
  std::lock_guard<std::mutex> lock(sessions().mutex);
  if (sessions().spare.empty()) {
    session_ = new Session;
    sessions().all.push_back(session_);
    return;
  }
  session_ = sessions().spare.back();
  sessions().spare.pop_back();
}

Lease::~Lease() {
  std::lock_guard<std::mutex> lock(sessions().mutex);
  sessions().spare.push_back(session_);
}

Session& this_session() {
  static thread_local Lease lease;
  return lease.session();
}

Session* session_at(const void* address) {
  std::lock_guard<std::mutex> lock(sessions().mutex);
  auto& all = sessions().all;
  auto found = std::find(all.begin(), all.end(), address);
  return found == all.end() ? nullptr : *found;
}

namespace {

int enter_storage(Session& session, StorageImpl* storage, bool input) {
  int id = static_cast<int>(session.segment.storages.size());
  retain(storage);
  session.segment.storages.push_back(storage);
  StorageInfo info;
  info.input = input;
  info.bytes = storage->bytes;
  session.segment.graph.storages.push_back(info);
  session.ids.insert(storage, id);
  return id;
}

constexpr uint8_t kKeptFlags = TensorImpl::kContiguous | TensorImpl::kWrappedNumber;

bool is_value(const ValueInfo& value, const TensorImpl& tensor) {
  return value.dtype == tensor.dtype && value.offset == tensor.offset &&
         value.flags == (tensor.flags & kKeptFlags) && value.numel == tensor.numel &&
         IntArrayRef(value.sizes) == tensor.sizes && IntArrayRef(value.strides) == tensor.strides;
}

// The line's number in the graph; operators of one line follow each other.
int enter_line(Graph& graph, std::string line) {
  if (graph.lines.empty() || graph.lines.back() != line) {
    graph.lines.push_back(std::move(line));
  }
  return static_cast<int>(graph.lines.size()) - 1;
}

}  // namespace

int enter_value(Session& session, const TensorImpl& tensor) {
  Graph& graph = session.segment.graph;
  int storage = session.ids.find(tensor.storage);
  if (storage < 0) {
    storage = enter_storage(session, tensor.storage, !is_made_by(session, tensor.storage));
  }
  StorageInfo& info = graph.storages[static_cast<size_t>(storage)];
  for (int at = info.last_value; at >= 0; at = graph.value(at).next) {
    if (is_value(graph.value(at), tensor)) {
      return at;
    }
  }
  ValueInfo value;
  value.storage = storage;
  value.dtype = tensor.dtype;
  value.flags = tensor.flags & kKeptFlags;
  value.offset = tensor.offset;
  value.numel = tensor.numel;
  value.sizes = tensor.sizes;
  value.strides = tensor.strides;
  value.next = info.last_value;
  info.last_value = static_cast<int>(graph.values.size());
  graph.values.push_back(std::move(value));
  return info.last_value;
}

StorageImpl* make_pending(Session& session, size_t bytes) {
  StorageImpl* storage = make_storage(0, Device(DeviceType::Meta));
  storage->device = Device();
  storage->bytes = bytes;
  storage->release = release_pending;
  storage->context = &session;
  return storage;
}

void append(Session& session, const Invocation& inv) {
  Graph& graph = session.segment.graph;
  Node node;
  node.op = inv.op;
  node.form = inv.form;
  node.first_slot = static_cast<int>(graph.slots.size());
  node.slot_count = inv.argument_count;
  for (int i = 0; i < inv.argument_count; ++i) {
    const Value& value = inv.arguments[i];
    Slot slot;
    slot.first = static_cast<int>(graph.operands.size());
    if (value.is_tensor()) {
      slot.count = 1;
      graph.operands.push_back(enter_value(session, *value.impl()));
    } else if (value.tag() == Value::Tag::Tensors) {
      slot.list = true;
      slot.count = static_cast<int>(value.tensors().size());
      for (const Tensor& item : value.tensors()) {
        graph.operands.push_back(item.defined() ? enter_value(session, *item.impl()) : -1);
      }
    } else {
      slot.attribute = value;
    }
    graph.slots.push_back(std::move(slot));
  }
  node.first_result = static_cast<int>(graph.results.size());
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& value = inv.results[i];
    if (value.is_tensor()) {
      graph.results.push_back(enter_value(session, *value.impl()));
    } else if (value.tag() == Value::Tag::Tensors) {
      for (const Tensor& item : value.tensors()) {
        graph.results.push_back(item.defined() ? enter_value(session, *item.impl()) : -1);
      }
    } else {
      graph.results.push_back(-1);
    }
  }
  node.result_count = static_cast<int>(graph.results.size()) - node.first_result;
  if (session.locate != nullptr) {
    node.line = enter_line(graph, (*session.locate)());
  } else if (profiler::locate != nullptr && profiler::is_on()) {
    node.line = enter_line(graph, profiler::locate());
  }
  graph.nodes.push_back(node);
}

}  // namespace rushlight::graph
