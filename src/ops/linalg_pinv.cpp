// What follows from singular values: pseudo-inverses, ranks, condition numbers.
#include <rushlight/generated/functions.h>

#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

// dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P
Tensor matrices::pinv_gradient(const Tensor& grad, const Tensor& p, const Tensor& a) {
  const Tensor pt = turned(p);
  const Tensor grad_t = turned(grad);
  const Tensor first = matmul(pt, matmul(grad, pt));
  const Tensor left = matmul(matmul(grad_t, p), pt);   // G^T P P^T
  const Tensor right = matmul(pt, matmul(p, grad_t));  // P^T P G^T
  const Tensor outside_left = sub(left, matmul(a, matmul(p, left)));
  const Tensor outside_right = sub(right, matmul(matmul(right, p), a));
  return sub(add(outside_left, outside_right), first);
}

using namespace matrices;

namespace {

double epsilon_of(DType dtype) {
  return real_dtype(dtype) == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                             : std::numeric_limits<double>::epsilon();
}

struct Tolerances {
  Tensor atol;
  Tensor rtol;
};

void check_tolerance(const Tensor& tolerance, std::string_view name, std::string_view op) {
  if (tolerance.is_complex()) {
    fail(ErrorKind::Runtime, "", op, ": ", name, " tensor of complex type is not supported.");
  }
}

Tensor number(double value, const Tensor& like) {
  return kernels::make_filled({}, Scalar(value), real_dtype(like.dtype()), like.device());
}

// PyTorch's defaults: none absolute; relative to the largest value, unless an absolute one is set.
Tolerances tolerances_of(const Tensor& a, const Tensor& atol, const Tensor& rtol,
                         std::string_view op) {
  const double usual =
      epsilon_of(a.dtype()) * static_cast<double>(std::max(rows_of(a), columns_of(a)));
  Tolerances made;
  if (atol.defined()) {
    check_tolerance(atol, "atol", op);
  }
  made.atol = atol.defined() ? to(atol, real_dtype(a.dtype())) : number(0, a);
  if (rtol.defined()) {
    check_tolerance(rtol, "rtol", op);
    made.rtol = to(rtol, real_dtype(a.dtype()));
  } else if (atol.defined()) {
    made.rtol = where(gt(made.atol, Scalar(0)), number(0, a), number(usual, a));
  } else {
    made.rtol = number(usual, a);
  }
  return made;
}

// Which of the values, not negative, count.
Tensor kept_values(const Tensor& sizes, const Tolerances& limits) {
  const Tensor largest = amax(sizes, {-1}, true);
  const Tensor atol = unsqueeze(limits.atol, -1);
  const Tensor rtol = unsqueeze(limits.rtol, -1);
  return gt(sizes, maximum(atol, mul(rtol, largest)));
}

Tensor pinv_kernel(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  check_matrix(self, "linalg.pinv");
  check_field(self, "linalg.pinv");
  const DoorGuard guard(0, ~0U);
  if (hermitian) {
    check_square(self, "linalg.pinv");
  }
  IntList batch = batch_sizes(self);
  for (const Tensor& tolerance : {atol, rtol}) {  // one a matrix
    batch = tolerance.defined() ? broadcast_shapes(batch, tolerance.sizes(), "linalg.pinv") : batch;
  }
  const IntList shape = with_tail(batch, {columns_of(self), rows_of(self)});
  if (self.is_meta() || self.numel() == 0) {
    return make_tensor(shape, self.dtype(), self.device());
  }
  const Tolerances limits = tolerances_of(self, atol, rtol, "linalg.pinv");
  const Tensor none = number(0, self);
  if (hermitian) {
    const auto [values, vectors] = linalg_eigh(self, "L");
    const Tensor inverted = where(kept_values(abs(values), limits), reciprocal(values), none);
    return matmul(mul(vectors, unsqueeze(inverted, -2)), turned(vectors));
  }
  const auto [u, s, vh] = linalg_svd(self, false);
  const Tensor inverted = where(kept_values(s, limits), reciprocal(s), none);
  return matmul(mul(turned(vh), unsqueeze(inverted, -2)), turned(u));
}

Tensor optional_number(std::optional<double> value, const Tensor& like) {
  return value ? number(*value, like) : Tensor();
}

Tensor pinv_numbers(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                    bool hermitian) {
  check_field(self, "linalg.pinv");
  return linalg_pinv(self, optional_number(atol, self), optional_number(rtol, self), hermitian);
}

Tensor pinv_rcond(const Tensor& self, double rcond, bool hermitian) {
  return pinv_numbers(self, 0.0, rcond, hermitian);
}

Tensor rank_of(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  constexpr std::string_view kName = "linalg.matrix_rank";
  check_matrix(self, kName);
  check_field(self, kName);
  if (hermitian) {
    check_square(self, kName);
  }
  const Tensor a = self.requires_grad() ? self.detach() : self;
  const IntList batch = batch_sizes(a);
  if (self.numel() == 0) {
    return zeros(batch, TensorOptions(DType::Int64).device(self.device()));
  }
  const Tolerances limits = tolerances_of(a, atol, rtol, kName);
  const Tensor sizes = hermitian ? abs(linalg_eigvalsh(a, "L")) : linalg_svdvals(a, {});
  return sum(kept_values(sizes, limits), {-1}, false, std::nullopt);
}

Tensor rank_numbers(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                    bool hermitian) {
  check_field(self, "linalg.matrix_rank");
  return rank_of(self, optional_number(atol, self), optional_number(rtol, self), hermitian);
}

// The condition number by norms of the matrix and of its inverse.
template <typename Order>
Tensor norm_condition(const Tensor& self, const Order& order) {
  check_square(self, "linalg.cond");
  check_field(self, "linalg.cond");
  if (self.numel() == 0) {
    return zeros(batch_sizes(self), self.options().dtype(real_dtype(self.dtype())));
  }
  const Tensor norm = linalg_matrix_norm(self, order, {-2, -1}, false, {});
  auto [inverse, info] = linalg_inv_ex(self, false);
  const Tensor made = mul(norm, linalg_matrix_norm(inverse, order, {-2, -1}, false, {}));
  return masked_fill(made, ne(info, Scalar(0)), Scalar(HUGE_VAL));
}

Tensor condition_of(const Tensor& self, const std::optional<Scalar>& given) {
  check_matrix(self, "linalg.cond");
  const Scalar order = given.value_or(Scalar(2.0));
  const double p = order.to_double();
  const bool known = std::fabs(p) == 1 || std::fabs(p) == 2 || std::isinf(p);
  if (!known) {
    fail(ErrorKind::Runtime, "", "linalg.cond got an invalid norm type: ", order.to_string());
  }
  if (std::fabs(p) != 2) {
    return norm_condition(self, order);
  }
  const Tensor s = linalg_svdvals(self, {});
  if (self.numel() == 0) {
    return zeros(batch_sizes(self), self.options().dtype(real_dtype(self.dtype())));
  }
  const Tensor largest = select(s, -1, 0);
  const Tensor smallest = select(s, -1, -1);
  const Tensor made = p > 0 ? div(largest, smallest) : div(smallest, largest);
  return masked_fill(made, isnan(made), Scalar(HUGE_VAL));
}

Tensor condition_of_text(const Tensor& self, std::string_view order) {
  check_matrix(self, "linalg.cond");
  if (order != "fro" && order != "nuc") {
    fail(ErrorKind::Runtime, "", "linalg.cond got an invalid norm type: ", order);
  }
  return norm_condition(self, order);
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_pinv) {
  op("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
     "bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("The pseudo-inverse: singular values up to max(atol, rtol * largest) count as zero.")
      .kernel(pinv_kernel)
      .gradient("self result",
                [](Gradient& g) { g.set(0, pinv_gradient(g.grad(), g.result(), g.tensor(0))); })
      .casts_out();
  op("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
     "bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("The same with numbers.")
      .composition(pinv_numbers)
      .casts_out();
  op("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", kFunction | kOut)
      .doc("The same with a relative limit alone.")
      .composition(pinv_rcond)
      .casts_out();
  op("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("The same with relative limits alone.")
      .composition([](const Tensor& self, const Tensor& rcond, bool hermitian) -> Tensor {
        check_field(self, "linalg.pinv");
        return linalg_pinv(self, number(0, self), rcond, hermitian);
      })
      .casts_out();
  op("pinverse(Tensor self, float rcond=1e-15) -> Tensor", kFunction | kMethod)
      .doc("linalg.pinv with a relative limit.")
      .composition([](const Tensor& self, double rcond) { return pinv_rcond(self, rcond, false); });
  op("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
     "bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("How many singular values are larger than max(atol, rtol * largest).")
      .composition(rank_of)
      .casts_out();
  op("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
     "bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("The same with numbers.")
      .composition(rank_numbers)
      .casts_out();
  op("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", kFunction | kOut)
      .doc("The same with an absolute limit alone.")
      .composition([](const Tensor& self, double tol, bool hermitian) {
        return rank_numbers(self, tol, 0.0, hermitian);
      })
      .casts_out();
  op("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("The same with absolute limits alone.")
      .composition([](const Tensor& input, const Tensor& tol, bool hermitian) -> Tensor {
        check_field(input, "linalg.matrix_rank");
        return rank_of(input, tol, number(0, input), hermitian);
      })
      .casts_out();
  op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", kFunction | kOut)
      .doc("The condition number with respect to a matrix norm, by default of order 2.")
      .composition(condition_of)
      .casts_out();
  op("linalg_cond.p_str(Tensor self, str p) -> Tensor", kFunction | kOut)
      .doc("The condition number with respect to the Frobenius or the nuclear norm.")
      .composition(condition_of_text)
      .casts_out();
}

}  // namespace rushlight
