// QR and products of Householder reflectors.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/linalg/householder.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/missing_gradient.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

double work_of(int64_t m, int64_t n) {
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::min(m, n));
}

std::tuple<Tensor, Tensor> geqrf_of(const Tensor& a) {
  check_matrix(a, "torch.geqrf", "input");
  check_field(a, "geqrf");
  const int64_t m = rows_of(a);
  const int64_t n = columns_of(a);
  const int64_t rank = std::min(m, n);
  const Tensor made = copy_columns(a);
  const Tensor tau = make_tensor(with_tail(batch_sizes(a), {rank}), a.dtype(), a.device());
  if (!a.is_meta() && a.numel() != 0) {
    with_field(a.dtype(), [&](auto kind) {
      using T = decltype(kind);
      for_each_matrix(count_of(batch_sizes(a)), work_of(m, n), [&](int64_t i) {
        kernels::qr_factor(m, n, made.data_ptr<T>() + i * m * n, m, tau.data_ptr<T>() + i * rank);
      });
    });
  }
  return {made, tau};
}

struct QrMode {
  bool q;
  bool reduced;
};

QrMode parse_mode(std::string_view mode) {
  if (mode == "reduced" || mode == "complete" || mode == "r") {
    return {mode != "r", mode != "complete"};
  }
  fail(ErrorKind::Runtime, "", "qr received unrecognized mode '", mode,
       "' but expected one of 'reduced' (default), 'r', or 'complete'");
}

template <typename T>
void write_qr(int64_t m, int64_t n, T* a, T* q, int64_t columns, T* r) {
  const int64_t rank = std::min(m, n);
  std::vector<T> tau(static_cast<size_t>(rank));
  kernels::qr_factor(m, n, a, std::max<int64_t>(m, 1), tau.data());
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < columns; ++i) {
      r[i + j * columns] = i <= j ? a[i + j * m] : T(0);
    }
  }
  if (q != nullptr) {
    kernels::form_q(m, columns, rank, a, std::max<int64_t>(m, 1), tau.data(), q,
                    std::max<int64_t>(m, 1));
  }
}

std::tuple<Tensor, Tensor> qr_of(const Tensor& a, std::string_view text) {
  check_matrix(a, "linalg.qr");
  check_field(a, "linalg.qr");
  const QrMode mode = parse_mode(text);
  const int64_t m = rows_of(a);
  const int64_t n = columns_of(a);
  const IntList batch = batch_sizes(a);
  const int64_t columns = mode.reduced ? std::min(m, n) : m;
  const Tensor q =
      mode.q ? make_columns(batch, m, columns, a) : make_tensor({0}, a.dtype(), a.device());
  const Tensor r = make_columns(batch, columns, n, a);
  if (!a.is_meta()) {
    const Tensor work = copy_columns(a);
    with_field(a.dtype(), [&](auto kind) {
      using T = decltype(kind);
      for_each_matrix(count_of(batch), 2 * work_of(m, n), [&](int64_t i) {
        write_qr(m, n, work.data_ptr<T>() + i * m * n,
                 mode.q ? q.data_ptr<T>() + i * m * columns : nullptr, columns,
                 r.data_ptr<T>() + i * columns * n);
      });
    });
  }
  return {q, r};
}

// Of A = Q R with Q m x n and R n x n; either gradient may be undefined.
Tensor tall_gradient(const Tensor& q, const Tensor& r, const Tensor& grad_q, const Tensor& grad_r) {
  Tensor middle;
  if (grad_r.defined()) {
    middle = matmul(r, turned(grad_r));
  }
  if (grad_q.defined()) {
    const Tensor part = matmul(turned(grad_q), q);
    middle = middle.defined() ? sub(middle, part) : neg(part);
  }
  Tensor made = matmul(q, mirrored(middle));
  made = grad_q.defined() ? add(made, grad_q) : made;
  return linalg_solve_triangular(turned(r), made, false, false, false);
}

