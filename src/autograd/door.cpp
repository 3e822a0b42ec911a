// The autograd door: decides which operator calls are recorded, and records them.
#include "autograd/meta.h"
#include "autograd/operator_node.h"
#include "autograd/operators.h"
#include "ops/invocation.h"
#include "ops/operator.h"

namespace rushlight::autograd {
namespace {

// Runs the rest of the row with this door closed: calls that bodies make are not recorded.
void run_unrecorded(Invocation& inv) {
  DoorGuard closed(0, kAutogradDoor);
  pass(inv, kAutogradDoor);
}

bool has_gradient(const Value& result) {
  return result.is_tensor() &&
         (is_floating(result.impl()->dtype) || is_complex(result.impl()->dtype));
}

bool any_has_gradient(const Invocation& inv) {
  bool found = false;
  for_each_tensor(inv.results, inv.result_count, [&](const Tensor& tensor) {
    found = found || tensor.is_floating_point() || tensor.is_complex();
  });
  return found;
}

// Whether a result is one of the arguments itself: nothing was computed then.
bool is_argument(const Invocation& inv, const Value& result) {
  for (int i = 0; result.is_tensor() && i < inv.argument_count; ++i) {
    if (inv.arguments[i].impl() == result.impl()) {
      return true;
    }
  }
  return false;
}

void track_views(const Invocation& inv, Creation creation) {
  const Tensor& base = inv.arguments[0].tensor();
  if (!inv.op->differentiable) {
    return;  // detach: the two have separate histories
  }
  if (!base.is_floating_point() && !base.is_complex()) {
    return;
  }
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& result = inv.results[i];
    if (result.tag() == Value::Tag::Tensors) {
      for (const Tensor& item : result.tensors()) {
        track_view(base, item, Creation::MultiOutput);
      }
    } else if (result.is_tensor() && !result.tensor().is_same(base)) {
      track_view(base, result.tensor(), creation);
    }
  }
}

// Gives the nodes of a composition's results its name, if it has one and they are its own.
void name_results(const Invocation& inv, uint64_t first_node) {
  const char* name = inv.op->node_of(inv);
  if (name == nullptr) {
    return;
  }
  for_each_tensor(inv.results, inv.result_count, [&](const Tensor& result) {
    NodePtr node = grad_fn(result);
    if (node && node->sequence() >= first_node) {
      if (auto* made = dynamic_cast<OperatorNode*>(node.get())) {
        made->stand_for(name, first_node);
      }
    }
  });
}

// Makes the floating-point results results of `node`.
void set_histories(const Invocation& inv, const NodePtr& node) {
  uint32_t output = 0;
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& result = inv.results[i];
    if (result.tag() == Value::Tag::Tensors) {
      for (const Tensor& item : result.tensors()) {
        if (item.defined() && (item.is_floating_point() || item.is_complex())) {
          set_history(item, node, output);
        }
        ++output;
      }
    } else {
      if (has_gradient(result) && !is_argument(inv, result)) {
        set_history(result.tensor(), node, output);
      }
      ++output;
    }
  }
}

void record_functional(Invocation& inv) {
  run_unrecorded(inv);
  const Operator& op = *inv.op;
  bool is_view = op.kind == Kind::View;
  if (is_view) {
    track_views(inv, Creation::Default);
  }
  if (op.differentiable && any_has_gradient(inv) && !is_argument(inv, inv.results[0])) {
    OperatorNode* node = OperatorNode::make(inv, Tensor());
    NodePtr owner(node);
    node->save_results(inv);
    set_histories(inv, owner);
  }
}

// What stands for the argument written in place in its node, where the rule or the edges need it
// as it was: reshaping views change its sizes, others its elements.
Tensor keep_original(const Invocation& inv, const Tensor& self) {
  Tensor before;
  if (inv.op->kind == Kind::View) {
    before = make_view(self, self.sizes(), self.strides(), self.storage_offset());
  } else if (saved_arguments(inv) >> inv.op->inplace_argument & 1) {
    DoorGuard closed(0, kAutogradDoor);
    before = ops::clone(self);
  } else {
    return {};
  }
  if (Edge edge = gradient_edge(self)) {
    set_history(before, edge.node, edge.input);
  }
  return before;
}

