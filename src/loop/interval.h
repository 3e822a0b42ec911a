// Bounds of expressions: what values a node may take, given what its leaves may.
//
// Bounds are exact for the arithmetic of integers and, endpoint by endpoint rounded as the node
// rounds, of floats; what is not monotone and simple is unbounded. Each use of a leaf is taken to
// vary by itself, so bounds may be wide, never narrow.
#pragma once

#include <functional>
#include <unordered_map>

#include "loop/node.h"

namespace rushlight::loop {

struct Interval {
  double low;
  double high;
  bool nan = false;  // may be NaN as well
  bool is_point() const { return low == high && !nan; }
};

// All values of a dtype: [0, 1] for bool; of i64 and u64 the bounds are rounded outwards.
Interval all_values(DType dtype);

// An expression, ready to be bounded many times.
class Bounds {
 public:
  explicit Bounds(std::span<const Expr> roots);

  // What a leaf (Scalar, Index, Extent, Load) may be; of a load, its indices' bounds come
  // along.
  using Leaf = std::function<Interval(const Node& leaf, const Interval* indices)>;
  // Bounds every node of the roots.
  void evaluate(const Leaf& leaf);
  const Interval& of(Expr expr) const { return values_[places_.at(expr.node)]; }

 private:
  std::vector<Expr> order_;
  std::vector<std::vector<size_t>> inputs_;
  std::vector<Interval> values_;
  std::unordered_map<const Node*, size_t> places_;
};

}  // namespace rushlight::loop
