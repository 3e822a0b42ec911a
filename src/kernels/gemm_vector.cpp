#include <algorithm>

#include "kernels/gemm_product.h"
#include "kernels/scratch.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

// Elements of B for one thread at a time: about 30 us from memory.
constexpr int64_t kGrainElements = 1 << 16;

const PerThread<Scratch> left_scratch;
const PerThread<Scratch> sums_scratch;

// The single row of A as contiguous T.
template <typename T>
const T* left_vector(const Product<T>& product) {
  const MatrixRef& a = product.a;
  if (a.dtype == kComputeDType<T> && (a.col_stride == 1 || product.k == 1)) {
    return static_cast<const T*>(a.data);
  }
  T* x = left_scratch->get<T>(product.k);
  product.engine.load_row(a.dtype, a.data, a.col_stride, product.k, x);
  return x;
}

template <typename T>
void multiply_cols(const Product<T>& product, const T* x, int64_t first, int64_t last) {
  const GemmEngine<T>& engine = product.engine;
  const int64_t cols = last - first;
  const bool in_place = product.direct() && product.beta == 0;
  T* sums = in_place ? product.c_at(0, first) : sums_scratch->get<T>(cols);
  const MatrixRef part = offset(product.b, 0, first);
  if (product.b.col_stride == 1) {
    engine.sum_rows(part.dtype, part.data, part.row_stride, cols, product.k, x, sums);
  } else {
    engine.dot_rows(part.dtype, part.data, part.col_stride, cols, product.k, x, sums);
  }
  if (product.alpha != 1) {
    for (int64_t j = 0; j < cols; ++j) {
      sums[j] *= product.alpha;
    }
  }
  if (!in_place && product.direct()) {
    T* c = product.c_at(0, first);
    engine.add_row(c, product.beta, cols, sums);
    std::copy(sums, sums + cols, c);
    sums = c;
  }
  if (!product.direct() || product.finishes()) {
    finish(product, 0, first, 1, cols, sums, cols);
  }
}

}  // namespace

template <typename T>
void multiply_vector(const Product<T>& product) {
  const T* x = left_vector(product);
  const int64_t wanted = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(product.k, 1));
  // Sums along rows are cheaper in long segments; dots are independent.
  const int64_t unit = product.b.col_stride == 1 ? 256 : 4;
  const int64_t grain = (wanted + unit - 1) / unit * unit;
  parallel_for(0, product.n, grain,
               [&](int64_t first, int64_t last) { multiply_cols(product, x, first, last); });
}

template void multiply_vector(const Product<float>&);
template void multiply_vector(const Product<double>&);

}  // namespace rushlight
