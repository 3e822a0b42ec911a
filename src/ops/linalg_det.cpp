// Determinants.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "kernels/copy.h"
#include "kernels/linalg/lu.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

struct Factored {
  Tensor lu;
  Tensor pivots;
  IntList batch;
  int64_t n;
};

Factored factored(const Tensor& a, std::string_view op) {
  check_square_field(a, op);
  Factored made{copy_columns(a), {}, batch_sizes(a), columns_of(a)};
  made.pivots = make_tensor(with_tail(made.batch, {made.n}), DType::Int32, a.device());
  return made;
}

// Factors matrix i and calls visit(element) for U's diagonal. Returns the sign of the permutation.
template <typename T, typename F>
T visit_diagonal(const Factored& from, int64_t i, F&& visit) {
  const int64_t n = from.n;
  T* lu = from.lu.data_ptr<T>() + i * n * n;
  int32_t* pivots = from.pivots.data_ptr<int32_t>() + i * n;
  kernels::lu_factor(n, n, lu, n, pivots, true);
  T sign = 1;
  for (int64_t k = 0; k < n; ++k) {
    sign = pivots[k] != k + 1 ? -sign : sign;
    visit(lu[k + k * n]);
  }
  return sign;
}

double work_of(int64_t n) {
  return static_cast<double>(n) * static_cast<double>(n * n);
}

std::tuple<Tensor, Tensor, Tensor> det_of(const Tensor& a) {
  const Factored made = factored(a, "linalg.det");
  const Tensor result = make_tensor(made.batch, a.dtype(), a.device());
  if (!a.is_meta()) {
    with_field(a.dtype(), [&](auto kind) {
      using T = decltype(kind);
      T* to = result.data_ptr<T>();
      for_each_matrix(result.numel(), work_of(made.n), [&](int64_t i) {
        T product = 1;
        const T sign = visit_diagonal<T>(made, i, [&](T x) { product *= x; });
        to[i] = sign * product;
      });
    });
  }
  return {result, made.lu, made.pivots};
}

// x / |x|; zero and NaN stay as they are.
template <typename T>
T direction(T x) {
  if constexpr (kernels::Parts<T>::kComplex) {
    return x == T(0) ? x : x / std::abs(x);
  } else {
    return x == 0 || std::isnan(x) ? x : std::copysign(T(1), x);
  }
}

std::tuple<Tensor, Tensor, Tensor, Tensor> slogdet_of(const Tensor& a) {
  const Factored made = factored(a, "linalg.slogdet");
  const Tensor signs = make_tensor(made.batch, a.dtype(), a.device());
  const Tensor logs = make_tensor(made.batch, real_dtype(a.dtype()), a.device());
  if (!a.is_meta()) {
    with_field(a.dtype(), [&](auto kind) {
      using T = decltype(kind);
      T* sign = signs.data_ptr<T>();
      auto* log = logs.data_ptr<kernels::RealOf<T>>();
      for_each_matrix(signs.numel(), work_of(made.n), [&](int64_t i) {
        double sum = 0;
        T product = 1;
        const T first = visit_diagonal<T>(made, i, [&](T x) {
          product *= direction(x);
          sum += std::log(static_cast<double>(std::abs(x)));
        });
        sign[i] = first * product;
        log[i] = static_cast<kernels::RealOf<T>>(sum);
      });
    });
  }
  return {signs, logs, made.lu, made.pivots};
}

// The products of all other elements, for each along the last dimension.
Tensor products_of_others(const Tensor& s) {
  const int64_t n = s.size(-1);
  const Tensor matrix =
      expand(unsqueeze(s, -2), with_tail(s.sizes().first(s.sizes().size() - 1), {n, n}));
  const Tensor itself = eye(n, TensorOptions(DType::Bool).device(s.device()));
  return prod(masked_fill(matrix, itself, Scalar(1)), -1);
}

// The transposed adjugate, which singular matrices have too.
Tensor cofactors(const Tensor& a) {
  const auto [u, s, vh] = linalg_svd(a, true);
  const Tensor sign = conj(mul(linalg_det(u), linalg_det(vh)));
  const Tensor others = mul(unsqueeze(sign, -1), products_of_others(s));
  return matmul(mul(u, unsqueeze(others, -2)), vh);
}

bool any_zero(const Tensor& det) {
  return !det.is_meta() && any(eq(det, Scalar(0))).item<bool>();
}

Tensor as_diagonal(const Tensor& x, int64_t n) {
  const Tensor column = unsqueeze(x, -1);
  return diag_embed(expand(column, with_tail(x.sizes(), {n})), 0, -2, -1);
}

// A^-T times a number for each matrix.
Tensor scaled_inverse(const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& by) {
  const Tensor diagonal = as_diagonal(by, columns_of(a));
  return thread_state.grad_mode ? linalg_solve(turned(a), diagonal, true)
                                : linalg_lu_solve(lu, pivots, diagonal, true, true);
}

void det_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  const Tensor a = g.tensor(0);
  const Tensor det = g.result(0);
  if (any_zero(det)) {
    g.set(0, mul(cofactors(a), unsqueeze(unsqueeze(g.grad(0), -1), -1)));
    return;
  }
  g.set(0, scaled_inverse(a, g.result(1), g.result(2), mul(g.grad(0), conj(det))));
}

// Where det = exp(w): the logarithm is the real part of w, and the sign of complex ones turns by
// its imaginary part.
void slogdet_gradient(Gradient& g) {
  Tensor by = g.has_grad(1) ? g.grad(1) : Tensor();
  if (is_complex(g.dtype(0)) && g.has_grad(0)) {
    const Tensor turn = neg(imag(mul(conj(g.grad(0)), g.result(0))));
    const Tensor along = by.defined() ? by : zeros_like(turn);
    by = complex(along, turn);
  }
  if (by.defined()) {
    const Tensor a = g.tensor(0);
    g.set(0, scaled_inverse(a, g.result(2), g.result(3), to(by, a.dtype())));
  }
}

std::tuple<Tensor, Tensor> public_slogdet(const Tensor& a) {
  auto [sign, log, lu, pivots] = _linalg_slogdet(a);
  return {sign, log};
}

Tensor public_det(const Tensor& a) {
  return std::get<0>(_linalg_det(a));
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_det) {
  op("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", kFunction | kOut)
      .doc("linalg.det with the factors of A.")
      .kernel(det_of)
      .gradient("A result0 result1 result2", det_gradient)
      .node("LinalgDetBackward0");
  op("linalg_det(Tensor A) -> Tensor", kFunction | kOut)
      .doc("The determinants of square matrices.")
      .composition(public_det);
  op("det(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Another name of linalg.det.")
      .composition(public_det);
  op("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
     kFunction | kOut)
      .doc("linalg.slogdet with the factors of A.")
      .kernel(slogdet_of)
      .gradient("A result0 result2 result3", slogdet_gradient)
      .node("LinalgSlogdetBackward0");
  op("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", kFunction | kOut)
      .doc("The signs of determinants and the logarithms of their sizes.")
      .composition(public_slogdet);
  op("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", kFunction | kMethod | kOut)
      .doc("Another name of linalg.slogdet.")
      .composition(public_slogdet);
  op("logdet(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("The logarithms of determinants; NaN where one is negative.")
      .composition([](const Tensor& self) -> Tensor {
        check_square_field(self, "logdet");
        auto [sign, log, lu, pivots] = _linalg_slogdet(self);
        return sign.is_complex() ? add(rushlight::log(sign), log)
                                 : masked_fill(log, eq(sign, Scalar(-1)), Scalar(std::nan("")));
      });
}

}  // namespace rushlight
