// igamma and igammac.
#include "kernels/incomplete_gamma.h"

#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/promotion.h"

namespace rushlight {
namespace {

template <double (*F)(double, double)>
Tensor of_pairs(const Tensor& self, const Tensor& other) {
  const DType dtype = result_type(self, other);
  if (!is_floating(dtype)) {
    fail(ErrorKind::NotImplemented, "", "\"igamma_cpu\" not implemented for '",
         scalar_type_name(dtype), "'");
  }
  DoorGuard guard(0, ~uint32_t{0});
  const IntList sizes = broadcast_shapes(self.sizes(), other.sizes(), "igamma");
  const Tensor made = make_tensor(sizes, DType::Float64, self.device());
  if (!made.is_meta()) {
    const Tensor a = contiguous(to(expand(self, sizes), DType::Float64));
    const Tensor x = contiguous(to(expand(other, sizes), DType::Float64));
    const auto* left = static_cast<const double*>(a.data());
    const auto* right = static_cast<const double*>(x.data());
    for (int64_t i = 0; i < made.numel(); ++i) {
      static_cast<double*>(made.data())[i] = F(left[i], right[i]);
    }
  }
  return kernels::as_dtype(made, dtype);
}

// x^(a - 1) exp(-x) / Gamma(a), which is what the functions integrate.
Tensor density(const Tensor& a, const Tensor& x) {
  return exp(sub(sub(mul(sub(a, Scalar(1)), log(x)), x), lgamma(a)));
}

void set_gradient(Gradient& g, std::string_view op, bool lower) {
  if (g.needs(0)) {
    fail(ErrorKind::NotImplemented, "", "the derivative for '", op, ": input' is not implemented");
  }
  const Tensor by_x = mul(g.grad(), density(g.tensor(0), g.tensor(1)));
  g.set(1, lower ? by_x : neg(by_x));
}

}  // namespace

RUSHLIGHT_OPERATORS(incomplete_gamma) {
  op("igamma(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("The regularised lower incomplete gamma function P(self, other).")
      .kernel(of_pairs<kernels::gamma_lower>)
      .gradient("self other", [](Gradient& g) { set_gradient(g, "igamma", true); })
      .casts_out();
  op("igammac(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("The regularised upper incomplete gamma function Q(self, other) = 1 - P(self, other).")
      .kernel(of_pairs<kernels::gamma_upper>)
      .gradient("self other", [](Gradient& g) { set_gradient(g, "igammac", false); })
      .casts_out();
}

}  // namespace rushlight
