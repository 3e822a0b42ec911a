// Vectors and columns in memory: what the factorisations need beside matrix products.
//
// Matrices are column-major: element (i, j) is at a[i + j * lda]. Sums are added up in a fixed
// tree; whatever is computed for one element does not depend on where a range of rows is cut.
#pragma once

#include <complex>
#include <cstdint>

namespace rushlight::kernels {

// Rows of a panel (see rotate and solve): a few vectors of any level.
template <typename T>
inline constexpr int64_t kPanelRows = 128 / sizeof(T);

template <typename T>
struct VectorOps {
  T (*dot)(int64_t n, const T* x, const T* y);
  // The position of the largest absolute value, the first of several; of the first NaN where there
  // is one. n > 0.
  int64_t (*largest)(int64_t n, const T* x);
  // y += a * x
  void (*axpy)(int64_t n, T a, const T* x, T* y);
  // y[j] = column j . x, for the n columns of m rows.
  void (*dot_columns)(int64_t m, int64_t n, const T* a, int64_t lda, const T* x, T* y);
  // y += alpha * sum over j of x[j * x_step] * column j.
  void (*add_columns)(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, const T* x,
                      int64_t x_step, T* y);
  // Column j += alpha * y[j * y_step] * x.
  void (*rank_one)(int64_t m, int64_t n, T alpha, const T* x, const T* y, int64_t y_step, T* a,
                   int64_t lda);
  // `panel` has columns of kPanelRows; columns at, at + step, at + 2 step, ... are rotated pair by
  // pair: (x, y) becomes (c x + s y, c y - s x), and the new y is the next pair's x.
  void (*rotate)(int64_t count, const T* c, const T* s, T* panel, int64_t at, int64_t step);
  // Forward substitution: `panel` has n rows of kPanelRows elements each, `l` is n x n row-major;
  // its diagonal is one where `unit`.
  void (*solve)(int64_t n, const T* l, bool unit, T* panel);
  // Columns of n elements, `width` (at most kPanelRows) of them, as rows of such a panel, zeros
  // after them; and back.
  void (*load_panel)(int64_t n, int64_t width, const T* columns, int64_t lda, T* panel);
  void (*store_panel)(int64_t n, int64_t width, const T* panel, T* columns, int64_t lda);
};

// The table for `cpu_level()`.
template <typename T>
const VectorOps<T>& vector_ops();
template <>
const VectorOps<float>& vector_ops<float>();
template <>
const VectorOps<double>& vector_ops<double>();
// Of complex numbers: plain loops, of nothing conjugated; without rotate. Their size is the sum of
// the sizes of their parts, as elsewhere.
template <>
const VectorOps<std::complex<float>>& vector_ops<std::complex<float>>();
template <>
const VectorOps<std::complex<double>>& vector_ops<std::complex<double>>();

namespace base {
extern const VectorOps<float> vectors_f32;
extern const VectorOps<double> vectors_f64;
}  // namespace base
namespace v3 {
extern const VectorOps<float> vectors_f32;
extern const VectorOps<double> vectors_f64;
}  // namespace v3

}  // namespace rushlight::kernels
