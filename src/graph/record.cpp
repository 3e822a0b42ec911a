// The capture door: shapes are inferred by running the operator on meta tensors, and the call is
// appended. Views are made at once, for they need no data.
#include "graph/record.h"

#include <algorithm>
#include <array>

#include "graph/execute.h"
#include "ops/elementwise_expression.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

constexpr int kMaxArguments = 32;
constexpr int kMaxResults = 8;

Tensor shape_of(const TensorImpl& tensor) {
  auto* impl = new TensorImpl;
  impl->dtype = tensor.dtype;
  impl->device = Device(DeviceType::Meta);
  impl->flags = tensor.flags & (TensorImpl::kContiguous | TensorImpl::kWrappedNumber);
  impl->rank = tensor.rank;
  impl->numel = tensor.numel;
  impl->offset = tensor.offset;
  impl->sizes = tensor.sizes;
  impl->strides = tensor.strides;
  impl->storage = shapes_storage();
  retain(impl->storage);
  return Tensor(impl);
}

Value shape_of(const Value& value) {
  if (value.is_tensor()) {
    return Value(shape_of(*value.impl()));
  }
  if (value.tag() != Value::Tag::Tensors) {
    return value;
  }
  TensorList list;
  list.reserve(value.tensors().size());
  for (const Tensor& tensor : value.tensors()) {
    list.push_back(tensor.defined() ? shape_of(*tensor.impl()) : Tensor());
  }
  return Value(std::move(list));
}

bool has_tensors(const Invocation& inv) {
  bool found = false;
  for_each_tensor(inv.arguments, inv.argument_count, [&](const Tensor&) { found = true; });
  return found;
}

bool touches_meta(const Invocation& inv) {
  bool found = false;
  auto look = [&](const Tensor& tensor) { found = found || tensor.is_meta(); };
  for_each_tensor(inv.arguments, inv.argument_count, look);
  if (inv.form != Form::Functional) {
    for_each_tensor(inv.results, inv.result_count, look);
  }
  for (int i = 0; i < inv.argument_count; ++i) {
    found = found ||
            (inv.arguments[i].tag() == Value::Tag::Device && inv.arguments[i].device().is_meta());
  }
  return found;
}

// Writes arguments other than the one that the in-place form names.
bool writes_arguments(const Invocation& inv) {
  const std::vector<Argument>& arguments = inv.op->schema.arguments;
  for (const Argument& argument : arguments) {
    if (argument.written) {
      return true;
    }
  }
  return false;
}

// A written tensor overlaps what shares its storage, and nothing else.
void separate(const Tensor& written, const Tensor& shape, const Invocation& inv,
              std::array<Value, kMaxArguments>& shapes) {
  StorageImpl* own = make_shapes_storage();
  auto move = [&](const Tensor& given, const Tensor& meta) {
    if (given.storage() == written.storage() && meta.storage() == shapes_storage()) {
      retain(own);
      release(meta.impl()->storage);
      meta.impl()->storage = own;
    }
  };
  move(written, shape);
  for (int i = 0; i < inv.argument_count; ++i) {
    const Value& given = inv.arguments[i];
    const Value& meta = shapes[static_cast<size_t>(i)];
    if (given.is_tensor()) {
      move(given.tensor(), meta.tensor());
    } else if (given.tag() == Value::Tag::Tensors) {
      for (size_t k = 0; k < given.tensors().size(); ++k) {
        if (given.tensors()[k].defined()) {
          move(given.tensors()[k], meta.tensors()[k]);
        }
      }
    }
  }
  release(own);
}

struct Shapes {
  std::array<Value, kMaxArguments> arguments;
  std::array<Value, kMaxResults> results;
};

// Runs the call on shapes alone. False where it cannot be told what comes out without data.
bool infer(const Invocation& inv, Shapes& shapes) {
  if (inv.argument_count > kMaxArguments || inv.result_count > kMaxResults) {
    return false;
  }
  bool factory = !has_tensors(inv);
  bool on_meta = !factory;
  for (int i = 0; i < inv.argument_count; ++i) {
    const Value& given = inv.arguments[i];
    if (factory && inv.op->schema.arguments[static_cast<size_t>(i)].type == SchemaType::Device) {
      shapes.arguments[static_cast<size_t>(i)] = Value(Device(DeviceType::Meta));
      on_meta = true;
    } else {
      shapes.arguments[static_cast<size_t>(i)] = shape_of(given);
    }
  }
  if (!on_meta) {
    return false;
  }
  Invocation meta = inv;
  meta.arguments = shapes.arguments.data();
  meta.results = shapes.results.data();
  if (inv.form == Form::Inplace) {
    shapes.results[0] = shapes.arguments[static_cast<size_t>(inv.op->inplace_argument)];
  } else if (inv.form == Form::Out) {
    for (int i = 0; i < inv.result_count; ++i) {
      shapes.results[static_cast<size_t>(i)] = shape_of(inv.results[i]);
    }
  }
  for (int i = 0; inv.form != Form::Functional && i < inv.result_count; ++i) {
    separate(inv.results[i].tensor(), shapes.results[static_cast<size_t>(i)].tensor(), inv,
             shapes.arguments);
  }
  DoorGuard closed(0, ~uint32_t{0});
  try {
    run_body(meta);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::NotImplemented) {
      return false;
    }
    throw;
  }
  return true;
}

