#include "ops/derivative.h"

#include <rushlight/generated/functions.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "ops/gradient.h"

namespace rushlight {
namespace {

using loop::Expr;

// The forward body's view inside a gradient operator, whose argument 0 is the incoming gradient.
// A stand-in takes the place of the argument that the gradient is of: in a fused kernel, other
// arguments may be computed from it, or be the same.
class Shifted final : public Elementwise {
 public:
  Shifted(Elementwise& outer, int argument, Expr stand_in)
      : outer_(outer), argument_(argument), stand_in_(stand_in) {}
  Expr in(int argument) override {
    if (argument != argument_) {
      return outer_.in(argument + 1);
    }
    return stand_in_.dtype() == dtype() ? stand_in_ : loop::cast(stand_in_, dtype());
  }
  Expr raw(int argument) override {
    return argument == argument_ ? stand_in_ : outer_.raw(argument + 1);
  }
  Expr scalar(int argument) override { return outer_.scalar(argument + 1); }
  Expr scalar(int argument, DType dtype) override { return outer_.scalar(argument + 1, dtype); }
  DType dtype() const override { return outer_.dtype(); }
  DType promoted() const override { return outer_.promoted(); }
  const Value& attribute(int argument) override { return outer_.attribute(argument + 1); }

 private:
  Elementwise& outer_;
  int argument_;
  Expr stand_in_;
};

// A load that no kernel has; gradients of gradients, which meet within one expression, differ in
// their depth.
Expr make_stand_in(DType dtype, size_t depth) {
  return loop::load(255, dtype, std::vector<Expr>(depth + 8, loop::index(0)));
}

// Looks at a body without a call: tensors are loads of one dtype numbered by argument, attributes
// defaults.
class Probe final : public Elementwise {
 public:
  Probe(const Operator& op, DType dtype) : op_(op), dtype_(dtype) {}
  Expr in(int argument) override { return raw(argument); }
  Expr raw(int argument) override {
    const std::string& name = op_.schema.arguments[static_cast<size_t>(argument)].name;
    bool condition = name == "condition" || name == "mask";
    return loop::load(argument, condition ? DType::Bool : dtype_, {loop::index(0)});
  }
  Expr scalar(int argument) override { return loop::scalar(argument, dtype_); }
  Expr scalar(int argument, DType dtype) override { return loop::scalar(argument, dtype); }
  DType dtype() const override { return dtype_; }
  DType promoted() const override { return dtype_; }
  const Value& attribute(int argument) override {
    const Argument& declared = op_.schema.arguments[static_cast<size_t>(argument)];
    static const Value given(int64_t{1});
    return declared.optional || !declared.has_default ? given : declared.default_value;
  }

 private:
  const Operator& op_;
  DType dtype_;
};

constexpr DType kProbed[] = {DType::Float32, DType::Complex64};

struct Derived {
  std::unique_ptr<Operator> op;  // null: the gradient passes through unchanged
  bool zero = false;
};

// The gradients of one operator's inputs, made on first need.
class Gradients {
 public:
  Gradients(const Operator& forward, Rule rule, ElementwiseFunction function)
      : forward_(forward),
        rule_(rule),
        function_(std::move(function)),
        derived_(2 * forward.schema.arguments.size()) {}

  void apply(Gradient& g) {
    size_t count = forward_.schema.arguments.size();
    for (size_t i = 0; i < count; ++i) {
      int argument = static_cast<int>(i);
      if (forward_.schema.arguments[i].type != SchemaType::Tensor || !g.needs(argument)) {
        continue;
      }
      const Derived& derived = get(argument, of_complex(g, argument));
      if (derived.zero) {
        if (is_floating(g.dtype(argument)) || is_complex(g.dtype(argument))) {
          g.set(argument,
                zeros(g.sizes(argument),
                      TensorOptions().dtype(g.dtype(argument)).device(g.grad().device())));
        }
        continue;
      }
      // Products of halves that are to be summed are rounded once, after the sum.
      bool summed = g.sizes(argument) != g.grad().sizes();
      g.set(argument, derived.op == nullptr ? g.grad() : call_derived(*derived.op, g, summed));
    }
  }

