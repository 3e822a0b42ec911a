// LU factorisations and what is solved with them.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <numeric>

#include "kernels/copy.h"
#include "kernels/linalg/lu.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

std::string zero_text(int32_t code) {
  return cat("U[", code, ",", code,
             "] is zero and using it on lu_solve would result in a division ",
             "by zero. If you still want to perform the factorization, consider calling ",
             "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
}

std::tuple<Tensor, Tensor, Tensor> factor(const Tensor& a, bool pivot, bool check_errors,
                                          std::string_view op) {
  check_matrix(a, op);
  check_field(a, op);
  const int64_t m = rows_of(a);
  const int64_t n = columns_of(a);
  const int64_t rank = std::min(m, n);
  const IntList batch = batch_sizes(a);
  const Tensor lu = copy_columns(a);
  const Tensor pivots = make_tensor(with_tail(batch, {rank}), DType::Int32, a.device());
  const Tensor info = make_tensor(batch, DType::Int32, a.device());
  if (a.is_meta()) {
    return {lu, pivots, info};
  }
  with_field(a.dtype(), [&](auto kind) {
    using T = decltype(kind);
    T* const data = lu.data_ptr<T>();
    int32_t* const rows = pivots.data_ptr<int32_t>();
    int32_t* const codes = info.data_ptr<int32_t>();
    for_each_matrix(info.numel(), static_cast<double>(m) * static_cast<double>(n * rank),
                    [&](int64_t i) {
                      codes[i] = kernels::lu_factor(m, n, data + i * m * n, std::max<int64_t>(m, 1),
                                                    rows + i * rank, pivot);
                    });
  });
  if (check_errors) {
    check_info(info, "torch.linalg.lu_factor_ex", zero_text);
  }
  return {lu, pivots, info};
}

// A = P L U: row i of L U is row rows[i] of A.
template <typename T>
void write_permutation(int64_t m, int64_t count, const int32_t* pivots, T* p) {
  std::vector<int64_t> rows(static_cast<size_t>(m));
  std::iota(rows.begin(), rows.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(pivots[i] - 1)]);
  }
  std::fill(p, p + m * m, T(0));
  for (int64_t i = 0; i < m; ++i) {
    p[rows[static_cast<size_t>(i)] + i * m] = T(1);  // by columns
  }
}

template <typename T>
void write_factors(int64_t m, int64_t n, const T* lu, T* lower, T* upper) {
  const int64_t rank = std::min(m, n);
  for (int64_t j = 0; j < rank; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      lower[i + j * m] = i > j ? lu[i + j * m] : T(i == j ? 1 : 0);
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < rank; ++i) {
      upper[i + j * rank] = i <= j ? lu[i + j * m] : T(0);
    }
  }
}

Tensor nothing(const Tensor& like) {
  return make_tensor({0}, like.dtype(), like.device());
}

void check_pivots(const Tensor& pivots, int64_t m) {
  const int32_t* rows = pivots.data_ptr<int32_t>();
  const auto outside = [&](int32_t row) { return row < 1 || row > m; };
  if (std::any_of(rows, rows + pivots.numel(), outside)) {
    fail(ErrorKind::Runtime, "",
         "lu_unpack: pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.");
  }
}

