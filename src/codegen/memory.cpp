// Addresses and loads.
#include <algorithm>
#include <stdexcept>

#include "codegen/lowering.h"

namespace rushlight::codegen {

using loop::Layout;
using loop::Op;

llvm::Value* Lowering::temporary(llvm::Type* element, int count) {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  llvm::AllocaInst* memory = entry.CreateAlloca(llvm::ArrayType::get(element, count));
  memory->setAlignment(llvm::Align(64));
  return memory;
}

llvm::Value* Lowering::spill(Value* vector) {
  Value* memory = temporary(vector->getType()->getScalarType(), width_);
  b_.CreateAlignedStore(vector, memory, llvm::Align(64));
  return memory;
}

llvm::Value* Lowering::valid_lanes() {
  Value* width = b_.getInt64(width_);
  return scope_.remaining ? b_.CreateSelect(scope_.full, width, scope_.remaining) : width;
}

llvm::Value* Lowering::lane_mask() {
  return scope_.mask ? scope_.mask : lane_mask(valid_lanes());
}

llvm::Value* Lowering::lane_mask(Value* valid) {
  if (has_masks_) {
    // As bits: `valid` ones, of which there is at least one.
    Value* past = b_.CreateSub(b_.getInt64(64), valid);
    Value* bits = b_.CreateLShr(b_.getInt64(~uint64_t{0}), past);
    bits = b_.CreateTrunc(bits, b_.getIntNTy(static_cast<unsigned>(width_)));
    return b_.CreateBitCast(bits, vector_of(b_.getInt1Ty()));
  }
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (int i = 0; i < width_; ++i) {
    numbers.push_back(b_.getInt32(i));
  }
  Value* count = b_.CreateTrunc(valid, b_.getInt32Ty());
  return b_.CreateICmpSLT(llvm::ConstantVector::get(numbers), b_.CreateVectorSplat(width_, count));
}

llvm::Value* Lowering::scaled(const Access& access, size_t dim, Value* index) {
  return kernel_.buffers[access.buffer].dims[dim] == Layout::Unit
             ? index
             : b_.CreateMul(index, strides_[access.buffer][dim]);
}

// Adds to the access's address what the bound axes decide.
void Lowering::advance(const Access& access) {
  Partial& partial =
      scope_.pointers.try_emplace(access.id, Partial{buffers_.at(access.buffer), 0}).first->second;
  Value* pointer = partial.pointer;
  uint64_t done = partial.dims;
  const std::vector<Layout>& dims = kernel_.buffers[access.buffer].dims;
  bool gathers = analysis_.motion(access) == Motion::Gather;
  Value* offset = nullptr;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Node* index = access.indices[d].node;
    bool moving = analysis_.moves(access, d);
    if ((done >> d & 1) != 0 || (moving && gathers)) {
      continue;
    }
    if (dims[d] != Layout::Zero) {
      if (!is_bound(index)) {
        continue;
      }
      Value* term = scaled(access, d, moving ? eval_first(index) : eval(index));
      offset = offset ? b_.CreateAdd(offset, term) : term;
    }
    done |= uint64_t{1} << d;
  }
  if (offset) {
    pointer = b_.CreateGEP(a_.memory_type(access.memory), pointer, offset);
  }
  // Evaluating an index may have added to the map.
  scope_.pointers[access.id] = {pointer, done};
}

llvm::Value* Lowering::pointer(const Access& access) {
  advance(access);
  const Partial& partial = scope_.pointers.at(access.id);
  bool gathers = analysis_.motion(access) == Motion::Gather;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if ((partial.dims >> d & 1) == 0 && !(gathers && analysis_.moves(access, d))) {
      throw std::runtime_error("an index is used where its axis does not run");
    }
  }
  return partial.pointer;
}

