#include <rushlight/generated/functions.h>

#include "ops/matmul.h"
#include "ops/operator.h"

namespace rushlight {
namespace products {

// A matrix inside a tensor, from dimension `first`.
MatrixRef matrix(const Tensor& x, int64_t rows, int64_t cols) {
  auto stride = [&](int64_t dim) { return dim < 0 ? 0 : x.strides()[static_cast<size_t>(dim)]; };
  return {x.data(), x.dtype(), stride(rows), stride(cols)};
}

MutableMatrixRef target(const Tensor& x, int64_t rows, int64_t cols) {
  MatrixRef ref = matrix(x, rows, cols);
  return {x.data(), ref.dtype, ref.row_stride, ref.col_stride};
}

// A factor as products of this dtype take it: those of integers take its integer part.
static double factor(const Scalar& x, DType dtype) {
  return is_integral(dtype, true) ? static_cast<double>(x.to_int()) : x.to_double();
}

// What `self` adds, broadcast to the product's shape; beta scales it.
GemmEpilogue added(MatrixRef* addend, const Tensor& view, const Scalar& beta, const Scalar& alpha) {
  GemmEpilogue epilogue;
  epilogue.alpha = factor(alpha, view.dtype());
  double scale = factor(beta, view.dtype());
  if (scale != 0) {
    int64_t rank = view.dim();
    *addend = matrix(view, rank - 2, rank - 1);
    epilogue.addend = addend;
    epilogue.addend_scale = scale;
  }
  return epilogue;
}

// (..., K) as (M, K), sharing memory where it can.
Tensor rows_of(const Tensor& x) {
  if (x.dim() == 2) {
    return x;
  }
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < x.sizes().size(); ++i) {
    rows *= x.sizes()[i];
  }
  return reshape(x, {rows, x.sizes().back()});
}

void mm_into(const Tensor& self, const Tensor& mat2, const Tensor& out, const BlockDone* done) {
  GemmEpilogue epilogue;
  epilogue.done = done;
  gemm(out.sizes()[0], out.sizes()[1], self.sizes()[1], matrix(self, 0, 1), matrix(mat2, 0, 1),
       target(out, 0, 1), epilogue);
}

void addmm_into(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out, const BlockDone* done) {
  MatrixRef addend;
  GemmEpilogue epilogue = added(&addend, expand(self, out.sizes()), beta, alpha);
  epilogue.done = done;
  gemm(out.sizes()[0], out.sizes()[1], mat1.sizes()[1], matrix(mat1, 0, 1), matrix(mat2, 0, 1),
       target(out, 0, 1), epilogue);
}

void linear_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& out,
                 const BlockDone* done) {
  MatrixRef addend;
  GemmEpilogue epilogue;
  epilogue.done = done;
  if (bias.defined()) {
    int64_t stride = bias.dim() == 0 || bias.numel() == 1 ? 0 : bias.strides().back();
    addend = {bias.data(), bias.dtype(), 0, stride};
    epilogue.addend = &addend;
  }
  Tensor rows = input.dim() == 1 ? unsqueeze(input, 0) : rows_of(input);
  int64_t last = weight.dim() - 1;
  int64_t outputs = weight.dim() == 2 ? weight.sizes()[0] : 1;
  MatrixRef turned = matrix(weight, last, weight.dim() == 2 ? 0 : -1);
  MutableMatrixRef into{out.data(), out.dtype(), outputs, 1};
  gemm(rows.sizes()[0], outputs, rows.sizes()[1], matrix(rows, 0, 1), turned, into, epilogue);
}

}  // namespace products

using namespace products;

bool is_product(const Operator& op) {
  const std::string& name = op.name();
  return name == "mm" || name == "addmm" || name == "linear";
}

int64_t product_columns(const Operator& op, const Value* arguments, const Tensor& out) {
  const bool vector = op.name() == "linear" && arguments[1].tensor().dim() == 1;
  return out.dim() == 0 || vector ? 1 : out.sizes().back();
}

void run_product(const Operator& op, const Value* arguments, const Tensor& out,
                 const BlockDone& done) {
  if (op.name() == "mm") {
    mm_into(arguments[0].tensor(), arguments[1].tensor(), out, &done);
  } else if (op.name() == "addmm") {
    addmm_into(arguments[0].tensor(), arguments[1].tensor(), arguments[2].tensor(),
               arguments[3].to_scalar(), arguments[4].to_scalar(), out, &done);
  } else {
    RUSHLIGHT_ASSERT(op.name() == "linear");
    Tensor bias = arguments[2].is_tensor() ? arguments[2].tensor() : Tensor();
    linear_into(arguments[0].tensor(), arguments[1].tensor(), bias, out, &done);
  }
}

}  // namespace rushlight
