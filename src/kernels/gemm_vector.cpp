#include <algorithm>

#include "kernels/gemm_product.h"
#include "kernels/scratch.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

// Elements of B for one thread at a time: about 30 us from memory.
constexpr int64_t kGrainElements = 1 << 16;

// Steps of a long sum that are added up at a time, in parallel, where there are few sums.
constexpr int64_t kLongSteps = 1 << 16;
constexpr int64_t kFewSums = 16;

const PerThread<Scratch> left_scratch;
const PerThread<Scratch> sums_scratch;
const PerThread<Scratch> part_scratch;

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

// The sums of k steps from `start` on for some columns.
template <typename T>
void sum_cols(const Product<T>& product, const T* x, int64_t start, int64_t k, int64_t first,
              int64_t cols, T* sums) {
  const GemmEngine<T>& engine = product.engine;
  const MatrixRef part = offset(product.b, start, first);
  // A single column whose steps are adjacent is a row for dots, whatever its other stride is.
  const bool single = product.n == 1 && part.row_stride == 1;
  if (part.col_stride == 1 && !single) {
    engine.sum_rows(part.dtype, part.data, part.row_stride, cols, k, x + start, sums);
  } else {
    engine.dot_rows(part.dtype, part.data, part.col_stride, cols, k, x + start, sums);
  }
}

// Few sums of many steps.
template <typename T>
bool is_long(const Product<T>& product) {
  return product.n <= kFewSums && product.k >= 2 * kLongSteps;
}

// All columns of a long product: parts of its depth in parallel, then their sums in order.
template <typename T>
void sum_long(const Product<T>& product, const T* x, T* sums) {
  const int64_t parts = (product.k + kLongSteps - 1) / kLongSteps;
  T* partial = part_scratch->get<T>(parts * product.n);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t start = part * kLongSteps;
      const int64_t k = std::min(kLongSteps, product.k - start);
      sum_cols(product, x, start, k, 0, product.n, partial + part * product.n);
    }
  });
  std::copy(partial, partial + product.n, sums);
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t j = 0; j < product.n; ++j) {
      sums[j] += partial[part * product.n + j];
    }
  }
}

template <typename T>
void multiply_cols(const Product<T>& product, const T* x, int64_t first, int64_t last) {
  const GemmEngine<T>& engine = product.engine;
  const int64_t cols = last - first;
  const bool in_place = product.direct() && product.beta == 0;
  T* sums = in_place ? product.c_at(0, first) : sums_scratch->get<T>(cols);
  if (is_long(product)) {
    sum_long(product, x, sums);
  } else {
    sum_cols(product, x, 0, product.k, first, cols, sums);
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
  // Sums along rows are cheaper in long segments, more so where each row is a stride away; dots are
  // independent.
  const int64_t segment = product.n >= 4096 ? 1024 : 256;
  const int64_t unit = product.b.col_stride == 1 ? segment : 4;
  const int64_t grain = is_long(product) ? product.n : (wanted + unit - 1) / unit * unit;
  parallel_for(0, product.n, grain,
               [&](int64_t first, int64_t last) { multiply_cols(product, x, first, last); });
}

template void multiply_vector(const Product<float>&);
template void multiply_vector(const Product<double>&);

}  // namespace rushlight
