// Eigenvalues and eigenvectors.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <complex>

#include "kernels/copy.h"
#include "kernels/linalg/eigen_complex.h"
#include "kernels/linalg/eigen_general.h"
#include "kernels/linalg/eigen_symmetric.h"
#include "kernels/linalg/jacobi.h"
#include "kernels/linalg/matrix.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

std::string eigen_text(int32_t code) {
  return cat("The algorithm failed to converge because the input matrix is ill-conditioned or has ",
             "too many repeated eigenvalues (error code: ", code, ").");
}

bool parse_triangle(std::string_view text) {
  const char first = text.size() == 1 ? text[0] : ' ';
  if (first == 'L' || first == 'l' || first == 'U' || first == 'u') {
    return first == 'U' || first == 'u';
  }
  fail(ErrorKind::Runtime, "", "Expected UPLO argument to be 'L' or 'U', but got ", text);
}

using kernels::conjugate;

// Makes the column-major matrix symmetric, or Hermitian, by one of its triangles.
template <typename T>
void mirror(int64_t n, T* a, bool from_upper) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j + 1; i < n; ++i) {
      T& lower = a[i + j * n];
      T& upper = a[j + i * n];
      (from_upper ? lower : upper) = conjugate(from_upper ? upper : lower);
    }
    if constexpr (kernels::Parts<T>::kComplex) {
      a[j + j * n] = a[j + j * n].real();
    }
  }
}

// kernels::eigen_symmetric; complex matrices in double precision.
template <typename T>
int32_t symmetric_values(int64_t n, T* a, kernels::RealOf<T>* values, bool vectors) {
  if constexpr (kernels::Parts<T>::kComplex) {
    kernels::ComplexMatrix work(a, a + n * n);
    std::vector<double> found(static_cast<size_t>(n));
    const int32_t code = kernels::eigen_hermitian(n, work, found.data());
    std::transform(work.begin(), work.end(), a, [](std::complex<double> x) { return T(x); });
    std::transform(found.begin(), found.end(), values,
                   [](double x) { return static_cast<kernels::RealOf<T>>(x); });
    return code;
  } else {
    return kernels::eigen_symmetric(n, a, n, values, vectors);
  }
}

std::tuple<Tensor, Tensor> eigh_of(const Tensor& a, std::string_view triangle, bool compute_v) {
  check_square_field(a, "linalg.eigh");
  const bool from_upper = parse_triangle(triangle);
  const int64_t n = columns_of(a);
  const IntList batch = batch_sizes(a);
  const Tensor values = make_tensor(with_tail(batch, {n}), real_dtype(a.dtype()), a.device());
  const Tensor work = copy_columns(a);
  const Tensor vectors = compute_v ? work : make_tensor({0}, a.dtype(), a.device());
  if (a.is_meta() || n == 0) {
    return {values, vectors};
  }
  const Tensor info = make_tensor(batch, DType::Int32, a.device());
  with_field(a.dtype(), [&](auto kind) {
    using T = decltype(kind);
    const double each = 9 * static_cast<double>(n) * static_cast<double>(n * n);
    for_each_matrix(info.numel(), each, [&](int64_t i) {
      T* matrix = work.data_ptr<T>() + i * n * n;
      mirror(n, matrix, from_upper);
      info.data_ptr<int32_t>()[i] =
          symmetric_values(n, matrix, values.data_ptr<kernels::RealOf<T>>() + i * n, compute_v);
    });
  });
  check_info(info, "linalg.eigh", eigen_text);
  return {values, vectors};
}

void eigh_gradient(Gradient& g) {
  const Tensor& grad_values = g.grad(0);
  const bool kept = g.flag(2);
  if (!grad_values.defined() && !g.has_grad(1)) {
    return;
  }
  Tensor values = g.result(0);
  Tensor v = g.result(1);
  if (!kept) {
    std::tie(values, v) = linalg_eigh(g.tensor(0), g.text(1));
  }
  if (!kept || !g.has_grad(1)) {
    g.set(0, matmul(mul(v, unsqueeze(grad_values, -2)), turned(v)));
    return;
  }
  const Tensor itself = eye(values.size(-1), TensorOptions(DType::Bool).device(v.device()));
  const Tensor gaps =
      masked_fill(sub(unsqueeze(values, -2), unsqueeze(values, -1)), itself, Scalar(1));
  // Orthogonal matrices change by skew ones alone.
  const Tensor change = matmul(turned(v), g.grad(1));
  const Tensor skew = mul(sub(change, turned(change)), Scalar(0.5));
  Tensor middle = masked_fill(div(skew, gaps), itself, Scalar(0));
  if (grad_values.defined()) {
    middle = add(middle, diag_embed(grad_values, 0, -2, -1));
  }
  g.set(0, matmul(v, matmul(middle, turned(v))));
}

// Result dtype of complex numbers with parts of this one.
DType complex_of(DType dtype) {
  return real_dtype(dtype) == DType::Float32 ? DType::Complex64 : DType::Complex128;
}

void check_eig(const Tensor& a) {
  check_square_field(a, "linalg.eig");
  if (a.is_meta()) {
    return;
  }
  if (!all(isfinite(a)).item<bool>()) {
    fail(ErrorKind::Runtime, "", "torch.linalg.eig: input tensor should not contain infs or NaNs.");
  }
}