  // By argument: which tensor arguments its derived gradient reads.
  std::vector<uint64_t> reads() {
    std::vector<uint64_t> masks(forward_.schema.arguments.size());
    for (size_t i = 0; i < masks.size(); ++i) {
      if (forward_.schema.arguments[i].type == SchemaType::Tensor) {
        masks[i] = probe(static_cast<int>(i), false).reads;
        if (forward_.complex != ComplexRule::None) {
          masks[i] |= probe(static_cast<int>(i), true).reads;
        }
      }
    }
    return masks;
  }

  // The operator of an argument's gradient; null where it passes or is zero.
  const Operator* derived(int argument) {
    const Operator* real = get(argument, false).op.get();
    const bool complex = real == nullptr && forward_.complex != ComplexRule::None;
    return complex ? get(argument, true).op.get() : real;
  }

 private:
  struct Probed {
    uint64_t reads = 0;
    bool passes = false;
    bool zero = false;
  };

  // Whether the call computed in complex numbers.
  static bool of_complex(Gradient& g, int argument) {
    return g.grad().is_complex() || is_complex(g.dtype(argument));
  }

  Probed probe(int argument, bool complex) {
    Probe view(forward_, kProbed[complex ? 1 : 0]);
    Expr body = function_(view);
    Expr grad = loop::load(63, body.dtype(), {loop::index(0)});
    Expr input = view.raw(argument);
    Probed found;
    if (real_dtype(input.dtype()) != DType::Float32 || real_dtype(body.dtype()) != DType::Float32) {
      found.zero = true;
      return found;
    }
    Expr result = loop::differentiate(body, {input}, grad)[0];
    if (!result) {
      found.zero = true;
      return found;
    }
    result = loop::simplify(result);
    found.passes = same(result, grad);
    std::unordered_set<const loop::Node*> seen;
    std::vector<Expr> stack{result};
    while (!stack.empty()) {
      Expr at = stack.back();
      stack.pop_back();
      if (!seen.insert(at.node).second) {
        continue;
      }
      if (at->op == loop::Op::Load && at->slot != 63) {
        found.reads |= uint64_t{1} << at->slot;
      }
      stack.insert(stack.end(), at->inputs.begin(), at->inputs.end());
    }
    return found;
  }

  const Derived& get(int argument, bool complex) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Derived>& slot =
        derived_[2 * static_cast<size_t>(argument) + (complex ? 1 : 0)];
    if (slot != nullptr) {
      return *slot;
    }
    slot = std::make_unique<Derived>();
    Probed probed = probe(argument, complex);
    slot->zero = probed.zero;
    if (probed.zero || probed.passes) {
      return *slot;
    }
    auto op = std::make_unique<Operator>();
    op->schema = gradient_schema(argument);
    op->variants = kInternal;
    op->family = forward_.family;
    op->doc = "Gradient of " + forward_.schema.full_name() + ".";
    op->kind = Kind::Elementwise;
    op->complex = forward_.complex;
    ElementwiseFunction function = function_;
    size_t depth = op->schema.name.size();  // grows with each "_gradient"
    define_elementwise(*op, rule_, [function, argument, depth](Elementwise& e) {
      Expr input = e.raw(argument + 1);
      Expr stand_in = make_stand_in(input.dtype(), depth);
      Shifted view(e, argument, stand_in);
      Expr body = function(view);
      Expr grad = is_complex(body.dtype()) ? e.in(0) : loop::real(e.in(0));
      Expr result = loop::differentiate(body, {stand_in}, grad)[0];
      if (!result) {
        return loop::constant(0, e.dtype());
      }
      result = loop::rewrite(result, [&](Expr x) { return same(x, stand_in) ? input : x; });
      // By an input that is narrower than the rest the derivative is narrow, as is no other body.
      return result.dtype() == e.dtype() ? result : loop::cast(result, e.dtype());
    });
    slot->op = std::move(op);
    return *slot;
  }

  // The forward arguments behind the gradient, and whether halves are to be returned as float.
  Schema gradient_schema(int argument) {
    Schema schema = forward_.schema;
    schema.name = forward_.schema.name + "_gradient";
    schema.overload = forward_.schema.overload + std::to_string(argument);
    Argument grad;
    grad.name = "grad";
    if (schema.arguments.back().name == kWide) {
      schema.arguments.pop_back();
    }
    schema.arguments.insert(schema.arguments.begin(), grad);
    Argument wide;
    wide.name = kWide;
    wide.type = SchemaType::Bool;
    wide.keyword_only = true;
    wide.has_default = true;
    wide.default_value = Value(false);
    wide.default_text = "False";
    schema.arguments.push_back(wide);
    return schema;
  }

