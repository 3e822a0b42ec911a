// The lowering of one kernel to one LLVM function, already vectorised: LLVM's own vectorisers do
// not run. Values that vary along the kernel's last axis are vectors of Analysis::width() lanes;
// all others are scalars, computed as far out as their axes allow.
//
// A block of lanes that reaches past the end of the axis runs the same code as a full one: loads go
// through a stack copy whose lanes past the end repeat the last valid element (so indices stay in
// range), stores go through a stack copy of which only the valid part is written back. Hence tail
// elements get the same bits, and each body is emitted once. Where the target has masks for all
// lanes, they move the valid part at once, and stores need no copy.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/analysis.h"
#include "codegen/arithmetic.h"

namespace rushlight::codegen {

class Lowering {
 public:
  Lowering(llvm::Module& module, const loop::Kernel& kernel, const std::string& symbol,
           bool has_masks);
  void run();

 private:
  using Value = llvm::Value;
  using Block = llvm::BasicBlock;
  using Nodes = std::vector<const Node*>;
  using Stores = std::vector<const loop::Store*>;

  // What has been computed where the builder stands. Copied on entry to a loop body and put back
  // after it, so that nothing is used outside of where it dominates.
  struct Partial {
    Value* pointer;
    uint64_t dims;  // those whose index is in `pointer` already
  };
  struct Scope {
    AxisMask bound = 0;
    std::unordered_map<const Node*, Value*> values;
    std::unordered_map<const Node*, Value*> firsts;  // of lane 0, where the value is a vector
    std::unordered_map<const void*, Partial> pointers;
    std::vector<Value*> axes;    // position; of lane 0 for the vector axis
    Value* remaining = nullptr;  // valid lanes of this block and after; null: the block is full
    Value* full = nullptr;       // i1: all lanes of this block are valid
    Value* lanes = nullptr;      // positions of the lanes, once computed
    Value* mask = nullptr;       // of valid lanes, where loads and stores move them by it
  };
  class Saved;

  // --- lower.cpp: entry, nests of loops around stores, hoisting
  void load_arguments();
  void find_streams();
  void find_fetched(const loop::Store& store);
  std::vector<Value*> fetched_ahead();
  void nest(size_t level, const Stores& stores);
  void store_all(const Stores& stores);
  void prepare(const Nodes& roots, const Stores& stores);
  struct Ready {
    Nodes reduces;
    Nodes loads;
    Nodes maximal;
  };
  void collect_ready(const Node* node, std::unordered_set<const Node*>& seen, Ready& found,
                     bool below);
  int rank(const Node* node, const Nodes& reduces);
  void reduce_ready(const Nodes& reduces);
  void advance_pointers(const Nodes& roots, const Stores& stores);
  bool in_vector_loop() const {
    return analysis_.vector_axis() >= 0 && scope_.axes[analysis_.vector_axis()] != nullptr;
  }
  bool is_bound(const Node* node) { return (analysis_.deps(node) & ~scope_.bound) == 0; }

  // --- loops.cpp
  Value* low(int axis);
  Value* high(int axis);
  void bind(int axis, Value* position);
  void scalar_loop(int axis, Value* first, Value* last, const Nodes& scans,
                   const std::function<void()>& body);
  void vector_loop(Value* first, Value* last, const std::function<void()>& body);
  void block_loop(int axis, Value* first, Value* last, int step, const std::function<void()>& body);
  void row_loop(int axis, const std::function<void()>& body);
  void count_loop(Value* count, const std::function<void(Value*)>& body);
  void reduce_group(int axis, const Nodes& reduces);
  void reduce_plain(int axis, const Nodes& reduces);
  void reduce_lanes(const Nodes& reduces);
  struct Lanes;
  Value* reduce_main(std::vector<Lanes>& all);
  void reduce_rest(std::vector<Lanes>& all, Value* start);
  Value* fold(const Lanes& lanes);
  Value* scan_value(const Node* node);

  // --- tile.cpp: loads that are strided along the vector axis but contiguous along another
  void tile_loop(const std::function<void()>& body);
  Nodes tiled_loads();
  Value* load_tile(const Access& access, Value* base, Value* step);
  void transpose(std::vector<Value*>& rows);

  // --- stage.cpp: values kept in the output, or in scratch memory where that is of a narrower
  // type, between a reduction and the stores after it
  void find_staged(const Stores& stores, const Nodes& reduces);
  bool decides(const Node* staged, const Node* node, bool contiguous);
  struct Staged {
    const loop::Store* store = nullptr;
    const Node* value = nullptr;
    Value* scratch = nullptr;
  };
  void stage(Value* value);
  Value* staged_value();

