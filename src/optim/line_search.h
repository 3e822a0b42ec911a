// A line search for the strong Wolfe conditions (Nocedal & Wright, 2006, algorithms 3.5 and 3.6).
#pragma once

#include <rushlight/tensor.h>

#include <functional>
#include <variant>

namespace rushlight::optim {

// A number that was computed by tensors, with their rounding, or one of this program. An operation
// is a tensor's where one of its operands is, so that C++ steps as Python does.
class Number {
 public:
  Number(double value = 0) : value_(value) {}
  Number(Tensor value) : value_(std::move(value)) {}
  bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }
  const Tensor& tensor() const { return std::get<Tensor>(value_); }
  double value() const;

 private:
  std::variant<double, Tensor> value_;
};

Number operator+(const Number& a, const Number& b);
Number operator-(const Number& a, const Number& b);
Number operator*(const Number& a, const Number& b);
Number operator/(const Number& a, const Number& b);
bool operator<(const Number& a, const Number& b);
bool operator<=(const Number& a, const Number& b);
Number absolute(const Number& a);

// A step length with the loss, the gradient and the slope there.
struct LinePoint {
  Number t;
  double loss = 0;
  Tensor gradient;
  Number slope;
};

struct LineResult {
  LinePoint best;
  int64_t evaluations = 0;
};

// Gives loss and gradient at step t along a direction.
using Evaluate = std::function<std::pair<double, Tensor>(const Number& t)>;

// Searches along `direction` from `start`, whose t is 0; first at step `t`.
LineResult strong_wolfe(const Evaluate& evaluate, const Number& t, const Tensor& direction,
                        LinePoint start);

}  // namespace rushlight::optim
