#include "kernels/gemm.h"

#include <rushlight/error.h>

#include <algorithm>
#include <atomic>

#include "kernels/gemm_product.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

// Products below this many multiplications are not worth a second thread.
constexpr int64_t kSerialWork = 1 << 18;

bool takes_small_float(DType dtype) {
  return compute_dtype(dtype) == DType::Float32;
}

std::atomic<MatmulPrecision> f32_precision = MatmulPrecision::highest;

// Tiles pay where packing, which every element takes part in, is little beside the product. Three
// parts cost more to pack and gain less (measured: 64 x 64 loses, 128 x 128 and 256 x 96 gain).
void choose_tiles(Product<float>* product, DType dtype) {
  constexpr int64_t kLeast = 32;
  constexpr int64_t kEnough = 64;
  const bool whole = dtype == DType::BFloat16;
  const TileChoice halves = {tile_engine(), whole ? TileScheme::whole : TileScheme::halves};
  const TileChoice choice = dtype == DType::Float32 ? f32_tiles() : halves;
  const int64_t m = product->m;
  const int64_t n = product->n;
  const int64_t k = product->k;
  const bool small = choice.scheme == TileScheme::thirds
                         ? k < 2 * kEnough || m * n < kEnough * (m + n)
                         : std::min({m, n, k}) < kLeast;
  if (!small) {
    product->tiles = choice.engine;
    product->scheme = choice.scheme;
  }
}
void choose_tiles(Product<double>*, DType) {}

// Tells of all rows where the product was not made block by block.
void finish_rows(int64_t m, int64_t n, const BlockDone& done) {
  const int64_t grain = std::max<int64_t>(1, kSerialWork / (16 * n));
  parallel_for(0, m, grain, [&](int64_t first, int64_t last) { done(first, 0, last - first, n); });
}

// Whether matrices of type T are few numbers each, with nothing to do but to multiply them. Those
// of C are vectors, at most, or columns that are. Batches alone ask: the bits of one product are
// the same whatever is done with it.
template <typename T>
bool is_small(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MutableMatrixRef& c,
              const GemmEpilogue& epilogue) {
  const int64_t vector = gemm_engine<T>().vector_small;
  return std::max({m, n, k}) <= kSmallSize && std::min(m, n) <= vector && k != 0 &&
         a.dtype == kComputeDType<T> && c.dtype == kComputeDType<T> && epilogue.beta == 0 &&
         epilogue.addend == nullptr && epilogue.activation == Activation::none &&
         epilogue.done == nullptr;
}

template <typename T>
void multiply_small(int64_t batch, const BatchStrides& strides, int64_t m, int64_t n, int64_t k,
                    const MatrixRef& a, const MatrixRef& b, const MutableMatrixRef& c,
                    double alpha) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const auto* left = static_cast<const T*>(a.data);
  const auto* right = static_cast<const T*>(b.data);
  auto* to = static_cast<T*>(c.data);
  const auto factor = static_cast<T>(alpha);
  if (n <= engine.vector_small) {
    engine.small({batch, m, n, k, left, strides.a, a.row_stride, a.col_stride, right, strides.b,
                  b.row_stride, b.col_stride, to, strides.c, c.row_stride, c.col_stride, factor});
  } else {
    engine.small({batch, n, m, k, right, strides.b, b.col_stride, b.row_stride, left, strides.a,
                  a.col_stride, a.row_stride, to, strides.c, c.col_stride, c.row_stride, factor});
  }
}

template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
              const MutableMatrixRef& c, const GemmEpilogue& epilogue) {
  Product<T> product = {gemm_engine<T>(),
                        m,
                        n,
                        k,
                        a,
                        b,
                        c,
                        epilogue.addend != nullptr ? *epilogue.addend : MatrixRef{},
                        static_cast<T>(epilogue.alpha),
                        static_cast<T>(epilogue.beta),
                        static_cast<T>(epilogue.addend_scale),
                        epilogue.activation,
                        epilogue.done};
  // Rows of C should be contiguous, and a vector should be a row.
  const bool columns_contiguous = c.row_stride == 1 && c.col_stride != 1;
  // A few rows times a matrix whose columns are contiguous: the matrix is read once, where it lies,
  // if it takes the part of A.
  const bool few_rows = m <= product.engine.cols / 2 && n > 4 * m && b.row_stride == 1 &&
                        b.col_stride != 1 && b.dtype == kComputeDType<T>;
  if (m != 1 && (n == 1 || columns_contiguous || few_rows)) {
    std::swap(product.m, product.n);
    product.a = transposed(b);
    product.b = transposed(a);
    product.c = transposed(c);
    product.addend = transposed(product.addend);
    product.done = nullptr;
  }
  const bool unit = product.b.row_stride == 1 || product.b.col_stride == 1;
  if (product.m == 1 && unit) {
    product.done = nullptr;
    multiply_vector(product);
  } else if (is_deep(product)) {
    product.done = nullptr;
    multiply_deep(product);
  } else {
    product.done = k == 0 ? nullptr : product.done;
    choose_tiles(&product, a.dtype);
    multiply_blocks(product);
  }
  if (epilogue.done != nullptr && product.done == nullptr) {
    finish_rows(m, n, *epilogue.done);
  }
}

}  // namespace

