// Optimizer steps over all parameters in one call: one pass over memory, in parallel across
// parameters and blocks. Each update is a loop IR kernel with several stores.
#include <rushlight/generated/functions.h>

#include <cmath>
#include <mutex>
#include <unordered_map>

#include "loop/kernel.h"
#include "ops/operator.h"
#include "runtime/kernel_cache.h"
#include "runtime/parallel.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

using loop::Expr;

constexpr int64_t kBlock = 16384;  // elements a task
constexpr size_t kMostStates = 5;  // parameter, gradient and up to three moments

// Writes an update: buffers are parameter, gradient, then moments; scalars are f32 or f64.
class Update {
 public:
  Update(DType memory, size_t buffers, size_t scalars) : memory_(memory) {
    kernel_.axes = {loop::AxisKind::Parallel};
    for (size_t i = 0; i < buffers; ++i) {
      kernel_.buffers.push_back({memory, {loop::Layout::Unit}});
    }
    kernel_.scalars.assign(scalars, compute_dtype(memory));
  }
  Expr state(int buffer) const { return loop::load(buffer, memory_, {loop::index(0)}); }
  Expr scalar(int slot) const { return loop::scalar(slot, compute_dtype(memory_)); }
  void store(int buffer, Expr value) {
    kernel_.stores.push_back({buffer, {loop::index(0)}, value});
  }
  loop::KernelFunction compile(std::string name) {
    kernel_.name = std::move(name);
    return get_kernel(loop::simplify(kernel_));
  }

 private:
  DType memory_;
  loop::Kernel kernel_;
};

// The kernels of one optimizer, by dtype and variant.
class Variants {
 public:
  template <typename Build>
  loop::KernelFunction get(DType dtype, unsigned variant, Build&& build) {
    std::lock_guard<std::mutex> lock(mutex_);
    loop::KernelFunction& slot = functions_[variant * 64 + static_cast<unsigned>(dtype)];
    if (slot == nullptr) {
      slot = build();
    }
    return slot;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<unsigned, loop::KernelFunction> functions_;
};

// One parameter's part of the step.
struct Item {
  std::vector<Tensor> states;  // contiguous: parameter, gradient, moments
  std::vector<uint64_t> scalars;
  loop::KernelFunction function;
};

void run_block(const Item& item, int64_t begin, int64_t end) {
  void* buffers[kMostStates];
  const int64_t* strides[kMostStates];
  static constexpr int64_t kOne[] = {1};
  for (size_t k = 0; k < item.states.size(); ++k) {
    buffers[k] = item.states[k].data();
    strides[k] = kOne;
  }
  int64_t extent = item.states[0].numel();
  loop::KernelArgs args{buffers, strides, &extent, item.scalars.data()};
  item.function(&args, begin, end);
}

void run_items(const std::vector<Item>& items) {
  struct Task {
    const Item* item;
    int64_t begin;
  };
  std::vector<Task> tasks;
  int64_t total = 0;
  for (const Item& item : items) {
    int64_t numel = item.states[0].numel();
    total += numel;
    for (int64_t begin = 0; begin < numel; begin += kBlock) {
      tasks.push_back({&item, begin});
    }
  }
  auto run = [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const Task& task = tasks[static_cast<size_t>(i)];
      run_block(*task.item, task.begin,
                std::min(task.begin + kBlock, task.item->states[0].numel()));
    }
  };
  auto count = static_cast<int64_t>(tasks.size());
  if (total <= 2 * kBlock) {
    run(0, count);
  } else {
    parallel_for(0, count, 1, run);
  }
}

void check_lists(std::string_view op, const TensorList& params,
                 std::initializer_list<const TensorList*> others) {
  for (const TensorList* list : others) {
    if (list->size() != params.size()) {
      fail(ErrorKind::Runtime, op, "expected lists of one length, got ", params.size(),
           " parameters and a list of ", list->size());
    }
  }
}

// States that must be written in place. They are taken as they lie where all lie alike without
// gaps, channels last for example; others go through contiguous copies.
class Scope {
 public:
  Scope(std::string_view op, const Tensor& param, std::initializer_list<const Tensor*> others)
      : op_(op),
        param_(param),
        alike_(is_non_overlapping_and_dense(param.sizes(), param.strides())) {
    for (const Tensor* other : others) {
      alike_ = alike_ && other->strides() == param.strides();
    }
  }
  Tensor use(const Tensor& state, bool written) {
    if (!(state.sizes() == param_.sizes()) || state.dtype() != param_.dtype()) {
      fail(ErrorKind::Runtime, op_, "expected a state of shape ", param_.sizes(), " and dtype ",
           param_.dtype(), ", got ", state.sizes(), " and ", state.dtype());
    }
    if (alike_ || state.is_contiguous()) {
      return state;
    }
    Tensor copy = contiguous(state);
    if (written) {
      copies_.emplace_back(state, copy);
    }
    return copy;
  }
  void collect(std::vector<std::pair<Tensor, Tensor>>& all) {
    all.insert(all.end(), copies_.begin(), copies_.end());
  }

