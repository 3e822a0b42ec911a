#include <algorithm>

#include "kernels/gemm_product.h"
#include "kernels/scratch.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kMostSums = 36;
constexpr int64_t kLeastSteps = 4096;
constexpr int64_t kPart = 2048;  // steps that are added up at a time, in parallel

const PerThread<Scratch> left_scratch;
const PerThread<Scratch> right_scratch;
const PerThread<Scratch> part_scratch;

// `count` lines of `steps` elements each as contiguous T, and how far apart they are.
template <typename T>
const T* lines(const Product<T>& product, const MatrixRef& x, int64_t between, int64_t step,
               int64_t count, int64_t steps, const PerThread<Scratch>& scratch, int64_t* apart) {
  if (x.dtype == kComputeDType<T> && step == 1) {
    *apart = between;
    return static_cast<const T*>(x.data);
  }
  T* made = scratch->get<T>(count * kPart);
  for (int64_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const char*>(x.data) + i * between * element_size(x.dtype);
    product.engine.load_row(x.dtype, from, step, steps, made + i * kPart);
  }
  *apart = kPart;
  return made;
}

// All sums over the steps of one part, row by row.
template <typename T>
void sum_part(const Product<T>& product, int64_t start, T* sums) {
  const int64_t steps = std::min(kPart, product.k - start);
  int64_t a_apart = 0;
  int64_t b_apart = 0;
  const T* a = lines(product, offset(product.a, 0, start), product.a.row_stride,
                     product.a.col_stride, product.m, steps, left_scratch, &a_apart);
  const T* b = lines(product, offset(product.b, start, 0), product.b.col_stride,
                     product.b.row_stride, product.n, steps, right_scratch, &b_apart);
  for (int64_t i = 0; i < product.m; ++i) {
    product.engine.dot_rows(kComputeDType<T>, b, b_apart, product.n, steps, a + i * a_apart,
                            sums + i * product.n);
  }
}

}  // namespace

template <typename T>
bool is_deep(const Product<T>& product) {
  return product.m <= kMostRows && product.n <= kMostRows && product.m * product.n <= kMostSums &&
         product.k >= kLeastSteps;
}

template <typename T>
void multiply_deep(const Product<T>& product) {
  const int64_t parts = (product.k + kPart - 1) / kPart;
  const int64_t count = product.m * product.n;
  T* sums = part_scratch->get<T>(parts * count);
  parallel_for(0, parts, 4, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      sum_part(product, part * kPart, sums + part * count);
    }
  });
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t part = 1; part < parts; ++part) {
      sums[i] += sums[part * count + i];
    }
    sums[i] *= product.alpha;
  }
  for (int64_t i = 0; i < product.m; ++i) {
    T* row = sums + i * product.n;
    if (product.direct()) {
      T* c = product.c_at(i, 0);
      if (product.beta != 0) {
        product.engine.add_row(c, product.beta, product.n, row);
      }
      std::copy(row, row + product.n, c);
      row = c;
    }
    if (!product.direct() || product.finishes()) {
      finish(product, i, 0, 1, product.n, row, product.n);
    }
  }
}

template bool is_deep(const Product<float>&);
template bool is_deep(const Product<double>&);
template void multiply_deep(const Product<float>&);
template void multiply_deep(const Product<double>&);

}  // namespace rushlight
