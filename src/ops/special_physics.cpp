// Bessel, Airy and Chebyshev's functions and their kin: without gradients, float32 and float64.
#include <rushlight/generated/functions.h>

#include "kernels/bessel.h"
#include "kernels/copy.h"
#include "kernels/polynomial.h"
#include "kernels/special.h"
#include "ops/operator.h"
#include "ops/promotion.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 1024;

// The dtype of the result of the operator called special_`name`.
DType result_of(DType dtype, std::string_view name) {
  const DType result = is_integral(dtype, true) ? default_dtype() : dtype;
  if (result != DType::Float32 && result != DType::Float64) {
    fail(ErrorKind::NotImplemented, "", "\"", name, "_cpu\" not implemented for '",
         scalar_type_name(result), "'");
  }
  return result;
}

// `function` of each element, in double precision whatever the dtype.
Tensor mapped(const Tensor& self, std::string_view name, double (*function)(double)) {
  const DType dtype = result_of(self.dtype(), name);
  const Tensor wide = contiguous(to(self, DType::Float64));
  const Tensor made = make_tensor(self.sizes(), DType::Float64, self.device());
  if (!self.is_meta()) {
    const auto* from = static_cast<const double*>(wide.data());
    auto* into = static_cast<double*>(made.data());
    parallel_for(0, self.numel(), kGrain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        into[i] = function(from[i]);
      }
    });
  }
  return kernels::as_dtype(made, dtype);
}

template <typename T>
void evaluate(const Tensor& made, const Tensor& x, const Tensor& degrees,
              kernels::Polynomial<T> polynomial) {
  const auto* at = static_cast<const T*>(x.data());
  const auto* n = static_cast<const int64_t*>(degrees.data());
  auto* into = static_cast<T*>(made.data());
  parallel_for(0, made.numel(), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      into[i] = polynomial(at[i], n[i]);
    }
  });
}

// Degrees are truncated to integers.
Tensor polynomial_of(const Tensor& x, const Tensor& n, std::string_view name,
                     kernels::Polynomial<float> narrow, kernels::Polynomial<double> wide) {
  const DType dtype = result_of(result_type(x, n), name);
  const IntList shape = broadcast_shapes(x.sizes(), n.sizes(), name);
  const Tensor made = make_tensor(shape, dtype, x.device());
  if (made.is_meta()) {
    return made;
  }
  const Tensor at = contiguous(to(expand(x, shape), dtype));
  const Tensor degrees = contiguous(to(expand(n, shape), DType::Int64));
  if (dtype == DType::Float32) {
    evaluate<float>(made, at, degrees, narrow);
  } else {
    evaluate<double>(made, at, degrees, wide);
  }
  return made;
}

}  // namespace

// What follows the schema, which stands in full where opgen finds it. The kernel knows its own
// name, for errors.
#define RUSHLIGHT_MAPPED(name, function, text)                                           \
  doc(text)                                                                              \
      .kernel([](const Tensor& self) -> Tensor { return mapped(self, name, function); }) \
      .not_differentiable()                                                              \
      .casts_out()

#define RUSHLIGHT_POLYNOMIAL(name, function, text)                                             \
  doc(text)                                                                                    \
      .kernel([](const Tensor& x, const Tensor& n) -> Tensor {                                 \
        return polynomial_of(x, n, name, kernels::function<float>, kernels::function<double>); \
      })                                                                                       \
      .not_differentiable()                                                                    \
      .casts_out()

