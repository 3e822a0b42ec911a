#include "compile/passes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ops/operator.h"
#include "runtime/log.h"

namespace rushlight::compiler {
namespace {

// The passes that RUSHLIGHT_PASSES switches off. Error(Value) for what is no pass.
std::vector<std::string_view> switched_off() {
  const char* given = std::getenv("RUSHLIGHT_PASSES");
  std::string_view rest = given == nullptr ? "" : given;
  std::vector<std::string_view> off;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    bool known = false;
    for (const Pass& pass : all_passes()) {
      known = known || (word.starts_with('-') && word.substr(1) == pass.name);
    }
    if (!known) {
      fail(ErrorKind::Value, "compile", "RUSHLIGHT_PASSES has '", word,
           "': expected '-' and the name of a pass, such as -fusion");
    }
    off.push_back(word.substr(1));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return off;
}

}  // namespace

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
      {"dead-code", "leaves out what nobody sees", eliminate_dead_code},
      {"common-subexpressions", "runs equal calls once", merge_common_subexpressions},
      {"recomputation", "makes activations again in backward, where memory is short",
       remake_activations},
      {"fusion", "joins operators over one iteration space into kernels", fuse_by_space},
      {"matmul-epilogue",
       "runs kernels on blocks of a matrix product while these are in the caches", join_products},
      {"memory", "lets results take the memory of what is read for the last time", reuse_memory},
  };
  return passes;
}

bool draws(const graph::Node& node) {
  for (const Argument& argument : node.op->schema.arguments) {
    if (argument.type == SchemaType::Generator || argument.name.starts_with("dropout")) {
      return true;
    }
  }
  const std::string& family = node.op->family;
  return family == "random" || family == "dropout" || family == "multinomial";
}

bool is_pure(const graph::Node& node) {
  if (node.form != Form::Functional || node.result_count == 0 || draws(node)) {
    return false;
  }
  for (const Argument& argument : node.op->schema.arguments) {
    if (argument.written) {
      return false;
    }
  }
  return true;
}

Draft plan_graph(const graph::Graph& graph, std::vector<bool> live, Activations activations) {
  Draft draft;
  draft.graph = graph;
  draft.live = std::move(live);
  draft.activations = std::move(activations);
  draft.dropped.resize(graph.nodes.size());
  const std::vector<std::string_view> off = switched_off();
  for (const Pass& pass : all_passes()) {
    if (std::find(off.begin(), off.end(), pass.name) != off.end()) {
      continue;
    }
    double start = now_ms();
    int changes = pass.run(draft);
    if (is_logged("passes")) {
      std::fprintf(stderr, "[passes] %s: %d changes in %.3f ms\n", std::string(pass.name).c_str(),
                   changes, now_ms() - start);
    }
  }
  if (draft.groups.empty()) {  // fusion is off
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!is_view(graph.nodes[i]) && !draft.dropped[i]) {
        draft.groups.push_back({{static_cast<int>(i)}, false, {}});
      }
    }
  }
  return draft;
}

}  // namespace rushlight::compiler
