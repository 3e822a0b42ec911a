// Triangular systems.
#include <rushlight/generated/functions.h>

#include "kernels/linalg/triangular.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

// Solves in place of the column-major batch `x`.
void solve_in_place(const Tensor& a, const Tensor& x, bool upper, bool left, bool unit) {
  const int64_t n = columns_of(a);
  const int64_t m = rows_of(x);
  const int64_t columns = columns_of(x);
  const IntList batch = batch_sizes(x);
  const Tensor factors = copy_columns(expand_batch(a, batch));
  with_field(a.dtype(), [&](auto kind) {
    using T = decltype(kind);
    const T* from = factors.data_ptr<T>();
    T* to = x.data_ptr<T>();
    const double work = static_cast<double>(n) * static_cast<double>(m * columns);
    for_each_matrix(count_of(batch), work, [&](int64_t i) {
      auto matrix = kernels::by_columns(from + i * n * n, n);
      auto b = kernels::by_columns(to + i * m * columns, m);
      // X A = B is A^T X^T = B^T.
      matrix = left ? matrix : matrix.transposed();
      b = left ? b : b.transposed();
      const int64_t count = left ? columns : m;
      if (upper == left) {
        kernels::solve_upper<T>(n, count, matrix, unit, b);
      } else {
        kernels::solve_lower<T>(n, count, matrix, unit, b);
      }
    });
  });
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  constexpr std::string_view kName = "linalg.solve_triangular";
  check_square(a, kName);
  check_matrix(b, kName, "B");
  check_same_dtype(a, b, kName, "A", "B");
  check_field(a, kName);
  if ((left ? rows_of(b) : columns_of(b)) != columns_of(a)) {
    fail(ErrorKind::Runtime, "", kName, ": Incompatible shapes of A and B for the equation ",
         left ? "AX = B" : "XA = B", " (", rows_of(a), "x", columns_of(a), " and ", rows_of(b), "x",
         columns_of(b), ")");
  }
  const IntList batch = common_batch(a, b, kName);
  const Tensor x = copy_columns(expand_batch(b, batch));
  if (!x.is_meta() && x.numel() != 0) {
    solve_in_place(a, x, upper, left, unit);
  }
  return x;
}

Tensor triangle(const Tensor& x, bool upper, bool unit) {
  return upper ? triu(x, unit ? 1 : 0) : tril(x, unit ? -1 : 0);
}

void solve_triangular_gradient(Gradient& g) {
  const bool upper = g.flag(2);
  const bool left = g.flag(3);
  const bool unit = g.flag(4);
  if (!g.needs(0) && !g.needs(1)) {
    return;
  }
  const Tensor grad = linalg_solve_triangular(turned(g.tensor(0)), g.grad(), !upper, left, unit);
  if (g.needs(1)) {
    g.set(1, grad);
  }
  if (g.needs(0)) {
    const Tensor x = g.result();
    const Tensor product = left ? matmul(grad, turned(x)) : matmul(turned(x), grad);
    g.set(0, neg(triangle(product, upper, unit)));
  }
}

std::tuple<Tensor, Tensor> triangular_solve_of(const Tensor& b, const Tensor& a, bool upper,
                                               bool transpose, bool unit) {
  constexpr std::string_view kName = "triangular_solve";
  check_matrix(b, "torch.triangular_solve", "b");
  check_matrix(a, "torch.triangular_solve", "A");
  check_same_dtype(b, a, kName, "b", "A");
  check_square(a, kName, "A");
  check_field(a, kName);
  if (rows_of(b) != rows_of(a)) {
    fail(ErrorKind::Runtime, "", "Incompatible matrix sizes for ", kName, ": each A matrix is ",
         rows_of(a), " by ", columns_of(a), " but each b matrix is ", rows_of(b), " by ",
         columns_of(b));
  }
  const IntList batch = common_batch(b, a, kName);
  const Tensor x = copy_columns(expand_batch(b, batch));
  const Tensor kept = copy_columns(expand_batch(a, batch));
  if (!x.is_meta() && x.numel() != 0) {
    solve_in_place(transpose ? turned_view(a) : a, x, upper != transpose, true, unit);
  }
  return {x, kept};
}

void triangular_solve_gradient(Gradient& g) {
  const bool upper = g.flag(2);
  const bool transpose = g.flag(3);
  const bool unit = g.flag(4);
  if (!g.has_grad(0)) {
    if (g.needs(1) && g.has_grad(1)) {
      g.set(1, g.grad(1));
    }
    return;
  }
  const Tensor a = g.tensor(1);
  const Tensor grad =
      linalg_solve_triangular(transpose ? a : turned(a), g.grad(0), upper == transpose, true, unit);
  if (g.needs(0)) {
    g.set(0, grad);
  }
  if (g.needs(1)) {
    const Tensor x = g.result(0);
    const Tensor product = transpose ? matmul(x, turned(grad)) : matmul(grad, turned(x));
    Tensor made = neg(triangle(product, upper, unit));
    g.set(1, g.has_grad(1) ? add(made, g.grad(1)) : made);
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_triangular) {
  op("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
     "bool unitriangular=False) -> Tensor",
     kFunction | kOut)
      .doc("The solution of A X = B, or X A = B, with a triangular A.")
      .kernel(solve_triangular)
      .gradient("self result", solve_triangular_gradient);
  op("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
     "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     kFunction | kMethod | kOut)
      .doc("The solution of A X = self, or A^T X = self, with a triangular A; and a copy of A.")
      .kernel(triangular_solve_of)
      .gradient("A result0", triangular_solve_gradient);
}

}  // namespace rushlight
