#include <rushlight/error.h>

#include <algorithm>
#include <type_traits>

#include "kernels/gemm_product.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

constexpr int64_t kCols = 256;
constexpr int64_t kGrainWork = 1 << 16;

// Sums of one row segment. Unsigned arithmetic of at least 32 bits: it wraps around, and its low
// bits are those of T's own.
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
void sum_segment(const T* a, int64_t a_stride, const T* b, int64_t b_row_stride,
                 int64_t b_col_stride, int64_t k, int64_t cols, Wide<T>* sums) {
  std::fill(sums, sums + cols, Wide<T>{0});
  for (int64_t p = 0; p < k; ++p) {
    const auto left = static_cast<Wide<T>>(a[p * a_stride]);
    const T* row = b + p * b_row_stride;
    if (b_col_stride == 1) {
      for (int64_t j = 0; j < cols; ++j) {
        sums[j] += left * static_cast<Wide<T>>(row[j]);
      }
    } else {
      for (int64_t j = 0; j < cols; ++j) {
        sums[j] += left * static_cast<Wide<T>>(row[j * b_col_stride]);
      }
    }
  }
}

template <typename T>
Wide<T> factor(double value) {
  return static_cast<Wide<T>>(static_cast<int64_t>(value));
}

template <typename T>
void multiply_typed(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
                    const MutableMatrixRef& c, const GemmEpilogue& epilogue) {
  const auto run = [&](int64_t first, int64_t last) {
    Wide<T> sums[kCols];
    for (int64_t i = first; i < last; ++i) {
      for (int64_t j = 0; j < n; j += kCols) {
        const int64_t cols = std::min(kCols, n - j);
        const auto* left = static_cast<const T*>(offset(a, i, 0).data);
        const auto* right = static_cast<const T*>(offset(b, 0, j).data);
        sum_segment(left, a.col_stride, right, b.row_stride, b.col_stride, k, cols, sums);
        auto* out = static_cast<T*>(offset(c, i, j).data);
        for (int64_t q = 0; q < cols; ++q) {
          Wide<T> value = factor<T>(epilogue.alpha) * sums[q];
          if (epilogue.beta != 0) {
            value += factor<T>(epilogue.beta) * static_cast<Wide<T>>(out[q * c.col_stride]);
          }
          if (epilogue.addend != nullptr) {
            const auto* addend = static_cast<const T*>(offset(*epilogue.addend, i, j + q).data);
            value += factor<T>(epilogue.addend_scale) * static_cast<Wide<T>>(*addend);
          }
          out[q * c.col_stride] = static_cast<T>(value);
        }
      }
    }
  };
  const int64_t row_work = std::max<int64_t>(1, n * std::max<int64_t>(k, 1));
  parallel_for(0, m, std::max<int64_t>(1, kGrainWork / row_work), run);
}

}  // namespace

void multiply_integers(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
                       const MutableMatrixRef& c, const GemmEpilogue& epilogue) {
  RUSHLIGHT_ASSERT(epilogue.activation == Activation::none);
  RUSHLIGHT_ASSERT(epilogue.addend == nullptr || epilogue.addend->dtype == c.dtype);
  switch (a.dtype) {
    case DType::Int64:
      return multiply_typed<int64_t>(m, n, k, a, b, c, epilogue);
    case DType::Int32:
      return multiply_typed<int32_t>(m, n, k, a, b, c, epilogue);
    case DType::Int16:
      return multiply_typed<int16_t>(m, n, k, a, b, c, epilogue);
    case DType::Int8:
      return multiply_typed<int8_t>(m, n, k, a, b, c, epilogue);
    default:
      return multiply_typed<uint8_t>(m, n, k, a, b, c, epilogue);
  }
}

}  // namespace rushlight
