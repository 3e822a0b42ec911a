// The capture door: shapes are inferred by running the operator on meta tensors, and the call is
// appended. Views are made at once, for they need no data.
#include "graph/record.h"

#include <algorithm>
#include <array>

#include "graph/execute.h"
#include "graph/recipe.h"
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
    bool is_device = inv.op->schema.arguments[static_cast<size_t>(i)].type == SchemaType::Device;
    if (is_device && (factory || !given.is_none())) {
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

// A result of the shapes becomes the result of the call: its storage is pending.
void adopt(Session& session, const Tensor& shape) {
  TensorImpl* impl = shape.impl();
  StorageImpl* meta = impl->storage;
  impl->storage = make_pending(session, meta->bytes);
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
  impl->storage = make_pending(session, static_cast<size_t>(first->numel * element_size(dtype)));
  return Tensor(impl);
}

void run_now(Invocation& inv) {
  end_segment(inv);
  Suspend suspended;
  run_body(inv);
}

// Computes what other threads have captured: a segment never waits for another one, so no two can
// wait for each other. What has a recipe is made by this segment.
void resolve_foreign(Session& session, const Invocation& inv) {
  bool writes = false;
  auto resolve = [&](const Tensor& tensor) {
    StorageImpl* storage = tensor.storage();
    if (!storage->pending.load(std::memory_order_acquire) || is_made_by(session, storage)) {
      return;
    }
    if (has_recipe(storage)) {
      enter_recipe(session, storage);
      return;
    }
    if (is_lent(storage)) {
      if (writes) {
        settle(storage);
      }
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
    writes = true;
    for_each_tensor(inv.results, inv.result_count, resolve);
  }
}

// Whether the call writes one element for one of each operand, as it stands: row-major tensors of
// one shape, no conversion, no overlap. There is nothing to infer then.
bool is_plain_write(const Invocation& inv) {
  if (inv.op->kind != Kind::Elementwise || inv.form != Form::Inplace) {
    return false;
  }
  const TensorImpl* target = inv.results[0].impl();
  if (!target->has(TensorImpl::kContiguous) || rushlight::is_complex(target->dtype)) {
    return false;
  }
  for (int i = 0; i < inv.argument_count; ++i) {
    const TensorImpl* impl = inv.arguments[i].impl();
    if (impl == nullptr) {
      continue;
    }
    bool apart = impl->storage != target->storage ||
                 (impl->offset == target->offset && impl->dtype == target->dtype);
    if (!apart || !impl->has(TensorImpl::kContiguous) || rushlight::is_complex(impl->dtype) ||
        !(impl->sizes == target->sizes)) {
      return false;
    }
  }
  check_elementwise(*inv.op, inv);
  return elementwise_typing(*inv.op, inv).out == target->dtype;
}

// Gives a functional call its results. False where they are none that can be captured.
bool adopt_results(Session& session, Invocation& inv, Shapes& shapes, bool& computes) {
  for (int i = 0; i < inv.result_count; ++i) {
    if (!can_adopt(inv, shapes, shapes.results[static_cast<size_t>(i)])) {
      return false;
    }
  }
  computes = inv.result_count == 0;
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
  return true;
}

// Runs the call on shapes, and gives a functional one its results. False where it must run now.
bool infer_results(Session& session, Invocation& inv, bool& computes) {
  Shapes shapes;
  if (writes_arguments(inv) || !infer(inv, shapes) || !fits(inv, shapes)) {
    return false;
  }
  return inv.form != Form::Functional || adopt_results(session, inv, shapes, computes);
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
  bool computes = true;
  if (!is_plain_write(inv) && !infer_results(session, inv, computes)) {
    run_now(inv);
    return;
  }
  if (!computes) {
    return;
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

// What is written may be of another dtype than what was computed (float_power_).
void convert(Value& value, DType dtype) {
  if (value.tensor().dtype() == dtype) {
    return;
  }
  static const Operator& convert_op = find_operator("_to_copy");
  std::vector<Value> arguments;
  for (const Argument& argument : convert_op.schema.arguments) {
    arguments.push_back(argument.default_value);
  }
  arguments[0] = value;
  arguments[1] = Value(dtype);
  Value made;
  Invocation call{&convert_op, Form::Functional, static_cast<uint8_t>(arguments.size()),
                  1,           arguments.data(), &made};
  capture_call(call);
  value = std::move(made);
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
    convert(value, target.dtype());
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

}  // namespace rushlight::graph
