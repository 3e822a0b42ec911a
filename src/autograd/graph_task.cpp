#include "autograd/graph_task.h"

#include "autograd/meta.h"
#include "autograd/node_run.h"
#include "ops/invocation.h"

namespace rushlight::autograd {

int NodeIndex::find(const Node* node) const {
  for (size_t at = start(node);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].node == node) {
      return slots_[at].number;
    }
    if (slots_[at].node == nullptr) {
      return -1;
    }
  }
}

int NodeIndex::insert(const Node* node, int fresh) {
  if (2 * used_ >= slots_.size()) {
    grow();
  }
  for (size_t at = start(node);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].node == node) {
      return slots_[at].number;
    }
    if (slots_[at].node == nullptr) {
      slots_[at] = {node, fresh};
      ++used_;
      return fresh;
    }
  }
}

void NodeIndex::grow() {
  std::vector<Slot> old(slots_.size() * 4);
  old.swap(slots_);
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.node != nullptr) {
      insert(slot.node, slot.number);
    }
  }
}

namespace {
std::atomic<uint64_t> last_id{0};
}

GraphTask::GraphTask(const std::vector<Edge>& roots, const std::vector<Edge>& inputs,
                     const BackwardOptions& options)
    : roots_(roots), options_(options), pruned_(!inputs.empty()), id_(++last_id) {
  states_.reserve(16);  // small graphs grow nothing
  targets_.reserve(32);
  discover();
  if (pruned_) {
    prune(inputs);
  }
}

int GraphTask::reach(Node* node) {
  int fresh = static_cast<int>(states_.size());
  int number = index_.insert(node, fresh);
  if (number == fresh) {
    states_.push_back({node});
  }
  return number;
}

// Numbers all nodes behind the roots, nearest first, and counts the edges into each.
void GraphTask::discover() {
  for (const Edge& root : roots_) {
    reach(root.node.get());
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    Node* node = states_[i].node;
    states_[i].first_edge = targets_.size();
    for (uint32_t k = 0; k < node->edge_count(); ++k) {
      const Edge& edge = node->edge(k);
      int target = edge ? reach(edge.node.get()) : -1;
      targets_.push_back(target);
      if (target >= 0) {
        ++states_[static_cast<size_t>(target)].waits_for;
      }
    }
  }
}

// Leaves out what no input lies behind.
void GraphTask::prune(const std::vector<Edge>& inputs) {
  for (State& state : states_) {
    state.runs = false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    int number = inputs[i] ? index_.find(inputs[i].node.get()) : -1;
    if (number < 0) {
      continue;
    }
    State& state = states_[static_cast<size_t>(number)];
    state.is_input = true;
    state.runs = options_.accumulate && state.node->edge_count() == 0;
    captures_.push_back({number, inputs[i].input, i});
  }
  captured_.resize(inputs.size());
  // In an order where each node comes after those its edges lead to.
  std::vector<int> waits(states_.size());
  std::vector<int> order;
  order.reserve(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    waits[i] = states_[i].waits_for;
    if (waits[i] == 0) {
      order.push_back(static_cast<int>(i));
    }
  }
  auto for_targets = [&](int number, auto&& visit) {
    const State& state = states_[static_cast<size_t>(number)];
    for (uint32_t k = 0; k < state.node->edge_count(); ++k) {
      int target = targets_[state.first_edge + k];
      if (target >= 0) {
        visit(target);
      }
    }
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for_targets(order[i], [&](int target) {
      if (--waits[static_cast<size_t>(target)] == 0) {
        order.push_back(target);
      }
    });
  }
  for (size_t i = order.size(); i-- > 0;) {
    State& state = states_[static_cast<size_t>(order[i])];
    for_targets(order[i], [&](int target) {
      const State& behind = states_[static_cast<size_t>(target)];
      state.runs = state.runs || behind.runs || behind.is_input;
    });
  }
}