llvm::Value* Lowering::lane_stride(const Access& access) {
  Value* total = b_.getInt64(0);
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (analysis_.moves(access, d)) {
      int64_t factor = *analysis_.factor(access.indices[d].node);
      total = b_.CreateAdd(total, scaled(access, d, b_.getInt64(factor)));
    }
  }
  return total;
}

Lowering::LaneAddress Lowering::lane_address(const Access& access) {
  LaneAddress address{pointer(access), nullptr, {}};
  Motion motion = analysis_.motion(access);
  if (motion == Motion::Contiguous || motion == Motion::Strided) {
    address.step = lane_stride(access);
  } else if (motion == Motion::Gather) {
    for (size_t d = 0; d < access.indices.size(); ++d) {
      if (analysis_.moves(access, d)) {
        address.indices.emplace_back(spill(eval_vector(access.indices[d].node)), d);
      }
    }
  }
  return address;
}

llvm::Value* Lowering::at_lane(const Access& access, const LaneAddress& address, Value* lane) {
  Value* offset = address.step ? b_.CreateMul(lane, address.step) : nullptr;
  for (const auto& [memory, dim] : address.indices) {
    llvm::Type* word = b_.getInt64Ty();
    Value* index = b_.CreateLoad(word, b_.CreateGEP(word, memory, lane));
    Value* term = scaled(access, dim, index);
    offset = offset ? b_.CreateAdd(offset, term) : term;
  }
  return offset ? b_.CreateGEP(a_.memory_type(access.memory), address.base, offset) : address.base;
}

llvm::Value* Lowering::load(const Node* node) {
  Access access = analysis_.access(node);
  llvm::Type* element = a_.memory_type(access.memory);
  llvm::Align align(static_cast<uint64_t>(element_size(access.memory)));
  if (!analysis_.vectorised(analysis_.deps(node))) {
    Value* address = pointer(access);
    return a_.from_memory(b_.CreateAlignedLoad(element, address, align), access.memory);
  }
  if (analysis_.motion(access) == Motion::Gather) {
    return a_.from_memory(gather(access), access.memory);
  }
  return a_.from_memory(load_vectors({access})[0], access.memory);
}

void Lowering::load_group(const Nodes& loads) {
  std::vector<Access> accesses;
  for (const Node* node : loads) {
    accesses.push_back(analysis_.access(node));
  }
  std::vector<Value*> raw = load_vectors(accesses);
  for (size_t i = 0; i < loads.size(); ++i) {
    scope_.values[loads[i]] = a_.from_memory(raw[i], accesses[i].memory);
  }
}

// Where a column is reduced row by row, the rows lie a stride apart that no hardware follows.
void Lowering::prefetch_rows(const Access& access, Value* base) {
  constexpr int kAhead = 8;
  if (column_axis_ < 0) {
    return;
  }
  for (size_t d = 0; d < access.indices.size(); ++d) {
    const Node* index = access.indices[d].node;
    Value* stride = strides_[static_cast<size_t>(access.buffer)][d];
    if (index->op != loop::Op::Index || index->slot != column_axis_ || !stride) {
      continue;
    }
    llvm::Type* element = a_.memory_type(access.memory);
    prefetch_vector(access, b_.CreateGEP(element, base, b_.CreateMul(stride, b_.getInt64(kAhead))));
  }
}