// The argument that a result of the shapes is; null where it is none.
const Tensor* argument_of(const Invocation& inv, const Shapes& shapes, const TensorImpl* result) {
  for (int i = 0; i < inv.argument_count; ++i) {
    if (shapes.arguments[static_cast<size_t>(i)].impl() == result) {
      return &inv.arguments[i].tensor();
    }
  }
  return nullptr;
}

bool can_adopt(const Invocation& inv, const Shapes& shapes, const Value& result) {
  if (result.is_tensor()) {
    return result.impl()->storage != shapes_storage() ||
           argument_of(inv, shapes, result.impl()) != nullptr;
  }
  if (result.tag() != Value::Tag::Tensors) {
    return result.is_none();
  }
  for (const Tensor& item : result.tensors()) {
    if (item.defined() && item.storage() == shapes_storage()) {
      return false;
    }
  }
  return true;
}

// Whether what was given to write has the shape that will be written.
bool fits(const Invocation& inv, const Shapes& shapes) {
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& given = inv.results[i];
    const Value& wanted = shapes.results[static_cast<size_t>(i)];
    if (given.is_tensor() &&
        (!wanted.is_tensor() || !(given.tensor().sizes() == wanted.tensor().sizes()))) {
      return false;
    }
  }
  return true;
}

StorageImpl* pending_storage(Session& session, size_t bytes) {
  StorageImpl* storage = make_storage(0, Device(DeviceType::Meta));
  storage->device = Device();
  storage->bytes = bytes;
  storage->release = release_pending;
  storage->context = &session;
  return storage;
}

// A result of the shapes becomes the result of the call: its storage is pending.
void adopt(Session& session, const Tensor& shape) {
  TensorImpl* impl = shape.impl();
  StorageImpl* meta = impl->storage;
  impl->storage = pending_storage(session, meta->bytes);
  impl->device = Device();
  release(meta);
}

// The result of an element-wise call on row-major tensors of one shape: what infer would find,
// sooner. Undefined where the call is any other.
Tensor infer_plain(Session& session, const Invocation& inv) {
  const TensorImpl* first = nullptr;
  for (int i = 0; i < inv.argument_count; ++i) {
    const TensorImpl* impl = inv.arguments[i].impl();
    if (impl == nullptr) {
      continue;
    }
    if (!impl->has(TensorImpl::kContiguous) || rushlight::is_complex(impl->dtype) ||
        (first != nullptr && !(first->sizes == impl->sizes))) {
      return {};
    }
    first = first == nullptr ? impl : first;
  }
  if (first == nullptr) {
    return {};
  }
  check_elementwise(*inv.op, inv);
  DType dtype = elementwise_typing(*inv.op, inv).out;
  if (rushlight::is_complex(dtype)) {
    return {};
  }
  auto* impl = new TensorImpl;
  impl->dtype = dtype;
  impl->flags = TensorImpl::kContiguous | (making_inference_tensors ? TensorImpl::kInference : 0);
  impl->rank = first->rank;
  impl->numel = first->numel;
  impl->sizes = first->sizes;
  impl->strides = contiguous_strides(first->sizes);
  impl->storage = pending_storage(session, static_cast<size_t>(first->numel * element_size(dtype)));
  return Tensor(impl);
}

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
  }
  graph.nodes.push_back(node);
}

void run_now(Invocation& inv) {
  end_segment(inv);
  Suspend suspended;
  run_body(inv);
}

// Computes what other threads have captured: a segment never waits for another one, so no two can
// wait for each other.
void resolve_foreign(Session& session, const Invocation& inv) {
  auto resolve = [&](const Tensor& tensor) {
    StorageImpl* storage = tensor.storage();
    if (!storage->pending.load(std::memory_order_acquire) || is_made_by(session, storage)) {
      return;
    }
    {
      std::unique_lock<std::mutex> lock = lock_session(session);
      if (session.ids.find(storage) >= 0) {
        return;  // an input, written by this segment
      }
    }
    storage_data(storage);
  };
  for_each_tensor(inv.arguments, inv.argument_count, resolve);
  if (inv.form != Form::Functional) {
    for_each_tensor(inv.results, inv.result_count, resolve);
  }
}

