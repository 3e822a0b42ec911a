// Symmetric and Hermitian matrices that need not be definite.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/linalg/ldl.h"
#include "ops/linalg.h"
#include "ops/missing_gradient.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

std::string singular_text(int32_t code) {
  return cat("The factorization has been completed, but D[", code, ",", code, "] is exactly zero; ",
             "using it on ldl_solve would result in a division by zero.");
}

std::tuple<Tensor, Tensor, Tensor> factor(const Tensor& a, bool hermitian, bool check_errors) {
  check_square_field(a, "torch.linalg.ldl_factor_ex");
  const int64_t n = columns_of(a);
  const IntList batch = batch_sizes(a);
  const Tensor ld = copy_columns(a);
  const Tensor pivots = make_tensor(with_tail(batch, {n}), DType::Int32, a.device());
  const Tensor info = make_tensor(batch, DType::Int32, a.device());
  if (!a.is_meta()) {
    with_field(a.dtype(), [&](auto kind) {
      using T = decltype(kind);
      const double work = static_cast<double>(n) * static_cast<double>(n * n) / 3;
      for_each_matrix(info.numel(), work, [&](int64_t i) {
        T* matrix = ld.data_ptr<T>() + i * n * n;
        info.data_ptr<int32_t>()[i] =
            kernels::ldl_factor(hermitian, n, matrix, n, pivots.data_ptr<int32_t>() + i * n);
        for (int64_t j = 1; j < n; ++j) {
          std::fill(matrix + j * n, matrix + j * n + j, T(0));
        }
      });
    });
    if (check_errors) {
      check_info(info, "torch.linalg.ldl_factor_ex", singular_text);
    }
  }
  return {ld, pivots, info};
}

void check_pivots(const Tensor& pivots, int64_t n) {
  const int32_t* rows = pivots.data_ptr<int32_t>();
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    const bool pair = rows[i] < 0;
    const bool whole = !pair || (i % n + 1 < n && rows[i + 1] == rows[i]);
    if (rows[i] == 0 || std::abs(rows[i]) > n || !whole) {
      fail(ErrorKind::Runtime, "", "torch.linalg.ldl_solve: pivots are not those that ",
           "torch.linalg.ldl_factor returns");
    }
    i += pair ? 1 : 0;
  }
}

Tensor solve_of(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  constexpr std::string_view kName = "torch.linalg.ldl_solve";
  check_matrix(b, kName, "B");
  check_square(ld, kName, "LD");
  check_field(ld, kName);
  if (rows_of(b) != rows_of(ld)) {
    fail(ErrorKind::Runtime, "", "Incompatible matrix sizes for ", kName, ": each A matrix is ",
         rows_of(ld), " by ", columns_of(ld), " but each b matrix is ", rows_of(b), " by ",
         columns_of(b));
  }
  if (b.dim() < 2 || pivots.dim() == 0 || !(IntArrayRef(batch_sizes(ld, 1)) == pivots.sizes())) {
    fail(ErrorKind::Runtime, "", kName,
         ": Expected LD.shape[:-1] and pivots.shape to be the same, ", "but got pivots with shape ",
         pivots.sizes(), " instead");
  }
  if (pivots.dtype() != DType::Int32) {
    fail(ErrorKind::Runtime, "", kName, ": Expected pivots to be integers. Got ",
         scalar_type_name(pivots.dtype()));
  }
  check_same_dtype(ld, b, kName, "LD", "B");
  const IntList batch = common_batch(b, ld, kName);
  const Tensor x = copy_columns(expand_batch(b, batch));
  if (x.is_meta() || x.numel() == 0) {
    return x;
  }
  const int64_t n = columns_of(ld);
  const int64_t columns = columns_of(b);
  const Tensor factors = copy_columns(expand_batch(ld, batch));
  const Tensor rows = kernels::as_contiguous(expand(pivots, with_tail(batch, {n})));
  check_pivots(rows, n);
  with_field(ld.dtype(), [&](auto kind) {
    using T = decltype(kind);
    const double work = 2 * static_cast<double>(n) * static_cast<double>(n * columns);
    for_each_matrix(count_of(batch), work, [&](int64_t i) {
      kernels::ldl_solve(hermitian, n, columns, factors.data_ptr<T>() + i * n * n, n,
                         rows.data_ptr<int32_t>() + i * n, x.data_ptr<T>() + i * n * columns, n);
    });
  });
  return x;
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_ldl) {
  op("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
     "(Tensor LD, Tensor pivots, Tensor info)",
     kFunction | kOut)
      .doc("L and the blocks of D of A = L D L^T, the rows exchanged, and where D is singular.")
      .kernel(factor)
      .gradient("", missing_gradient);
  op("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
     kFunction | kOut)
      .doc("L and the blocks of D of A = L D L^T, and the rows exchanged.")
      .composition([](const Tensor& self, bool hermitian) -> std::tuple<Tensor, Tensor> {
        auto [ld, pivots, info] = linalg_ldl_factor_ex(self, hermitian, true);
        return {ld, pivots};
      });
  op("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
     kFunction | kOut)
      .doc("The solution of A X = B from what linalg.ldl_factor returns.")
      .kernel(solve_of)
      .not_differentiable();
}

}  // namespace rushlight