void set_f32_matmul_precision(MatmulPrecision precision) {
  f32_precision.store(precision, std::memory_order_relaxed);
}

TileChoice f32_tiles() {
  switch (f32_matmul_precision()) {
    case MatmulPrecision::highest:
      return {};
    case MatmulPrecision::split:
      return {tile_engine(), TileScheme::thirds};
    case MatmulPrecision::high:
      return {tile_engine(), TileScheme::halves};
    case MatmulPrecision::medium:
      return {tile_engine(), TileScheme::whole};
  }
  return {};
}

MatmulPrecision f32_matmul_precision() {
  return f32_precision.load(std::memory_order_relaxed);
}

bool gemm_supports(DType dtype) {
  switch (dtype) {
    case DType::Float32:
    case DType::Float64:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Int64:
    case DType::Int32:
    case DType::Int16:
    case DType::Int8:
    case DType::UInt8:
      return true;
    default:
      return false;
  }
}

void gemm(int64_t m, int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
          const MutableMatrixRef& c, const GemmEpilogue& epilogue) {
  RUSHLIGHT_ASSERT(m >= 0 && n >= 0 && k >= 0 && a.dtype == b.dtype && gemm_supports(a.dtype));
  if (m == 0 || n == 0) {
    return;
  }
  if (takes_small_float(a.dtype)) {
    RUSHLIGHT_ASSERT(takes_small_float(c.dtype));
    return multiply<float>(m, n, k, a, b, c, epilogue);
  }
  RUSHLIGHT_ASSERT(a.dtype == c.dtype);
  if (a.dtype == DType::Float64) {
    return multiply<double>(m, n, k, a, b, c, epilogue);
  }
  multiply_integers(m, n, k, a, b, c, epilogue);
  if (epilogue.done != nullptr) {
    finish_rows(m, n, *epilogue.done);
  }
}

// Products of small matrices `first` and the `count - 1` after it at once, where they are such.
static bool run_small(int64_t first, int64_t count, const BatchStrides& strides, int64_t m,
                      int64_t n, int64_t k, const MatrixRef& a, const MatrixRef& b,
                      const MutableMatrixRef& c, const GemmEpilogue& epilogue) {
  const auto at = [first](const auto& matrix, int64_t stride) {
    auto moved = matrix;
    moved.row_stride = stride;
    moved = offset(moved, first, 0);
    moved.row_stride = matrix.row_stride;
    return moved;
  };
  const auto run = [&]<typename T>(T) {
    if (!is_small<T>(m, n, k, a, c, epilogue)) {
      return false;
    }
    multiply_small<T>(count, strides, m, n, k, at(a, strides.a), at(b, strides.b), at(c, strides.c),
                      epilogue.alpha);
    return true;
  };
  return a.dtype == DType::Float64 ? run(double{}) : a.dtype == DType::Float32 && run(float{});
}

void gemm_batched(int64_t batch, const BatchStrides& strides, int64_t m, int64_t n, int64_t k,
                  const MatrixRef& a, const MatrixRef& b, const MutableMatrixRef& c,
                  const GemmEpilogue& epilogue) {
  const auto run = [&](int64_t first, int64_t last) {
    if (run_small(first, last - first, strides, m, n, k, a, b, c, epilogue)) {
      return;
    }
    for (int64_t i = first; i < last; ++i) {
      MatrixRef addend;
      GemmEpilogue own = epilogue;
      const auto skip = [i](const auto& matrix, int64_t stride) {
        auto moved = matrix;
        moved.col_stride = stride;
        moved = offset(moved, 0, i);
        moved.col_stride = matrix.col_stride;
        return moved;
      };
      if (epilogue.addend != nullptr) {
        addend = skip(*epilogue.addend, strides.addend);
        own.addend = &addend;
      }
      gemm(m, n, k, skip(a, strides.a), skip(b, strides.b), skip(c, strides.c), own);
    }
  };
  // Large products use the threads themselves, unless there are enough to keep each thread busy.
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool one_each = batch >= 4 * num_threads() || work < static_cast<double>(kSerialWork);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kSerialWork / (work + 256)));
  parallel_for(0, batch, one_each ? grain : std::max<int64_t>(batch, 1), run);
}

}  // namespace rushlight
