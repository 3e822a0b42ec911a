// Matrix exponentials.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/linalg/matrix_exponential.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

Tensor matrix_exp_of(const Tensor& a) {
  check_square(a, "linalg.matrix_exp");
  if (!a.is_floating_point()) {
    fail(is_complex(a.dtype()) ? ErrorKind::NotImplemented : ErrorKind::Runtime, "",
         "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got ",
         scalar_type_name(a.dtype()));
  }
  const Tensor made = make_tensor(a.sizes(), a.dtype(), a.device());
  if (a.is_meta() || a.numel() == 0) {
    return made;
  }
  const int64_t n = columns_of(a);
  // By rows: the exponential of a transposed matrix is the transposed exponential.
  const Tensor work = kernels::as_contiguous(kernels::as_dtype(a, DType::Float64));
  const Tensor results =
      made.dtype() == DType::Float64 ? made : make_tensor(a.sizes(), DType::Float64, a.device());
  const double* from = work.data_ptr<double>();
  double* to = results.data_ptr<double>();
  const double each = 20 * static_cast<double>(n) * static_cast<double>(n * n);
  for_each_matrix(a.numel() / (n * n), each, [&](int64_t i) {
    const double* first = from + i * n * n;
    const std::vector<double> found =
        kernels::matrix_exponential(n, std::vector<double>(first, first + n * n));
    std::copy(found.begin(), found.end(), to + i * n * n);
  });
  if (!results.is_same(made)) {
    kernels::copy(made, results);
  }
  return made;
}

// X + iY is to complex numbers what [[X, -Y], [Y, X]] is to real ones.
Tensor complex_matrix_exp(const Tensor& a) {
  check_square(a, "linalg.matrix_exp");
  const Tensor x = real(a);
  const Tensor y = imag(a);
  const Tensor left = linalg_matrix_exp(cat({cat({x, neg(y)}, -1), cat({y, x}, -1)}, -2));
  const int64_t n = columns_of(a);
  const Tensor column = narrow(left, -1, 0, n);
  return complex(contiguous(narrow(column, -2, 0, n)), contiguous(narrow(column, -2, n, n)));
}

// exp [[A^T, G], [0, A^T]] has the gradient in its upper right corner.
void matrix_exp_gradient(Gradient& g) {
  const Tensor a = turned(g.tensor(0));
  const int64_t n = columns_of(a);
  const Tensor upper = cat({a, g.grad()}, -1);
  const Tensor lower = cat({zeros_like(a), a}, -1);
  const Tensor whole = linalg_matrix_exp(cat({upper, lower}, -2));
  g.set(0, narrow(narrow(whole, -2, 0, n), -1, n, n));
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_exp) {
  op("linalg_matrix_exp(Tensor self) -> Tensor", kFunction | kOut)
      .doc("e to the power of square matrices.")
      .kernel(matrix_exp_of)
      .complex_body(complex_matrix_exp)
      .gradient("self", matrix_exp_gradient);
  op("matrix_exp(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Another name of linalg.matrix_exp.")
      .composition([](const Tensor& self) { return linalg_matrix_exp(self); });
}

}  // namespace rushlight
