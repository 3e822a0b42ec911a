// Chooses what of the results that autograd saved is made again in backward instead of kept.
//
// A result may be made again where its operator is cheap, and what that reads is kept for backward
// anyway or may be made again itself. By a model of memory and time, what saves most bytes for the
// time that it costs goes first, until no more is kept than the budget says: 1 keeps all, 0 nothing
// that may be made again. With 1 too, what takes no longer to make than to write and to read is
// made again, where all that reads it can be fused with it.
#include <algorithm>
#include <cstdio>

#include "compile/fused.h"
#include "compile/passes.h"
#include "runtime/log.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Node;

// Of one core, roughly.
constexpr double kBytesPerSecond = 1e10;
constexpr double kCyclesPerSecond = 3e9;
// How many results may have to be made for one: chains are walked by recursion, and a long one
// costs memory where it is made again.
constexpr int kMostSteps = 16;
// What fits into a near cache costs nothing to keep.
constexpr double kLeastFree = 1 << 18;
constexpr double kNever = 1e9;

class Chooser {
 public:
  explicit Chooser(Draft& draft)
      : draft_(draft),
        graph_(draft.graph),
        writes_(draft.graph.storages.size()),
        maker_(draft.graph.storages.size(), -1),
        steps_(draft.graph.nodes.size()),
        chosen_(draft.graph.nodes.size()) {}

