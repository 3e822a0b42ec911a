// Functions of attention scores, as flex attention has them: traced expressions over
//   s0 the score, s1 batch, s2 head, s3 query, s4 key (i32), and loads from captured tensors,
// in the text form of loop expressions, so that they are attributes of an operator like others.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loop/interval.h"
#include "loop/kernel.h"
#include "ops/elementwise_trace.h"

namespace rushlight {

enum FlexScalar : int { kFlexScore, kFlexBatch, kFlexHead, kFlexQuery, kFlexKey };

struct FlexShape {
  int64_t batch;
  int64_t heads;
  int64_t queries;
  int64_t keys;
};

// Where one evaluation of a function lies in a kernel: what stands for its arguments.
struct FlexPlace {
  std::array<loop::Expr, 5> scalars;  // by FlexScalar; indices i32
  std::array<loop::Expr, 5> wide;     // indices once more, as i64
  int first_buffer;                   // of the captured tensors
};

class FlexFunction {
 public:
  // `what` is for messages: "score_mod" or "mask_mod". Error(Index) where a captured tensor may be
  // read outside its bounds for some position of `shape`.
  FlexFunction(std::string_view what, std::string_view text, const TensorList& captures,
               const FlexShape& shape);

  explicit operator bool() const { return !text_.empty(); }
  loop::Expr root() const { return root_; }
  // All that the kernels made of it depend on.
  std::string signature() const;
  const TensorList& captures() const { return captures_; }
  // Whether the value depends on one of the arguments.
  bool reads(FlexScalar scalar) const;
  // Whether the place of a captured element depends on it.
  bool loads_by(FlexScalar scalar) const;

  struct Placed {
    loop::Expr value;
    std::vector<loop::Expr> loads;  // the loads of captured tensors, as placed
    std::vector<int> captures;      // and which tensor each reads
  };
  Placed place(const FlexPlace& at) const;

 private:
  struct LoadInfo {
    loop::Expr load;
    std::vector<bool> wraps;  // by dimension: whether its index may be negative
  };
  void check_load(std::string_view what, const LoadInfo& info, size_t d, const FlexShape& shape);
  loop::Expr widen(loop::Expr index, const FlexPlace& at,
                   const std::unordered_map<const loop::Node*, loop::Expr>& done, int depth) const;

  std::string text_;
  loop::Expr root_ = {};
  TensorList captures_;
  std::vector<LoadInfo> loads_;
  std::unordered_map<const loop::Node*, loop::Interval> bounds_;  // over all positions
};

// Declares captured tensors as the buffers of a kernel, and gives their run-time arguments.
void declare_captures(const TensorList& captures, std::vector<loop::Buffer>* buffers);
// Strides as a kernel reads them, one array a tensor.
std::vector<std::vector<int64_t>> capture_strides(const TensorList& captures);

// The least and greatest elements of a tensor with first <= index <= last in each dimension.
loop::Interval element_bounds(const Tensor& tensor, const std::vector<int64_t>& first,
                              const std::vector<int64_t>& last);

// What a load of `tensor` may give, its indices being bounded (negative ones count from the end).
loop::Interval load_bounds(const Tensor& tensor, const loop::Interval* indices);

}  // namespace rushlight
