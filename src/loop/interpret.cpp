// The definition of what a kernel computes: slow and plain. Everything else must agree with it.
#include <rushlight/error.h>
#include <rushlight/shape.h>

#include <algorithm>
#include <memory>

#include "loop/evaluate.h"
#include "loop/kernel.h"
#include "loop/reduction_tree.h"
#include "tensor/storage_bounds.h"

namespace rushlight::loop {
namespace {

// What must be computed at one point for some roots: first the reductions and scans, each by a
// scope of its own that moves the axes, then the nodes that use their results.
struct Scope {
  std::vector<const Node*> folds;
  std::vector<const Node*> nodes;
};

// A node's latest value and when it was computed. It is still good if none of the axes that the
// node depends on has moved since.
struct Cell {
  Value value = 0;
  uint64_t time = 0;
  AxisSet axes = 0;
  // Reduce and Scan:
  Scope body;
  std::vector<Value> lanes;  // Scan: one, the fold of the elements before `next`
  int64_t next = 0;
};

struct PendingStore {
  void* address;
  DType memory;
  StoreMode mode;
  Value value;
};

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, const KernelArgs& args, int64_t begin, int64_t end)
      : kernel_(kernel), args_(args), begin_(begin), end_(end) {
    free_axes_ = free_axes(kernel);
    for (const auto& [node, axes] : free_axes_) {
      cells_[node].axes = axes;
    }
    for (auto& [node, cell] : cells_) {
      if (node->op == Op::Reduce || node->op == Op::Scan) {
        cell.body = make_scope({node->inputs[0]});
      }
    }
    position_.resize(kernel.axes.size());
    moved_.resize(kernel.axes.size());
    if (checks_bounds) {
      for (size_t b = 0; b < kernel.buffers.size(); ++b) {
        bounds_.push_back(listed_memory(args.buffers[b]));
      }
    }
  }

  void run() {
    for (const Store& store : kernel_.stores) {
      run_store(store);
    }
    for (const PendingStore& store : pending_) {
      commit(store);
    }
  }