// The lines of a vector of that access at an address, which need not be mapped.
void Lowering::prefetch_vector(const Access& access, Value* ahead) {
  constexpr int kLine = 64;
  int bytes = width_ * static_cast<int>(element_size(access.memory));
  for (int at = 0; at < bytes; at += kLine) {
    Value* line = b_.CreateConstGEP1_64(b_.getInt8Ty(), ahead, static_cast<uint64_t>(at));
    // read, keep in all levels, data
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {line->getType()},
                       {line, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  }
}

llvm::Value* Lowering::strided(const Access& access, Value* base, Value* step) {
  if (int part = pair_part(access); part >= 0 && loads_other_part(access, part)) {
    return load_pairs(access, base, part);
  }
  llvm::Type* element = a_.memory_type(access.memory);
  Value* v = llvm::PoisonValue::get(vector_of(element));
  for (int i = 0; i < width_; ++i) {
    Value* address = b_.CreateGEP(element, base, b_.CreateMul(step, b_.getInt64(i)));
    v = b_.CreateInsertElement(v, b_.CreateLoad(element, address), b_.getInt64(i));
  }
  return v;
}

// The valid lanes of the last block as they lie in memory, at once.
llvm::Value* Lowering::load_masked(Value* base, DType memory, Value* mask) {
  // As integers: half vectors are no types of their own everywhere.
  const unsigned bits = static_cast<unsigned>(element_size(memory)) * 8;
  llvm::Type* type = vector_of(b_.getIntNTy(bits));
  return b_.CreateMaskedLoad(type, base, llvm::Align(bits / 8), mask,
                             llvm::Constant::getNullValue(type));
}

// Stack copies of what a partial block has of each access. Lanes past the end repeat the last
// element where they may become indices, else they are 0.
void Lowering::copy_tail(const std::vector<Access>& loads, std::vector<Moved>& items) {
  Value* last = b_.CreateSub(scope_.remaining, b_.getInt64(1));
  std::vector<size_t> one_by_one;
  for (size_t i = 0; i < items.size(); ++i) {
    llvm::Type* element = a_.memory_type(loads[i].memory);
    items[i].copy = temporary(element, width_);
    if (has_masks_ && !items[i].step) {
      Value* mask = lane_mask(scope_.remaining);
      Value* lanes = load_masked(items[i].base, loads[i].memory, mask);
      if (repeats_lanes_) {
        llvm::Type* whole = lanes->getType()->getScalarType();
        Value* end = b_.CreateLoad(whole, b_.CreateGEP(element, items[i].base, last));
        lanes = b_.CreateSelect(mask, lanes, a_.widen(end, width_));
      }
      b_.CreateAlignedStore(lanes, items[i].copy, llvm::Align(64));
      continue;
    }
    one_by_one.push_back(i);
    if (!repeats_lanes_) {
      b_.CreateAlignedStore(llvm::Constant::getNullValue(vector_of(element)), items[i].copy,
                            llvm::Align(64));
    }
  }
  if (one_by_one.empty()) {
    return;
  }
  count_loop(repeats_lanes_ ? b_.getInt64(width_) : scope_.remaining, [&](Value* k) {
    Value* lane = repeats_lanes_ ? b_.CreateSelect(b_.CreateICmpSLT(k, last), k, last) : k;
    for (size_t i : one_by_one) {
      llvm::Type* element = a_.memory_type(loads[i].memory);
      Value* offset = items[i].step ? b_.CreateMul(lane, items[i].step) : lane;
      Value* v = b_.CreateLoad(element, b_.CreateGEP(element, items[i].base, offset));
      b_.CreateStore(v, b_.CreateGEP(element, items[i].copy, k));
    }
  });
}

// Turns the items' bases into those of their copies where the block is partial; items that are
// strided become vectors. All share one test.
void Lowering::choose_tail(const std::vector<Access>& loads, std::vector<Moved>& items,
                           bool any_strided) {
  Block* tail = block("tail");
  Block* joined = block("joined");
  Block* full_end = b_.GetInsertBlock();
  if (any_strided) {
    Block* full = block("full");
    branch(scope_.full, full, tail);
    b_.SetInsertPoint(full);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].step) {
        items[i].vector = strided(loads[i], items[i].base, items[i].step);
      }
    }
    full_end = b_.GetInsertBlock();
    b_.CreateBr(joined);
  } else {
    branch(scope_.full, joined, tail);
  }
  b_.SetInsertPoint(tail);
  copy_tail(loads, items);
  std::vector<Value*> copies;
  for (size_t i = 0; i < items.size(); ++i) {
    copies.push_back(items[i].step
                         ? b_.CreateLoad(vector_of(a_.memory_type(loads[i].memory)), items[i].copy)
                         : items[i].copy);
  }
  Block* tail_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  for (size_t i = 0; i < items.size(); ++i) {
    Value*& merged = items[i].step ? items[i].vector : items[i].base;
    llvm::PHINode* phi = b_.CreatePHI(merged->getType(), 2);
    phi->addIncoming(merged, full_end);
    phi->addIncoming(copies[i], tail_end);
    merged = phi;
  }
}

