// What a gradient rule sees: the gradients of the results, what was saved, and where to put the
// gradients of the arguments. Rules are written in public operators, so they differentiate again.
#pragma once

#include <rushlight/tensor.h>
#include <rushlight/value.h>

namespace rushlight {

class Operator;

class Gradient {
 public:
  virtual ~Gradient() = default;
  // Gradient of result i. Never undefined for i == 0 of a one-result operator; else see defined.
  virtual const Tensor& grad(int i = 0) const = 0;
  bool has_grad(int i) const { return grad(i).defined(); }
  virtual const Operator& op() const = 0;  // the forward operator
  // Whether the gradient of argument i is wanted.
  virtual bool needs(int argument) const = 0;
  // The arguments of the forward call. Tensors only where the entry lists them as saved.
  virtual const Value& value(int argument) const = 0;
  virtual Tensor tensor(int argument) const = 0;  // undefined where None was given
  virtual Tensor result(int i = 0) const = 0;
  virtual TensorList tensors(int argument) const = 0;
  // Shape and dtype of any tensor argument or result, saved or not.
  virtual IntArrayRef sizes(int argument) const = 0;
  virtual DType dtype(int argument) const = 0;
  virtual IntArrayRef result_sizes(int i = 0) const = 0;
  virtual DType result_dtype(int i = 0) const = 0;
  // For argument lists: shapes of item j.
  virtual IntArrayRef item_sizes(int argument, int item) const = 0;
  virtual int item_count(int argument) const = 0;
  virtual DType item_dtype(int argument, int item) const = 0;

  // Sets the gradient of an argument; undefined means zero. It is summed to the argument's shape
  // and converted to its dtype where these differ (broadcasting, promotion).
  virtual void set(int argument, Tensor gradient) = 0;
  virtual void set_list(int argument, TensorList gradients) = 0;

  int64_t integer(int argument) const { return value(argument).to_int(); }
  double real(int argument) const { return value(argument).to_double(); }
  bool flag(int argument) const { return value(argument).to_bool(); }
  Scalar scalar(int argument) const { return value(argument).to_scalar(); }
  IntArrayRef ints(int argument) const { return value(argument).ints(); }
  bool is_none(int argument) const { return value(argument).is_none(); }
  std::string_view text(int argument) const { return value(argument).text(); }
};

}  // namespace rushlight
