// Linear systems and inverses of square matrices.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/linalg/lu.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

std::string singular_text(int32_t) {
  return "The solver failed because the input matrix is singular.";
}

std::string inverse_text(int32_t code) {
  return cat("The diagonal element ", code, " is zero, the inversion could not be completed ",
             "because the input matrix is singular.");
}

struct Solved {
  Tensor result;
  Tensor lu;
  Tensor pivots;
  Tensor info;
};

// Solves with a batch of square matrices; `x` holds the right-hand sides, by columns, of the batch
// that both broadcast to, and becomes the solution.
template <typename T>
void solve_batch(const Solved& to, int64_t n, int64_t m, int64_t columns, bool left) {
  const int64_t matrices = to.info.numel();
  const double work = static_cast<double>(n) * static_cast<double>(n * (n + m));
  T* lu = to.lu.data_ptr<T>();
  T* x = to.result.data_ptr<T>();
  int32_t* pivots = to.pivots.data_ptr<int32_t>();
  int32_t* codes = to.info.data_ptr<int32_t>();
  const int64_t count = left ? columns : m;
  for_each_matrix(matrices, work, [&](int64_t i) {
    codes[i] = kernels::lu_factor(n, n, lu + i * n * n, n, pivots + i * n, true);
    const auto b = kernels::by_columns(x + i * m * columns, m);
    kernels::lu_solve(n, count, lu + i * n * n, n, pivots + i * n, !left,
                      left ? b : b.transposed());
  });
}

void check_solve(const Tensor& a, const Tensor& b, bool left, bool vector) {
  constexpr std::string_view kName = "linalg.solve";
  check_field(a, kName);
  if (a.dtype() != b.dtype()) {
    fail(ErrorKind::Runtime, "", kName,
         ": Expected A and B to have the same dtype, but found A of ", "type ",
         scalar_type_name(a.dtype()), " and B of type ", scalar_type_name(b.dtype()), " instead");
  }
  check_square(a, kName);
  if (vector && !left) {
    fail(ErrorKind::Runtime, "", kName, ": Vector broadcasting of the left hand side is not ",
         "supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)");
  }
  if (!vector) {
    check_matrix(b, kName, "B");
  }
  const int64_t rows = vector ? b.sizes().back() : rows_of(b);
  const int64_t columns = vector ? 1 : columns_of(b);
  if ((left ? rows : columns) != columns_of(a)) {
    fail(ErrorKind::Runtime, "", kName, ": Incompatible shapes of A and B for the equation ",
         left ? "AX = B" : "XA = B", " (", rows_of(a), "x", columns_of(a), " and ", rows, "x",
         columns, ")");
  }
}

std::tuple<Tensor, Tensor, Tensor, Tensor> solve_with_factors(const Tensor& a, const Tensor& b,
                                                              bool left, bool check_errors) {
  const bool vector = is_vector_for(a, b.sizes());
  check_solve(a, b, left, vector);
  const DoorGuard guard(0, ~0U);
  const Tensor columns = vector ? unsqueeze(b, -1) : b;
  const IntList batch = common_batch(columns, a, "linalg.solve");
  const int64_t n = columns_of(a);
  Solved made;
  made.result = copy_columns(expand_batch(columns, batch));
  made.lu = copy_columns(expand_batch(a, batch));
  made.pivots = make_tensor(with_tail(batch, {n}), DType::Int32, a.device());
  made.info = make_tensor(batch, DType::Int32, a.device());
  if (!a.is_meta()) {
    with_field(a.dtype(), [&](auto kind) {
      solve_batch<decltype(kind)>(made, n, rows_of(columns), columns_of(columns), left);
    });
    if (check_errors) {
      check_info(made.info, "torch.linalg.solve", singular_text);
    }
  }
  return {vector ? squeeze(made.result, -1) : made.result, made.lu, made.pivots, made.info};
}

// A^-T grad, or grad A^-T. Where it is to be differentiated again the factors, of which no gradient
// comes, will not do.
Tensor solved_transposed(const Tensor& a, const Tensor& lu, const Tensor& pivots,
                         const Tensor& grad, bool left) {
  if (thread_state.grad_mode) {
    return linalg_solve(turned(a), grad, left);
  }
  if (is_vector_for(lu, grad.sizes())) {
    return squeeze(linalg_lu_solve(lu, pivots, unsqueeze(grad, -1), left, true), -1);
  }
  return linalg_lu_solve(lu, pivots, grad, left, true);
}

void solve_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  const bool left = g.flag(2);
  const Tensor a = g.tensor(0);
  const Tensor x = g.result(0);
  const bool vector = is_vector_for(a, g.sizes(1));
  const Tensor grad = vector ? unsqueeze(g.grad(0), -1) : g.grad(0);
  const Tensor solved = solved_transposed(a, g.result(1), g.result(2), grad, left);
  if (g.needs(1)) {
    g.set(1, vector ? squeeze(solved, -1) : solved);
  }
  if (g.needs(0)) {
    const Tensor columns = vector ? unsqueeze(x, -1) : x;
    g.set(0, neg(left ? matmul(solved, turned(columns)) : matmul(turned(columns), solved)));
  }
}

