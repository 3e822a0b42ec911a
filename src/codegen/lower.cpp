#include <llvm/MC/MCSubtargetInfo.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "codegen/lowering.h"
#include "codegen/target.h"

namespace rushlight::codegen {

using loop::AxisKind;
using loop::Layout;
using loop::Op;

std::unique_ptr<llvm::Module> lower(llvm::LLVMContext& context, const llvm::TargetMachine& target,
                                    const std::vector<Unit>& units) {
  auto module = std::make_unique<llvm::Module>("rushlight", context);
  module->setTargetTriple(target.getTargetTriple().str());
  module->setDataLayout(target.createDataLayout());
  // Of 1-byte lanes too: AVX-512 with its part for bytes and words.
  const bool has_masks =
      target.getTargetTriple().isX86() && target.getMCSubtargetInfo()->checkFeatures("+avx512bw");
  for (const Unit& unit : units) {
    Lowering(*module, *unit.kernel, unit.symbol, has_masks).run();
  }
  return module;
}

Lowering::Lowering(llvm::Module& module, const loop::Kernel& kernel, const std::string& symbol,
                   bool has_masks)
    : kernel_(kernel),
      analysis_(kernel),
      module_(module),
      context_(module.getContext()),
      b_(context_),
      a_(b_, module),
      width_(analysis_.width()),
      has_masks_(has_masks) {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* word = b_.getInt64Ty();
  llvm::FunctionType* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, word, word}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function_->setDoesNotThrow();
  function_->addFnAttr("prefer-vector-width", "512");
  scope_.axes.assign(kernel.axes.size(), nullptr);
  repeats_lanes_ = has_gathers();
}

llvm::BasicBlock* Lowering::block(const char* name) {
  return Block::Create(context_, name, function_);
}

void Lowering::branch(Value* condition, Block* likely, Block* unlikely) {
  llvm::MDNode* weights =
      llvm::MDNode::get(context_, {llvm::MDString::get(context_, "branch_weights"),
                                   llvm::ConstantAsMetadata::get(b_.getInt32(2000)),
                                   llvm::ConstantAsMetadata::get(b_.getInt32(1))});
  b_.CreateCondBr(condition, likely, unlikely, weights);
}

void Lowering::run() {
  entry_ = block("entry");
  b_.SetInsertPoint(entry_);
  begin_ = function_->getArg(1);
  end_ = function_->getArg(2);
  Block* body = block("body");
  Block* exit = block("exit");
  if (analysis_.split_axis() >= 0) {
    branch(b_.CreateICmpSLT(begin_, end_), body, exit);
  } else {
    b_.CreateBr(body);
  }
  b_.SetInsertPoint(body);
  load_arguments();
  Stores stores;
  for (const loop::Store& store : kernel_.stores) {
    stores.push_back(&store);
  }
  nest(0, stores);
  b_.CreateBr(exit);
  b_.SetInsertPoint(exit);
  b_.CreateRetVoid();
}

void Lowering::load_arguments() {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* word = b_.getInt64Ty();
  auto field = [&](unsigned number) {
    return b_.CreateLoad(pointer, b_.CreateConstGEP1_32(pointer, function_->getArg(0), number));
  };
  auto element = [&](llvm::Type* type, Value* base, size_t i) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(type, base, i));
  };
  Value* buffers = field(0);
  Value* strides = field(1);
  Value* extents = field(2);
  Value* scalars = field(3);
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    buffers_.push_back(element(pointer, buffers, i));
    const std::vector<Layout>& dims = kernel_.buffers[i].dims;
    std::vector<Value*> own(dims.size(), nullptr);
    Value* list = nullptr;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == Layout::Any) {
        list = list ? list : element(pointer, strides, i);
        own[d] = element(word, list, d);
      }
    }
    strides_.push_back(own);
  }
  for (size_t i = 0; i < kernel_.axes.size(); ++i) {
    extents_.push_back(element(word, extents, i));
  }
  for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
    // Little-endian: the low bytes are the narrower value.
    DType dtype = kernel_.scalars[i];
    Value* at = b_.CreateConstGEP1_64(word, scalars, i);
    if (dtype == DType::Bool) {
      Value* raw = b_.CreateLoad(word, at);
      scalars_.push_back(b_.CreateICmpNE(raw, b_.getInt64(0)));
    } else {
      scalars_.push_back(b_.CreateLoad(a_.value_type(dtype), at));
    }
  }
  find_streams();
}