// Raw vectors of accesses that are contiguous or strided.
std::vector<llvm::Value*> Lowering::load_vectors(const std::vector<Access>& loads) {
  std::vector<Moved> items;
  for (const Access& access : loads) {
    Moved item{pointer(access)};
    if (analysis_.motion(access) != Motion::Contiguous) {
      item.step = lane_stride(access);
    } else {
      prefetch_rows(access, item.base);
    }
    items.push_back(item);
  }
  const bool any_strided = std::any_of(items.begin(), items.end(),
                                       [](const Moved& item) { return item.step != nullptr; });
  const bool masked = scope_.mask && !any_strided;
  if (scope_.remaining && !masked) {
    choose_tail(loads, items, any_strided);
  }
  std::vector<Value*> raw;
  for (size_t i = 0; i < items.size(); ++i) {
    llvm::Type* type = vector_of(a_.memory_type(loads[i].memory));
    llvm::Align align(static_cast<uint64_t>(element_size(loads[i].memory)));
    if (items[i].step && !items[i].vector) {
      items[i].vector = strided(loads[i], items[i].base, items[i].step);
    }
    raw.push_back(
        items[i].step ? items[i].vector
        : masked ? b_.CreateBitCast(load_masked(items[i].base, loads[i].memory, scope_.mask), type)
                 : b_.CreateAlignedLoad(type, items[i].base, align));
  }
  return raw;
}

llvm::Value* Lowering::gather(const Access& access) {
  llvm::Type* element = a_.memory_type(access.memory);
  Value* base = pointer(access);
  std::vector<std::pair<Value*, size_t>> indices;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (analysis_.moves(access, d)) {
      indices.emplace_back(eval_vector(access.indices[d].node), d);
    }
  }
  Value* v = llvm::PoisonValue::get(vector_of(element));
  for (int i = 0; i < width_; ++i) {
    Value* offset = nullptr;
    for (const auto& [vector, dim] : indices) {
      Value* term = scaled(access, dim, b_.CreateExtractElement(vector, b_.getInt64(i)));
      offset = offset ? b_.CreateAdd(offset, term) : term;
    }
    Value* address = b_.CreateGEP(element, base, offset);
    v = b_.CreateInsertElement(v, b_.CreateLoad(element, address), b_.getInt64(i));
  }
  return v;
}

llvm::Value* Lowering::load_if(const Node* node) {
  Value* mask = eval(node->inputs[0].node);
  Value* other = eval(node->inputs[1].node);
  Access access = analysis_.access(node);
  if (analysis_.motion(access) == Motion::Uniform) {
    return load_if_uniform(node, mask, other);
  }
  return load_if_moving(node, mask, a_.widen(other, width_));
}

// One address: where no lane asks for it, a stack slot is read in its place.
llvm::Value* Lowering::load_if_uniform(const Node* node, Value* mask, Value* other) {
  Access access = analysis_.access(node);
  llvm::Type* element = a_.memory_type(access.memory);
  Value* address = pointer(access);
  Value* slot = temporary(element, 1);
  b_.CreateStore(llvm::Constant::getNullValue(element), slot);
  Value* any = a_.lanes(mask) == 1 ? mask : b_.CreateOrReduce(mask);
  Value* raw = b_.CreateLoad(element, b_.CreateSelect(any, address, slot));
  Value* value = a_.from_memory(raw, access.memory);
  int width = std::max(a_.lanes(mask), a_.lanes(other));
  return b_.CreateSelect(a_.widen(mask, width), a_.widen(value, width), a_.widen(other, width));
}

