#include <algorithm>
#include <optional>

#include "compile/fused.h"
#include "compile/passes.h"
#include "graph/execute.h"
#include "ops/elementwise_expression.h"
#include "ops/iteration.h"
#include "ops/operator.h"
#include "ops/rows_body.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Node;

constexpr size_t kMostNodes = 96;
// Cycles an element: writing a value to memory and reading it back costs about as much.
constexpr double kMostRepeated = 2.4;
constexpr size_t kMostPlaces = kMaxOperands - 2;

class BitSet {
 public:
  void set(size_t bit) {
    if (words_.size() <= bit / 64) {
      words_.resize(bit / 64 + 1);
    }
    words_[bit / 64] |= uint64_t{1} << bit % 64;
  }
  bool has(size_t bit) const {
    return bit / 64 < words_.size() && (words_[bit / 64] >> bit % 64 & 1) != 0;
  }
  void join(const BitSet& other) {
    if (words_.size() < other.words_.size()) {
      words_.resize(other.words_.size());
    }
    for (size_t i = 0; i < other.words_.size(); ++i) {
      words_[i] |= other.words_[i];
    }
  }

 private:
  std::vector<uint64_t> words_;
};

// Whether one space serves both; `joined` is it. Where only one has an axis, the other's nodes may
// be full or reduced there.
bool join_spaces(const Space& a, const Space& b, Space* joined) {
  if (a.axis.empty() && b.axis.empty()) {
    *joined = a;
    return IntArrayRef(a.shape) == IntArrayRef(b.shape);
  }
  if (!a.axis.empty() && !b.axis.empty()) {
    *joined = a;
    return IntArrayRef(a.shape) == IntArrayRef(b.shape) &&
           IntArrayRef(a.axis) == IntArrayRef(b.axis);
  }
  const Space& rows = a.axis.empty() ? b : a;
  const Space& points = a.axis.empty() ? a : b;
  *joined = rows;
  return fit_shape(rows, points.shape).has_value();
}