std::tuple<Tensor, Tensor, Tensor> unpack(const Tensor& given, const Tensor& given_pivots,
                                          bool unpack_data, bool unpack_pivots) {
  check_matrix(given, "torch.lu_unpack", "LU_data");
  check_field(given, "torch.lu_unpack");
  if (unpack_pivots && given_pivots.dtype() != DType::Int32) {
    fail(ErrorKind::Runtime, "",
         "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. ",
         "Note: this function is intended to be used with the output produced by torch.linalg.",
         "lu_factor");
  }
  const int64_t m = rows_of(given);
  const int64_t n = columns_of(given);
  const int64_t rank = std::min(m, n);
  const IntList batch = batch_sizes(given);
  if (given.is_meta()) {
    const auto make = [&](bool wanted, int64_t rows, int64_t columns) {
      return wanted ? make_tensor(with_tail(batch, {rows, columns}), given.dtype(), given.device())
                    : nothing(given);
    };
    return {make(unpack_pivots, m, m), make(unpack_data, m, rank), make(unpack_data, rank, n)};
  }
  const Tensor p = unpack_pivots ? make_columns(batch, m, m, given) : nothing(given);
  const Tensor lower = unpack_data ? make_columns(batch, m, rank, given) : nothing(given);
  const Tensor upper = unpack_data ? make_columns(batch, rank, n, given) : nothing(given);
  const int64_t count = count_of(batch);
  Tensor pivots;
  if (unpack_pivots) {
    pivots = kernels::as_contiguous(given_pivots);
    check_pivots(pivots, m);
  }
  const Tensor lu = copy_columns(given);
  with_field(given.dtype(), [&](auto kind) {
    using T = decltype(kind);
    for_each_matrix(count, static_cast<double>(m * (m + n)), [&](int64_t i) {
      if (unpack_pivots) {
        write_permutation(m, rank, pivots.data_ptr<int32_t>() + i * rank,
                          p.data_ptr<T>() + i * m * m);
      }
      if (unpack_data) {
        write_factors(m, n, lu.data_ptr<T>() + i * m * n, lower.data_ptr<T>() + i * m * rank,
                      upper.data_ptr<T>() + i * rank * n);
      }
    });
  });
  // Filled by columns, as factorisations are; given by rows, as PyTorch does.
  using kernels::as_contiguous;
  return {as_contiguous(p), as_contiguous(lower), as_contiguous(upper)};
}

std::tuple<Tensor, Tensor, Tensor> lu_of(const Tensor& a, bool pivot) {
  const auto [lu, pivots, info] = factor(a, pivot, false, "linalg.lu");
  return unpack(lu, pivots, true, pivot);
}

// Of A = P L U, from the gradients of L and U, of which one may be undefined.
Tensor factors_gradient(const Tensor& p, const Tensor& l, const Tensor& u, Tensor grad_l,
                        Tensor grad_u, bool pivot) {
  const int64_t m = rows_of(l);
  const int64_t n = columns_of(u);
  const int64_t rank = std::min(m, n);
  grad_l = grad_l.defined() ? grad_l : zeros_like(l);
  grad_u = grad_u.defined() ? grad_u : zeros_like(u);
  const Tensor l1 = narrow(l, -2, 0, rank);
  const Tensor u1 = narrow(u, -1, 0, rank);
  Tensor below = matmul(turned(l1), narrow(grad_l, -2, 0, rank));
  Tensor above = matmul(narrow(grad_u, -1, 0, rank), turned(u1));
  Tensor made;
  const auto solved_right = [&](const Tensor& x) {  // x U1^-T
    return linalg_solve_triangular(turned(u1), x, false, false, false);
  };
  const auto solved_left = [&](const Tensor& x) {  // L1^-T x
    return linalg_solve_triangular(turned(l1), x, true, true, true);
  };
  if (m > n) {
    const Tensor rest = narrow(grad_l, -2, n, m - n);
    above = sub(above, matmul(turned(narrow(l, -2, n, m - n)), rest));
    const Tensor first = solved_left(solved_right(add(tril(below, -1), triu(above))));
    made = cat({first, solved_right(rest)}, -2);
  } else if (m < n) {
    const Tensor rest = narrow(grad_u, -1, m, n - m);
    below = sub(below, matmul(rest, turned(narrow(u, -1, m, n - m))));
    const Tensor first = solved_right(add(tril(below, -1), triu(above)));
    made = solved_left(cat({first, rest}, -1));
  } else {
    made = solved_left(solved_right(add(tril(below, -1), triu(above))));
  }
  return pivot ? matmul(p, made) : made;
}

// The gradients of L and U put where LU keeps them.
Tensor packed_gradient(const Tensor& grad_l, const Tensor& grad_u, int64_t m, int64_t n) {
  const int64_t rank = std::min(m, n);
  Tensor made;
  if (grad_l.defined()) {
    made = tril(grad_l, -1);
    made = n > rank ? constant_pad_nd(made, {0, n - rank}, Scalar(0)) : made;
  }
  if (grad_u.defined()) {
    Tensor above = triu(grad_u);
    above = m > rank ? constant_pad_nd(above, {0, 0, 0, m - rank}, Scalar(0)) : above;
    made = made.defined() ? add(made, above) : above;
  }
  return made;
}

