#include "autograd/saved_tensor.h"

#include "autograd/meta.h"
#include "ops/invocation.h"
#include "ops/operator.h"

namespace rushlight::autograd {

void (*note_saved)(const Tensor& tensor) = nullptr;

struct SavedTensor::Packed {
  std::atomic<uint32_t> references{1};
  SavedTensorHooks hooks;
  std::shared_ptr<void> object;
  bool requires_grad = false;
  Edge edge;  // of an argument
};

namespace {

struct HookStack {
  std::vector<SavedTensorHooks> hooks;
  std::string disabled;
};
thread_local HookStack hook_stack;

std::string tensor_type(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::Bool:
      return "BoolTensor";
    case DType::UInt8:
      return "ByteTensor";
    case DType::Int8:
      return "CharTensor";
    case DType::Int16:
      return "ShortTensor";
    case DType::Int32:
      return "IntTensor";
    case DType::Int64:
      return "LongTensor";
    case DType::Float16:
      return "HalfTensor";
    case DType::BFloat16:
      return "BFloat16Tensor";
    case DType::Float32:
      return "FloatTensor";
    case DType::Float64:
      return "DoubleTensor";
    case DType::Complex64:
      return "ComplexFloatTensor";
    case DType::Complex128:
      return "ComplexDoubleTensor";
    default:
      return cat(dtype_name(tensor.dtype()), " tensor");
  }
}

[[noreturn]] void fail_modified(const Tensor& tensor, const std::string& maker, uint32_t output,
                                uint32_t expected) {
  std::string from = maker.empty() ? "" : cat(", which is output ", output, " of ", maker, ",");
  const char* hint =
      thread_state.anomaly_mode
          ? "the backtrace further above shows the operation that failed to compute its gradient. "
            "The variable in question was changed in there or anywhere later. Good luck!"
          : "enable anomaly detection to find the operation that failed to compute its gradient, "
            "with torch.autograd.set_detect_anomaly(True, check_nan=False).";
  fail(ErrorKind::Runtime, "",
       "one of the variables needed for gradient computation has been modified by an inplace "
       "operation: [torch.",
       tensor_type(tensor), " ", tensor.sizes(), "]", from, " is at version ", tensor.version(),
       "; expected version ", expected, " instead. Hint: ", hint);
}

Tensor bare_alias(const Tensor& tensor) {
  if ((thread_state.doors & kDispatchDoor) != 0) {
    // An operator, so that a class makes one of its own and modes know what it is.
    static const Operator& detach = find_operator("detach");
    DoorGuard unrecorded(0, kAutogradDoor);
    return call(detach, {Value::borrow(tensor)});
  }
  return make_view(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

}  // namespace

void fail_released() {
  fail(ErrorKind::Runtime, "",
       "Trying to backward through the graph a second time (or directly access saved tensors after "
       "they have already been freed). Saved intermediate values of the graph are freed when you "
       "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
       "through the graph a second time or if you need to access saved tensors after calling "
       "backward.");
}

void SavedTensor::save(const Tensor& tensor, int output) {
  reset();
  if (!tensor.defined()) {
    return;
  }
  if (tensor.impl()->has(TensorImpl::kInference)) {
    fail(ErrorKind::Runtime, "",
         "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
         "inference mode in computation tracked by autograd. To work around this, you can make a "
         "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
         "`torch.inference_mode()`.");
  }
  output_ = static_cast<int16_t>(output);
  version_ = tensor.version();
  if (!hook_stack.hooks.empty()) {
    // Hooks may save tensors themselves, and may change the stack.
    SavedTensorHooks hooks = hook_stack.hooks.back();
    pack(tensor, hooks);
    return;
  }
  Tensor kept = output < 0 ? tensor : bare_alias(tensor);
  word_.tensor = kept.release_impl();
  state_ = output < 0 ? State::Argument : State::Result;
  if (thread_state.capture != 0 && note_saved != nullptr) {
    note_saved(Tensor::share(word_.tensor));
  }
}

void SavedTensor::save_layout(const Tensor& tensor) {
  reset();
  static const Tensor& nothing =
      *new Tensor(make_tensor({}, DType::UInt8, Device(DeviceType::Meta)));
  Tensor kept =
      make_view(nothing, tensor.sizes(), tensor.strides(), tensor.storage_offset(), tensor.dtype());
  version_ = kept.version();
  word_.tensor = kept.release_impl();
  state_ = State::Argument;
}

void SavedTensor::share(const SavedTensor& other) {
  version_ = other.version_;
  output_ = other.output_;
  state_ = other.state_;
  word_ = other.word_;
  if (state_ == State::Packed) {
    word_.packed->references.fetch_add(1, std::memory_order_relaxed);
  } else if (state_ != State::Empty) {
    word_.tensor->references.fetch_add(1, std::memory_order_relaxed);
  }
}

void SavedTensor::pack(const Tensor& tensor, const SavedTensorHooks& hooks) {
  auto packed = std::make_unique<Packed>();
  packed->hooks = hooks;
  packed->requires_grad = tensor.requires_grad();
  if (output_ < 0) {
    packed->edge = gradient_edge(tensor);
  }
  {
    AutoGradMode off(false);
    // Of an argument the hook gets the tensor itself, so that it knows it again; of a result one
    // without the node, which would else keep itself alive.
    packed->object = hooks.pack(output_ < 0 ? tensor : bare_alias(tensor));
  }
  word_.packed = packed.release();
  state_ = State::Packed;
}

Tensor SavedTensor::unpack(Node* owner) const {
  if (state_ == State::Empty) {
    return {};
  }
  if (state_ == State::Packed) {
    const Packed& packed = *word_.packed;
    Tensor tensor;
    {
      AutoGradMode off(false);
      tensor = packed.hooks.unpack(packed.object);
    }
    if (!packed.requires_grad) {
      return tensor;
    }
    Tensor alias = bare_alias(tensor);
    if (output_ >= 0) {
      set_history(alias, NodePtr::share(owner), static_cast<uint32_t>(output_));
    } else {
      set_history(alias, packed.edge.node, packed.edge.input);
    }
    return alias;
  }
  Tensor tensor = Tensor::share(word_.tensor);
  if (tensor.version() != version_) {
    std::string maker;
    uint32_t output = 0;
    if (state_ == State::Result) {
      maker = owner->name();
      output = static_cast<uint32_t>(output_);
    } else if (NodePtr node = grad_fn(tensor)) {
      maker = node->name();
      output = meta_of(tensor)->output;
    }
    size_t end = maker.rfind("Backward0");
    if (end != std::string::npos && end + 9 == maker.size()) {
      maker.resize(end);
    }
    fail_modified(tensor, maker, output, version_);
  }
  if (state_ == State::Argument || !thread_state.grad_mode) {
    return tensor;
  }
  Tensor result = bare_alias(tensor);
  set_history(result, NodePtr::share(owner), static_cast<uint32_t>(output_));
  return result;
}

void SavedTensor::reset() {
  if (state_ == State::Packed) {
    if (word_.packed->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete word_.packed;
    }
  } else if (state_ != State::Empty) {
    Tensor drop(word_.tensor);
  }
  word_.tensor = nullptr;
  state_ = State::Empty;
}

void SavedTensor::register_hooks(Node* owner, const SavedTensorHooks& hooks) {
  if (state_ == State::Packed) {
    fail(ErrorKind::Runtime, "",
         "Calling register_hooks on a saved tensor whose hooks have "
         "already been set is not allowed.");
  }
  Tensor tensor = unpack(owner);
  int output = output_;
  if (!tensor.defined()) {
    fail(ErrorKind::Runtime, "",
         "Calling register_hooks on a saved tensor with value None is forbidden");
  }
  reset();
  output_ = static_cast<int16_t>(output);
  pack(tensor, hooks);
}

bool has_saved_tensor_hooks() {
  return !hook_stack.hooks.empty();
}

void push_saved_tensor_hooks(SavedTensorHooks hooks) {
  if (!hook_stack.disabled.empty()) {
    fail(ErrorKind::Runtime, "", hook_stack.disabled);
  }
  hook_stack.hooks.push_back(std::move(hooks));
}

void pop_saved_tensor_hooks() {
  if (!hook_stack.hooks.empty()) {
    hook_stack.hooks.pop_back();
  }
}

std::string disable_saved_tensor_hooks(std::string text) {
  if (!text.empty() && !hook_stack.hooks.empty()) {
    fail(ErrorKind::Runtime, "", text);
  }
  return std::exchange(hook_stack.disabled, std::move(text));
}

}  // namespace rushlight::autograd
