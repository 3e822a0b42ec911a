// Operators along one or several dimensions: reductions, scans, and chains of both that end in a
// result for each element (softmax, layer_norm).
//
// The driver brings the operands into the form (outer, axis) or (outer, axis, inner), picks or
// compiles the kernel of the signature, and runs it in parallel over rows. Which thread does what
// never shows in the result: the order of combination is fixed by shapes alone.
//
// Arguments of the schema have fixed meanings by name: `dim` (int, int[] or None: all dimensions),
// `keepdim`, `dtype` (the result's, and what is computed in).
#pragma once

#include <functional>
#include <vector>

#include "loop/node.h"
#include "ops/operator.h"

namespace rushlight {

// What the body sees: expressions at one position of a row.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual loop::Expr in(int argument) = 0;      // a tensor argument, as dtype()
  virtual loop::Expr raw(int argument) = 0;     // in its own dtype (halves: f32)
  virtual loop::Expr scalar(int argument) = 0;  // a Scalar or float argument, as dtype()
  virtual DType dtype() const = 0;              // what is computed in
  virtual bool has(int argument) const = 0;
  virtual const Value& attribute(int argument) = 0;
  virtual loop::Expr count() = 0;     // elements of the axis, as dtype()
  virtual loop::Expr position() = 0;  // i64, along the axis
  // Whether positions fit i32, in which they cost less. Each answer is a kernel of its own.
  virtual bool is_short() const = 0;
  virtual loop::Expr sum(loop::Expr x) = 0;
  virtual loop::Expr reduce(loop::Combine combine, loop::Expr x) = 0;
  virtual loop::Expr scan(loop::Combine combine, loop::Expr x) = 0;
  virtual void store(int result, loop::Expr value) = 0;
};

enum class RowShape : uint8_t { Reduced, Full };

// Same: the first tensor's dtype (or `dtype`). Sum: integers and bool become int64. Float: integers
// become the default float. Compute: that of `Rows::dtype`.
enum class RowType : uint8_t { Same, Sum, Float, Compute, Long, Bool };

struct RowResult {
  RowShape shape;
  RowType type;
};

struct RowSpec {
  std::vector<RowResult> results;
  std::function<void(Rows&)> body;
  // What is computed in: the first tensor's dtype under this rule.
  RowType compute = RowType::Same;
  // Where the axis may be empty. False: Error(Index) as PyTorch's max.
  bool allow_empty = true;
  // Whether order along the axis matters (positions, scans): axes are then never reordered.
  bool ordered = false;
  bool scans = false;  // the axis is a scan axis
  // Whether an empty list of dimensions means all of them; false: none.
  bool empty_is_all = true;
};

// A reduction that can be split: finish(combine over map). Long rows are reduced in blocks of a
// fixed size, in parallel, then over the blocks.
struct ReduceSpec {
  loop::Combine combine;
  std::function<loop::Expr(Rows&)> map;
  std::function<loop::Expr(Rows&, loop::Expr)> finish;  // empty: as it is
  RowType type = RowType::Same;
  RowType compute = RowType::Same;
  bool allow_empty = true;
  bool empty_is_all = true;
};

std::unique_ptr<Body> make_rows(const Schema& schema, RowSpec spec);
std::unique_ptr<Body> make_reduction(const Schema& schema, ReduceSpec spec);

// The dimensions that `dim` names: wrapped, sorted, without repeats; all where it is None (or empty
// and `empty_is_all`).
IntList reduced_dims(const Value& dim, int64_t rank, std::string_view op, bool empty_is_all = true);

// A gradient of a reduced result, with the reduced dimensions put back as size 1.
Tensor restore_dims(const Tensor& tensor, const Value& dim, bool keepdim, int64_t rank);

}  // namespace rushlight
