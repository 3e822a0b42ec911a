#include "compile/compile.h"

#include <rushlight/profiler.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "compile/fused.h"
#include "compile/passes.h"
#include "graph/execute.h"
#include "ops/operator.h"
#include "runtime/log.h"
#include "runtime/parallel.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Segment;

struct Step {
  int node = -1;  // run by its operator, where fused is null
  std::unique_ptr<Fused> fused;
  std::vector<std::pair<int, int>> reuses;  // a storage it makes, and whose memory that takes
  std::vector<int> drops;                   // storages that no later step touches
};

// How segments of one structure are run.
struct Plan {
  std::vector<std::pair<int, int>> rewrites;
  std::vector<std::pair<int, int>> merges;
  std::vector<Reuse> reuses;
  std::vector<graph::Remade> remade;
  std::vector<Step> steps;
  int nodes = 0;
  int fused_nodes = 0;
};

std::atomic<int64_t> segments{0};
std::atomic<int64_t> plans_made{0};
std::atomic<int64_t> plan_hits{0};
std::atomic<int64_t> nodes_run{0};
std::atomic<int64_t> fused_nodes_run{0};
std::atomic<int64_t> fused_kernels_run{0};
std::atomic<int64_t> calls_run{0};
std::atomic<int64_t> remade_count{0};
std::atomic<int64_t> remade_bytes{0};

struct HashOfHash {
  size_t operator()(const graph::Hash& hash) const { return hash.low; }
};

// Plans by structure with sizes; and without, where one may serve other sizes.
struct Cache {
  std::mutex mutex;
  std::unordered_map<graph::Hash, std::shared_ptr<Plan>, HashOfHash> exact;
  std::unordered_map<graph::Hash, std::vector<std::shared_ptr<Plan>>, HashOfHash> alike;
};

// Programs of ever new sizes must not fill the memory.
constexpr size_t kMostSizes = 1 << 16;

Cache& cache() {
  static auto* made = new Cache;  // threads may outlive static objects
  return *made;
}

std::vector<bool> live_storages(const Segment& segment) {
  std::vector<bool> live(segment.storages.size());
  for (size_t i = 0; i < live.size(); ++i) {
    live[i] = segment.graph.storages[i].input || segment.is_live(static_cast<int>(i));
  }
  return live;
}

void mix_bits(graph::Hash& key, const std::vector<bool>& bits) {
  uint64_t word = 1;
  for (bool bit : bits) {
    if (word >> 62 != 0) {
      key.mix(word);
      word = 1;
    }
    word = word << 1 | (bit ? 1 : 0);
  }
  key.mix(word);
}

graph::Hash plan_key(const Segment& segment, const std::vector<bool>& live, bool sizes) {
  graph::Hash key = structural_hash(segment.graph, sizes);
  mix_bits(key, live);
  if (!segment.hidden.empty()) {
    key.mix(std::bit_cast<uint64_t>(segment.activation_memory_budget));
    mix_bits(key, segment.hidden);
    mix_bits(key, segment.lendable);
  }
  return key;
}

// How many groups may become kernels: RUSHLIGHT_BISECT, for finding the one that is wrong.
bool may_fuse(const Graph& graph, const Group& group) {
  static const char* given = std::getenv("RUSHLIGHT_BISECT");
  static std::atomic<int64_t> groups{0};
  if (given == nullptr) {
    return true;
  }
  int64_t number = ++groups;
  if (number > std::atoll(given)) {
    return false;
  }
  if (is_logged("bisect")) {
    std::string text;
    for (int node : group.nodes) {
      text += "  " + print(graph, graph.nodes[static_cast<size_t>(node)]) + "\n";
    }
    std::fprintf(stderr, "[bisect] %lld over %s\n%s", static_cast<long long>(number),
                 cat(IntArrayRef(group.space.shape)).c_str(), text.c_str());
  }
  return true;
}