// What the kernel made in double, by columns, as numbers of another precision.
template <typename T>
void narrow_to(const std::vector<std::complex<double>>& from, std::complex<T>* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = std::complex<T>(from[i]);
  }
}

template <typename T>
int32_t general_values(int64_t n, const T* a, std::complex<double>* values,
                       std::complex<double>* vectors) {
  if constexpr (kernels::Parts<T>::kComplex) {
    return kernels::eigen_complex(n, {a, a + n * n}, values, vectors);
  } else {
    return kernels::eigen_general(n, std::vector<double>(a, a + n * n), values, vectors);
  }
}

std::tuple<Tensor, Tensor> eig_of(const Tensor& given, bool compute_v) {
  const DoorGuard guard(0, ~0U);
  check_eig(given);
  const int64_t n = columns_of(given);
  const IntList batch = batch_sizes(given);
  const DType dtype = complex_of(given.dtype());
  const Tensor values = make_tensor(with_tail(batch, {n}), dtype, given.device());
  const Tensor columns = compute_v ? make_tensor(with_tail(batch, {n, n}), dtype, given.device())
                                   : make_tensor({0}, dtype, given.device());
  const Tensor vectors = compute_v ? turned_view(columns) : columns;
  if (given.is_meta() || given.numel() == 0) {
    return {values, vectors};
  }
  const Tensor info = make_tensor(batch, DType::Int32, given.device());
  const Tensor work = copy_columns(given);
  with_field(given.dtype(), [&](auto kind) {
    using T = decltype(kind);
    using R = kernels::RealOf<T>;
    const double each = 25 * static_cast<double>(n) * static_cast<double>(n * n);
    for_each_matrix(info.numel(), each, [&](int64_t i) {
      const T* a = work.data_ptr<T>() + i * n * n;
      std::vector<std::complex<double>> found(static_cast<size_t>(n));
      std::vector<std::complex<double>> of_values(static_cast<size_t>(compute_v ? n * n : 0));
      info.data_ptr<int32_t>()[i] =
          general_values(n, a, found.data(), compute_v ? of_values.data() : nullptr);
      narrow_to(found, static_cast<std::complex<R>*>(values.data()) + i * n);
      narrow_to(of_values, static_cast<std::complex<R>*>(columns.data()) + i * n * n);
    });
  });
  check_info(info, "linalg.eig", eigen_text);
  return {values, vectors};
}

// A = V diag(L) V^-1. Vectors of length one change across themselves alone, and by a phase, of
// which nothing may depend.
void eig_gradient(Gradient& g) {
  if (!g.has_grad(0) && !g.has_grad(1)) {
    return;
  }
  const Tensor values = g.result(0);
  const Tensor v = g.result(1);
  const Tensor adjoint = turned(v);
  Tensor middle = g.has_grad(0) ? diag_embed(g.grad(0), 0, -2, -1) : Tensor();
  if (g.has_grad(1)) {
    const Tensor change = matmul(adjoint, g.grad(1));
    const Tensor along = real(diagonal(change, 0, -2, -1));
    const Tensor across = sub(change, matmul(adjoint, mul(v, unsqueeze(along, -2))));
    const Tensor itself = eye(values.size(-1), TensorOptions(DType::Bool).device(v.device()));
    const Tensor gaps =
        masked_fill(conj(sub(unsqueeze(values, -2), unsqueeze(values, -1))), itself, Scalar(1));
    const Tensor turns = masked_fill(div(across, gaps), itself, Scalar(0));
    middle = middle.defined() ? add(middle, turns) : turns;
  }
  g.set(0, linalg_solve(adjoint, matmul(middle, adjoint), true));
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_eigen) {
  op("_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> "
     "(Tensor eigenvalues, Tensor eigenvectors)",
     kFunction | kOut)
      .doc("linalg.eigh, whose vectors are optional.")
      .kernel(eigh_of)
      .gradient("A result0 result1", eigh_gradient)
      .node("LinalgEighBackward0");
  op("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
     kFunction | kOut)
      .doc(
          "The eigenvalues of symmetric matrices in ascending order, and their eigenvectors. Only "
          "the triangle UPLO is read.")
      .composition([](const Tensor& self, std::string_view triangle) {
        return _linalg_eigh(self, triangle, true);
      });
  op("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", kFunction | kOut)
      .doc("The eigenvalues of symmetric matrices in ascending order.")
      .composition([](const Tensor& self, std::string_view triangle) -> Tensor {
        const bool vectors = thread_state.grad_mode && self.requires_grad();
        return std::get<0>(_linalg_eigh(self, triangle, vectors));
      });
  op("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", kFunction | kOut)
      .doc("The eigenvalues of square matrices, complex and in no order, and their eigenvectors.")
      .kernel([](const Tensor& self) { return eig_of(self, true); })
      .gradient("result0 result1", eig_gradient)
      .casts_out();
  op("linalg_eigvals(Tensor self) -> Tensor", kFunction | kOut)
      .doc("The eigenvalues of square matrices, complex and in no order.")
      .kernel([](const Tensor& self) -> Tensor { return std::get<0>(eig_of(self, false)); })
      .gradient("self",
                [](Gradient& g) {
                  const Tensor adjoint = turned(std::get<1>(linalg_eig(g.tensor(0))));
                  const Tensor changes = diag_embed(g.grad(), 0, -2, -1);
                  g.set(0, linalg_solve(adjoint, matmul(changes, adjoint), true));
                })
      .casts_out();
}

}  // namespace rushlight