 private:
  std::string_view op_;
  const Tensor& param_;
  bool alike_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

void finish(const std::vector<Item>& items, const std::vector<std::pair<Tensor, Tensor>>& copies) {
  run_items(items);
  for (const auto& [state, copy] : copies) {
    copy_(state, copy);
  }
}

bool skips(const Tensor& found_inf) {
  return found_inf.defined() && found_inf.item().to_double() != 0;
}

double gradient_scale(const Tensor& grad_scale, bool maximize) {
  double scale = grad_scale.defined() ? 1 / grad_scale.item().to_double() : 1.0;
  return maximize ? -scale : scale;
}

// Scalars of the Adam kernels, in this order. kRest1 and kRest2 are 1 - beta: taken in the dtype of
// the parameters, 1 - 0.999 would be wrong in its fifth digit.
enum AdamScalar {
  kGradScale,
  kDecay,
  kRest1,
  kBeta2,
  kRest2,
  kStepSize,
  kRootCorrection,
  kEps,
  kCount
};

loop::KernelFunction adam_kernel(DType dtype, bool decoupled, bool amsgrad) {
  Update update(dtype, amsgrad ? 5 : 4, kCount);
  Expr param = update.state(0);
  Expr grad = update.state(1) * update.scalar(kGradScale);
  Expr first = update.state(2);
  Expr second = update.state(3);
  // Decoupled: kDecay is 1 - lr * weight_decay. Coupled: the weight decay itself.
  if (decoupled) {
    param = param * update.scalar(kDecay);
  } else {
    grad = grad + param * update.scalar(kDecay);
  }
  first = first + (grad - first) * update.scalar(kRest1);
  second = second * update.scalar(kBeta2) + grad * grad * update.scalar(kRest2);
  Expr spread = second;
  if (amsgrad) {
    spread = loop::max(update.state(4), second);
    update.store(4, spread);
  }
  Expr denominator = loop::sqrt(spread) / update.scalar(kRootCorrection) + update.scalar(kEps);
  update.store(0, param - update.scalar(kStepSize) * (first / denominator));
  update.store(2, first);
  update.store(3, second);
  return update.compile(decoupled ? "_fused_adamw_" : "_fused_adam_");
}

void adam_step(std::string_view op, bool decoupled, const TensorList& params,
               const TensorList& grads, const TensorList& firsts, const TensorList& seconds,
               const TensorList& maxima, const TensorList& steps, double lr, double beta1,
               double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
               const Tensor& grad_scale, const Tensor& found_inf) {
  static Variants variants;
  check_lists(op, params, {&grads, &firsts, &seconds, &steps});
  if (skips(found_inf)) {
    return;
  }
  std::vector<Item> items;
  std::vector<std::pair<Tensor, Tensor>> copies;
  items.reserve(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    Scope scope(op, param,
                {&grads[i], &firsts[i], &seconds[i], amsgrad ? &maxima[i] : &seconds[i]});
    double step = steps[i].item().to_double();
    double correction1 = 1 - std::pow(beta1, step);
    double correction2 = 1 - std::pow(beta2, step);
    const double values[kCount] = {gradient_scale(grad_scale, maximize),
                                   decoupled ? 1 - lr * weight_decay : weight_decay,
                                   1 - beta1,
                                   beta2,
                                   1 - beta2,
                                   lr / correction1,
                                   std::sqrt(correction2),
                                   eps};
    Item item;
    item.states = {scope.use(param, true), scope.use(grads[i], false), scope.use(firsts[i], true),
                   scope.use(seconds[i], true)};
    if (amsgrad) {
      item.states.push_back(scope.use(maxima[i], true));
    }
    for (double value : values) {
      item.scalars.push_back(Scalar(value).kernel_bits(param.dtype()));
    }
    item.function = variants.get(param.dtype(), (decoupled ? 1U : 0U) + (amsgrad ? 2U : 0U),
                                 [&] { return adam_kernel(param.dtype(), decoupled, amsgrad); });
    scope.collect(copies);
    items.push_back(std::move(item));
  }
  finish(items, copies);
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].bump_version();
    firsts[i].bump_version();
    seconds[i].bump_version();
  }
}

