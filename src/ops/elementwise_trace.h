// Tracing: a function of scalars, written in operators, becomes one expression of the loop IR.
//
// While an ElementTrace is open on a thread, calls of operators on its symbols (0-dim meta tensors
// that stand for expressions) append to their expressions instead of running. Every element-wise
// operator takes part, by the body of its table entry; so do conversions, copies, constants like a
// symbol, and indexing of a captured tensor by symbols, which becomes a Load. Other operators on
// symbols are errors, and so are random numbers. Calls without symbols run as ever.
#pragma once

#include <memory>
#include <unordered_map>

#include "loop/node.h"
#include "ops/invocation.h"

namespace rushlight {

// An expression and the dtype of the tensor that it stands for (f32 expressions of half dtypes hold
// values rounded to them).
struct TracedValue {
  loop::Expr expr;
  DType dtype;
};

// `expr` as a tensor of `dtype` would hold it.
loop::Expr convert_traced(loop::Expr expr, DType dtype);

class ElementTrace {
 public:
  // Captured tensors become buffers from `first_buffer` on.
  explicit ElementTrace(int first_buffer = 0);
  ~ElementTrace();
  ElementTrace(const ElementTrace&) = delete;

  // A tensor that stands for `expr`; of its dtype, or of a half dtype that it is rounded to.
  Tensor symbol(loop::Expr expr, DType dtype);
  bool is_symbol(const Tensor& tensor) const;
  // The value of a symbol, or of a 0-dim tensor, which is captured. Error(Runtime) for others.
  TracedValue value(const Tensor& tensor);
  // The tensors read so far, in the order of their buffers.
  const TensorList& captures() const { return captures_; }

 private:
  // A captured tensor, some of whose dimensions have been indexed; or (no base) an expression.
  struct Symbol {
    loop::Expr expr;
    Tensor base;
    std::vector<loop::Expr> indices;  // a dimension of the base each; null: not yet indexed
    Tensor handle;
  };
  friend void trace_door(Invocation& inv);
  bool handles(Invocation& inv);
  bool index(Invocation& inv);
  bool element_like(Invocation& inv);
  bool fill_masked(Invocation& inv);
  void write(Invocation& inv, const TracedValue& made);
  const Symbol* find(const Tensor& tensor) const;
  Symbol as_indexed(const Tensor& tensor);
  Tensor finish_index(Symbol indexed);
  int capture(const Tensor& tensor);

  int first_buffer_;
  TensorList captures_;
  std::unordered_map<const TensorImpl*, Symbol> symbols_;
  ElementTrace* outer_;
  std::unique_ptr<DoorGuard> doors_;
};

}  // namespace rushlight
