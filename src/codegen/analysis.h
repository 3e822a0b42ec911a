// What the lowering asks about a kernel before it emits anything. No LLVM here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "loop/kernel.h"

namespace rushlight::codegen {

using loop::Expr;
using loop::Node;
using AxisMask = uint32_t;

// A touch of memory: a Load, a LoadIf or a Store.
struct Access {
  const void* id;  // the node or the store: what addresses are remembered by
  int buffer;
  DType memory;
  std::span<const Expr> indices;
};

// How an access moves along the vector axis, and what it needs.
enum class Motion : uint8_t {
  Uniform,     // does not move
  Contiguous,  // lane l touches element l
  Strided,     // lane l touches element l * stride, stride known at run time
  Gather,      // each lane has an address of its own
};

class Analysis {
 public:
  explicit Analysis(const loop::Kernel& kernel);

  const loop::Kernel& kernel() const { return kernel_; }

  // The last axis, where it is vectorised; -1 where all is scalar (a scan runs along it).
  int vector_axis() const { return vector_axis_; }
  // Lanes of a vector value: a power of two that divides the reduction lanes.
  int width() const { return width_; }
  // Makes another axis the vector axis, or none (-1), for the code emitted from here on.
  void vectorise(int axis, int width) {
    vector_axis_ = axis;
    width_ = width;
  }

  // Where a scan runs along the last axis: the parallel axis whose neighbours may share a vector,
  // the last one; else -1.
  int row_axis() const { return row_axis_; }

  // The axis along which loads that are strided along the vector axis are contiguous, so that tiles
  // of the two axes are worth transposing; -1 where there is none. It runs just outside of the
  // vector axis.
  int tile_axis() const { return tile_axis_; }
  bool is_tiled(const Access& access);

  // The axes that a value depends on. Indices of dimensions with Layout::Zero do not count.
  AxisMask deps(const Node* node);
  AxisMask deps(const loop::Store& store);

  Access access(const Node* load) const;
  Access access(const loop::Store& store) const;
  Motion motion(const Access& access);
  // The factor of the vector axis in an index expression, where it is affine in that axis.
  std::optional<int64_t> factor(const Node* index) { return factor(index, vector_axis_); }
  std::optional<int64_t> factor(const Node* index, int axis);
  bool moves(const Access& access, size_t dim);  // whether that index varies with the vector axis

  // Rough cost of evaluating a value once, in vector operations; Reduce bodies count once.
  int cost(const Node* node);

  // The axis that the caller's [begin, end) runs over: the first parallel axis, or -1.
  int split_axis() const { return split_axis_; }
  // The order of loops around stores: parallel axes, then the others; the vector axis last of its
  // kind.
  const std::vector<int>& loop_order() const { return loop_order_; }

  bool vectorised(AxisMask mask) const {
    return vector_axis_ >= 0 && (mask >> vector_axis_ & 1) != 0;
  }

 private:
  void choose_width();
  bool is_chain(const std::unordered_map<const Node*, bool>& nodes) const;
  void choose_tile();
  bool fits_tile(const Access& access, int axis);
  void visit_types(const Node* node, std::unordered_map<const Node*, bool>& seen, int& bytes,
                   bool& scattered);

  const loop::Kernel& kernel_;
  int vector_axis_ = -1;
  int split_axis_ = -1;
  int row_axis_ = -1;
  int tile_axis_ = -1;
  int width_ = 1;
  std::vector<int> loop_order_;
  std::unordered_map<const Node*, AxisMask> deps_;
  std::unordered_map<const Node*, int> costs_;
};

// Whether operations of this kind are polynomials or calls rather than single instructions.
bool is_heavy(loop::Op op);

}  // namespace rushlight::codegen
