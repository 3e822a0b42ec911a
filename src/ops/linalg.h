// What the families of linear algebra share: checks with PyTorch's texts, memory by columns, loops
// over batches.
//
// Factorisations work on column-major copies, and their results lie in memory like that.
#pragma once

#include <rushlight/tensor.h>

#include <complex>
#include <string>
#include <string_view>

#include "runtime/function_ref.h"

namespace rushlight::matrices {

// `op` is the Python name, "linalg.inv"; `name` that of the argument.
void check_matrix(const Tensor& a, std::string_view op, std::string_view name = "A");
void check_square(const Tensor& a, std::string_view op, std::string_view name = "A");
// Floats of single or double precision; complex numbers are not offered.
void check_precision(const Tensor& a, std::string_view op);
// Numbers of single or double precision.
void check_field(const Tensor& a, std::string_view op);
// Square, of single or double precision.
void check_square_input(const Tensor& a, std::string_view op);
void check_square_field(const Tensor& a, std::string_view op);
void check_same_dtype(const Tensor& a, const Tensor& b, std::string_view op, std::string_view first,
                      std::string_view second);

inline int64_t rows_of(const Tensor& a) {
  return a.sizes()[static_cast<size_t>(a.dim() - 2)];
}
inline int64_t columns_of(const Tensor& a) {
  return a.sizes()[static_cast<size_t>(a.dim() - 1)];
}
// The sizes before the last `dims`.
IntList batch_sizes(const Tensor& a, int64_t dims = 2);
// batch + tail.
IntList with_tail(IntArrayRef batch, std::initializer_list<int64_t> tail);
int64_t count_of(IntArrayRef batch);
// The batch that matrices of both broadcast to.
IntList common_batch(const Tensor& a, const Tensor& b, std::string_view op);
// `a` expanded to another batch.
Tensor expand_batch(const Tensor& a, IntArrayRef batch);

// Fresh matrices, each column-major, without gaps.
Tensor make_columns(IntArrayRef batch, int64_t rows, int64_t columns, const Tensor& like);
// The same with the elements of `a`.
Tensor copy_columns(const Tensor& a);

// Calls body(i) for i < count, on several threads where `work` (operations of one) makes it pay.
void for_each_matrix(int64_t count, double work, FunctionRef<void(int64_t)> body);

// Calls function(T{}) with the C++ type of a dtype that check_precision let pass.
template <typename F>
void with_precision(DType dtype, F&& function) {
  if (dtype == DType::Float32) {
    function(float{});
  } else {
    function(double{});
  }
}

// The same where complex numbers are let pass as well (check_field).
template <typename F>
void with_field(DType dtype, F&& function) {
  if (dtype == DType::Complex64) {
    function(std::complex<float>{});
  } else if (dtype == DType::Complex128) {
    function(std::complex<double>{});
  } else {
    with_precision(dtype, std::forward<F>(function));
  }
}

// Error(LinAlg) where an element of `info` is not zero: "op: (Batch element 2): " and what `text`
// says of it. Meta tensors pass.
void check_info(const Tensor& info, std::string_view op, std::string (*text)(int32_t));

// Rows and columns exchanged, complex numbers conjugated; for gradients.
Tensor turned(const Tensor& a);
// The lower triangle and, above it, its adjoint; the diagonal is real.
Tensor mirrored(const Tensor& a);
// Rows and columns exchanged, without autograd.
Tensor turned_view(const Tensor& a);

// Of A, from the gradient of its pseudo-inverse `p` (linalg_pinv.cpp).
Tensor pinv_gradient(const Tensor& grad, const Tensor& p, const Tensor& a);

// Whether `b` is a batch of vectors to `a`'s matrices, as linalg.solve decides.
bool is_vector_for(const Tensor& a, IntArrayRef b);

}  // namespace rushlight::matrices