 private:
  static Scope make_scope(const std::vector<Expr>& roots) {
    Scope scope;
    std::unordered_map<const Node*, bool> needed;
    for (Expr root : roots) {
      needed[root.node] = true;
    }
    std::vector<Expr> order = post_order(roots);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node* node = it->node;
      if (!needed[node]) {
        continue;
      }
      if (node->op == Op::Reduce || node->op == Op::Scan) {
        scope.folds.push_back(node);
        continue;
      }
      scope.nodes.push_back(node);
      for (Expr input : node->inputs) {
        needed[input.node] = true;
      }
    }
    std::reverse(scope.nodes.begin(), scope.nodes.end());
    return scope;
  }

  void move(int axis, int64_t position) {
    position_[axis] = position;
    moved_[axis] = ++clock_;
  }

  bool moved_since(AxisSet axes, uint64_t time) const {
    for (size_t axis = 0; axis < moved_.size(); ++axis) {
      if ((axes >> axis & 1) && moved_[axis] > time) {
        return true;
      }
    }
    return time == 0;
  }

  void run_scope(const Scope& scope) {
    for (const Node* node : scope.folds) {
      run_fold(*node, cells_.at(node));
    }
    for (const Node* node : scope.nodes) {
      Cell& cell = cells_.at(node);
      if (moved_since(cell.axes, cell.time)) {
        cell.value = compute(*node);
        cell.time = ++clock_;
      }
    }
  }

  void run_fold(const Node& node, Cell& cell) {
    if (!moved_since(cell.axes, cell.time)) {
      return;
    }
    int64_t here = position_[node.slot];
    if (node.op == Op::Reduce) {
      run_reduce(node, cell);
    } else {
      run_scan(node, cell, here);
    }
    move(node.slot, here);
    cell.time = ++clock_;
  }

  void run_reduce(const Node& node, Cell& cell) {
    int axes = static_cast<int>(kernel_.axes.size());
    size_t count = static_cast<size_t>(lanes(node.slot, axes, element_size(node.dtype)));
    cell.lanes.assign(count, identity(node.combine, node.dtype));
    for (int64_t k = 0; k < args_.extents[node.slot]; ++k) {
      take_element(node, cell, k, cell.lanes[static_cast<size_t>(k) % count]);
    }
    for (size_t half = count / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        Value& lane = cell.lanes[i];
        lane = combine_values(node.combine, node.dtype, lane, cell.lanes[i + half]);
      }
    }
    cell.value = cell.lanes[0];
  }

  // Goes on from the element before, where only the scanned axis has moved, and forward.
  void run_scan(const Node& node, Cell& cell, int64_t here) {
    AxisSet others = cell.axes & ~(AxisSet{1} << node.slot);
    if (moved_since(others, cell.time) || cell.next > here) {
      cell.lanes.assign(1, identity(node.combine, node.dtype));
      cell.next = 0;
    }
    for (; cell.next <= here; ++cell.next) {
      take_element(node, cell, cell.next, cell.lanes[0]);
    }
    cell.value = cell.lanes[0];
  }

  void take_element(const Node& node, const Cell& cell, int64_t k, Value& into) {
    move(node.slot, k);
    run_scope(cell.body);
    into = combine_values(node.combine, node.dtype, into, value(node.inputs[0]));
  }

  Value value(Expr expr) const { return cells_.at(expr.node).value; }

  Value compute(const Node& node) const {
    switch (node.op) {
      case Op::Const:
        return node.bits;
      case Op::Scalar:
        return from_argument(args_.scalars[node.slot], node.dtype);
      case Op::Index:
        return static_cast<Value>(position_[node.slot]);
      case Op::Extent:
        return static_cast<Value>(args_.extents[node.slot]);
      case Op::Load:
        return read_memory(address(node.slot, node.inputs), node.buffer);
      case Op::LoadIf:
        return value(node.inputs[0])
                   ? read_memory(address(node.slot, std::span(node.inputs).subspan(2)), node.buffer)
                   : value(node.inputs[1]);
      default:
        break;
    }
    Value inputs[3] = {};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      inputs[i] = value(node.inputs[i]);
    }
    return evaluate(node, inputs);
  }

  void* address(int buffer, std::span<const Expr> indices) const {
    const Buffer& declared = kernel_.buffers[static_cast<size_t>(buffer)];
    int64_t offset = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      Layout layout = declared.dims[d];
      int64_t stride = layout == Layout::Any ? args_.strides[buffer][d] : layout == Layout::Unit;
      offset += static_cast<int64_t>(value(indices[d])) * stride;
    }
    char* found = static_cast<char*>(args_.buffers[buffer]) + offset * element_size(declared.dtype);
    if (!bounds_.empty()) {
      check_bounds(buffer, indices, found);
    }
    return found;
  }

  void check_bounds(int buffer, std::span<const Expr> indices, const char* at) const {
    const MemoryRange& range = bounds_[static_cast<size_t>(buffer)];
    const auto size = element_size(kernel_.buffers[static_cast<size_t>(buffer)].dtype);
    const int64_t first = at - range.begin;
    if (range.begin == nullptr ||
        (first >= 0 && first + size <= static_cast<int64_t>(range.bytes))) {
      return;
    }
    std::vector<int64_t> index;
    for (Expr expr : indices) {
      index.push_back(static_cast<int64_t>(value(expr)));
    }
    fail(ErrorKind::Internal, "", "kernel ", kernel_.name, ": index ", IntArrayRef(index),
         " of buffer ", buffer, " is out of bounds where the axes are at ", IntArrayRef(position_),
         ": byte ", first, " of storage of ", range.bytes, " bytes");
  }

  void run_store(const Store& store) {
    std::vector<Expr> guard;
    std::vector<Expr> operands = store.indices;
    operands.push_back(store.value);
    if (store.mask) {
      guard.push_back(store.mask);
    }
    Scope guard_scope = make_scope(guard);
    Scope scope = make_scope(operands);
    run_axes(store_axes(kernel_, store, free_axes_), 0, [&] {
      run_scope(guard_scope);
      if (store.mask && !value(store.mask)) {
        return;
      }
      run_scope(scope);
      DType memory = kernel_.buffers[static_cast<size_t>(store.buffer)].dtype;
      Value stored = convert(value(store.value), store.value.dtype(), compute_dtype(memory));
      pending_.push_back({address(store.buffer, store.indices), memory, store.mode, stored});
    });
  }

  template <typename F>
  void run_axes(AxisSet axes, size_t axis, const F& body) {
    if (axis == kernel_.axes.size()) {
      return body();
    }
    if (!(axes >> axis & 1)) {
      return run_axes(axes, axis + 1, body);
    }
    bool split = static_cast<int>(axis) == split_axis(kernel_);
    int64_t last = split ? end_ : args_.extents[axis];
    for (int64_t k = split ? begin_ : 0; k < last; ++k) {
      move(static_cast<int>(axis), k);
      run_axes(axes, axis + 1, body);
    }
  }

  static void commit(const PendingStore& store) {
    Value result = store.value;
    if (store.mode != StoreMode::Set) {
      constexpr Combine kCombines[] = {Combine::Sum, Combine::Sum, Combine::Prod, Combine::Max,
                                       Combine::Min};
      Combine combine = kCombines[static_cast<int>(store.mode)];
      Value before = read_memory(store.address, store.memory);
      result = combine_values(combine, compute_dtype(store.memory), before, result);
    }
    write_memory(store.address, store.memory, result);
  }

  const Kernel& kernel_;
  const KernelArgs& args_;
  int64_t begin_;
  int64_t end_;
  FreeAxes free_axes_;
  std::unordered_map<const Node*, Cell> cells_;
  std::vector<int64_t> position_;
  std::vector<uint64_t> moved_;
  uint64_t clock_ = 0;
  std::vector<PendingStore> pending_;
  std::vector<MemoryRange> bounds_;  // a buffer; empty where bounds are not checked
};

}  // namespace

void interpret(const Kernel& kernel, const KernelArgs& args, int64_t begin, int64_t end) {
  std::string fault = verify(kernel);
  if (!fault.empty()) {
    fail(ErrorKind::Internal, "loop.interpret", fault);
  }
  Interpreter(kernel, args, begin, end).run();
}

}  // namespace rushlight::loop