void capture_call(Invocation& inv) {
  Session& session = this_session();
  resolve_foreign(session, inv);
  if (inv.op->kind == Kind::Elementwise && inv.form == Form::Functional) {
    if (Tensor made = infer_plain(session, inv); made.defined()) {
      inv.results[0] = Value(std::move(made));
      std::unique_lock<std::mutex> lock = lock_session(session);
      append(session, inv);
      return;
    }
  }
  Shapes shapes;
  if (writes_arguments(inv) || !infer(inv, shapes) || !fits(inv, shapes)) {
    run_now(inv);
    return;
  }
  if (inv.form == Form::Functional) {
    for (int i = 0; i < inv.result_count; ++i) {
      if (!can_adopt(inv, shapes, shapes.results[static_cast<size_t>(i)])) {
        run_now(inv);
        return;
      }
    }
    bool computes = inv.result_count == 0;
    for (int i = 0; i < inv.result_count; ++i) {
      Value& result = shapes.results[static_cast<size_t>(i)];
      if (result.is_tensor()) {
        if (const Tensor* argument = argument_of(inv, shapes, result.impl())) {
          inv.results[i] = Value(*argument);
          continue;
        }
      }
      for_each_tensor(&result, 1, [&](const Tensor& item) { adopt(session, item); });
      computes = true;
      inv.results[i] = std::move(result);
    }
    if (!computes) {
      return;
    }
  }
  {
    std::unique_lock<std::mutex> lock = lock_session(session);
    append(session, inv);
    if (inv.form != Form::Functional) {
      for_each_tensor(inv.results, inv.result_count,
                      [&](const Tensor& item) { mark_written(session, item.storage()); });
    }
  }
  if (inv.form != Form::Functional) {
    for (int i = 0; i < inv.result_count; ++i) {
      inv.results[i].tensor().bump_version();
    }
  }
}

void capture_view(Invocation& inv) {
  run_body(inv);
  if (inv.form != Form::Functional || inv.arguments[0].impl() == nullptr) {
    return;
  }
  const StorageImpl* base = inv.arguments[0].impl()->storage;
  bool views = true;
  for_each_tensor(inv.results, inv.result_count,
                  [&](const Tensor& item) { views = views && item.storage() == base; });
  Session& session = this_session();
  if (!views) {
    return;
  }
  std::unique_lock<std::mutex> lock = lock_session(session);
  // Views of what no operator has touched are entered when one does.
  if (session.ids.find(base) >= 0) {
    append(session, inv);
  }
}

// Written forms of compositions: the functional form, then a copy into place.
void capture_composition(Invocation& inv) {
  if (inv.form == Form::Functional || inv.op->body->writes_outputs()) {
    run_body(inv);
    return;
  }
  static const Operator& assign_op = find_operator("_assign");
  std::array<Value, kMaxResults> fresh;
  Invocation plain = inv;
  plain.form = Form::Functional;
  plain.results = fresh.data();
  run_body(plain);
  for (int i = 0; i < inv.result_count; ++i) {
    Value& value = fresh[static_cast<size_t>(i)];
    if (!inv.results[i].is_tensor() || !value.is_tensor() ||
        inv.results[i].tensor().is_same(value.tensor())) {
      continue;
    }
    const Tensor target = inv.results[i].tensor();
    check_output(*inv.op, inv.form, target, value.tensor().sizes(), value.tensor().dtype(),
                 value.tensor().device());
    Value written(target);
    Invocation copy{&assign_op, Form::Out, 1, 1, &value, &written};
    capture_call(copy);
  }
}

void capture_door(Invocation& inv) {
  if (touches_meta(inv)) {
    run_body(inv);
    return;
  }
  switch (inv.op->kind) {
    case Kind::Composition:
      capture_composition(inv);
      return;
    case Kind::View:
      capture_view(inv);
      return;
    default:
      capture_call(inv);
  }
}

const bool installed = (install_door(kCaptureDoor, capture_door), true);

}  // namespace

void release_pending(StorageImpl*) {}

void release_failure(StorageImpl* storage) {
  delete static_cast<Failure*>(storage->context);
}

bool has_memory(StorageImpl* storage) {
  auto release = std::atomic_ref(storage->release).load(std::memory_order_acquire);
  return release != release_pending && release != release_failure;
}

void publish(StorageImpl* storage) {
  if (has_memory(storage)) {
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

struct Lease {
  Session* session = nullptr;

  Lease() {
    std::lock_guard<std::mutex> lock(sessions().mutex);
    if (sessions().spare.empty()) {
      session = new Session;
      sessions().all.push_back(session);
      return;
    }
    session = sessions().spare.back();
    sessions().spare.pop_back();
  }
  ~Lease() {
    std::lock_guard<std::mutex> lock(sessions().mutex);
    sessions().spare.push_back(session);
  }
};

}  // namespace

Session& this_session() {
  static thread_local Lease lease;
  return *lease.session;
}

Session* session_at(const void* address) {
  std::lock_guard<std::mutex> lock(sessions().mutex);
  auto& all = sessions().all;
  auto found = std::find(all.begin(), all.end(), address);
  return found == all.end() ? nullptr : *found;
}

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

}  // namespace rushlight::graph
