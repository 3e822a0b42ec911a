// Elements two apart, as the parts of complex numbers lie: both parts of a block of lanes are moved
// by one access to twice as many elements.
#include <algorithm>

#include "codegen/lowering.h"

namespace rushlight::codegen {

using loop::Layout;
using loop::Op;

namespace {

// c of an index 2 x + c, where that is 0 or 1; else -1.
int offset_in_pair(const Node* index) {
  int part = 0;
  if (index->op == Op::Add && index->inputs[1]->op == Op::Const) {
    part = index->inputs[1]->bits == 1 ? 1 : index->inputs[1]->bits == 0 ? 0 : -1;
    index = index->inputs[0].node;
  }
  const bool doubled =
      index->op == Op::Mul && index->inputs[1]->op == Op::Const && index->inputs[1]->bits == 2;
  return doubled ? part : -1;
}

// Whether `second` is the index first + 1.
bool are_parts(const Node* first, const Node* second) {
  return second->op == Op::Add && second->inputs[0].node == first &&
         second->inputs[1]->op == Op::Const && second->inputs[1]->bits == 1;
}

void collect_nodes(const Node* node, std::unordered_set<const Node*>& found) {
  if (found.insert(node).second) {
    for (const loop::Expr& input : node->inputs) {
      collect_nodes(input.node, found);
    }
  }
}

}  // namespace

// Which part of a pair the access is to; -1 where it is to none.
int Lowering::pair_part(const Access& access) {
  int part = -1;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (!analysis_.moves(access, d)) {
      continue;
    }
    const Node* index = access.indices[d].node;
    const bool doubles =
        kernel_.buffers[access.buffer].dims[d] == Layout::Unit && analysis_.factor(index) == 2;
    if (part >= 0 || !doubles) {
      return -1;
    }
    part = offset_in_pair(index);
    if (part < 0) {
      return -1;
    }
  }
  return part;
}

const std::unordered_set<const Node*>& Lowering::nodes() {
  if (nodes_.empty()) {
    for (const loop::Store& store : kernel_.stores) {
      collect_nodes(store.value.node, nodes_);
      if (store.mask) {
        collect_nodes(store.mask.node, nodes_);
      }
      for (const Expr& index : store.indices) {
        collect_nodes(index.node, nodes_);
      }
    }
  }
  return nodes_;
}

// Whether the kernel loads the other part as well, so that there is memory where it lies.
bool Lowering::loads_other_part(const Access& access, int part) {
  const auto pairs_with = [&](const Node* other) {
    if (other->op != Op::Load || other->slot != access.buffer ||
        other->inputs.size() != access.indices.size()) {
      return false;
    }
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const Node* mine = access.indices[d].node;
      const Node* its = other->inputs[d].node;
      if (analysis_.moves(access, d) ? !are_parts(part == 0 ? mine : its, part == 0 ? its : mine)
                                     : mine != its) {
        return false;
      }
    }
    return true;
  };
  return std::any_of(nodes().begin(), nodes().end(), pairs_with);
}

// One part of a full block; `base` is that of lane 0.
llvm::Value* Lowering::load_pairs(const Access& access, Value* base, int part) {
  llvm::Type* element = a_.memory_type(access.memory);
  llvm::Align align(static_cast<uint64_t>(element_size(access.memory)));
  llvm::Type* both = llvm::FixedVectorType::get(element, static_cast<unsigned>(2 * width_));
  Value* first = part == 0 ? base : b_.CreateConstGEP1_64(element, base, static_cast<uint64_t>(-1));
  Value* pairs = b_.CreateAlignedLoad(both, first, align);
  llvm::SmallVector<int, 64> lanes;
  for (int i = 0; i < width_; ++i) {
    lanes.push_back(2 * i + part);
  }
  return b_.CreateShuffleVector(pairs, lanes);
}

// Whether two stores that follow one another write the parts of one block of lanes.
bool Lowering::is_pair(const loop::Store& first, const loop::Store& second) {
  const auto plain = [](const loop::Store& store) {
    return store.mode == loop::StoreMode::Set && !store.mask;
  };
  return in_vector_loop() && plain(first) && plain(second) && first.buffer == second.buffer &&
         pair_part(analysis_.access(first)) == 0 && pair_part(analysis_.access(second)) == 1;
}

void Lowering::store_pairs(const loop::Store& first, Value* real, const loop::Store& second,
                           Value* imag) {
  const Access access = analysis_.access(first);
  llvm::Type* element = a_.memory_type(access.memory);
  llvm::Align align(static_cast<uint64_t>(element_size(access.memory)));
  Value* target = pointer(access);
  llvm::SmallVector<int, 64> lanes;
  for (int i = 0; i < width_; ++i) {
    lanes.push_back(i);
    lanes.push_back(width_ + i);
  }
  Value* pairs = b_.CreateShuffleVector(stored(first, nullptr, a_.widen(real, width_)),
                                        stored(second, nullptr, a_.widen(imag, width_)), lanes);
  if (!scope_.remaining) {
    b_.CreateAlignedStore(pairs, target, align);
    return;
  }
  Value* copy = temporary(element, 2 * width_);
  b_.CreateAlignedStore(pairs, b_.CreateSelect(scope_.full, target, copy), align);
  Block* tail = block("tail");
  Block* done = block("stored");
  branch(scope_.full, done, tail);
  b_.SetInsertPoint(tail);
  count_loop(b_.CreateMul(scope_.remaining, b_.getInt64(2)), [&](Value* k) {
    Value* v = b_.CreateLoad(element, b_.CreateGEP(element, copy, k));
    b_.CreateStore(v, b_.CreateGEP(element, target, k));
  });
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

}  // namespace rushlight::codegen