class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<bool>& live, const std::vector<bool>& dropped)
      : graph_(graph),
        live_(live),
        dropped_(dropped),
        users_(users_of(graph, dropped)),
        group_of_(graph.nodes.size(), -1),
        history_(graph.storages.size()) {}

  std::vector<Group> run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_view(graph_.nodes[i]) && !dropped_[i]) {
        add(static_cast<int>(i));
      }
    }
    return ordered();
  }

 private:
  struct State {
    Group group;
    double repeated = 0;
    BitSet before;  // groups that must run first, through others too
    bool alive = true;
  };
  struct History {
    int writer = -1;           // node
    std::vector<int> readers;  // since
  };

  State& state(int group) { return states_[static_cast<size_t>(group)]; }

  std::vector<int> dependences(const Node& node) const {
    std::vector<int> groups;
    auto need = [&](int other) {
      if (other < 0) {
        return;
      }
      int group = group_of_[static_cast<size_t>(other)];
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) {
        groups.push_back(group);
      }
    };
    auto storage = [&](int value) -> const History& {
      return history_[static_cast<size_t>(graph_.value(value).storage)];
    };
    if (draws(node)) {
      need(last_draw_);
    }
    for_each_operand(graph_, node, [&](int value) { need(storage(value).writer); });
    for_each_result(graph_, node, [&](int value) {
      need(storage(value).writer);
      for (int reader : storage(value).readers) {
        need(reader);
      }
    });
    return groups;
  }

  void remember(int number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    if (draws(node)) {
      last_draw_ = number;
    }
    for_each_operand(graph_, node, [&](int value) {
      history_[static_cast<size_t>(graph_.value(value).storage)].readers.push_back(number);
    });
    for_each_result(graph_, node, [&](int value) {
      History& history = history_[static_cast<size_t>(graph_.value(value).storage)];
      history.writer = number;
      history.readers.clear();
    });
  }

  void add(int number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    std::vector<int> needs = dependences(node);
    int made = static_cast<int>(states_.size());
    State fresh;
    fresh.group.nodes = {number};
    for (int need : needs) {
      fresh.before.set(static_cast<size_t>(need));
      fresh.before.join(state(need).before);
    }
    if (std::optional<Wanted> wanted = wanted_space(graph_, node)) {
      fresh.group.fuses = true;
      fresh.group.space = {wanted->shape, wanted->axis};
      if (!wanted->axis.empty()) {
        fresh.repeated = repeated_cost(graph_, {number}, fresh.group.space, stored({number}));
      }
    }
    states_.push_back(std::move(fresh));
    group_of_[static_cast<size_t>(number)] = made;
    remember(number);
    if (state(made).group.fuses) {
      // The nearest producers first: what they made is still at hand.
      std::sort(needs.rbegin(), needs.rend());
      for (int need : needs) {
        if (try_merge(need, made)) {
          made = need;
        }
      }
    }
  }

  // Makes `b` a part of `a` where one kernel can do the work of both.
  bool try_merge(int a, int b) {
    State& first = state(a);
    State& second = state(b);
    Space joined;
    if (a == b || !first.alive || !first.group.fuses || !second.group.fuses ||
        first.group.nodes.size() + second.group.nodes.size() > kMostNodes ||
        !join_spaces(first.group.space, second.group.space, &joined) || between(a, b) ||
        between(b, a)) {
      return false;
    }
    std::vector<int> nodes(first.group.nodes);
    nodes.insert(nodes.end(), second.group.nodes.begin(), second.group.nodes.end());
    std::sort(nodes.begin(), nodes.end());
    if (!is_sound(nodes, joined)) {
      return false;
    }
    double repeated = 0;
    if (!joined.axis.empty()) {
      repeated = repeated_cost(graph_, nodes, joined, stored(nodes));
      if (repeated > first.repeated + second.repeated + kMostRepeated) {
        return false;
      }
    }
    first.repeated = repeated;
    first.group.nodes = nodes;
    first.group.space = joined;
    for (int node : nodes) {
      group_of_[static_cast<size_t>(node)] = a;
    }
    second.alive = false;
    absorb(a, b);
    return true;
  }

  std::function<bool(int)> stored(const std::vector<int>& nodes) const {
    return [&](int storage) { return is_stored(storage, nodes, users_, live_); };
  }

  // Whether a third group must run after `a` and before `b`.
  bool between(int a, int b) {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].alive && static_cast<int>(i) != a && static_cast<int>(i) != b &&
          states_[i].before.has(static_cast<size_t>(a)) && state(b).before.has(i)) {
        return true;
      }
    }
    return false;
  }

  void absorb(int a, int b) {
    BitSet before = state(a).before;
    before.join(state(b).before);
    state(a).before = before;
    auto first = static_cast<size_t>(a);
    auto second = static_cast<size_t>(b);
    for (size_t i = 0; i < states_.size(); ++i) {
      if (i != first && states_[i].alive &&
          (states_[i].before.has(first) || states_[i].before.has(second))) {
        states_[i].before.set(first);
        states_[i].before.join(before);
      }
    }
  }

  // Whether what the nodes write is read among them at the same point only, and there is room.
  bool is_sound(const std::vector<int>& nodes, const Space& space) const {
    std::vector<Place> read;
    std::vector<Place> written;
    auto enter = [](std::vector<Place>& list, Place place) {
      if (std::find(list.begin(), list.end(), place) == list.end()) {
        list.push_back(std::move(place));
      }
    };
    bool sound = true;
    for (int number : nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      std::optional<Fit> fit = node_fit(graph_, node, space);
      if (!fit) {
        return false;
      }
      for_each_operand(graph_, node, [&](int value) {
        Place place = place_of(graph_.value(value), space, *fit);
        sound = sound && axis_stride(place, space).has_value();
        enter(read, std::move(place));
      });
      for (int i = 0; i < node.result_count; ++i) {
        int value = graph_.result(node, i);
        if (value < 0) {
          return false;
        }
        std::optional<Fit> at = result_fit(graph_, node, i, space);
        sound = sound && at.has_value();
        if (sound) {
          enter(written, place_of(graph_.value(value), space, *at));
        }
      }
    }
    if (!sound) {
      return false;
    }
    // What is written and read among them alone needs no memory.
    std::vector<Place> places;
    for (const Place& place : written) {
      if (is_stored(place.storage, nodes, users_, live_)) {
        places.push_back(place);
      }
    }
    for (const Place& place : read) {
      if (std::find(written.begin(), written.end(), place) == written.end()) {
        places.push_back(place);
      }
    }
    if (places.size() > kMostPlaces || !keeps_order(nodes, space, places)) {
      return false;
    }
    for (size_t i = 0; i < written.size(); ++i) {
      for (const Place& place : read) {
        sound = sound && (place.storage != written[i].storage || place == written[i]);
      }
      for (size_t k = 0; k < i; ++k) {
        sound = sound && written[k].storage != written[i].storage;
      }
    }
    return sound;
  }

  // Whether every reduction combines in the order that it has alone, which memory decides.
  bool keeps_order(const std::vector<int>& nodes, const Space& space,
                   const std::vector<Place>& places) const {
    if (space.axis.empty()) {
      return true;
    }
    bool columns = reduces_columns(places, space);
    for (int number : nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(number)];
      if (is_pointwise(node)) {
        continue;
      }
      if (node_reduces_columns(graph_, node, space) != columns) {
        return false;
      }
    }
    return true;
  }

  std::vector<Group> ordered() {
    std::vector<int> alive;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].alive) {
        alive.push_back(static_cast<int>(i));
      }
    }
    std::vector<Group> made;
    std::vector<bool> done(states_.size());
    // By the first node of those that are ready: near to the order of the program.
    std::sort(alive.begin(), alive.end(), [&](int a, int b) {
      return state(a).group.nodes.front() < state(b).group.nodes.front();
    });
    while (made.size() < alive.size()) {
      size_t before = made.size();
      for (int at : alive) {
        if (done[static_cast<size_t>(at)] || !ready(at, alive, done)) {
          continue;
        }
        done[static_cast<size_t>(at)] = true;
        Group group = state(at).group;
        group.fuses = group.fuses && group.nodes.size() > 1 && shape_value(graph_, group) >= 0;
        made.push_back(std::move(group));
        break;
      }
      RUSHLIGHT_ASSERT(made.size() > before);
    }
    return made;
  }

  bool ready(int at, const std::vector<int>& alive, const std::vector<bool>& done) {
    for (int other : alive) {
      if (!done[static_cast<size_t>(other)] && other != at &&
          state(at).before.has(static_cast<size_t>(other))) {
        return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<bool>& live_;
  const std::vector<bool>& dropped_;
  Users users_;
  std::vector<State> states_;
  std::vector<int> group_of_;
  int last_draw_ = -1;  // node
  std::vector<History> history_;
};

}  // namespace

Users users_of(const Graph& graph, const std::vector<bool>& dropped) {
  Users users(graph.storages.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_view(graph.nodes[i]) || dropped[i]) {
      continue;
    }
    auto use = [&](int value) {
      std::vector<int>& list = users[static_cast<size_t>(graph.value(value).storage)];
      if (list.empty() || list.back() != static_cast<int>(i)) {
        list.push_back(static_cast<int>(i));
      }
    };
    for_each_operand(graph, graph.nodes[i], use);
    for_each_result(graph, graph.nodes[i], use);
  }
  return users;
}

bool is_stored(int storage, const std::vector<int>& nodes, const Users& users,
               const std::vector<bool>& live) {
  if (live[static_cast<size_t>(storage)]) {
    return true;
  }
  for (int user : users[static_cast<size_t>(storage)]) {
    if (!std::binary_search(nodes.begin(), nodes.end(), user)) {
      return true;
    }
  }
  return false;
}

int fuse_by_space(Draft& draft) {
  draft.groups = Fuser(draft.graph, draft.live, draft.dropped).run();
  return static_cast<int>(std::count_if(draft.groups.begin(), draft.groups.end(),
                                        [](const Group& group) { return group.fuses; }));
}

}  // namespace rushlight::compiler