void lu_factor_gradient(Gradient& g) {
  const bool pivot = g.flag(1);
  const auto [p, l, u] = lu_unpack(g.result(0), g.result(1), true, pivot);
  const int64_t rank = std::min(rows_of(l), columns_of(u));
  const Tensor& grad = g.grad(0);
  if (!grad.defined()) {
    return;
  }
  g.set(0, factors_gradient(p, l, u, tril(narrow(grad, -1, 0, rank), -1),
                            triu(narrow(grad, -2, 0, rank)), pivot));
}

void check_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left) {
  constexpr std::string_view kName = "torch.linalg.lu_solve";
  check_field(lu, kName);
  if (pivots.dtype() != DType::Int32) {
    fail(ErrorKind::Runtime, "", "linalg.lu_solve: pivots should be a Tensor of scalar type ",
         "torch.int32. Got ", pivots.dtype());
  }
  check_square(lu, kName, "LU");
  check_matrix(b, kName, "B");
  check_same_dtype(lu, b, "linalg.lu_solve", "LU", "B");
  if ((left ? rows_of(b) : columns_of(b)) != columns_of(lu)) {
    fail(ErrorKind::Runtime, "", kName, ": Incompatible shapes of A and B for the equation ",
         left ? "AX = B" : "XA = B", " (", rows_of(lu), "x", columns_of(lu), " and ", rows_of(b),
         "x", columns_of(b), ")");
  }
  if (pivots.dim() == 0 || pivots.sizes().back() != columns_of(lu)) {
    fail(ErrorKind::Runtime, "",
         "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the ",
         "matrix");
  }
  if (!(IntArrayRef(batch_sizes(pivots, 1)) == IntArrayRef(batch_sizes(lu)))) {
    fail(ErrorKind::Runtime, "", "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be ",
         "the same, but got pivots with shape ", pivots.sizes(), " instead");
  }
}

// The same with the transposed matrix in place of the adjoint one.
Tensor lu_solve_plain(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                      bool transposed) {
  const IntList batch = common_batch(lu, b, "linalg.lu_solve");
  const Tensor made = copy_columns(expand_batch(b, batch));
  if (made.is_meta() || made.numel() == 0) {
    return made;
  }
  const int64_t n = columns_of(lu);
  const int64_t m = rows_of(b);
  const int64_t columns = columns_of(b);
  const Tensor factors = copy_columns(expand_batch(lu, batch));
  const Tensor rows = kernels::as_contiguous(expand(pivots, with_tail(batch, {n})));
  with_field(lu.dtype(), [&](auto kind) {
    using T = decltype(kind);
    const T* a = factors.data_ptr<T>();
    const int32_t* exchanged = rows.data_ptr<int32_t>();
    T* x = made.data_ptr<T>();
    for_each_matrix(count_of(batch), static_cast<double>(n) * static_cast<double>(m * columns),
                    [&](int64_t i) {
                      const auto whole = kernels::by_columns(x + i * m * columns, m);
                      kernels::lu_solve(n, left ? columns : m, a + i * n * n, n, exchanged + i * n,
                                        left == transposed, left ? whole : whole.transposed());
                    });
  });
  return made;
}

Tensor lu_solve_of(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                   bool adjoint) {
  check_lu_solve(lu, pivots, b, left);
  if (adjoint && b.is_complex()) {
    return conj(lu_solve_plain(lu, pivots, conj(b), left, true));
  }
  return lu_solve_plain(lu, pivots, b, left, adjoint);
}