  Tensor call_derived(const Operator& op, Gradient& g, bool wide) {
    std::vector<Value> arguments;
    arguments.push_back(Value::borrow(g.grad()));
    size_t count = forward_.schema.arguments.size();
    std::vector<Tensor> held;
    held.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const Argument& declared = forward_.schema.arguments[i];
      int argument = static_cast<int>(i);
      bool saved = forward_.saved_arguments >> i & 1;
      if (declared.name == kWide) {
        continue;
      }
      if (declared.type != SchemaType::Tensor) {
        arguments.push_back(g.value(argument));
      } else if (saved) {
        // A number stays one: as a tensor it would be loaded in its own dtype, perhaps bool, in
        // which the body has no derivative.
        const Value& given = g.value(argument);
        if (given.is_tensor()) {
          held.push_back(given.tensor());
          arguments.push_back(Value::borrow(held.back()));
        } else {
          arguments.push_back(given);
        }
      } else {
        // Not read, but bodies name it: a number keeps its place without holding memory.
        arguments.push_back(g.value(argument).is_number() ? g.value(argument) : Value(false));
      }
    }
    arguments.push_back(Value(wide));
    Value result;
    Invocation inv{&op, Form::Functional, static_cast<uint8_t>(arguments.size()),
                   1,   arguments.data(), &result};
    invoke(inv);
    return result.take_tensor();
  }

  const Operator& forward_;
  Rule rule_;
  ElementwiseFunction function_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Derived>> derived_;
};

}  // namespace

namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<const Operator*, std::shared_ptr<Gradients>> gradients;
};

Registry& registry() {
  static auto* made = new Registry;
  return *made;
}

}  // namespace

const Operator* find_gradient_operator(std::string_view full_name) {
  constexpr std::string_view kSuffix = "_gradient";
  size_t dot = full_name.find('.');
  if (dot == std::string_view::npos || dot < kSuffix.size() ||
      full_name.substr(dot - kSuffix.size(), kSuffix.size()) != kSuffix) {
    return nullptr;
  }
  std::string_view overload = full_name.substr(dot + 1);
  if (overload.empty() || overload.back() < '0' || overload.back() > '9') {
    return nullptr;
  }
  int argument = overload.back() - '0';
  overload.remove_suffix(1);
  std::string forward(full_name.substr(0, dot - kSuffix.size()));
  if (!overload.empty()) {
    forward += cat(".", overload);
  }
  const Operator* op = Table::instance().find(forward);
  op = op == nullptr ? find_gradient_operator(forward) : op;
  std::shared_ptr<Gradients> gradients;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    auto found = registry().gradients.find(op);
    if (found == registry().gradients.end()) {
      return nullptr;
    }
    gradients = found->second;
  }
  bool tensor = static_cast<size_t>(argument) < op->schema.arguments.size() &&
                op->schema.arguments[static_cast<size_t>(argument)].type == SchemaType::Tensor;
  return tensor ? gradients->derived(argument) : nullptr;
}

void derive_gradient(Operator& op, Rule rule, ElementwiseFunction function) {
  auto gradients = std::make_shared<Gradients>(op, rule, std::move(function));
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().gradients[&op] = gradients;
  }
  bool derived = !op.schema.arguments.empty() && op.schema.arguments[0].name == "grad";
  if (!derived) {
    try {
      op.reads = gradients->reads();
    } catch (const Error&) {  // a body that refuses floats has no gradient
      op.differentiable = false;
      return;
    }
    for (uint64_t mask : op.reads) {
      op.saved_arguments |= mask;
    }
  } else {
    // A derived gradient saves all that it was given: its own gradients are rarely taken.
    for (size_t i = 0; i < op.schema.arguments.size(); ++i) {
      if (op.schema.arguments[i].type == SchemaType::Tensor) {
        op.saved_arguments |= uint64_t{1} << i;
      }
    }
  }
  op.gradient = [gradients](Gradient& g) { gradients->apply(g); };
  op.derived_gradient = true;
}

}  // namespace rushlight
