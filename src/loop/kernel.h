// A kernel: an iteration space, the buffers it touches, and what it stores.
//
// Axes are ordered outermost first. A `parallel` axis may be split among threads and vectorised;
// `reduce` and `scan` axes are those that Reduce and Scan nodes name. Extents are run-time
// arguments. Every store is executed for each point of the axes that its value, indices and mask
// depend on; a store under a reduce axis (softmax's) sees the finished reduction. Reduce removes
// its axis from what its body depends on; Scan does not. A dimension of Layout::Zero depends on
// nothing.
//
// Loads see memory as it was before the kernel ran. Where a stored buffer is also loaded (in
// place), generated code keeps this only if the element stored at a point is loaded at no other
// point of the parallel axes, and under a reduce or scan axis at most at that point or by a
// finished reduction. The combining stores of one kernel see one another's results, in the order
// of the axes.
//
// Buffers have run-time strides, in elements; the layout class of each dimension says what is
// known at compile time, and is part of the key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loop/node.h"

namespace rushlight::loop {

enum class AxisKind : uint8_t { Parallel, Reduce, Scan };

// Zero: stride 0 (broadcast). Unit: stride 1. Any: a run-time stride.
enum class Layout : uint8_t { Zero, Unit, Any };

struct Buffer {
  DType dtype;
  std::vector<Layout> dims;  // one a dimension of the index list, outermost first
};

// Set overwrites; the others read, combine and write, in the order of the axes (so that results
// do not depend on threads: a kernel that scatters marks axes on which targets may collide Scan).
enum class StoreMode : uint8_t { Set, Add, Mul, Max, Min };

struct Store {
  int buffer;
  std::vector<Expr> indices;
  Expr value;  // converted as by Cast: combined in the buffer's compute_dtype, rounded once
  StoreMode mode = StoreMode::Set;
  Expr mask = {};  // where given: stores only where it holds
};

struct Kernel {
  std::string name;  // for people; not part of the key
  std::vector<AxisKind> axes;
  std::vector<Buffer> buffers;
  std::vector<DType> scalars;
  std::vector<Store> stores;
};

inline constexpr int64_t kScratchPadding = 64;

// What generated code is called with. Kernels run the first parallel axis over [begin, end): the
// runtime splits that axis among threads, so every store depends on it. Other axes run whole.
struct KernelArgs {
  void* const* buffers;           // one a buffer
  const int64_t* const* strides;  // strides[b][d], in elements; read where Layout is Any
  const int64_t* extents;         // one an axis
  const uint64_t* scalars;        // one a scalar: integers extended, f32 in low bits, f64 bits
  uint64_t streamed = 0;          // bit b: what goes to buffer b may be stored past the caches
  // Memory for kernels that reduce along their last axis: kScratchPadding elements of f32 more than
  // that axis has. Others need none.
  float* scratch = nullptr;
};
using KernelFunction = void (*)(const KernelArgs* args, int64_t begin, int64_t end);

// Everything but the name, as a hash that is stable between runs, builds and machines.
uint64_t key(const Kernel& kernel);

// Empty where the kernel is well formed; else what is wrong, with the offending node's text.
std::string verify(const Kernel& kernel);

// Text form: print(parse(text)) == text for printed text, and parse(print(k)) equals k.
std::string print(const Kernel& kernel);
std::string print(Expr expr);
Kernel parse(std::string_view text);  // Error(Value) with line and column
Expr parse_expr(std::string_view text);

// Whether all but the names agree.
bool same(const Kernel& a, const Kernel& b);

// Every expression of the stores: indices, mask and value of each, in order.
std::vector<Expr> roots(const Kernel& kernel);

// The axes that each node of the kernel depends on, and those that a store runs over, as bit sets.
using AxisSet = uint32_t;
using FreeAxes = std::unordered_map<const Node*, AxisSet>;
FreeAxes free_axes(const Kernel& kernel);
AxisSet store_axes(const Kernel& kernel, const Store& store, const FreeAxes& axes);

// The axis that [begin, end) runs over: the first parallel one, or -1.
int split_axis(const Kernel& kernel);

// Algebraic simplification that changes no bits of any result; idempotent.
Expr simplify(Expr expr);
Kernel simplify(const Kernel& kernel);

// Runs the kernel by definition, one point at a time, with the fixed reduction tree of
// reduction_tree.h, so compiled code must agree bit for bit (math functions: within their bound).
void interpret(const Kernel& kernel, const KernelArgs& args, int64_t begin, int64_t end);

// grad * d(body)/d(input) for each of `inputs`, which are Loads, LoadIfs, Scalars or any other
// float nodes; null where the body does not depend on it or only by steps (floor, comparisons,
// integers). No Reduce or Scan may lie between. PyTorch's conventions: equal operands of Max and
// Min share the gradient, unless one contains no Load (a bound of clamp): then the other gets it
// all, and none at NaN; abs has 0 at 0; sqrt has inf at 0. An unselected arm of Select gets 0 even
// where its derivative is not finite. sigmoid(x), log1p(exp(x)), tanh and such differentiate to
// forms without overflow or cancellation. The results can be differentiated again.
std::vector<Expr> differentiate(Expr body, const std::vector<Expr>& inputs, Expr grad);

}  // namespace rushlight::loop
