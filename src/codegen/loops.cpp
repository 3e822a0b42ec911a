// Loops: scalar ones, the vector loop, and reductions in the order of loop/reduction_tree.h.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "codegen/lowering.h"
#include "loop/reduction_tree.h"

namespace rushlight::codegen {

using loop::AxisKind;

namespace {

// Bodies up to this cost get a main loop of their own with accumulators in registers; for costlier
// ones the accumulators' way through the stack does not show, and half of the code is saved.
constexpr int kCheapBody = 12;

}  // namespace

llvm::Value* Lowering::low(int axis) {
  return axis == analysis_.split_axis() ? begin_ : b_.getInt64(0);
}

llvm::Value* Lowering::high(int axis) {
  return axis == analysis_.split_axis() ? end_ : extents_[axis];
}

void Lowering::bind(int axis, Value* position) {
  scope_.axes[axis] = position;
  scope_.bound |= AxisMask{1} << axis;
}

void Lowering::count_loop(Value* count, const std::function<void(Value*)>& body) {
  Block* before = b_.GetInsertBlock();
  Block* head = block("each");
  Block* done = block("done");
  b_.CreateCondBr(b_.CreateICmpSGT(count, b_.getInt64(0)), head, done);
  b_.SetInsertPoint(head);
  llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
  k->addIncoming(b_.getInt64(0), before);
  body(k);
  Value* next = b_.CreateAdd(k, b_.getInt64(1));
  k->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, count), head, done);
  b_.SetInsertPoint(done);
}

void Lowering::scalar_loop(int axis, Value* first, Value* last, const Nodes& scans,
                           const std::function<void()>& body) {
  Saved saved(*this);
  Block* before = b_.GetInsertBlock();
  Block* head = block("loop");
  Block* done = block("end");
  b_.CreateCondBr(b_.CreateICmpSLT(first, last), head, done);
  b_.SetInsertPoint(head);
  llvm::PHINode* position = b_.CreatePHI(b_.getInt64Ty(), 2);
  position->addIncoming(first, before);
  std::vector<llvm::PHINode*> running;
  for (const Node* scan : scans) {
    bool vector = in_vector_loop() && analysis_.vectorised(analysis_.deps(scan));
    Value* start = a_.identity(scan->combine, scan->dtype);
    start = vector ? a_.widen(start, width_) : start;
    running.push_back(b_.CreatePHI(start->getType(), 2));
    running.back()->addIncoming(start, before);
    scans_[scan] = {running.back(), nullptr};
  }
  bind(axis, position);
  prepare(scans, {});
  body();
  Value* next = b_.CreateAdd(position, b_.getInt64(1));
  position->addIncoming(next, b_.GetInsertBlock());
  for (size_t i = 0; i < scans.size(); ++i) {
    running[i]->addIncoming(scans_[scans[i]].second, b_.GetInsertBlock());
  }
  b_.CreateCondBr(b_.CreateICmpSLT(next, last), head, done);
  b_.SetInsertPoint(done);
}

llvm::Value* Lowering::scan_value(const Node* node) {
  auto found = scans_.find(node);
  if (found == scans_.end() || found->second.second || !scope_.axes[node->slot]) {
    throw std::runtime_error("a scan is used where its axis does not run");
  }
  Value* body = eval(node->inputs[0].node);
  Value* running = found->second.first;
  body = a_.widen(body, a_.lanes(running));
  Value* next = a_.combine(node->combine, node->dtype, running, body);
  scans_[node].second = next;
  return next;
}

// Binds `axis` to first, first + step, ... below last.
void Lowering::block_loop(int axis, Value* first, Value* last, int step,
                          const std::function<void()>& body) {
  Saved saved(*this);
  Block* before = b_.GetInsertBlock();
  Block* head = block("block");
  Block* done = block("end");
  b_.CreateCondBr(b_.CreateICmpSLT(first, last), head, done);
  b_.SetInsertPoint(head);
  llvm::PHINode* position = b_.CreatePHI(b_.getInt64Ty(), 2);
  position->addIncoming(first, before);
  bind(axis, position);
  body();
  Value* next = b_.CreateAdd(position, b_.getInt64(step));
  position->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, last), head, done);
  b_.SetInsertPoint(done);
}

