// The operators of python/rushlight/optim/lbfgs.py, in the same order.
#include <rushlight/operators.h>

#include <algorithm>
#include <cmath>

#include "optim/line_search.h"
#include "optim/rule.h"

namespace rushlight::optim {

// What passes from one iteration to the next: direction, step and the history of changes.
struct LBFGS::Memory {
  int64_t evaluations = 0;
  int64_t iterations = 0;
  Tensor direction;
  Number t;
  TensorList old_dirs;  // changes of the gradient
  TensorList old_stps;  // changes of the parameters
  TensorList ro;        // one over their products
  Number h_diag = 1;
  Tensor previous_gradient;
  double previous_loss = 0;

  void next_direction(const Tensor& gradient, int64_t history_size);
  void remember(const Tensor& change, const Tensor& moved, int64_t history_size);
};

namespace {

bool at_most(const Tensor& largest, double bound) {
  return le(largest, bound).item().to_bool();
}

Tensor flat_gradient(const TensorList& params) {
  TensorList parts;
  for (const Tensor& param : params) {
    const Tensor& grad = param.grad();
    const Tensor part =
        grad.defined() ? reshape(grad, {-1}) : zeros({param.numel()}, param.options());
    parts.push_back(reshape(as_real(part), {-1}));
  }
  return cat(parts, 0);
}

void move_along(const TensorList& params, const Number& t, const Tensor& direction) {
  int64_t begin = 0;
  for (const Tensor& param : params) {
    const Tensor real = as_real(param);
    const Tensor part = slice(direction, 0, begin, begin + real.numel());
    add_(real, view_as(part, real), t.value());
    begin += real.numel();
  }
}

Tensor number_of(double value, DType dtype) {
  return full({}, value, TensorOptions(dtype));
}

}  // namespace

void LBFGS::Memory::remember(const Tensor& change, const Tensor& moved, int64_t history_size) {
  const Tensor product = dot(change, moved);
  if (!gt(product, 1e-10).item().to_bool()) {
    return;
  }
  if (static_cast<int64_t>(old_dirs.size()) == history_size) {
    for (TensorList* list : {&old_dirs, &old_stps, &ro}) {
      list->erase(list->begin());
    }
  }
  old_dirs.push_back(change);
  old_stps.push_back(moved);
  ro.push_back(1.0 / product);
  h_diag = product / dot(change, change);
}

// The next direction of descent, by the two-loop recursion.
void LBFGS::Memory::next_direction(const Tensor& gradient, int64_t history_size) {
  if (iterations == 1) {
    direction = neg(gradient);
    old_dirs.clear();
    old_stps.clear();
    ro.clear();
    h_diag = 1;
  } else {
    const Tensor moved = t.is_tensor() ? mul(direction, t.tensor()) : mul(direction, t.value());
    remember(sub(gradient, previous_gradient), moved, history_size);
    const size_t count = old_dirs.size();
    TensorList weights(count);
    const Tensor q = neg(gradient);
    for (size_t i = count; i-- > 0;) {
      weights[i] = mul(dot(old_stps[i], q), ro[i]);
      add_(q, old_dirs[i], neg(weights[i]).item());
    }
    direction = h_diag.is_tensor() ? mul(q, h_diag.tensor()) : mul(q, h_diag.value());
    for (size_t i = 0; i < count; ++i) {
      const Tensor back = mul(dot(old_dirs[i], direction), ro[i]);
      add_(direction, old_stps[i], sub(weights[i], back).item());
    }
  }
  if (previous_gradient.defined()) {
    copy_(previous_gradient, gradient);
  } else {
    previous_gradient = clone(gradient, MemoryFormat::Contiguous);
  }
}

LBFGS::LBFGS(std::vector<Tensor> params, const LBFGSOptions& options)
    : group_{std::move(params), options}, memory_(std::make_unique<Memory>()) {
  check_nonnegative("learning rate", options.lr());
  check_parameters();
  if (!options.max_eval()) {
    group_.options.max_eval(options.max_iter() * 5 / 4);
  }
}

LBFGS::~LBFGS() = default;

void LBFGS::step() {
  fail(ErrorKind::Type, "", "LBFGS.step() missing 1 required positional argument: 'closure'");
}

Tensor LBFGS::step(const std::function<Tensor()>& closure) {
  NoGradGuard no_grad;
  note_step();
  const auto evaluate = [&] {
    EnableGradGuard grad;
    return closure();
  };
  const TensorList& params = group_.params;
  const LBFGSOptions& options = group_.options;
  Memory& memory = *memory_;
  const Tensor first_loss = evaluate();
  double loss = first_loss.item().to_double();
  int64_t evaluations = 1;
  ++memory.evaluations;
  Tensor gradient = flat_gradient(params);
  bool done = at_most(max(abs(gradient)), options.tolerance_grad());
  for (int64_t iteration = 1; !done && iteration <= options.max_iter(); ++iteration) {
    ++memory.iterations;
    memory.next_direction(gradient, options.history_size());
    memory.previous_loss = loss;
    memory.t = options.lr();
    if (memory.iterations == 1) {
      const Number shortest = 1.0 / sum(abs(gradient));
      memory.t = (shortest < 1.0 ? shortest : Number(1.0)) * options.lr();
    }
    const Tensor slope = dot(gradient, memory.direction);
    if (gt(slope, -options.tolerance_change()).item().to_bool()) {
      break;
    }
    int64_t used = 0;
    if (options.line_search_fn()) {
      if (*options.line_search_fn() != "strong_wolfe") {
        fail(ErrorKind::Runtime, "", "only 'strong_wolfe' is supported");
      }
      TensorList start;
      for (const Tensor& param : params) {
        start.push_back(clone(param, MemoryFormat::Contiguous));
      }
      const auto along = [&](const Number& t) {
        move_along(params, t, memory.direction);
        const double there = evaluate().item().to_double();
        Tensor slopes = flat_gradient(params);
        for (size_t i = 0; i < params.size(); ++i) {
          copy_(params[i], start[i]);
        }
        return std::pair(there, slopes);
      };
      const LineResult found =
          strong_wolfe(along, memory.t, memory.direction, {0, loss, gradient, slope});
      loss = found.best.loss;
      gradient = found.best.gradient;
      memory.t = found.best.t;
      used = found.evaluations;
      move_along(params, memory.t, memory.direction);
      done = at_most(max(abs(gradient)), options.tolerance_grad());
    } else {
      move_along(params, memory.t, memory.direction);
      if (iteration != options.max_iter()) {
        loss = evaluate().item().to_double();
        gradient = flat_gradient(params);
        done = at_most(max(abs(gradient)), options.tolerance_grad());
        used = 1;
      }
    }
    evaluations += used;
    memory.evaluations += used;
    const Tensor moved = memory.t.is_tensor() ? mul(memory.direction, memory.t.tensor())
                                              : mul(memory.direction, memory.t.value());
    done = done || evaluations >= *options.max_eval() ||
           at_most(max(abs(moved)), options.tolerance_change()) ||
           std::abs(loss - memory.previous_loss) < options.tolerance_change();
  }
  return first_loss;
}

nn::NamedTensors LBFGS::state_dict() const {
  const Memory& memory = *memory_;
  nn::NamedTensors named;
  if (memory.evaluations == 0) {
    return named;
  }
  named.emplace_back("0.func_evals", full({}, memory.evaluations, TensorOptions(DType::Int64)));
  named.emplace_back("0.n_iter", full({}, memory.iterations, TensorOptions(DType::Int64)));
  if (!memory.direction.defined()) {
    return named;
  }
  named.emplace_back("0.d", memory.direction);
  const DType dtype = memory.direction.dtype();
  const auto number = [&](const Number& value) {
    return value.is_tensor() ? value.tensor() : number_of(value.value(), DType::Float64);
  };
  named.emplace_back("0.t", number(memory.t));
  named.emplace_back("0.H_diag", number(memory.h_diag));
  named.emplace_back("0.prev_flat_grad", memory.previous_gradient);
  named.emplace_back("0.prev_loss", number_of(memory.previous_loss, DType::Float64));
  const auto stacked = [&](const TensorList& list, const IntList& none) {
    return list.empty() ? zeros(none, TensorOptions(dtype)) : stack(list);
  };
  const IntList no_rows = {0, memory.direction.numel()};
  named.emplace_back("0.old_dirs", stacked(memory.old_dirs, no_rows));
  named.emplace_back("0.old_stps", stacked(memory.old_stps, no_rows));
  named.emplace_back("0.ro", stacked(memory.ro, {0}));
  return named;
}

void LBFGS::load_state_dict(const nn::NamedTensors& state) {
  NoGradGuard no_grad;
  int64_t size = 0;
  for (const Tensor& param : group_.params) {
    size += param.is_complex() ? 2 * param.numel() : param.numel();
  }
  Memory loaded;
  for (const auto& [name, value] : state) {
    const auto [number, field] = state_name(name);
    if (number != 0) {
      fail(ErrorKind::Value, "load_state_dict", "'", name,
           "' is no state of LBFGS, which keeps it for the first parameter only");
    }
    const auto take = [&](IntList sizes) {
      Tensor taken;
      take_state(taken, value, sizes, name);
      return taken;
    };
    const int64_t count = value.defined() && value.dim() > 0 ? value.size(0) : 0;
    // Numbers of the program are kept as float64, those that tensors computed in their dtype.
    const auto number_in = [&] {
      const Tensor taken = take({});
      const bool plain = taken.dtype() != group_.params[0].dtype();
      return plain ? Number(taken.item().to_double()) : Number(taken);
    };
    if (field == "func_evals") {
      loaded.evaluations = take({}).item().to_int();
    } else if (field == "n_iter") {
      loaded.iterations = take({}).item().to_int();
    } else if (field == "d") {
      loaded.direction = take({size});
    } else if (field == "t") {
      loaded.t = number_in();
    } else if (field == "H_diag") {
      loaded.h_diag = number_in();
    } else if (field == "prev_flat_grad") {
      loaded.previous_gradient = take({size});
    } else if (field == "prev_loss") {
      loaded.previous_loss = take({}).item().to_double();
    } else if (field == "old_dirs") {
      loaded.old_dirs = unbind(take({count, size}));
    } else if (field == "old_stps") {
      loaded.old_stps = unbind(take({count, size}));
    } else if (field == "ro") {
      loaded.ro = unbind(take({count}));
    } else {
      unknown_state(name);
    }
  }
  *memory_ = loaded;
}

}  // namespace rushlight::optim
