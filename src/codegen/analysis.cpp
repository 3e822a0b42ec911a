#include "codegen/analysis.h"

#include <algorithm>
#include <unordered_set>

namespace rushlight::codegen {

using loop::AxisKind;
using loop::Layout;
using loop::Op;

bool is_heavy(Op op) {
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Tanh:
    case Op::Asinh:
    case Op::Acosh:
    case Op::Atanh:
    case Op::Erf:
    case Op::Erfc:
    case Op::Erfinv:
    case Op::Lgamma:
    case Op::Digamma:
    case Op::Pow:
    case Op::Atan2:
    case Op::Hypot:
    case Op::NextAfter:
      return true;
    default:
      return false;
  }
}

namespace {

int own_cost(const Node* node) {
  if (is_heavy(node->op)) {
    return 16;
  }
  switch (node->op) {
    case Op::Const:
    case Op::Scalar:
    case Op::Extent:
    case Op::Index:
      return 0;
    case Op::Rem:
    case Op::Mod:
    case Op::FloorDiv:
      return 16;
    case Op::Div:
      return is_floating(node->dtype) ? 2 : 16;
    case Op::LoadIf:
      return 4;
    case Op::Load:
      return is_float8(node->buffer) ? 8 : 1;
    default:
      return 1;
  }
}

}  // namespace

Analysis::Analysis(const loop::Kernel& kernel) : kernel_(kernel) {
  int count = static_cast<int>(kernel.axes.size());
  if (count > 0 && kernel.axes.back() != AxisKind::Scan) {
    vector_axis_ = count - 1;
  }
  for (int axis = 0; axis < count; ++axis) {
    if (kernel.axes[axis] == AxisKind::Parallel) {
      split_axis_ = split_axis_ < 0 ? axis : split_axis_;
      loop_order_.push_back(axis);
    }
  }
  for (int axis = 0; axis < count; ++axis) {
    if (kernel.axes[axis] != AxisKind::Parallel) {
      loop_order_.push_back(axis);
    }
  }
  choose_width();
  if (count > 0 && kernel.axes.back() == AxisKind::Scan) {
    for (int axis = 0; axis < count; ++axis) {
      row_axis_ = kernel.axes[axis] == AxisKind::Parallel ? axis : row_axis_;
    }
  }
  choose_tile();
}

AxisMask Analysis::deps(const Node* node) {
  auto found = deps_.find(node);
  if (found != deps_.end()) {
    return found->second;
  }
  AxisMask mask = 0;
  if (node->op == Op::Index) {
    mask = AxisMask{1} << node->slot;
  } else if (node->op == Op::Load || node->op == Op::LoadIf) {
    size_t first = node->op == Op::Load ? 0 : 2;
    for (size_t i = 0; i < first; ++i) {
      mask |= deps(node->inputs[i].node);
    }
    const std::vector<Layout>& dims = kernel_.buffers[node->slot].dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      mask |= dims[d] == Layout::Zero ? 0 : deps(node->inputs[first + d].node);
    }
  } else {
    for (const Expr& input : node->inputs) {
      mask |= deps(input.node);
    }
    if (node->op == Op::Reduce) {
      mask &= ~(AxisMask{1} << node->slot);
    } else if (node->op == Op::Scan) {
      mask |= AxisMask{1} << node->slot;
    }
  }
  deps_.emplace(node, mask);
  return mask;
}

AxisMask Analysis::deps(const loop::Store& store) {
  AxisMask mask = deps(store.value.node);
  if (store.mask) {
    mask |= deps(store.mask.node);
  }
  const std::vector<Layout>& dims = kernel_.buffers[store.buffer].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    mask |= dims[d] == Layout::Zero ? 0 : deps(store.indices[d].node);
  }
  return mask;
}

Access Analysis::access(const Node* load) const {
  size_t first = load->op == Op::Load ? 0 : 2;
  std::span<const Expr> inputs(load->inputs);
  return {load, load->slot, load->buffer, inputs.subspan(first)};
}

Access Analysis::access(const loop::Store& store) const {
  return {&store, store.buffer, kernel_.buffers[store.buffer].dtype, store.indices};
}

bool Analysis::moves(const Access& access, size_t dim) {
  return kernel_.buffers[access.buffer].dims[dim] != Layout::Zero &&
         vectorised(deps(access.indices[dim].node));
}

