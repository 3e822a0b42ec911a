// Singular values and vectors.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/linalg/jacobi.h"
#include "kernels/linalg/matrix.h"
#include "kernels/linalg/svd.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

std::string svd_text(int32_t) {
  return "The algorithm failed to converge because the input matrix contained non-finite values.";
}

void check_driver(const std::optional<std::string_view>& driver, std::string_view op) {
  if (driver) {
    fail(ErrorKind::Runtime, "", "torch.", op, ": keyword argument `driver=` is only supported on ",
         "CUDA inputs with cuSOLVER backend.");
  }
}

// kernels::svd of one matrix; complex ones in double precision.
template <typename T>
int32_t decompose_one(int64_t m, int64_t n, T* a, kernels::SvdVectors vectors, T* left,
                      kernels::RealOf<T>* values, T* right) {
  if constexpr (kernels::Parts<T>::kComplex) {
    kernels::ComplexMatrix u;
    kernels::ComplexMatrix v;
    std::vector<double> found(static_cast<size_t>(n));
    const int32_t code = kernels::svd_complex(m, n, kernels::ComplexMatrix(a, a + m * n), vectors,
                                              u, found.data(), v);
    if (code == 0) {
      const auto narrowed = [](std::complex<double> x) { return T(x); };
      std::transform(found.begin(), found.end(), values,
                     [](double x) { return static_cast<kernels::RealOf<T>>(x); });
      if (left != nullptr) {
        std::transform(u.begin(), u.end(), left, narrowed);
        std::transform(v.begin(), v.end(), right, narrowed);
      }
    }
    return code;
  } else {
    return kernels::svd(m, n, a, m, vectors, left, values, right);
  }
}

