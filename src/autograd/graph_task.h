// One backward call: the nodes it reaches, what each still waits for, and the gradients so far.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "autograd/engine.h"
#include "autograd/operators.h"

namespace rushlight::autograd {

// Node -> its number in a task. Open addressing; nodes are never taken out.
class NodeIndex {
 public:
  NodeIndex() : slots_(32) {}
  int find(const Node* node) const;  // -1 where it is not there
  // The node's number, `fresh` where it was not there.
  int insert(const Node* node, int fresh);

 private:
  struct Slot {
    const Node* node = nullptr;
    int number = -1;
  };
  size_t start(const Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9E3779B97F4A7C15ull >> 32 &
           (slots_.size() - 1);
  }
  void grow();

  std::vector<Slot> slots_;  // a power of two
  size_t used_ = 0;
};

class GraphTask {
 public:
  GraphTask(const std::vector<Edge>& roots, const std::vector<Edge>& inputs,
            const BackwardOptions& options);
  TensorList run(TensorList gradients);
  bool is_wanted(const Node* node) const {
    int number = index_.find(node);
    return !pruned_ || number < 0 || states_[static_cast<size_t>(number)].is_input ||
           states_[static_cast<size_t>(number)].runs;
  }
  bool reaches(const Node* node) const { return index_.find(node) >= 0; }
  uint64_t id() const { return id_; }
  bool keeps_graph() const { return options_.retain_graph; }
  void add_callback(std::function<void()> function) { callbacks_.push_back(std::move(function)); }
  const BackwardOptions& options() const { return options_; }

 private:
  struct State {
    Node* node;
    int waits_for = 0;      // edges into it whose gradients have not come
    size_t first_edge = 0;  // its edges' targets in targets_
    bool runs = true;       // false: no wanted gradient lies behind it
    bool is_input = false;
    TensorList gradients;
  };
  struct Capture {
    int state;
    uint32_t input;
    size_t position;  // in the result
  };

  int reach(Node* node);
  void discover();
  void prune(const std::vector<Edge>& inputs);
  void add_gradient(int target, uint32_t input, Tensor gradient);
  void make_ready(int number) {
    ready_.push({states_[static_cast<size_t>(number)].node->sequence(), -number});
  }
  void step(int number);
  void pass_on(int number, TensorList outgoing);
  void capture(int number, const TensorList& gradients);

  const std::vector<Edge>& roots_;
  BackwardOptions options_;
  bool pruned_;
  uint64_t id_;
  NodeIndex index_;
  std::vector<State> states_;
  std::vector<int> targets_;
  std::vector<Capture> captures_;
  TensorList captured_;
  // Greatest sequence first; among equals the one reached first.
  std::priority_queue<std::pair<uint64_t, int>> ready_;
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace rushlight::autograd
