// C++ operators on tensors: +, -, *, /, comparisons, and their forms with numbers.
#pragma once

#include <rushlight/generated/functions.h>

namespace rushlight {

// X(operator, function)
#define RUSHLIGHT_TENSOR_OPERATORS(X) \
  X(+, add)                           \
  X(-, sub)                           \
  X(*, mul)                           \
  X(/, div)                           \
  X(==, eq)                           \
  X(!=, ne)                           \
  X(<, lt)                            \
  X(<=, le)                           \
  X(>, gt)                            \
  X(>=, ge)                           \
  X(&, bitwise_and)                   \
  X(|, bitwise_or)                    \
  X(^, bitwise_xor)

#define RUSHLIGHT_DEFINE(symbol, function)                          \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { \
    return function(a, b);                                          \
  }                                                                 \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { \
    return function(a, b);                                          \
  }
RUSHLIGHT_TENSOR_OPERATORS(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE
#undef RUSHLIGHT_TENSOR_OPERATORS

inline Tensor operator+(const Scalar& a, const Tensor& b) {
  return add(b, a);
}
inline Tensor operator-(const Scalar& a, const Tensor& b) {
  return rsub(b, a);
}
inline Tensor operator*(const Scalar& a, const Tensor& b) {
  return mul(b, a);
}
inline Tensor operator/(const Scalar& a, const Tensor& b) {
  return mul(reciprocal(b), a);
}
inline Tensor operator-(const Tensor& a) {
  return neg(a);
}
inline Tensor operator~(const Tensor& a) {
  return bitwise_not(a);
}

}  // namespace rushlight
