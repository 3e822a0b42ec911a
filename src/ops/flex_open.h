// Functions of attention scores in public operators: for gradients of gradients, which hold the
// matrix of scores.
#pragma once

#include <array>
#include <unordered_map>

#include "ops/flex_function.h"
#include "ops/gradient.h"

namespace rushlight {

// Evaluates traced expressions on whole tensors. What it gives is recorded by autograd like any
// other call of operators.
class FlexTensors {
 public:
  enum : int { kUpstream = kFlexKey + 1 };  // one more scalar: a gradient that is passed on

  // `scores` (B, H, L, S) of the compute type; the other arguments follow from its sizes.
  FlexTensors(const Tensor& scores, const TensorList& captures);
  void set_upstream(const Tensor& gradient) { scalars_[kUpstream] = gradient; }

  // Of a shape that broadcasts to that of the scores.
  Tensor value(loop::Expr expr);
  // The indices of a load of a captured tensor, i64.
  TensorList indices(loop::Expr load);

 private:
  Tensor compute(const loop::Node& node);

  std::array<Tensor, kUpstream + 1> scalars_;
  const TensorList& captures_;
  std::unordered_map<const loop::Node*, Tensor> done_;
};

// Where the operands are in the schemas of flex attention.
namespace flex {
enum : int { kQuery, kKey, kValue, kScore, kMask, kCaptures, kStates, kQBlock, kKvBlock, kScale };
}

// The gradients of flex attention by operators that differentiate again.
void flex_gradient_open(Gradient& g);

}  // namespace rushlight
