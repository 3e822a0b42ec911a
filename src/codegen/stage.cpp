// A costly value that a row's last reduction computes and that the row's store needs again, such as
// softmax's exponentials, is written to the output by the reduction and read back by the store; to
// scratch memory where the output is of a half type.
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
  const DType memory = along ? kernel_.buffers[along->buffer].dtype : DType::Bool;
  const bool narrow = memory == DType::BFloat16 || memory == DType::Float16;
  bool plain = along && along->mode == loop::StoreMode::Set && !along->mask &&
               (memory == DType::Float32 || narrow) &&
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
      staged_ = {along, candidate, nullptr};
      if (narrow) {
        Value* field = b_.CreateConstGEP1_32(b_.getPtrTy(), function_->getArg(0), 5);
        staged_.scratch = b_.CreateLoad(b_.getPtrTy(), field);
      }
      return;
    }
  }
}

// Scratch memory has room for whole vectors.
void Lowering::stage(Value* value) {
  if (!staged_.scratch) {
    store_contiguous({{staged_.store, value}});
    return;
  }
  Value* position = scope_.axes[analysis_.vector_axis()];
  b_.CreateAlignedStore(a_.widen(value, width_),
                        b_.CreateGEP(b_.getFloatTy(), staged_.scratch, position), llvm::Align(4));
}

llvm::Value* Lowering::staged_value() {
  if (!staged_.scratch) {
    return load_vectors({analysis_.access(*staged_.store)})[0];
  }
  Value* position = scope_.axes[analysis_.vector_axis()];
  return b_.CreateAlignedLoad(vector_of(b_.getFloatTy()),
                              b_.CreateGEP(b_.getFloatTy(), staged_.scratch, position),
                              llvm::Align(4));
}

}  // namespace rushlight::codegen