void Lowering::vector_loop(Value* first, Value* last, const std::function<void()>& body) {
  int axis = analysis_.vector_axis();
  block_loop(axis, first, last, width_, [&] {
    scope_.remaining = b_.CreateSub(last, scope_.axes[axis]);
    scope_.full = b_.CreateICmpSGE(scope_.remaining, b_.getInt64(width_));
    body();
  });
}

// A scan along the last axis is a chain of dependent operations: four rows go side by side, in the
// lanes of a vector, and the rows left over one by one.
void Lowering::row_loop(int axis, const std::function<void()>& body) {
  constexpr int kRows = 4;
  Value* first = low(axis);
  Value* last = high(axis);
  Value* blocks = b_.CreateAnd(b_.CreateSub(last, first), b_.getInt64(-kRows));
  Value* whole = b_.CreateAdd(first, blocks);
  analysis_.vectorise(axis, kRows);
  width_ = kRows;
  block_loop(axis, first, whole, kRows, [&] {
    scope_.remaining = nullptr;
    scope_.full = b_.getTrue();
    body();
  });
  analysis_.vectorise(-1, 1);
  width_ = 1;
  scalar_loop(axis, whole, last, {}, body);
}

void Lowering::reduce_group(int axis, const Nodes& reduces) {
  // What does not depend on the axis is computed before the loop.
  Nodes bodies;
  for (const Node* node : reduces) {
    bodies.push_back(node->inputs[0].node);
  }
  prepare(bodies, {});
  if (axis == analysis_.vector_axis()) {
    reduce_lanes(reduces);
  } else {
    reduce_plain(axis, reduces);
  }
}

void Lowering::reduce_plain(int axis, const Nodes& reduces) {
  std::vector<Value*> results;
  {
    Saved saved(*this);
    Value* first = low(axis);
    Value* last = high(axis);
    Block* before = b_.GetInsertBlock();
    Block* head = block("reduce");
    Block* done = block("reduced");
    b_.CreateCondBr(b_.CreateICmpSLT(first, last), head, done);
    b_.SetInsertPoint(head);
    llvm::PHINode* position = b_.CreatePHI(b_.getInt64Ty(), 2);
    position->addIncoming(first, before);
    std::vector<llvm::PHINode*> running;
    std::vector<Value*> starts;
    Nodes bodies;
    for (const Node* node : reduces) {
      bool vector = in_vector_loop() && analysis_.vectorised(analysis_.deps(node));
      starts.push_back(a_.widen(a_.identity(node->combine, node->dtype), vector ? width_ : 1));
      running.push_back(b_.CreatePHI(starts.back()->getType(), 2));
      running.back()->addIncoming(starts.back(), before);
      bodies.push_back(node->inputs[0].node);
    }
    bind(axis, position);
    int outer = std::exchange(column_axis_, in_vector_loop() ? axis : -1);
    prepare(bodies, {});
    std::vector<Value*> nexts;
    for (size_t i = 0; i < reduces.size(); ++i) {
      Value* body = a_.widen(eval(bodies[i]), a_.lanes(running[i]));
      nexts.push_back(a_.combine(reduces[i]->combine, reduces[i]->dtype, running[i], body));
    }
    column_axis_ = outer;
    Value* next = b_.CreateAdd(position, b_.getInt64(1));
    Block* latch = b_.GetInsertBlock();
    position->addIncoming(next, latch);
    b_.CreateCondBr(b_.CreateICmpSLT(next, last), head, done);
    b_.SetInsertPoint(done);
    for (size_t i = 0; i < reduces.size(); ++i) {
      running[i]->addIncoming(nexts[i], latch);
      llvm::PHINode* result = b_.CreatePHI(nexts[i]->getType(), 2);
      result->addIncoming(starts[i], before);
      result->addIncoming(nexts[i], latch);
      results.push_back(result);
    }
  }
  for (size_t i = 0; i < reduces.size(); ++i) {
    scope_.values[reduces[i]] = results[i];
  }
}

