// Stores.
#include <algorithm>
#include <stdexcept>

#include "codegen/lowering.h"

namespace rushlight::codegen {

using loop::StoreMode;

// Raw memory contents after the store: the value itself, or combined with what is there.
llvm::Value* Lowering::stored(const loop::Store& store, Value* old_raw, Value* value) {
  DType memory = kernel_.buffers[store.buffer].dtype;
  value = a_.convert(value, store.value->dtype, compute_dtype(memory));
  if (store.mode == StoreMode::Set) {
    return a_.to_memory(value, memory);
  }
  static constexpr loop::Combine kinds[] = {loop::Combine::Sum, loop::Combine::Sum,
                                            loop::Combine::Prod, loop::Combine::Max,
                                            loop::Combine::Min};
  Value* old = a_.from_memory(old_raw, memory);
  loop::Combine kind = kinds[static_cast<int>(store.mode)];
  return a_.to_memory(a_.combine(kind, compute_dtype(memory), old, value), memory);
}

// Streams of the buffers that are only written, by whole vectors. A mask has the low bits of an
// aligned vector's address, or all bits where the caller does not want the buffer streamed.
void Lowering::find_streams() {
  streams_.resize(kernel_.buffers.size());
  if (analysis_.vector_axis() < 0) {
    return;
  }
  const auto is_loaded = [&](int buffer) {
    return std::any_of(nodes().begin(), nodes().end(), [&](const Node* node) {
      return (node->op == loop::Op::Load || node->op == loop::Op::LoadIf) && node->slot == buffer;
    });
  };
  Value* streamed = nullptr;
  for (const loop::Store& store : kernel_.stores) {
    const int bytes = element_size(kernel_.buffers[store.buffer].dtype) * width_;
    if (store.mode != StoreMode::Set || store.mask || bytes < 32 || store.buffer >= 64 ||
        analysis_.motion(analysis_.access(store)) != Motion::Contiguous ||
        is_loaded(store.buffer)) {
      continue;
    }
    if (!streamed) {
      Value* field = b_.CreateConstGEP1_32(b_.getPtrTy(), function_->getArg(0), 4);
      streamed = b_.CreateLoad(b_.getInt64Ty(), field);
    }
    Value* bit = b_.CreateAnd(streamed, b_.getInt64(uint64_t{1} << store.buffer));
    Value* low = b_.getInt64(static_cast<uint64_t>(std::min(bytes, 64) - 1));
    Value* all = b_.getInt64(~uint64_t{0});
    streams_[store.buffer] = {b_.CreateSelect(b_.CreateIsNotNull(bit), low, all), bytes};
    find_fetched(store);
  }
}

// Much work between a load and its store leaves few loads in flight: what a streamed kernel reads
// next is asked for, or work and memory would take turns. (A chain of 20 operators on 16 M elements
// took 1.2 times as long as a copy. Copies themselves are slower for it, 10 operators as fast.)
void Lowering::find_fetched(const loop::Store& store) {
  constexpr int kLeastWork = 12;
  const auto is_pointwise = [](const Node* node) {
    return node->op != loop::Op::Reduce && node->op != loop::Op::Scan;
  };
  if (!fetched_.empty() || analysis_.cost(store.value.node) < kLeastWork ||
      !std::all_of(nodes().begin(), nodes().end(), is_pointwise)) {
    return;
  }
  for (const Node* node : nodes()) {
    if (node->op == loop::Op::Load &&
        analysis_.motion(analysis_.access(node)) == Motion::Contiguous) {
      fetched_.push_back(analysis_.access(node));
    }
  }
}

// What `find_fetched` found, 2 KB from here.
std::vector<llvm::Value*> Lowering::fetched_ahead() {
  constexpr uint64_t kAheadBytes = 2048;
  std::vector<Value*> ahead;
  for (const Access& access : fetched_) {
    ahead.push_back(b_.CreateConstGEP1_64(b_.getInt8Ty(), pointer(access), kAheadBytes));
  }
  return ahead;
}

// One vector to `address`: its target or, in a partial block, a stack copy.
void Lowering::store_vector(const loop::Store& store, Value* raw, Value* target, Value* address) {
  const DType memory = kernel_.buffers[store.buffer].dtype;
  const llvm::Align align(static_cast<uint64_t>(element_size(memory)));
  const Stream stream = streams_[store.buffer];
  const int bytes = element_size(memory) * width_;
  if (!stream.mask || stream.bytes != bytes || staged_.store == &store) {
    b_.CreateAlignedStore(raw, address, align);
    return;
  }
  // What is streamed waits for memory anyway, so the other branch is the one in line.
  Value* low = b_.CreateAnd(b_.CreatePtrToInt(target, b_.getInt64Ty()), stream.mask);
  Value* stays = b_.CreateIsNotNull(low);
  if (address != target) {
    stays = b_.CreateOr(stays, b_.CreateNot(scope_.full));
  }
  const std::vector<Value*> ahead = fetched_ahead();
  Block* cached = block("cached");
  Block* past = block("past_caches");
  Block* done = block("vector_stored");
  branch(stays, cached, past);
  b_.SetInsertPoint(cached);
  b_.CreateAlignedStore(raw, address, align);
  b_.CreateBr(done);
  b_.SetInsertPoint(past);
  for (size_t i = 0; i < ahead.size(); ++i) {
    prefetch_vector(fetched_[i], ahead[i]);
  }
  const llvm::Align whole(static_cast<uint64_t>(std::min(bytes, 64)));
  llvm::StoreInst* stored = b_.CreateAlignedStore(raw, target, whole);
  stored->setMetadata(llvm::LLVMContext::MD_nontemporal,
                      llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Whole vectors, to the targets themselves or, in a partial block, to stack copies of which the
// valid part is then written back.
void Lowering::store_contiguous(const std::vector<std::pair<const loop::Store*, Value*>>& stores) {
  bool partial = scope_.remaining != nullptr;
  if (partial && has_masks_) {
    store_masked(stores);
    return;
  }
  std::vector<Value*> targets;
  std::vector<Value*> copies;
  for (const auto& [store, value] : stores) {
    DType memory = kernel_.buffers[store->buffer].dtype;
    Value* target = pointer(analysis_.access(*store));
    Value* copy = partial ? temporary(a_.memory_type(memory), width_) : nullptr;
    Value* raw = stored(*store, nullptr, a_.widen(value, width_));
    Value* address = partial ? b_.CreateSelect(scope_.full, target, copy) : target;
    store_vector(*store, raw, target, address);
    targets.push_back(target);
    copies.push_back(copy);
  }
  if (!partial) {
    return;
  }
  Block* tail = block("tail");
  Block* done = block("stored");
  branch(scope_.full, done, tail);
  b_.SetInsertPoint(tail);
  count_loop(scope_.remaining, [&](Value* k) {
    for (size_t i = 0; i < stores.size(); ++i) {
      llvm::Type* element = a_.memory_type(kernel_.buffers[stores[i].first->buffer].dtype);
      Value* v = b_.CreateLoad(element, b_.CreateGEP(element, copies[i], k));
      b_.CreateStore(v, b_.CreateGEP(element, targets[i], k));
    }
  });
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// The same where masks move what is valid of a partial block.
void Lowering::store_masked(const std::vector<std::pair<const loop::Store*, Value*>>& stores) {
  std::vector<std::pair<Value*, Value*>> moves;  // from a vector, to an address
  for (const auto& [store, value] : stores) {
    moves.emplace_back(stored(*store, nullptr, a_.widen(value, width_)),
                       pointer(analysis_.access(*store)));
  }
  if (scope_.mask) {
    for (size_t i = 0; i < stores.size(); ++i) {
      store_lanes_at_once(*stores[i].first, moves[i].first, moves[i].second, scope_.mask);
    }
    return;
  }
  Block* whole = block("whole");
  Block* tail = block("tail");
  Block* done = block("stored");
  branch(scope_.full, whole, tail);
  b_.SetInsertPoint(whole);
  for (size_t i = 0; i < stores.size(); ++i) {
    store_vector(*stores[i].first, moves[i].first, moves[i].second, moves[i].second);
  }
  b_.CreateBr(done);
  b_.SetInsertPoint(tail);
  Value* mask = lane_mask(scope_.remaining);
  for (size_t i = 0; i < stores.size(); ++i) {
    store_lanes_at_once(*stores[i].first, moves[i].first, moves[i].second, mask);
  }
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Of a raw vector, the lanes that the mask has.
void Lowering::store_lanes_at_once(const loop::Store& store, Value* raw, Value* target,
                                   Value* mask) {
  const uint64_t bytes = element_size(kernel_.buffers[store.buffer].dtype);
  llvm::Type* type = vector_of(b_.getIntNTy(static_cast<unsigned>(bytes) * 8));
  b_.CreateMaskedStore(b_.CreateBitCast(raw, type), target, llvm::Align(bytes), mask);
}

void Lowering::store_one(const loop::Store& store, Value* value, Value* mask) {
  Access access = analysis_.access(store);
  llvm::Type* element = a_.memory_type(access.memory);
  if (!in_vector_loop()) {
    Value* target = pointer(access);
    Block* done = nullptr;
    if (mask) {
      Block* wanted = block("wanted");
      done = block("stored");
      b_.CreateCondBr(mask, wanted, done);
      b_.SetInsertPoint(wanted);
    }
    Value* old = store.mode == StoreMode::Set ? nullptr : b_.CreateLoad(element, target);
    b_.CreateStore(stored(store, old, value), target);
    if (mask) {
      b_.CreateBr(done);
      b_.SetInsertPoint(done);
    }
    return;
  }
  value = a_.widen(value, width_);
  LaneAddress address = lane_address(access);
  bool contiguous = analysis_.motion(access) == Motion::Contiguous;
  bool uniform_mask = !mask || a_.lanes(mask) == 1;
  if (!contiguous) {
    if (address.step && !mask && store.mode == StoreMode::Set && !scope_.remaining) {
      Value* raw = stored(store, nullptr, value);
      for (int i = 0; i < width_; ++i) {
        Value* target =
            b_.CreateGEP(element, address.base, b_.CreateMul(address.step, b_.getInt64(i)));
        b_.CreateStore(b_.CreateExtractElement(raw, b_.getInt64(i)), target);
      }
      return;
    }
    store_lanes(store, address, value, mask);
    return;
  }
  if (has_masks_ && store.mode == StoreMode::Set) {
    Value* lanes = mask ? a_.widen(mask, width_) : nullptr;
    if (scope_.remaining) {
      Value* valid = lane_mask();
      lanes = lanes ? b_.CreateAnd(lanes, valid) : valid;
    }
    if (lanes) {
      store_lanes_at_once(store, stored(store, nullptr, value), address.base, lanes);
      return;
    }
  }
  // A full block whose mask holds everywhere is stored at once, else lane by lane.
  Value* whole = scope_.full;
  if (mask) {
    whole = b_.CreateAnd(whole, uniform_mask ? mask : b_.CreateAndReduce(mask));
  }
  Block* at_once = block("whole");
  Block* lanes = block("lanes");
  Block* done = block("stored");
  b_.CreateCondBr(whole, at_once, lanes);
  b_.SetInsertPoint(at_once);
  llvm::Align align(static_cast<uint64_t>(element_size(access.memory)));
  Value* old = store.mode == StoreMode::Set
                   ? nullptr
                   : b_.CreateAlignedLoad(vector_of(element), address.base, align);
  b_.CreateAlignedStore(stored(store, old, value), address.base, align);
  b_.CreateBr(done);
  b_.SetInsertPoint(lanes);
  store_lanes(store, address, value, mask);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

void Lowering::store_lanes(const loop::Store& store, const LaneAddress& address, Value* value,
                           Value* mask) {
  Access access = analysis_.access(store);
  DType dtype = store.value->dtype;
  llvm::Type* element = a_.memory_type(access.memory);
  Value* values = spill(a_.to_memory(value, dtype));
  Value* masks = mask ? spill(a_.to_memory(a_.widen(mask, width_), DType::Bool)) : nullptr;
  count_loop(valid_lanes(), [&](Value* k) {
    Block* next = nullptr;
    if (masks) {
      Block* wanted = block("wanted");
      next = block("next");
      Value* flag = b_.CreateLoad(b_.getInt8Ty(), b_.CreateGEP(b_.getInt8Ty(), masks, k));
      b_.CreateCondBr(b_.CreateICmpNE(flag, b_.getInt8(0)), wanted, next);
      b_.SetInsertPoint(wanted);
    }
    llvm::Type* type = a_.memory_type(dtype);
    Value* raw = b_.CreateLoad(type, b_.CreateGEP(type, values, k));
    Value* target = at_lane(access, address, k);
    Value* old = store.mode == StoreMode::Set ? nullptr : b_.CreateLoad(element, target);
    b_.CreateStore(stored(store, old, a_.from_memory(raw, dtype)), target);
    if (masks) {
      b_.CreateBr(next);
      b_.SetInsertPoint(next);
    }
  });
}

}  // namespace rushlight::codegen