std::shared_ptr<Plan> make_plan(const Segment& segment, const std::vector<bool>& live) {
  Draft draft = plan_graph(segment.graph, live,
                           {segment.activation_memory_budget, segment.hidden, segment.lendable});
  const Graph& graph = draft.graph;
  auto plan = std::make_shared<Plan>();
  plan->rewrites = draft.rewrites;
  plan->merges = draft.merges;
  plan->reuses = draft.reuses;
  plan->remade = draft.remade;
  Users users = users_of(graph, draft.dropped);
  std::vector<int> group_of(graph.nodes.size(), -1);
  for (size_t i = 0; i < draft.groups.size(); ++i) {
    for_each_node(draft.groups[i],
                  [&](int node) { group_of[static_cast<size_t>(node)] = static_cast<int>(i); });
  }
  std::vector<std::vector<int>> drops(draft.groups.size());
  for (size_t s = 0; s < users.size(); ++s) {
    int last = -1;
    for (int user : users[s]) {
      last = std::max(last, group_of[static_cast<size_t>(user)]);
    }
    if (last >= 0) {
      drops[static_cast<size_t>(last)].push_back(static_cast<int>(s));
    }
  }
  for (size_t i = 0; i < draft.groups.size(); ++i) {
    Group& group = draft.groups[i];
    const int count = static_cast<int>(group.nodes.size()) + (group.product >= 0 ? 1 : 0);
    plan->nodes += count;
    if (!group.fuses || !may_fuse(graph, group)) {
      for_each_node(group, [&](int node) {
        plan->steps.emplace_back();
        plan->steps.back().node = node;
      });
      plan->steps.back().drops = std::move(drops[i]);
      continue;
    }
    plan->fused_nodes += count;
    std::vector<bool> stored(graph.storages.size());
    for (size_t s = 0; s < stored.size(); ++s) {
      stored[s] = is_stored(static_cast<int>(s), group.nodes, users, draft.live);
    }
    Step step;
    step.fused = std::make_unique<Fused>(graph, std::move(group), stored);
    for (const Reuse& reuse : draft.reuses) {
      if (reuse.group == static_cast<int>(i)) {
        step.reuses.emplace_back(reuse.made, reuse.spent);
      }
    }
    step.drops = std::move(drops[i]);
    plan->steps.push_back(std::move(step));
  }
  return plan;
}

void compile_kernels(const Segment& segment, Plan& plan) {
  std::vector<Fused*> fused;
  for (Step& step : plan.steps) {
    if (step.fused != nullptr) {
      fused.push_back(step.fused.get());
    }
  }
  parallel_for(0, static_cast<int64_t>(fused.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      fused[static_cast<size_t>(i)]->prepare(segment);
    }
  });
}

std::string describe(const Graph& graph, const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    std::vector<int> nodes{step.node};
    if (step.fused != nullptr) {
      nodes.clear();
      for_each_node(step.fused->group(), [&](int node) { nodes.push_back(node); });
      text += cat("  kernel over ", IntArrayRef(step.fused->group().space.shape), " axis ",
                  IntArrayRef(step.fused->group().space.axis), "\n");
    }
    for (auto [made, spent] : step.reuses) {
      text += cat("    storage ", made, " in the memory of storage ", spent, "\n");
    }
    for (int node : nodes) {
      const graph::Node& at = graph.nodes[static_cast<size_t>(node)];
      text += cat(step.fused != nullptr ? "    " : "  ", print(graph, at));
      for_each_result(graph, at, [&](int value) {
        text += cat(" ", dtype_name(graph.value(value).dtype), " ",
                    IntArrayRef(graph.value(value).sizes));
      });
      text += "\n";
    }
  }
  return text;
}

// The lines of the program that the nodes came from, each once; none where no profile is on.
std::vector<std::string> lines_of(const Graph& graph, std::span<const int> nodes) {
  std::vector<std::string> lines;
  if (!profiler::is_on()) {
    return lines;
  }
  std::vector<bool> seen(graph.lines.size());
  for (int number : nodes) {
    const int line = graph.nodes[static_cast<size_t>(number)].line;
    if (line >= 0 && !seen[static_cast<size_t>(line)]) {
      seen[static_cast<size_t>(line)] = true;
      const std::string& text = graph.lines[static_cast<size_t>(line)];
      if (std::find(lines.begin(), lines.end(), text) == lines.end()) {
        lines.push_back(text);
      }
    }
  }
  return lines;
}

void rewrite(Graph& graph, const Plan& plan) {
  for (auto [operand, value] : plan.rewrites) {
    graph.operands[static_cast<size_t>(operand)] = value;
  }
}

// Whether a plan that was made for other sizes serves these.
bool serves(const Plan& plan, const Graph& graph) {
  auto node = [&](int number) -> const graph::Node& {
    return graph.nodes[static_cast<size_t>(number)];
  };
  for (auto [first, second] : plan.merges) {
    if (!same_attributes(graph, node(first), node(second))) {
      return false;
    }
  }
  for (const Reuse& reuse : plan.reuses) {
    if (!share_shape(graph.value(reuse.made_value),
                     graph.storages[static_cast<size_t>(reuse.made)].bytes,
                     graph.value(reuse.spent_value),
                     graph.storages[static_cast<size_t>(reuse.spent)].bytes)) {
      return false;
    }
  }
  for (const Step& step : plan.steps) {
    if (step.fused != nullptr && !step.fused->fits(graph)) {
      return false;
    }
  }
  return true;
}