void GraphTask::add_gradient(int target, uint32_t input, Tensor gradient) {
  State& state = states_[static_cast<size_t>(target)];
  if (state.gradients.empty()) {
    state.gradients.resize(state.node->input_count());
  }
  Tensor& slot = state.gradients[input];
  if (!gradient.defined()) {
    return;
  }
  if (!slot.defined()) {
    slot = std::move(gradient);
    return;
  }
  // Written in place where nobody else can see it.
  if (!thread_state.grad_mode && is_sole_owner(slot) && slot.is_contiguous() &&
      slot.dtype() == gradient.dtype()) {
    ops::add_(slot, gradient);
  } else if (!thread_state.grad_mode && is_sole_owner(gradient) && gradient.is_contiguous() &&
             slot.dtype() == gradient.dtype()) {
    ops::add_(gradient, slot);
    slot = std::move(gradient);
  } else {
    slot = ops::add(slot, gradient);
  }
}

namespace {

// The backward of what was captured is captured too, from the first such node on.
class CaptureScope {
 public:
  CaptureScope() = default;
  CaptureScope(const CaptureScope&) = delete;
  ~CaptureScope() {
    if (open_) {
      close_capture(true);
    }
  }
  void enter(const Node& node) {
    if (node.capture() != 0 && !open_ && (thread_state.capture == 0 || !begun_)) {
      begun_ = true;
      open_ = open_capture(node.capture());
    }
  }
  void close() {
    if (open_) {
      open_ = false;
      close_capture(false);
    }
  }

 private:
  bool begun_ = false;
  bool open_ = false;
};

}  // namespace

TensorList GraphTask::run(TensorList gradients) {
  for (size_t i = 0; i < roots_.size(); ++i) {
    add_gradient(index_.find(roots_[i].node.get()), roots_[i].input, std::move(gradients[i]));
  }
  gradients.clear();
  for (const Edge& root : roots_) {
    int number = index_.find(root.node.get());
    State& state = states_[static_cast<size_t>(number)];
    if (state.waits_for == 0) {
      state.waits_for = -1;  // a root given twice runs once
      make_ready(number);
    }
  }
  CaptureScope capture;
  while (!ready_.empty()) {
    int number = -ready_.top().second;
    ready_.pop();
    capture.enter(*states_[static_cast<size_t>(number)].node);
    step(number);
  }
  // Callbacks may add callbacks.
  for (size_t i = 0; i < callbacks_.size(); ++i) {
    std::function<void()> callback = std::move(callbacks_[i]);
    callback();
  }
  capture.close();
  return std::move(captured_);
}

void GraphTask::step(int number) {
  Node* node = states_[static_cast<size_t>(number)].node;
  TensorList incoming = std::move(states_[static_cast<size_t>(number)].gradients);
  if (incoming.empty()) {
    incoming.resize(node->input_count());
  }
  bool runs = states_[static_cast<size_t>(number)].runs;
  if (NodeExtra* extra = node->extra()) {
    run_input_hooks(*node, *extra, incoming);
  }
  if (states_[static_cast<size_t>(number)].is_input) {
    capture(number, incoming);
  }
  if (runs) {
    pass_on(number, run_node(*node, std::move(incoming), options_.retain_graph));
  }
}

void GraphTask::capture(int number, const TensorList& gradients) {
  for (const Capture& capture : captures_) {
    if (capture.state == number) {
      captured_[capture.position] = gradients[capture.input];
    }
  }
}

void GraphTask::pass_on(int number, TensorList outgoing) {
  const State& state = states_[static_cast<size_t>(number)];
  Node* node = state.node;
  size_t first = state.first_edge;
  for (uint32_t k = 0; k < node->edge_count(); ++k) {
    int target = targets_[first + k];
    if (target < 0) {
      continue;
    }
    State& next = states_[static_cast<size_t>(target)];
    if (next.runs || next.is_input) {
      add_gradient(target, node->edge(k).input,
                   k < outgoing.size() ? std::move(outgoing[k]) : Tensor());
    }
    if (--next.waits_for == 0) {
      make_ready(target);
    }
  }
}

}  // namespace rushlight::autograd