void qr_gradient(Gradient& g) {
  const std::string_view mode = g.text(1);
  if (!g.has_grad(0) && !g.has_grad(1)) {
    return;
  }
  const IntArrayRef sizes = g.sizes(0);
  const int64_t m = sizes[sizes.size() - 2];
  const int64_t n = sizes[sizes.size() - 1];
  if (mode == "r") {
    fail(ErrorKind::Runtime, "",
         "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
         "use linalg.qr(A, mode='reduced') if you are going to require gradients.");
  }
  if (mode == "complete" && m > n) {
    fail(ErrorKind::Runtime, "",
         "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  }
  const Tensor q = g.result(0);
  const Tensor r = g.result(1);
  const Tensor grad_r = g.has_grad(1) ? triu(g.grad(1)) : Tensor();
  if (m >= n) {
    g.set(0, tall_gradient(q, r, g.has_grad(0) ? g.grad(0) : Tensor(), grad_r));
    return;
  }
  // A = [X Y] = Q [U V]: Q and U depend on X alone, and V is Q^T Y.
  Tensor grad_q = g.has_grad(0) ? g.grad(0) : Tensor();
  if (!grad_r.defined()) {
    const Tensor first = tall_gradient(q, narrow(r, -1, 0, m), grad_q, {});
    g.set(0, constant_pad_nd(first, {0, n - m}, Scalar(0)));
    return;
  }
  const Tensor grad_v = narrow(grad_r, -1, m, n - m);
  const Tensor rest = matmul(q, grad_v);
  const Tensor y = matmul(q, narrow(r, -1, m, n - m));
  const Tensor through = matmul(y, turned(grad_v));
  grad_q = grad_q.defined() ? add(grad_q, through) : through;
  const Tensor first = tall_gradient(q, narrow(r, -1, 0, m), grad_q, narrow(grad_r, -1, 0, m));
  g.set(0, cat({first, rest}, -1));
}

void check_reflectors(const Tensor& v, const Tensor& tau, std::string_view op) {
  check_matrix(v, op, "input");
  if (rows_of(v) < columns_of(v)) {
    fail(ErrorKind::Runtime, "", op,
         ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  }
  if (tau.dim() == 0 || tau.sizes().back() > columns_of(v)) {
    fail(ErrorKind::Runtime, "", op,
         ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  }
  if (v.dim() - tau.dim() != 1 ||
      !(IntArrayRef(batch_sizes(tau, 1)) == IntArrayRef(batch_sizes(v)))) {
    fail(ErrorKind::Runtime, "", op,
         ": Expected tau to have one dimension less than input and the same batch, but got ",
         "tau of shape ", tau.sizes(), " and input of shape ", v.sizes());
  }
  check_same_dtype(v, tau, op, "input", "tau");
  check_field(v, op);
}

Tensor householder_product_of(const Tensor& v, const Tensor& tau) {
  check_reflectors(v, tau, "torch.linalg.householder_product");
  const int64_t m = rows_of(v);
  const int64_t n = columns_of(v);
  const int64_t k = tau.sizes().back();
  const Tensor q = make_columns(batch_sizes(v), m, n, v);
  if (!v.is_meta() && v.numel() != 0) {
    const Tensor from = copy_columns(v);
    const Tensor factors = kernels::as_contiguous(tau);
    with_field(v.dtype(), [&](auto kind) {
      using T = decltype(kind);
      for_each_matrix(count_of(batch_sizes(v)), work_of(m, n), [&](int64_t i) {
        kernels::form_q(m, n, k, from.data_ptr<T>() + i * m * n, m, factors.data_ptr<T>() + i * k,
                        q.data_ptr<T>() + i * m * n, m);
      });
    });
  }
  return q;
}

Tensor ormqr_of(const Tensor& v, const Tensor& tau, const Tensor& c, bool left, bool transpose) {
  constexpr std::string_view kName = "torch.ormqr";
  check_matrix(v, kName, "input");
  check_matrix(c, kName, "other");
  const int64_t m = left ? rows_of(c) : columns_of(c);
  if (tau.dim() == 0 || m < tau.sizes().back()) {
    fail(ErrorKind::Runtime, "", kName, ": other.shape[", left ? -2 : -1,
         "] must be greater than or equal to tau.shape[-1]");
  }
  if (m != rows_of(v)) {
    fail(ErrorKind::Runtime, "", kName, ": other.shape[", left ? -2 : -1,
         "] must be equal to input.shape[-2]");
  }
  if (tau.sizes().back() > columns_of(v)) {
    fail(ErrorKind::Runtime, "", kName,
         ": tau.shape[-1] must be less than or equal to input.shape[-1]");
  }
  if (v.dim() - tau.dim() != 1 || v.dim() != c.dim() ||
      !(IntArrayRef(batch_sizes(tau, 1)) == IntArrayRef(batch_sizes(v))) ||
      !(IntArrayRef(batch_sizes(c)) == IntArrayRef(batch_sizes(v)))) {
    fail(ErrorKind::Runtime, "", kName, ": Expected batch dimensions of tau and other to be equal ",
         "to those of input, but got tau of shape ", tau.sizes(), ", other of shape ", c.sizes(),
         " and input of shape ", v.sizes());
  }
  check_same_dtype(v, tau, kName, "input", "tau");
  check_same_dtype(v, c, kName, "input", "other");
  check_field(v, kName);
  if (!left && c.is_complex()) {  // C Q is (Q^H C^H)^H
    const DoorGuard guard(0, ~0U);
    return copy_columns(turned(ormqr_of(v, tau, turned(c), true, !transpose)));
  }
  const Tensor made = copy_columns(c);
  if (made.is_meta() || made.numel() == 0) {
    return made;
  }
  const Tensor from = copy_columns(v);
  const Tensor factors = kernels::as_contiguous(tau);
  const int64_t k = tau.sizes().back();
  const int64_t area = rows_of(c) * columns_of(c);
  with_field(v.dtype(), [&](auto kind) {
    using T = decltype(kind);
    for_each_matrix(count_of(batch_sizes(v)), work_of(m, area / m), [&](int64_t i) {
      const auto matrix = kernels::by_columns(made.data_ptr<T>() + i * area, rows_of(c));
      // C Q is (Q^T C^T)^T.
      kernels::apply_reflectors(transpose == left, m, area / m, k,
                                from.data_ptr<T>() + i * m * columns_of(v), m,
                                factors.data_ptr<T>() + i * k, left ? matrix : matrix.transposed());
    });
  });
  return made;
}

struct ReflectorGradient {
  Tensor v;
  Tensor tau;
  Tensor c;
};

// In double: reflectors that are not reflections, with any tau, make large terms that cancel.
Tensor widened(const Tensor& x) {
  return to(x, x.is_complex() ? DType::Complex128 : DType::Float64);
}

// Of H(0) H(1) ... H(k - 1) C, or, where `adjoint`, H(k - 1)^H ... H(0)^H C, from the gradient of
// this product. One reflector after another: each term is the gradient of what stands to the left
// of it times what stands to the right.
ReflectorGradient reflector_gradient(const Tensor& v, const Tensor& tau, const Tensor& c,
                                     Tensor grad, bool adjoint) {
  const int64_t m = rows_of(v);
  const int64_t k = tau.size(-1);
  TensorList vectors;
  TensorList factors;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor column = narrow(v, -1, i, 1);
    const Tensor below = narrow(column, -2, i + 1, m - i - 1);
    Tensor whole = constant_pad_nd(below, {0, 0, 1, 0}, Scalar(1));
    vectors.push_back(i > 0 ? constant_pad_nd(whole, {0, 0, i, 0}, Scalar(0)) : whole);
    const Tensor factor = unsqueeze(narrow(tau, -1, i, 1), -1);
    factors.push_back(adjoint ? conj(factor) : factor);
  }
  const auto number = [&](int64_t i) { return static_cast<size_t>(adjoint ? k - 1 - i : i); };
  const auto reflected = [&](size_t i, const Tensor& factor, const Tensor& x) {
    return sub(x, mul(factor, matmul(vectors[i], matmul(turned(vectors[i]), x))));
  };
  TensorList right(static_cast<size_t>(k) + 1);
  right[static_cast<size_t>(k)] = c;
  for (int64_t i = k; i-- > 0;) {
    const size_t at = number(i);
    right[static_cast<size_t>(i)] = reflected(at, factors[at], right[static_cast<size_t>(i) + 1]);
  }
  TensorList of_vectors(static_cast<size_t>(k));
  TensorList of_factors(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i) {
    const size_t at = number(i);
    const Tensor& beyond = right[static_cast<size_t>(i) + 1];
    const Tensor through = matmul(turned(beyond), vectors[at]);
    const Tensor back = matmul(turned(grad), vectors[at]);
    const Tensor of_factor = neg(squeeze(matmul(turned(back), through), -1));
    of_factors[at] = adjoint ? conj(of_factor) : of_factor;
    const Tensor turned_factor = conj(factors[at]);
    of_vectors[at] =
        neg(add(mul(turned_factor, matmul(grad, through)), mul(factors[at], matmul(beyond, back))));
    grad = reflected(at, turned_factor, grad);
  }
  ReflectorGradient made;
  made.c = grad;
  if (k == 0) {
    made.v = zeros_like(v);
    made.tau = zeros_like(tau);
    return made;
  }
  made.v = tril(cat(of_vectors, -1), -1);
  const int64_t unused = columns_of(v) - k;
  made.v = unused > 0 ? constant_pad_nd(made.v, {0, unused}, Scalar(0)) : made.v;
  made.tau = cat(of_factors, -1);
  return made;
}

void householder_product_gradient(Gradient& g) {
  const Tensor v = g.tensor(0);
  if (v.numel() == 0 || g.tensor(1).numel() == 0) {
    return;  // no reflectors: Q is constant
  }
  const Tensor identity = eye(rows_of(v), columns_of(v), v.options());
  const ReflectorGradient made =
      reflector_gradient(widened(v), widened(g.tensor(1)),
                         widened(expand_batch(identity, batch_sizes(v))), widened(g.grad()), false);
  if (g.needs(0)) {
    g.set(0, made.v);
  }
  if (g.needs(1)) {
    g.set(1, made.tau);
  }
}

void ormqr_gradient(Gradient& g) {
  const bool left = g.flag(3);
  const bool transpose = g.flag(4);
  const Tensor v = g.tensor(0);
  const Tensor tau = g.tensor(1);
  const bool none = v.numel() == 0 || tau.numel() == 0;
  if (none || (!g.needs(0) && !g.needs(1))) {
    if (g.needs(2)) {
      g.set(2, ormqr(v, tau, g.grad(), left, !transpose));
    }
    return;
  }
  const Tensor c = widened(g.tensor(2));
  const Tensor grad = widened(g.grad());
  const ReflectorGradient made = reflector_gradient(widened(v), widened(tau), left ? c : turned(c),
                                                    left ? grad : turned(grad), transpose == left);
  if (g.needs(0)) {
    g.set(0, made.v);
  }
  if (g.needs(1)) {
    g.set(1, made.tau);
  }
  if (g.needs(2)) {
    g.set(2, left ? made.c : turned(made.c));
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_qr) {
  op("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", kFunction | kOut)
      .doc("Q with orthonormal columns and upper triangular R of A = Q R.")
      .kernel(qr_of)
      .gradient("result0 result1", qr_gradient);
  op("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", kFunction | kMethod | kOut)
      .doc("linalg.qr, reduced or, without `some`, complete.")
      .composition([](const Tensor& self, bool some) {
        return linalg_qr(self, some ? "reduced" : "complete");
      });
  op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", kFunction | kMethod | kOut)
      .doc("R on and above the diagonal and the Householder reflectors of Q below it.")
      .kernel(geqrf_of)
      .gradient("", missing_gradient)
      .casts_out();
  op("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", kFunction | kOut)
      .doc("The first columns of the product of Householder reflectors.")
      .kernel(householder_product_of)
      .gradient("input tau", householder_product_gradient)
      .casts_out();
  op("orgqr(Tensor self, Tensor input2) -> Tensor", kFunction | kMethod | kOut)
      .doc("Another name of linalg.householder_product.")
      .composition([](const Tensor& self, const Tensor& tau) {
        return linalg_householder_product(self, tau);
      })
      .casts_out();
  op("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> "
     "Tensor",
     kFunction | kMethod | kOut)
      .doc("The product of Householder reflectors, or its adjoint, with a matrix.")
      .kernel(ormqr_of)
      .gradient("self input2 input3", ormqr_gradient);
}

}  // namespace rushlight
