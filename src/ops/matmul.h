// Matrix products that hand on their result block by block.
#pragma once

#include <rushlight/value.h>

#include "kernels/gemm.h"

namespace rushlight {

class Operator;

// Whether `run_product` knows the operator: mm, addmm, linear.
bool is_product(const Operator& op);

// Runs a product into `out`, contiguous and of the result's shape, and tells `done` of each block
// of it, seen as a matrix of `product_columns`: the last dimension, or one where the weight is a
// vector.
void run_product(const Operator& op, const Value* arguments, const Tensor& out,
                 const BlockDone& done);
int64_t product_columns(const Operator& op, const Value* arguments, const Tensor& out);

// What the operators share.
namespace products {

// A matrix inside a tensor, of these two dimensions.
MatrixRef matrix(const Tensor& x, int64_t rows, int64_t cols);
MutableMatrixRef target(const Tensor& x, int64_t rows, int64_t cols);
// What `view` adds, broadcast to the product's shape; beta scales it.
GemmEpilogue added(MatrixRef* addend, const Tensor& view, const Scalar& beta, const Scalar& alpha);
// (..., K) as (M, K), sharing memory where it can.
Tensor rows_of(const Tensor& x);

// The operators on checked arguments.
void mm_into(const Tensor& self, const Tensor& mat2, const Tensor& out,
             const BlockDone* done = nullptr);
void addmm_into(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out, const BlockDone* done = nullptr);
void linear_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& out,
                 const BlockDone* done = nullptr);

}  // namespace products

}  // namespace rushlight
