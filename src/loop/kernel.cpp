#include "loop/kernel.h"

#include "loop/hash.h"

namespace rushlight::loop {
namespace {

// Bumped when the meaning of the IR changes, so that objects cached on disk are made anew.
constexpr uint64_t kVersion = 1;

bool same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) {
      return false;
    }
  }
  return true;
}

bool same(const Store& a, const Store& b) {
  return a.buffer == b.buffer && a.mode == b.mode && same(a.indices, b.indices) &&
         same(a.value, b.value) && same(a.mask, b.mask);
}

uint64_t dtype_hash(uint64_t h, DType dtype) {
  return mix_hash(h, rushlight::info(dtype).ir_name);
}

uint64_t store_hash(uint64_t h, const Store& store) {
  h = mix_hash(h, static_cast<uint64_t>(store.buffer));
  h = mix_hash(h, static_cast<uint64_t>(store.mode));
  for (Expr index : store.indices) {
    h = mix_hash(h, index->hash);
  }
  h = mix_hash(h, store.value->hash);
  return mix_hash(h, store.mask ? store.mask->hash : 0);
}

// The union over the operands; index dimensions of Layout::Zero are multiplied by 0.
AxisSet operand_axes(const Kernel& kernel, const Node& node, const FreeAxes& axes) {
  size_t first_index = node.op == Op::Load ? 0 : node.op == Op::LoadIf ? 2 : node.inputs.size();
  AxisSet result = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    bool ignored =
        i >= first_index && kernel.buffers[node.slot].dims[i - first_index] == Layout::Zero;
    result |= ignored ? 0 : axes.at(node.inputs[i].node);
  }
  return result;
}

}  // namespace

uint64_t key(const Kernel& kernel) {
  uint64_t h = mix_hash(kVersion, static_cast<uint64_t>(kernel.axes.size()));
  for (AxisKind axis : kernel.axes) {
    h = mix_hash(h, static_cast<uint64_t>(axis));
  }
  for (const Buffer& buffer : kernel.buffers) {
    h = mix_hash(dtype_hash(h, buffer.dtype), static_cast<uint64_t>(buffer.dims.size()));
    for (Layout layout : buffer.dims) {
      h = mix_hash(h, static_cast<uint64_t>(layout));
    }
  }
  for (DType dtype : kernel.scalars) {
    h = dtype_hash(h, dtype);
  }
  for (const Store& store : kernel.stores) {
    h = store_hash(h, store);
  }
  return h;
}

bool same(const Kernel& a, const Kernel& b) {
  if (a.axes != b.axes || a.scalars != b.scalars || a.buffers.size() != b.buffers.size() ||
      a.stores.size() != b.stores.size()) {
    return false;
  }
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    if (a.buffers[i].dtype != b.buffers[i].dtype || a.buffers[i].dims != b.buffers[i].dims) {
      return false;
    }
  }
  for (size_t i = 0; i < a.stores.size(); ++i) {
    if (!same(a.stores[i], b.stores[i])) {
      return false;
    }
  }
  return true;
}

std::vector<Expr> roots(const Kernel& kernel) {
  std::vector<Expr> result;
  for (const Store& store : kernel.stores) {
    result.insert(result.end(), store.indices.begin(), store.indices.end());
    if (store.mask) {
      result.push_back(store.mask);
    }
    result.push_back(store.value);
  }
  return result;
}

FreeAxes free_axes(const Kernel& kernel) {
  FreeAxes axes;
  for (Expr expr : post_order(roots(kernel))) {
    const Node& node = *expr.node;
    AxisSet own = AxisSet{1} << (node.slot & 31);
    AxisSet set = node.op == Op::Index ? own : operand_axes(kernel, node, axes);
    if (node.op == Op::Reduce) {
      set &= ~own;
    } else if (node.op == Op::Scan) {
      set |= own;
    }
    axes[expr.node] = set;
  }
  return axes;
}

AxisSet store_axes(const Kernel& kernel, const Store& store, const FreeAxes& axes) {
  AxisSet result = axes.at(store.value.node);
  result |= store.mask ? axes.at(store.mask.node) : 0;
  for (size_t i = 0; i < store.indices.size(); ++i) {
    bool ignored = kernel.buffers[store.buffer].dims[i] == Layout::Zero;
    result |= ignored ? 0 : axes.at(store.indices[i].node);
  }
  return result;
}

int split_axis(const Kernel& kernel) {
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (kernel.axes[axis] == AxisKind::Parallel) {
      return static_cast<int>(axis);
    }
  }
  return -1;
}

}  // namespace rushlight::loop