// A plan that is there already, for these sizes or others; null where none serves.
std::shared_ptr<Plan> known_plan(const Segment& segment, const std::vector<bool>& live) {
  const Graph& graph = segment.graph;
  graph::Hash exact = plan_key(segment, live, true);
  std::vector<std::shared_ptr<Plan>> candidates;
  {
    std::lock_guard<std::mutex> lock(cache().mutex);
    auto found = cache().exact.find(exact);
    if (found != cache().exact.end()) {
      return found->second;
    }
    if (cache().alike.empty()) {
      return nullptr;
    }
  }
  graph::Hash alike = plan_key(segment, live, false);
  {
    std::lock_guard<std::mutex> lock(cache().mutex);
    auto near = cache().alike.find(alike);
    if (near != cache().alike.end()) {
      candidates = near->second;
    }
  }
  for (const std::shared_ptr<Plan>& plan : candidates) {
    Graph rewritten;
    const Graph* seen = &graph;
    if (!plan->rewrites.empty()) {
      rewritten = graph;
      rewrite(rewritten, *plan);
      seen = &rewritten;
    }
    if (serves(*plan, *seen)) {
      std::lock_guard<std::mutex> lock(cache().mutex);
      if (cache().exact.size() >= kMostSizes) {
        cache().exact.clear();
      }
      return cache().exact.emplace(exact, plan).first->second;
    }
  }
  return nullptr;
}

std::shared_ptr<Plan> find_plan(Segment& segment) {
  std::vector<bool> live = live_storages(segment);
  std::shared_ptr<Plan> known = std::static_pointer_cast<Plan>(segment.plan);
  known = known == nullptr ? known_plan(segment, live) : known;
  if (known != nullptr) {
    ++plan_hits;
    rewrite(segment.graph, *known);
    return known;
  }
  // Before operands are rewritten.
  graph::Hash exact = plan_key(segment, live, true);
  graph::Hash alike = plan_key(segment, live, false);
  double start = now_ms();
  std::shared_ptr<Plan> plan = make_plan(segment, live);
  double planned = now_ms();
  rewrite(segment.graph, *plan);
  compile_kernels(segment, *plan);
  ++plans_made;
  if (is_logged("graphs")) {
    std::fprintf(stderr, "[graphs]\n%s", print(segment.graph).c_str());
  }
  if (is_logged("plans")) {
    std::string text = describe(segment.graph, *plan);
    std::fprintf(
        stderr, "[plans] %d nodes in %zu steps; planned in %.2f ms, compiled in %.2f ms\n%s",
        plan->nodes, plan->steps.size(), planned - start, now_ms() - planned, text.c_str());
  }
  std::lock_guard<std::mutex> lock(cache().mutex);
  cache().alike[alike].push_back(plan);
  return cache().exact.emplace(exact, std::move(plan)).first->second;
}

}  // namespace

bool (*suppress_failure)(const Error& error) = nullptr;

void run(Segment& segment) {
  std::shared_ptr<Plan> plan;
  try {
    plan = find_plan(segment);
  } catch (const Error& error) {
    if (suppress_failure == nullptr || !suppress_failure(error)) {
      throw;
    }
    graph::execute(segment);
    return;
  }
  ++segments;
  nodes_run += plan->nodes;
  fused_nodes_run += plan->fused_nodes;
  for (const graph::Remade& remade : plan->remade) {
    if (segment.is_live(remade.storage)) {
      ++remade_count;
      remade_bytes +=
          static_cast<int64_t>(segment.graph.storages[static_cast<size_t>(remade.storage)].bytes);
    }
  }
  graph::keep_recipes(segment, plan->remade);
  for (Step& step : plan->steps) {
    if (step.fused != nullptr) {
      ++fused_kernels_run;
      for (auto [made, spent] : step.reuses) {
        if (spent == step.fused->product_storage(segment.graph)) {
          graph::allocate_storage(segment.storages[static_cast<size_t>(spent)]);
        }
        graph::take_memory(segment, made, spent);
      }
      profiler::Range range(step.fused->name(), lines_of(segment.graph, step.fused->group().nodes));
      step.fused->run(segment);
    } else {
      ++calls_run;
      profiler::Range range(segment.graph.nodes[static_cast<size_t>(step.node)].op->name(),
                            lines_of(segment.graph, {&step.node, 1}));
      graph::execute_node(segment, segment.graph.nodes[static_cast<size_t>(step.node)]);
    }
    for (int storage : step.drops) {
      graph::drop_storage(segment, storage);
    }
  }
}

bool is_planned(Segment& segment) {
  if (segment.plan == nullptr) {
    segment.plan = known_plan(segment, live_storages(segment));
  }
  return segment.plan != nullptr;
}

Statistics statistics() {
  return {segments,          plans_made, plan_hits,    nodes_run,   fused_nodes_run,
          fused_kernels_run, calls_run,  remade_count, remade_bytes};
}

void reset() {
  std::lock_guard<std::mutex> lock(cache().mutex);
  cache().exact.clear();
  cache().alike.clear();
}

}  // namespace rushlight::compiler
