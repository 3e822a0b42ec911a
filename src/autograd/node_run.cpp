#include "autograd/node_run.h"

#include "autograd/accumulate_grad.h"
#include "autograd/operators.h"
#include "ops/invocation.h"

namespace rushlight::autograd {

// Meta tensors are pending for ever, and nobody holds them.
uint32_t (*pending_holders)(StorageImpl* storage) = [](StorageImpl*) { return uint32_t{1}; };

namespace {

thread_local Node* current_node __attribute__((tls_model("initial-exec"))) = nullptr;

class RunningNode {
 public:
  explicit RunningNode(Node* node) : previous_(current_node) { current_node = node; }
  ~RunningNode() { current_node = previous_; }
  RunningNode(const RunningNode&) = delete;

 private:
  Node* previous_;
};

template <typename F>
std::vector<Hook<F>> copy_hooks(NodeExtra& extra, const std::vector<Hook<F>>& hooks) {
  std::lock_guard lock(extra.mutex);
  return hooks;
}

void check_gradient_list(const Node& node, TensorList& outgoing) {
  uint32_t expected = node.edge_count();
  if (outgoing.size() > expected) {
    for (size_t i = expected; i < outgoing.size(); ++i) {
      if (outgoing[i].defined()) {
        fail(ErrorKind::Runtime, "", "Function ", node.name(),
             " returned an incorrect number of gradients (expected ", expected, ", got ",
             outgoing.size(), ")");
      }
    }
  }
  outgoing.resize(expected);
  for (uint32_t i = 0; i < expected; ++i) {
    const Edge& edge = node.edge(i);
    if (!edge || !outgoing[i].defined()) {
      continue;
    }
    InputMetadata wanted = edge.node->input(edge.input);
    const Tensor& gradient = outgoing[i];
    if (gradient.sizes() == wanted.sizes && wanted.fits(gradient.dtype()) &&
        gradient.device() == wanted.device) {
      continue;
    }
    fit_gradient(outgoing[i], wanted,
                 cat("Function ", node.name(), " returned an invalid gradient at index ", i));
  }
}

void print_forward_trace(const Node& node) {
  NodeExtra* extra = node.extra();
  if (extra == nullptr || extra->forward_trace.empty()) {
    warn(cat("Error detected in ", node.name(),
             ". No forward pass information available. Enable detect anomaly during forward pass "
             "for more information."));
    return;
  }
  warn(cat("Error detected in ", node.name(),
           ". Traceback of forward call that caused the error:\n", extra->forward_trace));
  std::string name = node.name();
  for (Node* parent = extra->forward_parent.get(); parent != nullptr;) {
    NodeExtra* above = parent->extra();
    if (above == nullptr || above->forward_trace.empty()) {
      warn(cat("\n\nPrevious calculation was induced by ", parent->name(),
               ". No forward pass information available."));
      return;
    }
    warn(cat("\n\nPrevious calculation was induced by ", parent->name(),
             ". Traceback of forward call that induced the previous calculation:\n",
             above->forward_trace));
    parent = above->forward_parent.get();
  }
}

void check_nan(const Node& node, const TensorList& outgoing) {
  AutoGradMode off(false);
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (outgoing[i].defined() && ops::has_nan(outgoing[i])) {
      fail(ErrorKind::Runtime, "", "Function '", node.name(), "' returned nan values in its ", i,
           "th output.");
    }
  }
}

TensorList run_checked(Node& node, TensorList incoming) {
  TensorList outgoing = node.apply(std::move(incoming));
  check_gradient_list(node, outgoing);
  if (thread_state.anomaly_mode && anomaly_checks_nan()) {
    check_nan(node, outgoing);
  }
  return outgoing;
}

TensorList run_with_hooks(Node& node, NodeExtra& extra, TensorList incoming) {
  for (const Hook<PreHook>& hook : copy_hooks(extra, extra.pre_hooks)) {
    if (*hook.alive) {
      if (std::optional<TensorList> changed = hook.function(incoming)) {
        incoming = std::move(*changed);
      }
    }
  }
  std::vector<Hook<PostHook>> post_hooks = copy_hooks(extra, extra.post_hooks);
  TensorList kept = post_hooks.empty() ? TensorList() : incoming;
  TensorList outgoing = run_checked(node, std::move(incoming));
  for (const Hook<PostHook>& hook : post_hooks) {
    if (*hook.alive) {
      if (std::optional<TensorList> changed = hook.function(outgoing, kept)) {
        outgoing = std::move(*changed);
      }
    }
  }
  return outgoing;
}

}  // namespace

Node* running_node() {
  return current_node;
}

void fit_gradient(Tensor& gradient, const InputMetadata& wanted, const std::string& where) {
  if (!(gradient.sizes() == wanted.sizes)) {
    if (!ops::is_expandable(wanted.sizes, gradient.sizes())) {
      fail(ErrorKind::Runtime, "", where, " - got ", gradient.sizes(),
           " but expected shape compatible with ", wanted.sizes);
    }
    gradient = ops::sum_to_size(gradient, wanted.sizes);
  }
  if (!wanted.fits(gradient.dtype())) {
    if (is_complex(gradient.dtype()) && !is_complex(wanted.dtype)) {
      fail(ErrorKind::Runtime, "", where, " - got a complex gradient but expected ", wanted.dtype);
    }
    gradient = ops::to_dtype(gradient, wanted.dtype);
  }
  if (!(gradient.device() == wanted.device)) {
    fail(ErrorKind::Runtime, "", where, " - expected device ", wanted.device.to_string(),
         " but got ", gradient.device().to_string());
  }
}

void run_input_hooks(Node& node, NodeExtra& extra, TensorList& gradients) {
  std::vector<NodeExtra::InputHook> hooks;
  {
    std::lock_guard lock(extra.mutex);
    hooks = extra.input_hooks;
  }
  for (const NodeExtra::InputHook& entry : hooks) {
    Tensor& gradient = gradients[entry.input];
    if (*entry.hook.alive && gradient.defined()) {
      Tensor changed = entry.hook.function(gradient);
      if (changed.defined()) {
        gradient = std::move(changed);
      }
    }
  }
  std::lock_guard lock(extra.mutex);
  for (const NodeExtra::Retain& retain : extra.retains) {
    const Tensor& gradient = gradients[retain.input];
    if (gradient.defined()) {
      Tensor& grad = retain.meta->grad;
      grad = grad.defined()           ? ops::add(grad, gradient)
             : thread_state.grad_mode ? gradient
                                      : ops::clone(gradient);
    }
  }
}

TensorList run_node(Node& node, TensorList incoming, bool keep_saved) {
  RunningNode running(&node);
  TensorList outgoing;
  try {
    NodeExtra* extra = node.extra();
    outgoing = extra == nullptr ? run_checked(node, std::move(incoming))
                                : run_with_hooks(node, *extra, std::move(incoming));
  } catch (...) {
    if (thread_state.anomaly_mode) {
      print_forward_trace(node);
    }
    throw;
  }
  if (!keep_saved) {
    node.release_saved();
  }
  return outgoing;
}

}  // namespace rushlight::autograd
