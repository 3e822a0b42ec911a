// PyTorch's type promotion over mixed operands.
#pragma once

#include <rushlight/value.h>

namespace rushlight {

// Gathers operands; tensors with dimensions decide within a category before 0-dim tensors, those
// before numbers.
class Promotion {
 public:
  void add(const TensorImpl& tensor) {
    State& state = tensor.has(TensorImpl::kWrappedNumber) ? numbers_
                   : tensor.rank > 0                      ? dimensioned_
                                                          : zero_dim_;
    state.add(tensor.dtype);
  }
  void add(const Scalar& number) { numbers_.add(number.dtype()); }
  void add(const Value& value) {
    if (value.is_tensor()) {
      add(*value.impl());
    } else if (value.is_number()) {
      add(value.to_scalar());
    }
  }
  bool empty() const { return !dimensioned_.any && !zero_dim_.any && !numbers_.any; }
  DType result() const;

 private:
  struct State {
    DType dtype = DType::Bool;
    bool any = false;
    void add(DType other) {
      dtype = any ? (dtype == other ? dtype : promote(dtype, other)) : other;
      any = true;
    }
  };
  State dimensioned_, zero_dim_, numbers_;
};

// The dtype that an operator on both gives.
inline DType result_type(const Tensor& a, const Tensor& b) {
  Promotion promotion;
  promotion.add(*a.impl());
  promotion.add(*b.impl());
  return promotion.result();
}

}  // namespace rushlight