RUSHLIGHT_OPERATORS(special_physics) {
  op("special_airy_ai(Tensor x) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("airy_ai", kernels::airy_ai, "The Airy function Ai.");
  op("special_bessel_j0(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("bessel_j0", kernels::bessel_j0,
                        "The Bessel function of the first kind of order 0.");
  op("special_bessel_j1(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("bessel_j1", kernels::bessel_j1,
                        "The Bessel function of the first kind of order 1.");
  op("special_bessel_y0(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("bessel_y0", kernels::bessel_y0,
                        "The Bessel function of the second kind of order 0; NaN below zero.");
  op("special_bessel_y1(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("bessel_y1", kernels::bessel_y1,
                        "The Bessel function of the second kind of order 1; NaN below zero.");
  op("special_modified_bessel_i0(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .doc("The modified Bessel function of the first kind of order 0.")
      .kernel([](const Tensor& self) -> Tensor {
        result_of(self.dtype(), "modified_bessel_i0");
        DoorGuard guard(0, ~uint32_t{0});
        return i0(self);
      })
      .not_differentiable()
      .casts_out();
  op("special_modified_bessel_i1(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .doc("The modified Bessel function of the first kind of order 1.")
      .kernel([](const Tensor& self) -> Tensor {
        result_of(self.dtype(), "modified_bessel_i1");
        DoorGuard guard(0, ~uint32_t{0});
        return special_i1(self);
      })
      .not_differentiable()
      .casts_out();
  op("special_modified_bessel_k0(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("modified_bessel_k0", kernels::bessel_k0,
                        "The modified Bessel function of the second kind of order 0.");
  op("special_modified_bessel_k1(Tensor self) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("modified_bessel_k1", kernels::bessel_k1,
                        "The modified Bessel function of the second kind of order 1.");
  op("special_scaled_modified_bessel_k0(Tensor x) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("scaled_modified_bessel_k0", kernels::bessel_k0_scaled, "exp(x) K0(x).");
  op("special_scaled_modified_bessel_k1(Tensor x) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("scaled_modified_bessel_k1", kernels::bessel_k1_scaled, "exp(x) K1(x).");
  op("special_spherical_bessel_j0(Tensor x) -> Tensor", kFunction | kOut | kLeafOut)
      .RUSHLIGHT_MAPPED("spherical_bessel_j0", kernels::spherical_bessel_j0, "sin(x) / x.");

  op("special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("chebyshev_polynomial_t", chebyshev_t,
                            "Chebyshev's polynomial of the first kind of degree n.");
  op("special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("chebyshev_polynomial_u", chebyshev_u,
                            "Chebyshev's polynomial of the second kind of degree n.");
  op("special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("chebyshev_polynomial_v", chebyshev_v,
                            "Chebyshev's polynomial of the third kind of degree n.");
  op("special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("chebyshev_polynomial_w", chebyshev_w,
                            "Chebyshev's polynomial of the fourth kind of degree n.");
  op("special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("shifted_chebyshev_polynomial_t", shifted_chebyshev_t,
                            "Chebyshev's polynomial of the first kind at 2 x - 1.");
  op("special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("shifted_chebyshev_polynomial_u", shifted_chebyshev_u,
                            "Chebyshev's polynomial of the second kind at 2 x - 1.");
  op("special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("shifted_chebyshev_polynomial_v", shifted_chebyshev_v,
                            "Chebyshev's polynomial of the third kind at 2 x - 1.");
  op("special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("shifted_chebyshev_polynomial_w", shifted_chebyshev_w,
                            "Chebyshev's polynomial of the fourth kind at 2 x - 1.");
  op("special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("hermite_polynomial_h", hermite_h,
                            "Hermite's polynomial of degree n, weight exp(-x^2).");
  op("special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("hermite_polynomial_he", hermite_he,
                            "Hermite's polynomial of degree n, weight exp(-x^2 / 2).");
  op("special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("laguerre_polynomial_l", laguerre_l,
                            "Laguerre's polynomial of degree n.");
  op("special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
     kFunction | kOut | kLeafOut | kNumbers | kNumberFirst)
      .RUSHLIGHT_POLYNOMIAL("legendre_polynomial_p", legendre_p,
                            "Legendre's polynomial of degree n.");
}

#undef RUSHLIGHT_MAPPED
#undef RUSHLIGHT_POLYNOMIAL

}  // namespace rushlight