  // --- memory.cpp, store.cpp, pairs.cpp
  struct LaneAddress {  // how to find lane k's address inside of a loop over lanes
    Value* base;
    Value* step;  // elements a lane, or null
    std::vector<std::pair<Value*, size_t>>
        indices;  // stack copies of index vectors, with their dim
  };
  Value* pointer(const Access& access);  // of lane 0; without moving dimensions where it gathers
  void advance(const Access& access);
  Value* scaled(const Access& access, size_t dim, Value* index);
  Value* lane_stride(const Access& access);
  LaneAddress lane_address(const Access& access);
  Value* at_lane(const Access& access, const LaneAddress& address, Value* lane);
  Value* load(const Node* node);
  void load_group(const Nodes& loads);
  std::vector<Value*> load_vectors(const std::vector<Access>& loads);
  struct Moved {  // a load that is on its way
    Value* base;
    Value* step = nullptr;  // null: contiguous
    Value* copy = nullptr;
    Value* vector = nullptr;
  };
  Value* load_masked(Value* base, DType memory, Value* mask);
  void copy_tail(const std::vector<Access>& loads, std::vector<Moved>& items);
  void choose_tail(const std::vector<Access>& loads, std::vector<Moved>& items, bool any_strided);
  void prefetch_rows(const Access& access, Value* base);
  void prefetch_vector(const Access& access, Value* ahead);
  Value* strided(const Access& access, Value* base, Value* step);
  const std::unordered_set<const Node*>& nodes();
  int pair_part(const Access& access);
  bool loads_other_part(const Access& access, int part);
  Value* load_pairs(const Access& access, Value* base, int part);
  bool is_pair(const loop::Store& first, const loop::Store& second);
  void store_pairs(const loop::Store& first, Value* real, const loop::Store& second, Value* imag);
  Value* gather(const Access& access);
  Value* load_if(const Node* node);
  Value* load_if_uniform(const Node* node, Value* mask, Value* other);
  Value* load_if_moving(const Node* node, Value* mask, Value* other);
  Value* load_if_lanes(const Node* node, const LaneAddress& address, Value* mask, Value* other);
  Value* valid_lanes();  // i64: how many lanes of this block are valid
  Value* lane_mask();    // which
  Value* lane_mask(Value* valid);
  bool has_gathers();  // whether lanes past the end must hold indices that are in range
  void store_vector(const loop::Store& store, Value* raw, Value* target, Value* address);
  void store_contiguous(const std::vector<std::pair<const loop::Store*, Value*>>& stores);
  void store_masked(const std::vector<std::pair<const loop::Store*, Value*>>& stores);
  void store_lanes_at_once(const loop::Store& store, Value* raw, Value* target, Value* mask);
  void store_one(const loop::Store& store, Value* value, Value* mask);
  void store_lanes(const loop::Store& store, const LaneAddress& address, Value* value, Value* mask);
  Value* stored(const loop::Store& store, Value* old_raw, Value* value);
  llvm::Type* vector_of(llvm::Type* element) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  }
  Value* temporary(llvm::Type* element, int count);
  Value* spill(Value* vector);

  // --- values.cpp
  Value* eval(const Node* node);
  Value* eval_first(const Node* node);  // the value in lane 0, as a scalar
  Value* eval_vector(const Node* node) { return a_.widen(eval(node), width_); }
  Value* compute(const Node* node);
  Value* lane_positions();
  Value* short_lane_positions();

  Block* block(const char* name);
  void branch(Value* condition, Block* likely, Block* unlikely);

  const loop::Kernel& kernel_;
  Analysis analysis_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  Arithmetic a_;
  llvm::Function* function_;
  Block* entry_ = nullptr;
  int width_;
  bool has_masks_;
  bool repeats_lanes_ = false;
  int column_axis_ = -1;  // the reduce axis that runs inside of the vector loop
  Staged staged_;
  Scope scope_;
  Value* begin_ = nullptr;
  Value* end_ = nullptr;
  std::vector<Value*> buffers_;
  std::vector<Value*> extents_;
  std::vector<std::vector<Value*>> strides_;
  std::vector<Value*> scalars_;
  // How vectors of a buffer are streamed: not at all where there is no mask.
  struct Stream {
    Value* mask = nullptr;  // of the address: zero where the vector goes past the caches
    int bytes = 0;          // of the vector
  };
  std::vector<Stream> streams_;            // by buffer
  std::vector<Access> fetched_;            // what is asked for ahead of streamed stores
  std::unordered_set<const Node*> nodes_;  // the kernel's nodes, once they are asked for
  std::unordered_map<const Node*, std::pair<Value*, Value*>> scans_;  // running value, new value
};

// Restores the scope when it goes.
class Lowering::Saved {
 public:
  explicit Saved(Lowering& lowering) : lowering_(lowering), scope_(lowering.scope_) {}
  ~Saved() { lowering_.scope_ = std::move(scope_); }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

 private:
  Lowering& lowering_;
  Scope scope_;
};

}  // namespace rushlight::codegen