// A reduction along the vector axis: `count` lanes, kept as a stack array of vectors.
struct Lowering::Lanes {
  const Node* node;
  int count;
  Value* memory;
  std::vector<Value*> registers;  // in the main loop
};

void Lowering::reduce_lanes(const Nodes& reduces) {
  std::vector<Lanes> all;
  int cost = 0;
  for (const Node* node : reduces) {
    int count = element_size(node->dtype) == 8 ? loop::kLanesWide : loop::kLanes;
    llvm::Type* element = a_.memory_type(node->dtype);
    all.push_back({node, count, temporary(element, count), {}});
    cost += analysis_.cost(node->inputs[0].node);
  }
  Value* start = b_.getInt64(0);
  if (cost <= kCheapBody) {
    start = reduce_main(all);
  } else {
    for (Lanes& lanes : all) {
      Value* identity = a_.widen(a_.identity(lanes.node->combine, lanes.node->dtype), width_);
      Value* raw = a_.to_memory(identity, lanes.node->dtype);
      for (int u = 0; u < lanes.count / width_; ++u) {
        b_.CreateStore(raw, b_.CreateConstGEP1_64(raw->getType(), lanes.memory, u));
      }
    }
  }
  reduce_rest(all, start);
  for (const Lanes& lanes : all) {
    scope_.values[lanes.node] = fold(lanes);
  }
}

// Whole rounds of lanes with the accumulators in registers; returns where it stopped.
llvm::Value* Lowering::reduce_main(std::vector<Lanes>& all) {
  Saved saved(*this);
  int axis = analysis_.vector_axis();
  Value* whole = b_.CreateAnd(extents_[axis], b_.getInt64(-loop::kLanes));
  Block* before = b_.GetInsertBlock();
  Block* head = block("main");
  Block* done = block("whole");
  b_.CreateCondBr(b_.CreateICmpSGT(whole, b_.getInt64(0)), head, done);
  b_.SetInsertPoint(head);
  llvm::PHINode* position = b_.CreatePHI(b_.getInt64Ty(), 2);
  position->addIncoming(b_.getInt64(0), before);
  std::vector<std::vector<llvm::PHINode*>> running;
  std::vector<Value*> identities;
  Nodes bodies;
  for (Lanes& lanes : all) {
    Value* identity = a_.widen(a_.identity(lanes.node->combine, lanes.node->dtype), width_);
    identities.push_back(identity);
    running.emplace_back();
    for (int u = 0; u < lanes.count / width_; ++u) {
      running.back().push_back(b_.CreatePHI(identity->getType(), 2));
      running.back().back()->addIncoming(identity, before);
    }
    lanes.registers.assign(running.back().begin(), running.back().end());
    bodies.push_back(lanes.node->inputs[0].node);
  }
  for (int offset = 0; offset < loop::kLanes; offset += width_) {
    Saved step(*this);
    bind(axis, b_.CreateAdd(position, b_.getInt64(offset)));
    scope_.remaining = nullptr;
    scope_.full = b_.getTrue();
    prepare(bodies, {});
    for (Lanes& lanes : all) {
      Value*& slot = lanes.registers[offset % lanes.count / width_];
      Value* body = eval_vector(lanes.node->inputs[0].node);
      slot = a_.combine(lanes.node->combine, lanes.node->dtype, slot, body);
    }
  }
  Value* next = b_.CreateAdd(position, b_.getInt64(loop::kLanes));
  Block* latch = b_.GetInsertBlock();
  position->addIncoming(next, latch);
  b_.CreateCondBr(b_.CreateICmpSLT(next, whole), head, done);
  b_.SetInsertPoint(done);
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t u = 0; u < running[i].size(); ++u) {
      running[i][u]->addIncoming(all[i].registers[u], latch);
      llvm::PHINode* result = b_.CreatePHI(identities[i]->getType(), 2);
      result->addIncoming(identities[i], before);
      result->addIncoming(all[i].registers[u], latch);
      all[i].registers[u] = result;
    }
  }
  for (Lanes& lanes : all) {
    for (size_t u = 0; u < lanes.registers.size(); ++u) {
      Value* raw = a_.to_memory(lanes.registers[u], lanes.node->dtype);
      b_.CreateStore(raw, b_.CreateConstGEP1_64(raw->getType(), lanes.memory, u));
    }
  }
  return whole;
}