// Reshapes the tensor itself: its elements, and so its base, stay as they are.
void record_inplace_view(Invocation& inv, const Tensor& self) {
  Tensor before = keep_original(inv, self);
  run_unrecorded(inv);
  Value* slot = &inv.arguments[inv.op->inplace_argument];
  Value kept = std::move(*slot);
  *slot = Value(before);
  NodePtr node(OperatorNode::make(inv, Tensor()));
  *slot = std::move(kept);
  set_history(self, node, 0);
}

void record_inplace(Invocation& inv) {
  // The handle outlives the call: a body may replace the argument's value.
  Tensor self = inv.results[0].tensor();
  check_inplace(self);
  if (inv.op->kind == Kind::View) {
    record_inplace_view(inv, self);
    return;
  }
  if (!is_floating(self.dtype()) && !is_complex(self.dtype())) {
    run_unrecorded(inv);
    return;
  }
  OperatorNode* node = OperatorNode::make(inv, keep_original(inv, self));
  NodePtr owner(node);
  run_unrecorded(inv);
  node->save_results(inv);
  uint32_t edge = node->arguments()[static_cast<size_t>(inv.op->inplace_argument)].first;
  rebase_history(self, owner, edge, 0);
}

// A composition has no node of its own: its functional form is recorded, then copied into place.
void record_inplace_composition(Invocation& inv) {
  const Tensor self = inv.results[0].tensor();
  check_inplace(self);
  Value fresh;
  Invocation functional = inv;
  functional.form = Form::Functional;
  functional.results = &fresh;
  pass(functional, kAutogradDoor);
  ops::copy_(self, fresh.tensor());
}

[[noreturn]] void fail_out(const Invocation& inv) {
  fail(ErrorKind::Runtime, "", inv.op->name(),
       "(): functions with out=... arguments don't support automatic differentiation, but one of "
       "the arguments requires grad.");
}

bool any_result_requires_grad(const Invocation& inv) {
  bool found = false;
  for_each_tensor(inv.results, inv.result_count,
                  [&](const Tensor& out) { found = found || out.requires_grad(); });
  return found;
}

void record(Invocation& inv) {
  const Operator& op = *inv.op;
  switch (inv.form) {
    case Form::Functional:
      if (op.kind == Kind::Composition && op.differentiable) {
        uint64_t first_node = next_node_number();
        pass(inv, kAutogradDoor);
        name_results(inv, first_node);
      } else {
        record_functional(inv);
      }
      return;
    case Form::Inplace:
      if (op.kind == Kind::Composition) {
        uint64_t first_node = next_node_number();
        record_inplace_composition(inv);
        name_results(inv, first_node);
      } else {
        record_inplace(inv);
      }
      return;
    case Form::Out:
      if (op.differentiable || (any_result_requires_grad(inv) && (op.variants & kLeafOut) == 0)) {
        fail_out(inv);
      }
      pass(inv, kAutogradDoor);
      return;
  }
}

void autograd_door(Invocation& inv) {
  const ThreadState& state = thread_state;
  if (inv.form != Form::Functional && inv.results[0].is_tensor()) {
    check_inference_write(inv.results[0].tensor());
  }
  if (state.grad_mode && any_requires_grad(inv)) {
    record(inv);
    return;
  }
  pass(inv, kAutogradDoor);
  if (inv.op->kind == Kind::View && inv.form == Form::Functional) {
    Creation creation = state.grad_mode        ? Creation::Default
                        : state.inference_mode ? Creation::Inference
                                               : Creation::NoGrad;
    track_views(inv, creation);
  }
}

const bool installed = (install_door(kAutogradDoor, autograd_door), true);

}  // namespace
}  // namespace rushlight::autograd
