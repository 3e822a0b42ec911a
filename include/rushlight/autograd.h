// Automatic differentiation: grad mode, backward, hooks, custom functions.
//
// While grad mode is on, every operator call with an argument that requires grad appends a node to
// the graph; `backward` walks it from the results. A graph can be walked once unless it is
// retained. All modes here belong to the calling thread.
#pragma once

#include <rushlight/tensor.h>
#include <rushlight/value.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rushlight {

struct RUSHLIGHT_API GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};

// Turns recording on or off for a scope.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : previous_(GradMode::is_enabled()) {
    GradMode::set_enabled(enabled);
  }
  ~AutoGradMode() { GradMode::set_enabled(previous_); }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool previous_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};

// No recording, and new tensors are inference tensors: they can never take part in a graph, nor be
// written outside this mode. `InferenceMode(false)` inside leaves the mode, recording as usual.
class RUSHLIGHT_API InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  static bool is_enabled();

 private:
  bool previous_mode_;
  bool previous_grad_;
};

namespace autograd {

using Variable = Tensor;
using variable_list = TensorList;

// Accumulates gradients into `grad()` of the leaves, or of `inputs` only where given. An undefined
// entry of `gradients` stands for one, and is allowed for tensors with one element.
// `retain_graph` defaults to `create_graph`. Error(Runtime) where a tensor has no graph.
RUSHLIGHT_API void backward(const TensorList& tensors, const TensorList& gradients = {},
                            std::optional<bool> retain_graph = {}, bool create_graph = false,
                            const TensorList& inputs = {});

// The gradients of the sum of `outputs` with respect to `inputs`; accumulates nothing. An input
// that was not used is an Error(Runtime), or an undefined result where allow_unused.
RUSHLIGHT_API TensorList grad(const TensorList& outputs, const TensorList& inputs,
                              const TensorList& gradients = {},
                              std::optional<bool> retain_graph = {}, bool create_graph = false,
                              bool allow_unused = false);

// Takes a hook out again. Outliving the tensor or node is harmless.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::shared_ptr<std::atomic<bool>> alive) : alive_(std::move(alive)) {}
  void remove() {
    if (alive_) {
      *alive_ = false;
    }
  }

 private:
  std::shared_ptr<std::atomic<bool>> alive_;
};

// Called with the gradient of a tensor; what it returns replaces the gradient unless undefined.
using TensorHook = std::function<Tensor(const Tensor&)>;
RUSHLIGHT_API HookHandle register_hook(const Tensor& tensor, TensorHook hook);
// Called with a leaf after its grad was accumulated.
using AccumulateHook = std::function<void(const Tensor&)>;
RUSHLIGHT_API HookHandle register_post_accumulate_grad_hook(const Tensor& tensor,
                                                            AccumulateHook hook);

// What is done with tensors saved for backward while a guard of these lives: `pack` makes something
// to keep, `unpack` makes the tensor of it again.
struct SavedTensorHooks {
  std::function<std::shared_ptr<void>(const Tensor&)> pack;
  std::function<Tensor(const std::shared_ptr<void>&)> unpack;
};
RUSHLIGHT_API void push_saved_tensor_hooks(SavedTensorHooks hooks);
RUSHLIGHT_API void pop_saved_tensor_hooks();
// Makes saving a tensor an error with this text; empty: allows it again. Returns the previous text.
RUSHLIGHT_API std::string disable_saved_tensor_hooks(std::string text);
class SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks) {
    push_saved_tensor_hooks(std::move(hooks));
  }
  ~SavedTensorHooksGuard() { pop_saved_tensor_hooks(); }
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
  SavedTensorHooksGuard& operator=(const SavedTensorHooksGuard&) = delete;
};

// Anomaly mode: nodes remember where the forward call was made, and backward raises at the first
// NaN (where asked), naming the function.
RUSHLIGHT_API bool anomaly_enabled();
RUSHLIGHT_API bool anomaly_checks_nan();
RUSHLIGHT_API void set_anomaly(bool enabled, bool check_nan = true);
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true)
      : enabled_(anomaly_enabled()), nan_(anomaly_checks_nan()) {
    set_anomaly(true, check_nan);
  }
  ~DetectAnomalyGuard() { set_anomaly(enabled_, nan_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_;
  bool nan_;
};

class FunctionNode;

// What forward and backward of a custom function share.
class RUSHLIGHT_API AutogradContext {
 public:
  // Arguments or results that backward reads. To be called in forward.
  void save_for_backward(TensorList tensors) { to_save_ = std::move(tensors); }
  TensorList get_saved_variables() const;
  // Arguments that forward wrote in place; they must be results too.
  void mark_dirty(TensorList tensors) { dirty_ = std::move(tensors); }
  // Results that have no gradient.
  void mark_non_differentiable(TensorList tensors) { non_differentiable_ = std::move(tensors); }
  // Whether gradients that are undefined reach backward as zeros. On by default.
  void set_materialize_grads(bool on) { materialize_ = on; }
  bool needs_input_grad(size_t argument) const;
  std::unordered_map<std::string, Value> saved_data;

 private:
  friend class FunctionNode;
  FunctionNode* node_ = nullptr;
  TensorList to_save_;
  TensorList dirty_;
  TensorList non_differentiable_;
  bool materialize_ = true;
};
using Context = AutogradContext;

namespace detail {
using BackwardFunction = TensorList (*)(AutogradContext*, TensorList);

// One call of a custom function: made before forward, finished with its results.
class RUSHLIGHT_API FunctionCall {
 public:
  FunctionCall(const char* type_name, BackwardFunction backward, TensorList arguments,
               std::vector<bool> is_tensor);
  ~FunctionCall();
  AutogradContext* context();
  TensorList finish(TensorList results);

 private:
  FunctionNode* node_;
  TensorList arguments_;
};
}  // namespace detail

// A function with a gradient of its own:
//
//   struct Double : autograd::Function<Double> {
//     static Tensor forward(autograd::Context*, const Tensor& x) { return x + x; }
//     static TensorList backward(autograd::Context*, TensorList grads) { return {grads[0] * 2}; }
//   };
//   Tensor y = Double::apply(x);
//
// `backward` returns one gradient an argument of forward, undefined for those without.
template <typename Derived>
class Function {
 public:
  template <typename... Arguments>
  static auto apply(Arguments&&... arguments) {
    TensorList tensors;
    std::vector<bool> is_tensor;
    (collect(arguments, &tensors, &is_tensor), ...);
    detail::FunctionCall call(typeid(Derived).name(), &run_backward, std::move(tensors),
                              std::move(is_tensor));
    using Result = decltype(Derived::forward(call.context(), arguments...));
    if constexpr (std::is_same_v<std::decay_t<Result>, Tensor>) {
      return call.finish({forward(call.context(), arguments...)}).at(0);
    } else {
      return call.finish(forward(call.context(), arguments...));
    }
  }

 private:
  template <typename... Arguments>
  static auto forward(AutogradContext* context, Arguments&... arguments) {
    AutoGradMode off(false);
    return Derived::forward(context, arguments...);
  }
  static TensorList run_backward(AutogradContext* context, TensorList gradients) {
    return Derived::backward(context, std::move(gradients));
  }
  template <typename T>
  static void collect(const T& argument, TensorList* tensors, std::vector<bool>* is_tensor) {
    if constexpr (std::is_same_v<T, Tensor>) {
      tensors->push_back(argument);
    }
    is_tensor->push_back(std::is_same_v<T, Tensor>);
  }
};

}  // namespace autograd
}  // namespace rushlight