llvm::Value* Lowering::load_if_moving(const Node* node, Value* mask, Value* other) {
  Access access = analysis_.access(node);
  Motion motion = analysis_.motion(access);
  // Whatever both sides need is computed before the branch.
  LaneAddress address = lane_address(access);
  bool uniform = a_.lanes(mask) == 1;
  Block* yes = block("some");
  Block* done = block("chosen");
  Block* before = b_.GetInsertBlock();
  b_.CreateCondBr(uniform ? mask : b_.CreateOrReduce(mask), yes, done);
  std::vector<std::pair<Value*, Block*>> values{{other, before}};
  b_.SetInsertPoint(yes);
  auto finish = [&](Value* value) {
    values.emplace_back(value, b_.GetInsertBlock());
    b_.CreateBr(done);
  };
  if (uniform) {
    Saved saved(*this);
    Value* raw = motion == Motion::Gather ? gather(access) : load_vectors({access})[0];
    finish(a_.from_memory(raw, access.memory));
  } else if (motion == Motion::Contiguous && has_masks_) {
    Value* lanes = scope_.remaining ? b_.CreateAnd(mask, lane_mask()) : mask;
    Value* raw = load_masked(address.base, access.memory, lanes);
    raw = b_.CreateBitCast(raw, vector_of(a_.memory_type(access.memory)));
    finish(b_.CreateSelect(lanes, a_.from_memory(raw, access.memory), other));
  } else if (motion == Motion::Contiguous) {
    Block* whole = block("all");
    Block* lanes = block("lanes");
    Value* all = b_.CreateAndReduce(mask);
    all = scope_.remaining ? b_.CreateAnd(all, scope_.full) : all;
    b_.CreateCondBr(all, whole, lanes);
    b_.SetInsertPoint(whole);
    llvm::Align align(static_cast<uint64_t>(element_size(access.memory)));
    llvm::Type* type = vector_of(a_.memory_type(access.memory));
    finish(a_.from_memory(b_.CreateAlignedLoad(type, address.base, align), access.memory));
    b_.SetInsertPoint(lanes);
    finish(load_if_lanes(node, address, mask, other));
  } else {
    finish(load_if_lanes(node, address, mask, other));
  }
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(other->getType(), 3);
  for (const auto& [value, from] : values) {
    result->addIncoming(value, from);
  }
  return result;
}

llvm::Value* Lowering::load_if_lanes(const Node* node, const LaneAddress& address, Value* mask,
                                     Value* other) {
  Access access = analysis_.access(node);
  llvm::Type* element = a_.memory_type(access.memory);
  Value* masks = spill(a_.to_memory(mask, DType::Bool));
  Value* results = spill(a_.to_memory(other, node->dtype));
  llvm::Type* result_type = a_.memory_type(node->dtype);
  count_loop(valid_lanes(), [&](Value* k) {
    Block* wanted = block("wanted");
    Block* next = block("next");
    Value* flag = b_.CreateLoad(b_.getInt8Ty(), b_.CreateGEP(b_.getInt8Ty(), masks, k));
    b_.CreateCondBr(b_.CreateICmpNE(flag, b_.getInt8(0)), wanted, next);
    b_.SetInsertPoint(wanted);
    Value* raw = b_.CreateLoad(element, at_lane(access, address, k));
    Value* value = a_.to_memory(a_.from_memory(raw, access.memory), node->dtype);
    b_.CreateStore(value, b_.CreateGEP(result_type, results, k));
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  });
  return a_.from_memory(b_.CreateLoad(vector_of(result_type), results), node->dtype);
}

}  // namespace rushlight::codegen
