// Tiles: where a load is strided along the vector axis but contiguous along the axis around it, a
// square of the two axes, one cache line wide, is transposed on its way to the stack. Rows of the
// tile are then vectors like any other.
#include <unordered_set>

#include "codegen/lowering.h"

namespace rushlight::codegen {

Lowering::Nodes Lowering::tiled_loads() {
  Nodes found;
  std::unordered_set<const Node*> seen;
  Nodes pending;
  for (const loop::Store& store : kernel_.stores) {
    pending.push_back(store.value.node);
  }
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!seen.insert(node).second) {
      continue;
    }
    if (node->op == loop::Op::Load && !scope_.values.count(node) &&
        analysis_.is_tiled(analysis_.access(node))) {
      found.push_back(node);
    }
    for (const Expr& input : node->inputs) {
      pending.push_back(input.node);
    }
  }
  return found;
}

// Square blocks of the largest size that keeps its rows in registers, in log2(n) rounds, each of
// which interleaves row i with row i + n/2.
void Lowering::transpose(std::vector<Value*>& rows) {
  int n = static_cast<int>(rows.size());
  llvm::SmallVector<int, 16> low_half;
  llvm::SmallVector<int, 16> high_half;
  for (int i = 0; i < n / 2; ++i) {
    low_half.append({i, n + i});
    high_half.append({n / 2 + i, n + n / 2 + i});
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<Value*> next;
    for (int i = 0; i < n / 2; ++i) {
      next.push_back(b_.CreateShuffleVector(rows[i], rows[i + n / 2], low_half));
      next.push_back(b_.CreateShuffleVector(rows[i], rows[i + n / 2], high_half));
    }
    rows = next;
  }
}

// A stack copy of the tile at `base`: row k holds the lanes of position k on the tile axis.
llvm::Value* Lowering::load_tile(const Access& access, Value* base, Value* step) {
  llvm::Type* element = a_.memory_type(access.memory);
  int n = element_size(access.memory) == 1 ? 16 : 8;
  llvm::Type* row_type = llvm::FixedVectorType::get(element, static_cast<unsigned>(n));
  llvm::Align align(static_cast<uint64_t>(element_size(access.memory)));
  Value* tile = temporary(element, width_ * width_);
  Value* size = b_.getInt64(n);
  count_loop(b_.getInt64(width_ / n), [&](Value* i) {
    Value* lane = b_.CreateMul(i, size);
    Value* row_base = b_.CreateGEP(element, base, b_.CreateMul(lane, step));
    count_loop(b_.getInt64(width_ / n), [&](Value* j) {
      Value* position = b_.CreateMul(j, size);
      Value* from = b_.CreateGEP(element, row_base, position);
      std::vector<Value*> rows;
      for (int r = 0; r < n; ++r) {
        Value* address = b_.CreateGEP(element, from, b_.CreateMul(step, b_.getInt64(r)));
        rows.push_back(b_.CreateAlignedLoad(row_type, address, align));
      }
      transpose(rows);
      Value* to = b_.CreateAdd(b_.CreateMul(position, b_.getInt64(width_)), lane);
      for (int r = 0; r < n; ++r) {
        Value* offset = b_.CreateAdd(to, b_.getInt64(r * width_));
        b_.CreateAlignedStore(rows[r], b_.CreateGEP(element, tile, offset), align);
      }
    });
  });
  return tile;
}

void Lowering::tile_loop(const std::function<void()>& body) {
  int outer = analysis_.tile_axis();
  int inner = analysis_.vector_axis();
  Nodes loads = tiled_loads();
  Value* outer_last = high(outer);
  Value* inner_first = low(inner);
  Value* inner_last = high(inner);
  Value* side = b_.getInt64(width_);
  Value* blocks = b_.CreateAnd(b_.CreateSub(inner_last, inner_first), b_.getInt64(-width_));
  Value* inner_whole = b_.CreateAdd(inner_first, blocks);
  block_loop(outer, low(outer), outer_last, width_, [&] {
    Value* start = scope_.axes[outer];
    Value* left = b_.CreateSub(outer_last, start);
    Value* whole = b_.CreateICmpSGE(left, side);
    Value* tiles_end = b_.CreateSelect(whole, inner_whole, inner_first);
    block_loop(inner, inner_first, tiles_end, width_, [&] {
      std::vector<Value*> tiles;
      {
        Saved saved(*this);
        for (const Node* node : loads) {
          Access access = analysis_.access(node);
          tiles.push_back(load_tile(access, pointer(access), lane_stride(access)));
        }
      }

      count_loop(side, [&](Value* k) {
        Saved saved(*this);
        scope_.pointers.clear();
        scope_.firsts.clear();
        bind(outer, b_.CreateAdd(start, k));
        scope_.remaining = nullptr;
        scope_.full = b_.getTrue();
        for (size_t i = 0; i < loads.size(); ++i) {
          DType memory = analysis_.access(loads[i]).memory;
          llvm::Type* element = a_.memory_type(memory);
          Value* row = b_.CreateGEP(element, tiles[i], b_.CreateMul(k, side));
          scope_.values[loads[i]] = a_.from_memory(b_.CreateLoad(vector_of(element), row), memory);
        }
        body();
      });
    });
    Value* outer_end = b_.CreateAdd(start, b_.CreateSelect(whole, side, left));
    scope_.axes[outer] = nullptr;
    scope_.bound &= ~(AxisMask{1} << outer);
    scalar_loop(outer, start, outer_end, {}, [&] { vector_loop(tiles_end, inner_last, body); });
  });
}

}  // namespace rushlight::codegen
