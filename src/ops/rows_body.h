// The class behind row operators, for the files that carry them out (rows*.cpp) and for fusion.
#pragma once

#include <atomic>
#include <mutex>

#include "ops/row_space.h"
#include "ops/rows.h"
#include "ops/signature.h"

namespace rushlight {

// What a RowType is for this input. `named`: the caller asked for `input`, which sums then keep;
// truth values are still counted.
DType apply_row_type(RowType type, DType input, DType compute, bool named = false);
IntList reduced_sizes(IntArrayRef shape, IntArrayRef axis_dims, bool keepdim);
// Where order does not matter, the axis dimensions are taken from the widest stride inwards, so
// that those of permuted tensors fold too. The dimensions are of a shape of that rank to which the
// tensor broadcasts.
void order_by_stride(const Tensor& tensor, size_t rank, IntList& dims);

// Where the arguments with fixed meanings are; -1: the schema has none.
struct RowRoles {
  std::vector<int> tensors;
  std::vector<int> attributes;  // optional scalars count by presence
  int dim;
  int keepdim;
  int dtype;

  explicit RowRoles(const Schema& schema);
};

struct CompiledRows {
  Signature signature;
  loop::KernelFunction function;
  std::vector<ScalarSource> scalars;
  CompiledRows* next;
};

// What follows from the dtypes and shapes of a call.
struct RowPlan {
  IntList shape;      // of the first tensor, broadcast with the others
  IntList axis_dims;  // sorted
  IntList outer_dims;
  DType compute;
  std::vector<DType> dtypes;  // of the results, as those of sizes
  std::vector<IntList> sizes;
};

// The parts of a kernel that a row body is built of. The axis is number 1.
class RowOperands {
 public:
  virtual ~RowOperands() = default;
  // A tensor argument in the dtype that its elements have in registers (halves: f32).
  virtual loop::Expr load(int argument) = 0;
  virtual loop::Expr number(int argument, DType dtype) = 0;
  virtual void store(int result, loop::Expr value) = 0;  // in compute_dtype of the result
};

class RowsBody final : public Body {
 public:
  RowsBody(const Schema& schema, RowSpec spec) : roles_(schema), spec_(std::move(spec)) {}
  bool writes_outputs() const override { return true; }
  void run(const Operator& op, Invocation& inv) const override;

  const RowRoles& roles() const { return roles_; }
  const RowSpec& spec() const { return spec_; }
  bool named_dtype(const Invocation& inv) const;
  DType input_dtype(const Invocation& inv) const;
  // The shapes and dtypes of a call whose results are not given; their sizes are left empty.
  RowPlan plan(const Operator& op, const Invocation& inv) const;
  void express(const Value* arguments, DType compute, const std::vector<DType>& dtypes,
               bool is_short, RowOperands& operands) const;

 private:
  bool follows_output(const Invocation& inv) const;
  void allocate(const Operator& op, Invocation& inv, RowPlan& plan) const;
  void launch(const Operator& op, Invocation& inv, const RowPlan& plan) const;
  const CompiledRows& kernel(const Operator& op, const Value* arguments, const RowSpace& space,
                             const std::vector<DType>& dtypes, DType compute) const;

  RowRoles roles_;
  RowSpec spec_;
  mutable std::atomic<CompiledRows*> kernels_{nullptr};
  mutable std::mutex mutex_;
};

// The row body of an operator; null where it has none. Of a splittable reduction: that which
// reduces whole rows.
const RowsBody* rows_body(const Operator& op);
// Whether a call cuts its rows into blocks, which fixes another order of combination.
bool splits_rows(const Operator& op, const Invocation& inv);

}  // namespace rushlight