std::tuple<Tensor, Tensor> inverse_of(const Tensor& a, bool check_errors) {
  check_square_field(a, "linalg.inv");
  const int64_t n = columns_of(a);
  const IntList batch = batch_sizes(a);
  Solved made;
  made.result = make_columns(batch, n, n, a);
  made.lu = copy_columns(a);
  made.pivots = make_tensor(with_tail(batch, {n}), DType::Int32, a.device());
  made.info = make_tensor(batch, DType::Int32, a.device());
  if (a.is_meta()) {
    return {made.result, made.info};
  }
  with_field(a.dtype(), [&](auto kind) {
    using T = decltype(kind);
    T* x = made.result.data_ptr<T>();
    std::fill(x, x + made.result.numel(), T(0));
    for (int64_t i = 0; n != 0 && i < made.result.numel();
         i += i % (n * n) == n * n - 1 ? 1 : n + 1) {
      x[i] = T(1);
    }
    solve_batch<T>(made, n, n, n, true);
  });
  if (check_errors) {
    check_info(made.info, "linalg.inv", inverse_text);
  }
  return {made.result, made.info};
}

Tensor checked_inverse(const Tensor& a) {
  return std::get<0>(linalg_inv_ex(a, true));
}

int64_t product_of(IntArrayRef sizes) {
  return count_of(sizes);
}

Tensor tensorinv_of(const Tensor& self, int64_t ind) {
  if (ind <= 0) {
    fail(ErrorKind::Runtime, "", "Expected a strictly positive integer for 'ind', but got ", ind);
  }
  const auto split = static_cast<size_t>(std::min(ind, self.dim()));
  const IntArrayRef last = self.sizes().subspan(split);
  const IntArrayRef first = self.sizes().first(split);
  if (product_of(first) != product_of(last)) {
    fail(ErrorKind::Runtime, "",
         "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind])"
         ", but got ",
         product_of(last), " != ", product_of(first));
  }
  const Tensor matrix = reshape(self, {product_of(last), product_of(first)});
  IntList shape(last);
  for (int64_t size : first) {
    shape.push_back(size);
  }
  auto [inverse, info] = linalg_inv_ex(matrix, false);
  if (!info.is_meta() && info.item<int>() != 0) {
    fail(ErrorKind::LinAlg, "", "Failed to invert the input tensor, because it is singular.");
  }
  return reshape(inverse, shape);
}

Tensor tensorsolve_of(const Tensor& self, const Tensor& other, std::optional<IntArrayRef> dims) {
  Tensor a = self;
  if (dims) {
    IntList from;
    IntList to;
    for (size_t i = 0; i < dims->size(); ++i) {
      from.push_back((*dims)[i]);
      to.push_back(self.dim() - static_cast<int64_t>(dims->size()) + static_cast<int64_t>(i));
    }
    a = movedim(self, from, to);
  }
  const auto split = static_cast<size_t>(std::min(other.dim(), a.dim()));
  const IntList shape(a.sizes().subspan(split));
  const int64_t unknowns = product_of(shape);
  const int64_t equations = product_of(a.sizes().first(split));
  if (unknowns != equations) {
    fail(ErrorKind::Runtime, "",
         "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
         "prod(self.shape[:other.ndim]), but got ",
         unknowns, " != ", equations);
  }
  const Tensor x = linalg_solve(reshape(a, {unknowns, unknowns}), flatten(other), true);
  return reshape(x, shape);
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_solve) {
  op("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
     "(Tensor result, Tensor LU, Tensor pivots, Tensor info)",
     kFunction | kOut)
      .doc("linalg.solve_ex with the factors of A.")
      .kernel(solve_with_factors)
      .gradient("A result0 result1 result2", solve_gradient)
      .node("LinalgSolveExBackward0");
  op("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
     "(Tensor result, Tensor info)",
     kFunction | kOut)
      .doc("The solution of A X = B, or X A = B; info is not 0 where A is singular.")
      .composition([](const Tensor& a, const Tensor& b, bool left,
                      bool check_errors) -> std::tuple<Tensor, Tensor> {
        auto [result, lu, pivots, info] = _linalg_solve_ex(a, b, left, check_errors);
        return {result, info};
      });
  op("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", kFunction | kOut)
      .doc("The solution of A X = B, or X A = B, of square matrices.")
      .composition([](const Tensor& a, const Tensor& b, bool left) -> Tensor {
        return std::get<0>(_linalg_solve_ex(a, b, left, true));
      });
  op("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
     kFunction | kOut)
      .doc("The inverse of square matrices; info is not 0 where there is none.")
      .kernel(inverse_of)
      .gradient("result0", [](Gradient& g) {
        if (g.has_grad(0)) {
          const Tensor inverse = turned(g.result(0));
          g.set(0, neg(matmul(inverse, matmul(g.grad(0), inverse))));
        }
      });
  op("linalg_inv(Tensor A) -> Tensor", kFunction | kOut)
      .doc("The inverse of square matrices.")
      .composition(checked_inverse);
  op("inverse(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .doc("Another name of linalg.inv.")
      .composition(checked_inverse);
  op("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", kFunction | kOut)
      .doc("The inverse to tensordot with `ind` dimensions.")
      .composition(tensorinv_of)
      .casts_out();
  op("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", kFunction | kOut)
      .doc("X of tensordot(self, X, X.ndim) = other.")
      .composition(tensorsolve_of)
      .casts_out();
}

}  // namespace rushlight