namespace {

// Each node once, inputs before users.
void post_order(const Node* node, std::unordered_set<const Node*>& seen,
                std::vector<const Node*>& out) {
  if (!seen.insert(node).second) {
    return;
  }
  for (const Expr& input : node->inputs) {
    post_order(input.node, seen, out);
  }
  out.push_back(node);
}

std::vector<const Node*> roots_of(const std::vector<const loop::Store*>& stores) {
  std::vector<const Node*> roots;
  for (const loop::Store* store : stores) {
    if (store->mask) {
      roots.push_back(store->mask.node);
    }
    roots.push_back(store->value.node);
  }
  return roots;
}

}  // namespace

void Lowering::nest(size_t level, const Stores& stores) {
  prepare(roots_of(stores), stores);
  Stores ready;
  Stores rest;
  for (const loop::Store* store : stores) {
    ((analysis_.deps(*store) & ~scope_.bound) == 0 ? ready : rest).push_back(store);
  }
  store_all(ready);
  if (rest.empty()) {
    return;
  }
  const std::vector<int>& order = analysis_.loop_order();
  if (level >= order.size()) {
    throw std::runtime_error("a store depends on an axis that the kernel does not have");
  }
  int axis = order[level];
  Stores inside;
  Stores outside;
  for (const loop::Store* store : rest) {
    ((analysis_.deps(*store) >> axis & 1) != 0 ? inside : outside).push_back(store);
  }
  if (!outside.empty()) {
    nest(level + 1, outside);
  }
  if (inside.empty()) {
    return;
  }
  if (axis == analysis_.vector_axis()) {
    vector_loop(low(axis), high(axis), [&] {
      if (staged_.store == inside[0]) {
        scope_.values[staged_.value] = staged_value();
      }
      nest(level + 1, inside);
    });
    return;
  }
  if (axis == analysis_.tile_axis()) {
    tile_loop([&] { nest(level + 2, inside); });
    return;
  }
  if (axis == analysis_.row_axis()) {
    row_loop(axis, [&] { nest(level + 1, inside); });
    return;
  }
  Nodes scans;
  if (kernel_.axes[axis] == AxisKind::Scan) {
    std::unordered_set<const Node*> seen;
    Nodes order_of_use;
    for (const Node* root : roots_of(inside)) {
      post_order(root, seen, order_of_use);
    }
    for (const loop::Store* store : inside) {
      for (const Expr& index : store->indices) {
        post_order(index.node, seen, order_of_use);
      }
    }
    for (const Node* node : order_of_use) {
      if (node->op == Op::Scan && node->slot == axis) {
        scans.push_back(node);
      }
    }
  }
  scalar_loop(axis, low(axis), high(axis), scans, [&] { nest(level + 1, inside); });
}

void Lowering::store_all(const Stores& stores) {
  // All values first: stores must not be seen by the loads of the same point.
  std::vector<std::pair<const loop::Store*, Value*>> values;
  std::vector<Value*> masks;
  for (const loop::Store* store : stores) {
    values.emplace_back(store, eval(store->value.node));
    masks.push_back(store->mask ? eval(store->mask.node) : nullptr);
  }
  std::vector<std::pair<const loop::Store*, Value*>> plain;
  for (size_t i = 0; i < values.size(); ++i) {
    const loop::Store& store = *values[i].first;
    if (i + 1 < values.size() && is_pair(store, *values[i + 1].first)) {
      store_pairs(store, values[i].second, *values[i + 1].first, values[i + 1].second);
      ++i;
      continue;
    }
    Motion motion = analysis_.motion(analysis_.access(store));
    if (in_vector_loop() && motion == Motion::Contiguous && store.mode == loop::StoreMode::Set &&
        !masks[i]) {
      plain.push_back(values[i]);
    } else {
      store_one(store, values[i].second, masks[i]);
    }
  }
  if (!plain.empty()) {
    store_contiguous(plain);
  }
}