// Of X in A X = B, A = P L U, with respect to L and U.
Tensor lu_solve_factor_gradient(Gradient& g) {
  const bool left = g.flag(3);
  const bool plain = left != g.flag(4);  // A X = B, else A^T X = B
  const Tensor x = left ? g.result() : turned(g.result());
  const Tensor grad = left ? g.grad() : turned(g.grad());
  const auto [p, l, u] = lu_unpack(g.tensor(0), g.tensor(1), true, true);
  Tensor grad_l;
  Tensor grad_u;
  const auto lower = [&](const Tensor& b, bool transposed) {  // L^-1 b or L^-T b
    return linalg_solve_triangular(transposed ? turned(l) : l, b, transposed, true, true);
  };
  const auto upper = [&](const Tensor& b, bool transposed) {
    return linalg_solve_triangular(transposed ? turned(u) : u, b, !transposed, true, false);
  };
  if (plain) {
    const Tensor w = neg(lower(upper(grad, true), true));
    grad_l = matmul(w, turned(matmul(u, x)));
    grad_u = matmul(matmul(turned(l), w), turned(x));
  } else {
    const Tensor y = matmul(turned(p), x);
    const Tensor w = neg(upper(lower(matmul(turned(p), grad), false), false));
    grad_l = matmul(y, turned(matmul(u, w)));
    grad_u = matmul(matmul(turned(l), y), turned(w));
  }
  return packed_gradient(grad_l, grad_u, rows_of(l), columns_of(u));
}

void lu_solve_gradient(Gradient& g) {
  if (g.needs(2)) {
    g.set(2, linalg_lu_solve(g.tensor(0), g.tensor(1), g.grad(), g.flag(3), !g.flag(4)));
  }
  if (g.needs(0)) {
    g.set(0, lu_solve_factor_gradient(g));
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_lu) {
  op("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
     "(Tensor LU, Tensor pivots, Tensor info)",
     kFunction | kOut)
      .doc(
          "L and U of P A = L U in one matrix, the rows exchanged, and the number of the first "
          "zero on U's diagonal, or 0.")
      .kernel([](const Tensor& a, bool pivot, bool check_errors) {
        return factor(a, pivot, check_errors, "torch.linalg.lu_factor_ex");
      })
      .gradient("result0 result1", lu_factor_gradient);
  op("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
     kFunction | kOut)
      .doc("L and U of P A = L U in one matrix, and the rows exchanged.")
      .composition([](const Tensor& a, bool pivot) -> std::tuple<Tensor, Tensor> {
        auto [lu, pivots, info] = linalg_lu_factor_ex(a, pivot, true);
        return {lu, pivots};
      });
  op("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> "
     "(Tensor LU, Tensor pivots, Tensor info)",
     kFunction)
      .doc("linalg.lu_factor_ex, for torch.lu.")
      .composition([](const Tensor& self, bool pivot, bool check_errors) {
        return linalg_lu_factor_ex(self, pivot, check_errors);
      });
  op("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", kFunction | kOut)
      .doc("The factors of A = P L U; P is empty without pivoting.")
      .kernel(lu_of)
      .gradient("result0 result1 result2", [](Gradient& g) {
        if (!g.has_grad(1) && !g.has_grad(2)) {
          return;
        }
        g.set(0, factors_gradient(g.result(0), g.result(1), g.result(2), g.grad(1), g.grad(2),
                                  g.flag(1)));
      });
  op("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
     "-> (Tensor P, Tensor L, Tensor U)",
     kFunction | kOut)
      .doc("The factors of A = P L U from what linalg.lu_factor returns.")
      .kernel(unpack)
      .gradient("LU_data", [](Gradient& g) {
        const Tensor lu = g.tensor(0);
        g.set(0, packed_gradient(g.grad(1), g.grad(2), rows_of(lu), columns_of(lu)));
      });
  op("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) "
     "-> Tensor",
     kFunction | kOut)
      .doc("The solution of A X = B (X A = B, A^T X = B) from what linalg.lu_factor returns.")
      .kernel(lu_solve_of)
      .gradient("LU pivots result", lu_solve_gradient);
  op("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("linalg.lu_solve with its arguments in another order.")
      .composition([](const Tensor& self, const Tensor& lu, const Tensor& pivots) {
        return linalg_lu_solve(lu, pivots, self, true, false);
      });
}

}  // namespace rushlight