template <typename T>
void decompose(const Tensor& work, const Tensor& u, const Tensor& s, const Tensor& v,
               const Tensor& info, kernels::SvdVectors vectors) {
  const int64_t m = rows_of(work);
  const int64_t n = columns_of(work);
  const int64_t columns = vectors == kernels::SvdVectors::Full ? m : n;
  const bool wanted = vectors != kernels::SvdVectors::None;
  T* a = work.data_ptr<T>();
  auto* values = s.data_ptr<kernels::RealOf<T>>();
  T* left = wanted ? u.data_ptr<T>() : nullptr;
  T* right = wanted ? v.data_ptr<T>() : nullptr;
  int32_t* codes = info.data_ptr<int32_t>();
  const double work_each = 8 * static_cast<double>(m) * static_cast<double>(n * n);
  for_each_matrix(info.numel(), work_each, [&](int64_t i) {
    T* to_left = wanted ? left + i * m * columns : nullptr;
    T* to_right = wanted ? right + i * n * n : nullptr;
    if (n != 0) {
      codes[i] = decompose_one(m, n, a + i * m * n, vectors, to_left, values + i * n, to_right);
      return;
    }
    codes[i] = 0;
    for (int64_t k = 0; wanted && k < m * columns; ++k) {
      to_left[k] = T(k % (m + 1) == 0 ? 1 : 0);
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> svd_of(const Tensor& a, bool full, bool compute_uv,
                                          std::optional<std::string_view> driver) {
  check_matrix(a, "linalg.svd");
  check_field(a, "linalg.svd");
  check_driver(driver, "linalg.svd");
  // The kernel wants at least as many rows as columns; else U and V change places.
  const bool wide = rows_of(a) < columns_of(a);
  const Tensor work = copy_columns(wide ? turned_view(a) : a);
  const int64_t m = rows_of(work);
  const int64_t n = columns_of(work);
  const IntList batch = batch_sizes(a);
  const Tensor s = make_tensor(with_tail(batch, {n}), real_dtype(a.dtype()), a.device());
  const auto nothing = [&] { return make_tensor({0}, a.dtype(), a.device()); };
  const Tensor u = compute_uv ? make_columns(batch, m, full ? m : n, a) : nothing();
  const Tensor v = compute_uv ? make_columns(batch, n, n, a) : nothing();
  if (!a.is_meta()) {
    const auto vectors = !compute_uv ? kernels::SvdVectors::None
                         : full      ? kernels::SvdVectors::Full
                                     : kernels::SvdVectors::Reduced;
    const Tensor info = make_tensor(batch, DType::Int32, a.device());
    with_field(a.dtype(),
               [&](auto kind) { decompose<decltype(kind)>(work, u, s, v, info, vectors); });
    check_info(info, "linalg.svd", svd_text);
  }
  if (!compute_uv) {
    return {u, s, v};
  }
  return {wide ? v : u, s, turned_view(wide ? u : v)};
}

Tensor skew(const Tensor& x) {
  return sub(x, turned(x));
}

// 0 where there is no gradient.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : add(a, b);
}

Tensor vectors_gradient(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& grad_u,
                        const Tensor& grad_s, const Tensor& grad_vh) {
  const int64_t k = s.size(-1);
  const Tensor row = unsqueeze(s, -2);
  const Tensor column = unsqueeze(s, -1);
  const Tensor itself = eye(k, TensorOptions(DType::Bool).device(s.device()));
  // s_j^2 - s_i^2, as a product that keeps small differences.
  const Tensor gaps = masked_fill(mul(sub(row, column), add(row, column)), itself, Scalar(1));
  const auto turns = [&](const Tensor& x) {
    const Tensor made = div(skew(x), gaps);
    return x.is_complex() ? masked_fill(made, itself, Scalar(0)) : made;
  };
  Tensor middle;
  if (grad_u.defined()) {
    const Tensor change = matmul(turned(u), grad_u);
    middle = mul(turns(change), row);
    if (u.is_complex()) {  // a phase that u and v share
      const Tensor phase = div(imag(diagonal(change, 0, -2, -1)), s);
      middle = add(middle, diag_embed(complex(zeros_like(phase), phase), 0, -2, -1));
    }
  }
  if (grad_vh.defined()) {
    middle = sum_of(middle, mul(column, turns(matmul(vh, turned(grad_vh)))));
  }
  if (grad_s.defined()) {
    middle = sum_of(middle, diag_embed(grad_s, 0, -2, -1));
  }
  Tensor made = matmul(u, matmul(middle, vh));
  if (grad_u.defined() && rows_of(u) > k) {
    const Tensor part = div(grad_u, row);
    const Tensor outside = sub(part, matmul(u, matmul(turned(u), part)));
    made = add(made, matmul(outside, vh));
  }
  if (grad_vh.defined() && columns_of(vh) > k) {
    const Tensor part = div(grad_vh, column);
    const Tensor outside = sub(part, matmul(matmul(part, turned(vh)), vh));
    made = add(made, matmul(u, outside));
  }
  return made;
}

void svd_gradient(Gradient& g) {
  const Tensor& grad_s = g.grad(1);
  if (!g.flag(2)) {  // the vectors were not kept
    if (grad_s.defined()) {
      const auto [u, s, vh] = linalg_svd(g.tensor(0), false);
      g.set(0, matmul(mul(u, unsqueeze(grad_s, -2)), vh));
    }
    return;
  }
  if (!g.has_grad(0) && !grad_s.defined() && !g.has_grad(2)) {
    return;
  }
  const Tensor s = g.result(1);
  const int64_t k = s.size(-1);
  const Tensor u = narrow(g.result(0), -1, 0, k);
  const Tensor vh = narrow(g.result(2), -2, 0, k);
  if (!g.has_grad(0) && !g.has_grad(2)) {
    g.set(0, rows_of(u) >= columns_of(vh) ? matmul(u, mul(unsqueeze(grad_s, -1), vh))
                                          : matmul(mul(u, unsqueeze(grad_s, -2)), vh));
    return;
  }
  // The vectors beyond the singular values span a null space: any of its bases would do.
  g.set(0, vectors_gradient(u, s, vh, g.has_grad(0) ? narrow(g.grad(0), -1, 0, k) : Tensor(),
                            grad_s, g.has_grad(2) ? narrow(g.grad(2), -2, 0, k) : Tensor()));
}

Tensor svdvals_of(const Tensor& a, std::optional<std::string_view> driver) {
  const bool vectors = thread_state.grad_mode && a.requires_grad();
  return std::get<1>(_linalg_svd(a, false, vectors, driver));
}

std::tuple<Tensor, Tensor, Tensor> old_svd(const Tensor& self, bool some, bool compute_uv) {
  check_matrix(self, "linalg.svd");
  if (compute_uv) {
    auto [u, s, vh] = _linalg_svd(self, !some, true, {});
    return {u, s, contiguous(turned(vh))};  // as PyTorch's, which may be viewed otherwise
  }
  const IntList batch = batch_sizes(self);
  const Tensor s = linalg_svdvals(self, {});
  const int64_t m = rows_of(self);
  const int64_t n = columns_of(self);
  return {zeros(with_tail(batch, {m, m}), self.options()), s,
          zeros(with_tail(batch, {n, n}), self.options())};
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_svd) {
  op("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
     "-> (Tensor U, Tensor S, Tensor Vh)",
     kFunction | kOut)
      .doc("linalg.svd, whose vectors are optional.")
      .kernel(svd_of)
      .gradient("A result0 result1 result2", svd_gradient)
      .node("LinalgSvdBackward0");
  op("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> "
     "(Tensor U, Tensor S, Tensor Vh)",
     kFunction | kOut)
      .doc("U, S and Vh of A = U diag(S) Vh, the singular values S in descending order.")
      .composition([](const Tensor& a, bool full, std::optional<std::string_view> driver) {
        return _linalg_svd(a, full, true, driver);
      });
  op("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", kFunction | kOut)
      .doc("The singular values in descending order.")
      .composition(svdvals_of);
  op("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
     kFunction | kMethod | kOut)
      .doc("U, S and V of A = U diag(S) V^T; zeros for U and V without `compute_uv`.")
      .composition(old_svd);
}

}  // namespace rushlight