// Nodes under `node` that can be computed here. `maximal`: those whose users cannot. `reduces`,
// `loads`: all that are ready and not computed yet.
void Lowering::collect_ready(const Node* node, std::unordered_set<const Node*>& seen, Ready& found,
                             bool below) {
  if (scope_.values.count(node) || node->op == Op::Const || !seen.insert(node).second) {
    return;
  }
  bool ready = is_bound(node);
  if (ready && !below) {
    found.maximal.push_back(node);
  }
  bool load = node->op == Op::Load || node->op == Op::LoadIf;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    const Node* input = node->inputs[i].node;
    // Affine indices are evaluated as scalars, when the address is made.
    bool index = load && i >= (node->op == Op::Load ? 0u : 2u);
    if (!index || !analysis_.vectorised(analysis_.deps(input)) || !analysis_.factor(input)) {
      collect_ready(input, seen, found, ready || below);
    }
  }
  if (!ready) {
    return;
  }
  if (node->op == Op::Reduce) {
    found.reduces.push_back(node);
  } else if (node->op == Op::Load && analysis_.vectorised(analysis_.deps(node))) {
    Motion motion = analysis_.motion(analysis_.access(node));
    if (motion == Motion::Contiguous || motion == Motion::Strided) {
      found.loads.push_back(node);
    }
  }
}

// Computes here whatever the roots need and the bound axes allow: reductions in the order in which
// they need one another, then vector loads in one group, then everything else that is ready.
void Lowering::prepare(const Nodes& roots, const Stores& stores) {
  advance_pointers(roots, stores);
  std::unordered_set<const Node*> seen;
  Ready found;
  for (const Node* root : roots) {
    collect_ready(root, seen, found, false);
  }
  for (const loop::Store* store : stores) {
    for (const Expr& index : store->indices) {
      if (!analysis_.vectorised(analysis_.deps(index.node))) {
        collect_ready(index.node, seen, found, false);
      }
    }
  }
  if (!found.reduces.empty()) {
    find_staged(stores, found.reduces);
    reduce_ready(found.reduces);
    // The loads found were mostly those inside of the reductions: look again.
    prepare(roots, stores);
    return;
  }
  if (!found.loads.empty()) {
    load_group(found.loads);
  }
  for (const Node* node : found.maximal) {
    eval(node);
  }
}

int Lowering::rank(const Node* node, const Nodes& reduces) {
  int most = 0;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> below;
  for (const Expr& input : node->inputs) {
    post_order(input.node, seen, below);
  }
  for (const Node* inner : below) {
    if (std::find(reduces.begin(), reduces.end(), inner) != reduces.end()) {
      most = std::max(most, rank(inner, reduces) + 1);
    }
  }
  return most;
}

void Lowering::reduce_ready(const Nodes& reduces) {
  std::vector<std::pair<std::pair<int, int>, const Node*>> ordered;
  for (const Node* node : reduces) {
    ordered.push_back({{rank(node, reduces), node->slot}, node});
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < ordered.size();) {
    size_t j = i;
    Nodes group;
    for (; j < ordered.size() && ordered[j].first == ordered[i].first; ++j) {
      group.push_back(ordered[j].second);
    }
    reduce_group(ordered[i].first.second, group);
    i = j;
  }
}

void Lowering::advance_pointers(const Nodes& roots, const Stores& stores) {
  std::unordered_set<const Node*> seen;
  Nodes all;
  for (const Node* root : roots) {
    post_order(root, seen, all);
  }
  for (const Node* node : all) {
    if ((node->op == Op::Load || node->op == Op::LoadIf) && !scope_.values.count(node)) {
      advance(analysis_.access(node));
    }
  }
  for (const loop::Store* store : stores) {
    advance(analysis_.access(*store));
  }
}

bool Lowering::has_gathers() {
  std::unordered_set<const Node*> seen;
  Nodes all;
  for (const loop::Store& store : kernel_.stores) {
    post_order(store.value.node, seen, all);
    for (const Expr& index : store.indices) {
      post_order(index.node, seen, all);
    }
    if (store.mask) {
      post_order(store.mask.node, seen, all);
    }
  }
  for (const Node* node : all) {
    if (node->op == Op::LoadIf ||
        (node->op == Op::Load && analysis_.motion(analysis_.access(node)) == Motion::Gather)) {
      return true;
    }
  }
  return false;
}

}  // namespace rushlight::codegen
