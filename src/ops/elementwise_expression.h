// The expression of one element-wise call over operands that the caller supplies: what eager
// kernels, fused kernels and traced functions are built with.
#pragma once

#include "ops/elementwise.h"

namespace rushlight {

class ElementwiseOperands {
 public:
  virtual ~ElementwiseOperands() = default;
  // A tensor argument in the dtype that its elements have in registers (halves: f32).
  virtual loop::Expr load(int argument) = 0;
  // The number given for an argument, as `dtype`, which is a node's.
  virtual loop::Expr number(int argument, DType dtype) = 0;
};

// What an element-wise call computes in (a memory dtype: halves stay halves) and returns. Tensor
// arguments need only dtype, rank and flags.
struct ElementwiseTyping {
  DType compute;
  DType out;
};

// Whether `op` has an element-wise body (the functions below need one).
bool is_elementwise(const Operator& op);
ElementwiseTyping elementwise_typing(const Operator& op, const Invocation& inv);
// Errors of a call by its dtypes: complex arithmetic, conditions that are not bool.
void check_elementwise(const Operator& op, const Invocation& inv);
// The value in registers, before it is rounded to a half type: a node of compute_dtype(out).
loop::Expr elementwise_expression(const Operator& op, const Invocation& inv,
                                  const ElementwiseTyping& typing, ElementwiseOperands& operands);
// Cycles an element, roughly: enough to choose how many elements make a task worth a thread.
double element_cost(loop::Expr root);
// The part of one operation in it.
double operation_cost(loop::Expr node);

}  // namespace rushlight
