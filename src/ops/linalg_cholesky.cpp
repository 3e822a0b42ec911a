// Cholesky factorisations and what is solved with them.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/linalg/cholesky.h"
#include "kernels/linalg/triangular.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

std::string indefinite_text(int32_t code) {
  return cat("The factorization could not be completed because the input is not positive-definite ",
             "(the leading minor of order ", code, " is not positive-definite).");
}

// Keeps one triangle of the column-major n x n matrix.
template <typename T>
void keep_lower(int64_t n, T* a) {
  for (int64_t j = 1; j < n; ++j) {
    std::fill(a + j * n, a + j * n + j, T(0));
  }
}

std::tuple<Tensor, Tensor> factor(const Tensor& a, bool upper, bool check_errors,
                                  std::string_view op) {
  check_square_field(a, op);
  const int64_t n = columns_of(a);
  // The upper factor by columns is the lower one by rows.
  const Tensor l = copy_columns(upper ? turned_view(a) : a);
  const Tensor info = make_tensor(batch_sizes(a), DType::Int32, a.device());
  if (!a.is_meta()) {
    with_field(a.dtype(), [&](auto kind) {
      using T = decltype(kind);
      T* data = l.data_ptr<T>();
      int32_t* codes = info.data_ptr<int32_t>();
      const double work = static_cast<double>(n) * static_cast<double>(n * n) / 3;
      for_each_matrix(info.numel(), work, [&](int64_t i) {
        codes[i] = kernels::cholesky_factor(n, data + i * n * n, n);
        keep_lower(n, data + i * n * n);
      });
    });
    if (check_errors) {
      check_info(info, op, indefinite_text);
    }
  }
  return {upper ? turned_view(l) : l, info};
}

// Of A, from the gradient of L in A = L L^T.
void cholesky_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  const bool upper = g.flag(1);
  const Tensor l = upper ? turned(g.result(0)) : g.result(0);
  const Tensor grad = upper ? turned(g.grad(0)) : g.grad(0);
  const Tensor lower = tril(matmul(turned(l), grad));
  const Tensor middle = mul(add(lower, turned(tril(lower, -1))), Scalar(0.5));
  const Tensor right = linalg_solve_triangular(l, middle, false, false, false);
  g.set(0, linalg_solve_triangular(turned(l), right, true, true, false));
}

void check_solve(const Tensor& b, const Tensor& l) {
  check_matrix(b, "cholesky_solve", "b");
  check_matrix(l, "cholesky_solve", "u");
  check_same_dtype(b, l, "cholesky_solve", "b", "A");
  check_square(l, "cholesky_solve", "A");
  check_field(b, "cholesky_solve");
  if (rows_of(b) != rows_of(l)) {
    fail(ErrorKind::Runtime, "", "Incompatible matrix sizes for cholesky_solve: each A matrix is ",
         rows_of(l), " by ", columns_of(l), " but each b matrix is ", rows_of(b), " by ",
         columns_of(b));
  }
}

// (L L^T) X = B in place of the column-major batch `x`; L has the same batch.
void solve_in_place(const Tensor& l, const Tensor& x, bool upper) {
  const int64_t n = columns_of(l);
  const int64_t columns = columns_of(x);
  const Tensor below = upper ? turned_view(l) : l;
  const Tensor first = copy_columns(upper ? conj(below) : below);
  const Tensor second = l.is_complex() ? copy_columns(upper ? below : conj(below)) : first;
  with_field(l.dtype(), [&](auto kind) {
    using T = decltype(kind);
    T* to = x.data_ptr<T>();
    const double work = static_cast<double>(2 * n) * static_cast<double>(n * columns);
    for_each_matrix(count_of(batch_sizes(x)), work, [&](int64_t i) {
      const auto factor = [&](const Tensor& of) {
        return kernels::by_columns(static_cast<const T*>(of.data_ptr<T>()) + i * n * n, n);
      };
      const auto b = kernels::by_columns(to + i * n * columns, n);
      kernels::solve_lower<T>(n, columns, factor(first), false, b);
      kernels::solve_upper<T>(n, columns, factor(second).transposed(), false, b);
    });
  });
}

Tensor solve_of(const Tensor& b, const Tensor& l, bool upper) {
  check_solve(b, l);
  const IntList batch = common_batch(b, l, "cholesky_solve");
  const Tensor x = copy_columns(expand_batch(b, batch));
  if (!x.is_meta() && x.numel() != 0) {
    solve_in_place(expand_batch(l, batch), x, upper);
  }
  return x;
}

Tensor inverse_of(const Tensor& l, bool upper) {
  check_square_field(l, "cholesky_inverse");
  const int64_t n = columns_of(l);
  const Tensor x = make_columns(batch_sizes(l), n, n, l);
  if (!x.is_meta() && x.numel() != 0) {
    with_field(l.dtype(), [&](auto kind) {
      using T = decltype(kind);
      T* to = x.data_ptr<T>();
      for (int64_t i = 0; i < x.numel(); ++i) {
        to[i] = i % (n * n) % (n + 1) == 0 ? T(1) : T(0);
      }
    });
    solve_in_place(l, x, upper);
  }
  return x;
}

// Of L, from the gradient of (L L^T)^-1 turned about it: -(G + G^T) L.
Tensor factor_gradient(const Tensor& product, const Tensor& l, bool upper) {
  const Tensor both = neg(add(product, turned(product)));
  return upper ? matmul(l, both) : matmul(both, l);
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_cholesky) {
  op("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
     "(Tensor L, Tensor info)",
     kFunction | kOut)
      .doc(
          "L of A = L L^T, and the order of the first leading minor that is not "
          "positive-definite, or 0.")
      .kernel([](const Tensor& self, bool upper, bool check_errors) {
        return factor(self, upper, check_errors, "linalg.cholesky");
      })
      .gradient("result0", cholesky_gradient);
  op("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", kFunction | kOut)
      .doc("L of A = L L^T; with `upper`, U of A = U^T U.")
      .composition([](const Tensor& self, bool upper) -> Tensor {
        return std::get<0>(linalg_cholesky_ex(self, upper, true));
      });
  op("cholesky(Tensor self, bool upper=False) -> Tensor", kFunction | kMethod | kOut)
      .doc("L of A = L L^T; with `upper`, U of A = U^T U. See linalg.cholesky.")
      .kernel([](const Tensor& self, bool upper) -> Tensor {
        return std::get<0>(factor(self, upper, true, "cholesky"));
      })
      .gradient("result", cholesky_gradient)
      .casts_out();
  op("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("X of L L^T X = self, or U^T U X = self.")
      .kernel(solve_of)
      .gradient("input2 result",
                [](Gradient& g) {
                  const Tensor l = g.tensor(1);
                  const bool upper = g.flag(2);
                  const Tensor solved = cholesky_solve(g.grad(), l, upper);
                  if (g.needs(0)) {
                    g.set(0, solved);
                  }
                  if (g.needs(1)) {
                    g.set(1, factor_gradient(matmul(solved, turned(g.result())), l, upper));
                  }
                })
      .casts_out();
  op("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", kFunction | kMethod | kOut)
      .doc("The inverse of L L^T, or of U^T U.")
      .kernel(inverse_of)
      .gradient("self result",
                [](Gradient& g) {
                  const Tensor inverse = g.result();
                  const Tensor product = matmul(inverse, matmul(g.grad(), inverse));
                  g.set(0, factor_gradient(product, g.tensor(0), g.flag(1)));
                })
      .casts_out();
}

}  // namespace rushlight