  int run() {
    count_writes();
    std::vector<Candidate> candidates;
    double most = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      auto number = static_cast<int>(i);
      steps_[i] = steps_of(number);
    }
    if (draft_.activations.budget >= 1) {
      return choose_free();
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      auto number = static_cast<int>(i);
      if (double bytes = steps_[i] != 0 ? saved_bytes(number) : 0; bytes != 0) {
        candidates.push_back({number, bytes, seconds_of(number)});
        most += bytes;
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.bytes * b.seconds > b.bytes * a.seconds;
                     });
    double wanted = (1 - draft_.activations.budget) * most;
    for (const Candidate& candidate : candidates) {
      if (saved_ >= wanted) {
        break;
      }
      saved_ += candidate.bytes;
      choose(candidate.node);
    }
    return apply(most);
  }

 private:
  struct Candidate {
    int node;
    double bytes;
    double seconds;
  };

  size_t storage(int value) const { return static_cast<size_t>(graph_.value(value).storage); }

  void count_writes() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (is_view(node) || draft_.dropped[i]) {
        continue;
      }
      for_each_result(graph_, node, [&](int value) {
        ++writes_[storage(value)];
        maker_[storage(value)] = static_cast<int>(i);
      });
    }
  }

  // Whether the storage is there for backward, unless it is made again.
  bool is_kept(size_t at) const {
    if (graph_.storages[at].input) {
      return writes_[at] == 0 && draft_.activations.lendable[at];
    }
    // What others see they may read, which would have all made at once.
    return writes_[at] == 1 && draft_.live[at] && draft_.activations.hidden[at];
  }

  // How many results are made where the node's are wanted; 0 where they cannot be made again.
  int steps_of(int number) const {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    if (is_view(node) || draft_.dropped[static_cast<size_t>(number)] || !is_pure(node) ||
        !wanted_space(graph_, node)) {
      return 0;
    }
    bool possible = true;
    for_each_result(graph_, node,
                    [&](int value) { possible = possible && writes_[storage(value)] == 1; });
    int steps = 1;
    for_each_operand(graph_, node, [&](int value) {
      size_t at = storage(value);
      int maker = writes_[at] == 1 ? maker_[at] : -1;
      int before = maker >= 0 && maker < number ? steps_[static_cast<size_t>(maker)] : 0;
      steps += before;
      bool remakes = before != 0 && (!draft_.live[at] || draft_.activations.hidden[at]);
      possible = possible && (is_kept(at) || remakes);
    });
    return possible && steps <= kMostSteps ? steps : 0;
  }

  double saved_bytes(int number) const {
    double bytes = 0;
    for_each_result(graph_, graph_.nodes[static_cast<size_t>(number)], [&](int value) {
      size_t at = storage(value);
      if (draft_.live[at] && draft_.activations.hidden[at]) {
        bytes += static_cast<double>(graph_.storages[at].bytes);
      }
    });
    return bytes;
  }

  // Chooses what is fused into what reads it, and takes less time there than memory would.
  int choose_free() {
    Users users = users_of(graph_, draft_.dropped);
    double most = 0;
    std::vector<double> cycles(graph_.nodes.size());  // to make it of what is kept
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (steps_[i] == 0 || !is_pointwise(node)) {
        continue;
      }
      auto number = static_cast<int>(i);
      size_t made = storage(graph_.result(node, 0));
      cycles[i] = node_cost(graph_, number);
      for_each_operand(graph_, node, [&](int value) {
        size_t at = storage(value);
        int maker = writes_[at] == 1 ? maker_[at] : -1;
        if (maker >= 0 && (!is_kept(at) || chosen_[static_cast<size_t>(maker)])) {
          cycles[i] += is_pointwise(graph_.nodes[static_cast<size_t>(maker)])
                           ? cycles[static_cast<size_t>(maker)]
                           : kNever;
        }
      });
      double bytes = saved_bytes(number);
      const graph::ValueInfo& value = graph_.value(graph_.result(node, 0));
      double through_memory =
          2.0 * static_cast<double>(element_size(value.dtype)) / kBytesPerSecond * kCyclesPerSecond;
      bool fuses = bytes >= kLeastFree && cycles[i] < through_memory;
      for (int user : users[made]) {
        fuses = fuses && is_pointwise(graph_.nodes[static_cast<size_t>(user)]) &&
                wanted_space(graph_, graph_.nodes[static_cast<size_t>(user)]);
      }
      if (fuses) {
        most += bytes;
        saved_ += bytes;
        choose(number);
      }
    }
    return apply(most);
  }

  // The time to make the node's results again, alone.
  double seconds_of(int number) const {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    double bytes = 0;
    double elements = 0;
    auto add = [&](int value) {
      const graph::ValueInfo& info = graph_.value(value);
      bytes += static_cast<double>(info.numel * element_size(info.dtype));
      elements = std::max(elements, static_cast<double>(info.numel));
    };
    for_each_operand(graph_, node, add);
    for_each_result(graph_, node, add);
    return bytes / kBytesPerSecond + elements * node_cost(graph_, number) / kCyclesPerSecond;
  }

  // The node's results are made again; so are those that it needs and nobody keeps.
  void choose(int number) {
    if (chosen_[static_cast<size_t>(number)]) {
      return;
    }
    chosen_[static_cast<size_t>(number)] = true;
    for_each_operand(graph_, graph_.nodes[static_cast<size_t>(number)], [&](int value) {
      if (!is_kept(storage(value))) {
        choose(maker_[storage(value)]);
      }
    });
  }

  int apply(double most) {
    double seconds = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!chosen_[i]) {
        continue;
      }
      seconds += seconds_of(static_cast<int>(i));
      for_each_result(graph_, graph_.nodes[i], [&](int value) {
        size_t at = storage(value);
        if (!draft_.live[at] || draft_.activations.hidden[at]) {
          draft_.remade.push_back({static_cast<int>(i), static_cast<int>(at)});
          draft_.live[at] = false;
        }
      });
    }
    if (!draft_.remade.empty()) {
      eliminate_dead_code(draft_);
    }
    if (is_logged("passes") && most != 0) {
      std::fprintf(stderr,
                   "[passes] recomputation: budget %.2f, %.3f of %.3f MB that may be made again "
                   "are not kept, for about %.3f ms\n",
                   draft_.activations.budget, saved_ / 1e6, most / 1e6, seconds * 1e3);
    }
    return static_cast<int>(draft_.remade.size());
  }

  Draft& draft_;
  const Graph& graph_;
  std::vector<int> writes_;  // by storage
  std::vector<int> maker_;
  std::vector<int> steps_;  // by node
  std::vector<bool> chosen_;
  double saved_ = 0;  // bytes
};

}  // namespace

int remake_activations(Draft& draft) {
  const std::vector<bool>& hidden = draft.activations.hidden;
  if (std::find(hidden.begin(), hidden.end(), true) == hidden.end()) {
    return 0;
  }
  return Chooser(draft).run();
}

}  // namespace rushlight::compiler