std::optional<int64_t> Analysis::factor(const Node* index, int axis) {
  if (axis < 0 || (deps(index) >> axis & 1) == 0) {
    return 0;
  }
  auto of = [&](size_t i) { return factor(index->inputs[i].node, axis); };
  switch (index->op) {
    case Op::Index:
      return 1;
    case Op::Neg: {
      std::optional<int64_t> a = of(0);
      return a ? std::optional<int64_t>(-*a) : std::nullopt;
    }
    case Op::Add:
    case Op::Sub: {
      std::optional<int64_t> a = of(0);
      std::optional<int64_t> b = of(1);
      if (!a || !b) {
        return std::nullopt;
      }
      return index->op == Op::Add ? *a + *b : *a - *b;
    }
    case Op::Mul:
      for (int i = 0; i < 2; ++i) {
        if (index->inputs[i]->op == Op::Const) {
          std::optional<int64_t> a = of(1 - i);
          if (a) {
            return *a * static_cast<int64_t>(index->inputs[i]->bits);
          }
        }
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Motion Analysis::motion(const Access& access) {
  const std::vector<Layout>& dims = kernel_.buffers[access.buffer].dims;
  int moving = 0;
  bool unit = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!moves(access, d)) {
      continue;
    }
    std::optional<int64_t> f = factor(access.indices[d].node);
    if (!f) {
      return Motion::Gather;
    }
    ++moving;
    unit = unit && dims[d] == Layout::Unit && *f == 1;
  }
  if (moving == 0) {
    return Motion::Uniform;
  }
  return moving == 1 && unit ? Motion::Contiguous : Motion::Strided;
}

int Analysis::cost(const Node* node) {
  auto found = costs_.find(node);
  if (found != costs_.end()) {
    return found->second;
  }
  int total = own_cost(node);
  if (node->op != Op::Load) {
    for (const Expr& input : node->inputs) {
      total = std::min(total + cost(input.node), 1000);
    }
  }
  costs_.emplace(node, total);
  return total;
}

// The widest value that varies along the vector axis, and whether any access is lane by lane.
void Analysis::visit_types(const Node* node, std::unordered_map<const Node*, bool>& seen,
                           int& bytes, bool& scattered) {
  if (!seen.emplace(node, true).second) {
    return;
  }
  bool load = node->op == Op::Load || node->op == Op::LoadIf;
  if (load) {
    Motion m = motion(access(node));
    scattered = scattered || m == Motion::Strided || m == Motion::Gather;
  }
  if (vectorised(deps(node)) && node->op != Op::Index) {
    bytes = std::max(bytes, static_cast<int>(element_size(node->dtype)));
  }
  // Affine indices are evaluated as scalars, so they do not count.
  size_t first = node->op == Op::LoadIf ? 2 : 0;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (load && i >= first && factor(node->inputs[i].node)) {
      continue;
    }
    visit_types(node->inputs[i].node, seen, bytes, scattered);
  }
}

// Long but thin: few values are alive at once, and each operation waits for the one before it, so
// that registers side by side are what keeps the machine busy.
bool Analysis::is_chain(const std::unordered_map<const Node*, bool>& nodes) const {
  int loads = 0;
  for (const auto& [node, ignored] : nodes) {
    if (is_heavy(node->op) || node->op == Op::Reduce || node->op == Op::Select) {
      return false;
    }
    loads += node->op == Op::Load || node->op == Op::LoadIf ? 1 : 0;
  }
  return loads <= 3 && kernel_.stores.size() <= 2;
}

void Analysis::choose_width() {
  if (vector_axis_ < 0) {
    return;
  }
  int bytes = 1;
  int total = 0;
  bool scattered = false;
  std::unordered_map<const Node*, bool> seen;
  for (const loop::Store& store : kernel_.stores) {
    visit_types(store.value.node, seen, bytes, scattered);
    if (store.mask) {
      visit_types(store.mask.node, seen, bytes, scattered);
    }
    if (!vectorised(deps(store))) {
      continue;  // stored one by one
    }
    bytes = std::max(
        bytes, static_cast<int>(element_size(compute_dtype(kernel_.buffers[store.buffer].dtype))));
    Motion m = motion(access(store));
    scattered = scattered || m == Motion::Strided || m == Motion::Gather;
    total += cost(store.value.node);
  }
  // Two AVX2 registers a value; four where the body is short, to keep more loads in flight.
  int base = std::clamp(64 / bytes, 8, 32);
  bool columns =
      kernel_.axes[vector_axis_] == AxisKind::Parallel &&
      std::find(kernel_.axes.begin(), kernel_.axes.end(), AxisKind::Reduce) != kernel_.axes.end();
  if (scattered) {
    base = std::min(base, 16);
  } else if (columns && total <= 12) {
    base = std::min(base * 4, 64);
  } else if (kernel_.axes[vector_axis_] == AxisKind::Parallel && (total <= 12 || is_chain(seen))) {
    base = std::min(base * 2, 32);
  }
  width_ = base;
}

// Whether consecutive positions on `axis` are neighbours in memory, in a load that is strided along
// the vector axis.
bool Analysis::fits_tile(const Access& access, int axis) {
  if (motion(access) != Motion::Strided) {
    return false;
  }
  int moving = 0;
  bool unit = true;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    const Node* index = access.indices[d].node;
    Layout layout = kernel_.buffers[access.buffer].dims[d];
    if (layout != Layout::Zero && (deps(index) >> axis & 1) != 0) {
      ++moving;
      unit = unit && layout == Layout::Unit && factor(index, axis) == 1 && !moves(access, d);
    }
  }
  return moving == 1 && unit;
}

bool Analysis::is_tiled(const Access& access) {
  return tile_axis_ >= 0 && fits_tile(access, tile_axis_);
}

void Analysis::choose_tile() {
  for (AxisKind kind : kernel_.axes) {
    if (kind != AxisKind::Parallel) {
      return;
    }
  }
  std::unordered_map<const Node*, bool> seen;
  std::vector<const Node*> pending;
  for (const loop::Store& store : kernel_.stores) {
    pending.push_back(store.value.node);
  }
  int bytes = 1;
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!seen.emplace(node, true).second) {
      continue;
    }
    for (int axis = 0; axis < vector_axis_ && node->op == Op::Load; ++axis) {
      if ((tile_axis_ < 0 || tile_axis_ == axis) && fits_tile(access(node), axis)) {
        tile_axis_ = axis;
        bytes = std::max(bytes, static_cast<int>(element_size(node->buffer)));
      }
    }
    for (const Expr& input : node->inputs) {
      pending.push_back(input.node);
    }
  }
  if (tile_axis_ < 0) {
    return;
  }
  // Tiles are one cache line wide.
  width_ = std::clamp(64 / bytes, 8, 32);
  loop_order_.erase(std::find(loop_order_.begin(), loop_order_.end(), tile_axis_));
  loop_order_.insert(loop_order_.end() - 1, tile_axis_);
}

}  // namespace rushlight::codegen
