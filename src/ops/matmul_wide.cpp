// Products of half-precision matrices whose sums are given in float32, unrounded: out_dtype=.
// PyTorch has these overloads on CUDA alone; the rules for dtypes are its.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"

namespace rushlight {
namespace {

// `tensor` as it is multiplied where the product is to be of `wanted`.
Tensor widened(std::string_view op, std::string_view name, const Tensor& tensor, DType wanted) {
  const DType dtype = tensor.dtype();
  const bool half = dtype == DType::Float16 || dtype == DType::BFloat16;
  if (wanted != dtype && !(half && wanted == DType::Float32)) {
    fail(ErrorKind::Runtime, op, "argument 'out_dtype': expected the dtype of '", name, "', ",
         dtype_name(dtype), ", or float32 where that is float16 or bfloat16, but got ",
         dtype_name(wanted));
  }
  return to(tensor, wanted);
}

// What is added to the product may be of either dtype.
Tensor widened_sum(std::string_view op, const Tensor& self, const Tensor& factor, DType wanted) {
  if (self.dtype() != factor.dtype() && self.dtype() != wanted) {
    fail(ErrorKind::Runtime, op, "argument 'self': expected dtype ", dtype_name(factor.dtype()),
         " or ", dtype_name(wanted), ", but got ", dtype_name(self.dtype()));
  }
  return to(self, wanted);
}

}  // namespace

RUSHLIGHT_OPERATORS(matmul_wide) {
  op("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Product of two matrices of halves in float32.")
      .composition([](const Tensor& self, const Tensor& mat2, DType wanted) -> Tensor {
        return mm(widened("mm", "self", self, wanted), widened("mm", "mat2", mat2, wanted));
      });
  op("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Products of batches of halves in float32.")
      .composition([](const Tensor& self, const Tensor& mat2, DType wanted) -> Tensor {
        return bmm(widened("bmm", "self", self, wanted), widened("bmm", "mat2", mat2, wanted));
      });
  op("addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, "
     "Scalar beta=1, Scalar alpha=1) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("beta * self + alpha * mat1 @ mat2 of halves in float32.")
      .composition([](const Tensor& self, const Tensor& mat1, const Tensor& mat2, DType wanted,
                      const Scalar& beta, const Scalar& alpha) -> Tensor {
        return addmm(widened_sum("addmm", self, mat1, wanted),
                     widened("addmm", "mat1", mat1, wanted), widened("addmm", "mat2", mat2, wanted),
                     beta, alpha);
      });
  op("baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, "
     "Scalar beta=1, Scalar alpha=1) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("beta * self + alpha * batch1 @ batch2 of halves, batch by batch, in float32.")
      .composition([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, DType wanted,
                      const Scalar& beta, const Scalar& alpha) -> Tensor {
        return baddbmm(widened_sum("baddbmm", self, batch1, wanted),
                       widened("baddbmm", "batch1", batch1, wanted),
                       widened("baddbmm", "batch2", batch2, wanted), beta, alpha);
      });
}

}  // namespace rushlight
