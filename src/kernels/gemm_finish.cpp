#include <algorithm>

#include "kernels/gemm_product.h"

namespace rushlight {
namespace {

constexpr int64_t kSegment = 256;

template <typename T>
void add_matrix(const GemmEngine<T>& engine, const MatrixRef& source, T scale, int64_t cols,
                T* sums) {
  if (source.dtype == kComputeDType<T> && source.col_stride == 1) {
    engine.add_row(static_cast<const T*>(source.data), scale, cols, sums);
    return;
  }
  alignas(64) T row[kSegment];
  engine.load_row(source.dtype, source.data, source.col_stride, cols, row);
  engine.add_row(row, scale, cols, sums);
}

}  // namespace

template <typename T>
void finish(const Product<T>& product, int64_t row, int64_t col, int64_t rows, int64_t cols,
            T* sums, int64_t sums_stride) {
  const GemmEngine<T>& engine = product.engine;
  const MutableMatrixRef& c = product.c;
  const bool in_place = sums == c.data || product.direct();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; j += kSegment) {
      const int64_t count = std::min(kSegment, cols - j);
      T* segment = sums + i * sums_stride + j;
      const MutableMatrixRef out = offset(c, row + i, col + j);
      if (!in_place && product.beta != 0) {
        const MatrixRef old = {out.data, out.dtype, out.row_stride, out.col_stride};
        add_matrix(engine, old, product.beta, count, segment);
      }
      if (product.addend.data != nullptr) {
        const MatrixRef addend = offset(product.addend, row + i, col + j);
        add_matrix(engine, addend, product.addend_scale, count, segment);
      }
      if (product.activation != Activation::none) {
        engine.activate_row(product.activation, count, segment);
      }
      if (!in_place) {
        engine.store_row(out.dtype, segment, count, out.data, out.col_stride);
      }
    }
  }
}

template void finish(const Product<float>&, int64_t, int64_t, int64_t, int64_t, float*, int64_t);
template void finish(const Product<double>&, int64_t, int64_t, int64_t, int64_t, double*, int64_t);

}  // namespace rushlight
