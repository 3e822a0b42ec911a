// A costly value that a row's last reduction computes and that the row's store needs again, such as
// softmax's exponentials, is written to the output by the reduction and read back by the store.
#include <algorithm>

#include "codegen/lowering.h"

namespace rushlight::codegen {

using loop::Op;

// Whether all of `node` that varies along the vector axis comes from `staged`; with `contiguous`,
// loads that touch just their own position may vary too.
bool Lowering::decides(const Node* staged, const Node* node, bool contiguous) {
  if (node == staged || !analysis_.vectorised(analysis_.deps(node))) {
    return true;
  }
  if (node->op == Op::Load) {
    return contiguous && analysis_.motion(analysis_.access(node)) == Motion::Contiguous;
  }
  if (node->op == Op::Index || node->op == Op::LoadIf || node->op == Op::Scan) {
    return contiguous && node->op == Op::Index;
  }
  return std::all_of(node->inputs.begin(), node->inputs.end(),
                     [&](const Expr& input) { return decides(staged, input.node, contiguous); });
}

namespace {

bool contains(const Node* node, const Node* wanted, Analysis& analysis) {
  if (node == wanted) {
    return true;
  }
  if (!analysis.vectorised(analysis.deps(node))) {
    return false;
  }
  for (const Expr& input : node->inputs) {
    if (contains(input.node, wanted, analysis)) {
      return true;
    }
  }
  return false;
}

void heavy_nodes(const Node* node, Analysis& analysis, std::vector<const Node*>& out) {
  if (!analysis.vectorised(analysis.deps(node))) {
    return;
  }
  if (is_heavy(node->op) && node->dtype == DType::Float32) {
    out.push_back(node);
  }
  for (const Expr& input : node->inputs) {
    heavy_nodes(input.node, analysis, out);
  }
}

}  // namespace

// Only the last reductions may write to the output: it may be the input's memory, element for
// element, so nothing may read the row after them but the store.
void Lowering::find_staged(const Stores& stores, const Nodes& reduces) {
  int axis = analysis_.vector_axis();
  if (axis < 0 || in_vector_loop() || kernel_.axes[axis] != loop::AxisKind::Reduce ||
      staged_.store) {
    return;
  }
  const loop::Store* along = nullptr;
  for (const loop::Store* store : stores) {
    if (analysis_.vectorised(analysis_.deps(*store))) {
      if (along) {
        return;
      }
      along = store;
    }
  }
  bool plain = along && along->mode == loop::StoreMode::Set && !along->mask &&
               kernel_.buffers[along->buffer].dtype == DType::Float32 &&
               analysis_.motion(analysis_.access(*along)) == Motion::Contiguous;
  // Values that grow exponentially with depth in these walks do not occur at this cost.
  if (!plain || analysis_.cost(along->value.node) > 500) {
    return;
  }
  int last = 0;
  for (const Node* node : reduces) {
    last = std::max(last, rank(node, reduces));
  }
  Nodes candidates;
  heavy_nodes(along->value.node, analysis_, candidates);
  for (const Node* candidate : candidates) {
    bool computed = false;
    bool safe = true;
    for (const Node* node : reduces) {
      if (rank(node, reduces) == last) {
        const Node* body = node->inputs[0].node;
        safe = safe && node->slot == axis && decides(candidate, body, true) &&
               decides(nullptr, candidate, true);
        computed = computed || contains(body, candidate, analysis_);
      }
    }
    if (computed && safe && decides(candidate, along->value.node, false)) {
      staged_ = {along, candidate};
      return;
    }
  }
}

}  // namespace rushlight::codegen
