// Activations that draw numbers.
#include <rushlight/generated/functions.h>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"

namespace rushlight {
namespace {

// Slopes below zero drawn uniformly while training; their mean otherwise. Only elements that are
// not positive take a number of the stream.
Tensor rrelu_of(const Tensor& self, Scalar lower, Scalar upper, bool training,
                std::optional<Generator> generator) {
  const bool wide_type = self.dtype() == DType::Float64;
  // Bounds, products and sums round as PyTorch's do, or the results would differ in their last
  // bits.
  const double low = wide_type ? lower.to_double() : static_cast<float>(lower.to_double());
  const double high = wide_type ? upper.to_double() : static_cast<float>(upper.to_double());
  if (low > high) {
    fail(ErrorKind::Runtime, "rrelu",
         "Lower bound should be less than or equal to the upper bound, got ", low, " and ", high);
  }
  if (!self.is_floating_point()) {
    fail(ErrorKind::NotImplemented, "", "\"rrelu_with_noise_out_cpu\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  if (!training) {
    return leaky_relu(self, Scalar((low + high) / 2));
  }
  const Tensor below = le(self, Scalar(0));
  const int64_t count = self.is_meta() ? 0 : sum(below).item().to_int();
  const Tensor drawn = empty({count}, TensorOptions(DType::Float64));
  uniform_(drawn, 0, 1, generator);
  mul_(drawn, Scalar(high - low));
  add_(drawn, Scalar(low));
  const DType compute = compute_dtype(self.dtype());
  const Tensor wide = to(self, compute);
  const Tensor slope =
      masked_scatter(ones(self.sizes(), wide.options()), below, to(drawn, compute));
  return to(mul(wide, slope), self.dtype());
}

}  // namespace

RUSHLIGHT_OPERATORS(activation_random) {
  op("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
     "bool training=False, Generator? generator=None) -> Tensor",
     kFunction | kInplace)
      .doc("leaky_relu with a random slope for each element while training.")
      .composition(rrelu_of)
      .node("RreluWithNoiseBackward0")
      .check(expect_floating);
}

}  // namespace rushlight