// The elements from `start` on, a vector at a time; lanes past the end keep what they have.
void Lowering::reduce_rest(std::vector<Lanes>& all, Value* start) {
  Saved saved(*this);
  int axis = analysis_.vector_axis();
  Value* last = extents_[axis];
  Block* before = b_.GetInsertBlock();
  Block* head = block("rest");
  Block* done = block("rested");
  b_.CreateCondBr(b_.CreateICmpSLT(start, last), head, done);
  b_.SetInsertPoint(head);
  llvm::PHINode* position = b_.CreatePHI(b_.getInt64Ty(), 2);
  position->addIncoming(start, before);
  bind(axis, position);
  scope_.remaining = b_.CreateSub(last, position);
  scope_.full = b_.CreateICmpSGE(scope_.remaining, b_.getInt64(width_));
  // The accumulators need the mask in any case.
  Value* valid = lane_mask();
  scope_.mask = has_masks_ && !repeats_lanes_ ? valid : nullptr;
  Nodes bodies;
  for (const Lanes& lanes : all) {
    bodies.push_back(lanes.node->inputs[0].node);
  }
  prepare(bodies, {});
  bool stored = false;
  for (const Lanes& lanes : all) {
    DType dtype = lanes.node->dtype;
    Value* body = eval_vector(lanes.node->inputs[0].node);
    auto staged = scope_.values.find(staged_.value);
    if (staged_.value && !stored && staged != scope_.values.end()) {
      stage(staged->second);
      stored = true;
    }
    Value* slot = b_.CreateAnd(position, b_.getInt64(lanes.count - 1));
    Value* address = b_.CreateGEP(a_.memory_type(dtype), lanes.memory, slot);
    llvm::Type* raw_type = llvm::FixedVectorType::get(a_.memory_type(dtype), width_);
    Value* old = a_.from_memory(b_.CreateLoad(raw_type, address), dtype);
    Value* next = a_.combine(lanes.node->combine, dtype, old, body);
    b_.CreateStore(a_.to_memory(b_.CreateSelect(valid, next, old), dtype), address);
  }
  Value* next = b_.CreateAdd(position, b_.getInt64(width_));
  position->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, last), head, done);
  b_.SetInsertPoint(done);
}

// In halves: first whole vectors, then the halves of the one left.
llvm::Value* Lowering::fold(const Lanes& lanes) {
  DType dtype = lanes.node->dtype;
  loop::Combine kind = lanes.node->combine;
  llvm::Type* raw_type = llvm::FixedVectorType::get(a_.memory_type(dtype), width_);
  std::vector<Value*> parts;
  for (int u = 0; u < lanes.count / width_; ++u) {
    Value* raw = b_.CreateLoad(raw_type, b_.CreateConstGEP1_64(raw_type, lanes.memory, u));
    parts.push_back(a_.from_memory(raw, dtype));
  }
  while (parts.size() > 1) {
    size_t half = parts.size() / 2;
    for (size_t u = 0; u < half; ++u) {
      parts[u] = a_.combine(kind, dtype, parts[u], parts[u + half]);
    }
    parts.resize(half);
  }
  Value* v = parts[0];
  for (int n = width_ / 2; n >= 1; n /= 2) {
    llvm::SmallVector<int, 32> low_half;
    llvm::SmallVector<int, 32> high_half;
    for (int i = 0; i < n; ++i) {
      low_half.push_back(i);
      high_half.push_back(i + n);
    }
    v = a_.combine(kind, dtype, b_.CreateShuffleVector(v, low_half),
                   b_.CreateShuffleVector(v, high_half));
  }
  return b_.CreateExtractElement(v, b_.getInt64(0));
}

}  // namespace rushlight::codegen