void fused_adamw(const TensorList& params, const TensorList& grads, const TensorList& firsts,
                 const TensorList& seconds, const TensorList& maxima, const TensorList& steps,
                 double lr, double beta1, double beta2, double weight_decay, double eps,
                 bool amsgrad, bool maximize, const Tensor& grad_scale, const Tensor& found_inf) {
  adam_step("_fused_adamw_", true, params, grads, firsts, seconds, maxima, steps, lr, beta1, beta2,
            weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

void fused_adam(const TensorList& params, const TensorList& grads, const TensorList& firsts,
                const TensorList& seconds, const TensorList& maxima, const TensorList& steps,
                double lr, double beta1, double beta2, double weight_decay, double eps,
                bool amsgrad, bool maximize, const Tensor& grad_scale, const Tensor& found_inf) {
  adam_step("_fused_adam_", false, params, grads, firsts, seconds, maxima, steps, lr, beta1, beta2,
            weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

enum SgdScalar { kSgdGradScale, kSgdDecay, kMomentum, kKept, kLr, kSgdCount };

loop::KernelFunction sgd_kernel(DType dtype, bool momentum, bool nesterov, bool first) {
  Update update(dtype, momentum ? 3 : 2, kSgdCount);
  Expr param = update.state(0);
  Expr grad = update.state(1) * update.scalar(kSgdGradScale) + param * update.scalar(kSgdDecay);
  if (momentum) {
    Expr buffer =
        first ? grad : update.state(2) * update.scalar(kMomentum) + grad * update.scalar(kKept);
    update.store(2, buffer);
    grad = nesterov ? grad + buffer * update.scalar(kMomentum) : buffer;
  }
  update.store(0, param - update.scalar(kLr) * grad);
  return update.compile("_fused_sgd_");
}

void fused_sgd(const TensorList& params, const TensorList& grads, const TensorList& buffers,
               double weight_decay, double momentum, double lr, double dampening, bool nesterov,
               bool maximize, bool is_first_step, const Tensor& grad_scale,
               const Tensor& found_inf) {
  static Variants variants;
  constexpr std::string_view op = "_fused_sgd_";
  check_lists(op, params, {&grads});
  bool moving = momentum != 0;
  if (moving) {
    check_lists(op, params, {&buffers});
  }
  if (skips(found_inf)) {
    return;
  }
  const double values[kSgdCount] = {gradient_scale(grad_scale, maximize), weight_decay, momentum,
                                    1 - dampening, lr};
  std::vector<Item> items;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (size_t i = 0; i < params.size(); ++i) {
    Scope scope(op, params[i], {&grads[i], moving ? &buffers[i] : &grads[i]});
    DType dtype = params[i].dtype();
    Item item;
    item.states = {scope.use(params[i], true), scope.use(grads[i], false)};
    if (moving) {
      item.states.push_back(scope.use(buffers[i], true));
    }
    for (double value : values) {
      item.scalars.push_back(Scalar(value).kernel_bits(dtype));
    }
    unsigned variant = (moving ? 1U : 0U) + (nesterov ? 2U : 0U) + (is_first_step ? 4U : 0U);
    item.function = variants.get(
        dtype, variant, [&] { return sgd_kernel(dtype, moving, nesterov, is_first_step); });
    scope.collect(copies);
    items.push_back(std::move(item));
  }
  finish(items, copies);
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].bump_version();
    if (moving) {
      buffers[i].bump_version();
    }
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(fused_optimizer) {
  op("_fused_adamw_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] exp_avgs, "
     "Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, "
     "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
     "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     kFunction)
      .doc("One AdamW step on all parameters; state_steps already count it.")
      .kernel(fused_adamw)
      .not_differentiable();
  op("_fused_adam_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] exp_avgs, "
     "Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, "
     "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
     "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     kFunction)
      .doc("One Adam step on all parameters; state_steps already count it.")
      .kernel(fused_adam)
      .not_differentiable();
  op("_fused_sgd_(Tensor(a!)[] self, Tensor[] grads, Tensor(b!)[] momentum_buffer_list, *, "
     "float weight_decay, float momentum, float lr, float dampening, bool nesterov, "
     "bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
     kFunction)
      .doc("One SGD step on all parameters.")
      .kernel(fused_sgd)
      .not_differentiable();
}

}  // namespace rushlight
