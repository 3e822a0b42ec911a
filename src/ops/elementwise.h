// Element-wise operators: from the expression of an entry to a compiled kernel's run.
//
// The driver promotes dtypes and broadcasts shapes as PyTorch does, allocates or checks the output,
// folds dimensions together, and runs the kernel of this signature: dtypes, which tensor slots hold
// numbers, attributes, and the layout class of each operand. Kernels load each operand in its own
// dtype and convert in registers. Gradients of the inputs are derived by symbolic differentiation.
#pragma once

#include <functional>
#include <memory>

#include "loop/node.h"
#include "ops/invocation.h"
#include "ops/operator.h"

namespace rushlight {

// What the body of an element-wise entry sees. Positions are those of the schema's arguments.
class Elementwise {
 public:
  virtual ~Elementwise() = default;
  // A tensor argument, converted to dtype(). Under Rule::Logical, converted to bool.
  virtual loop::Expr in(int argument) = 0;
  // The same in its own dtype (halves: f32). `condition` and `mask` arguments are bool.
  virtual loop::Expr raw(int argument) = 0;
  // A Scalar or float argument, as dtype(); or as `dtype`. A run-time value.
  virtual loop::Expr scalar(int argument) = 0;
  virtual loop::Expr scalar(int argument, DType dtype) = 0;
  // What is computed in: the promoted dtype, f32 for halves.
  virtual DType dtype() const = 0;
  // The promoted dtype itself: halves stay halves.
  virtual DType promoted() const = 0;
  // Attributes: bool, int and str arguments, and whether an optional one was given. Each value is
  // a kernel of its own.
  virtual const Value& attribute(int argument) = 0;
  bool has(int argument) { return !attribute(argument).is_none(); }
  bool flag(int argument) { return attribute(argument).to_bool(); }
  std::string_view text(int argument) { return attribute(argument).text(); }
};

using ElementwiseFunction = std::function<loop::Expr(Elementwise&)>;

// Gives `op` its body and its derived gradient.
void define_elementwise(Operator& op, Rule rule, ElementwiseFunction body);

// target[...] = value, broadcast and converted. No doors, no version bump.
void assign(const Tensor& target, const Tensor& value);

// Checks a given output: device, dtype (see Operator::casts_out), shape. Form::Out resizes;
// Form::Inplace must have the shape already. Errors as PyTorch's.
void check_output(const Operator& op, Form form, const Tensor& target, IntArrayRef sizes,
                  DType dtype, Device device);

}  // namespace rushlight
