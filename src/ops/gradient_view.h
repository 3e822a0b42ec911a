// A gradient as another one sees it: what rules that change tensors on their way are made of.
#pragma once

#include <deque>

#include "ops/gradient.h"

namespace rushlight {

class GradientView : public Gradient {
 public:
  explicit GradientView(Gradient& inner) : inner_(inner) {}

  const Tensor& grad(int i = 0) const override;
  const Operator& op() const override { return inner_.op(); }
  bool needs(int argument) const override { return inner_.needs(argument); }
  const Value& value(int argument) const override { return inner_.value(argument); }
  Tensor tensor(int argument) const override { return inner_.tensor(argument); }
  Tensor result(int i = 0) const override { return inner_.result(i); }
  TensorList tensors(int argument) const override { return inner_.tensors(argument); }
  IntArrayRef sizes(int argument) const override { return inner_.sizes(argument); }
  DType dtype(int argument) const override { return inner_.dtype(argument); }
  IntArrayRef result_sizes(int i = 0) const override { return inner_.result_sizes(i); }
  DType result_dtype(int i = 0) const override { return inner_.result_dtype(i); }
  IntArrayRef item_sizes(int argument, int item) const override {
    return inner_.item_sizes(argument, item);
  }
  int item_count(int argument) const override { return inner_.item_count(argument); }
  DType item_dtype(int argument, int item) const override {
    return inner_.item_dtype(argument, item);
  }
  void set(int argument, Tensor gradient) override { inner_.set(argument, std::move(gradient)); }
  void set_list(int argument, TensorList gradients) override {
    inner_.set_list(argument, std::move(gradients));
  }

 protected:
  // The gradient of a result as the rule gets it; may be undefined.
  virtual Tensor incoming(const Tensor& grad) const = 0;
  Gradient& inner_;

 private:
  mutable std::deque<std::pair<int, Tensor>> grads_;  // by result; those asked for are referred to
};

// The gradient of a holomorphic function, by its rule for real numbers: grad * conj(f'(z)) is
// conj(conj(grad) * f'(z)).
class ConjugateGradient final : public GradientView {
 public:
  explicit ConjugateGradient(Gradient& inner) : GradientView(inner) {}
  void set(int argument, Tensor gradient) override;
  void set_list(int argument, TensorList gradients) override;

 private:
  Tensor incoming(const Tensor& grad) const override;
};

}  // namespace rushlight
