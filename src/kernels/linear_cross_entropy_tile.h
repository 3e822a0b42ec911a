// Tiles of linear cross entropy: scores of some classes (rows of a tile) and inputs (its columns).
//
// Then every product reads the weights where they lie, by broadcasts; only inputs are packed, once
// for all classes; and the softmax runs down columns. On matrix tiles all factors are packed, those
// of a tile of classes when they are used (linear_cross_entropy_products.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention_engine.h"
#include "kernels/gemm_product.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/linear_cross_entropy_products.h"
#include "kernels/scratch.h"
#include "runtime/per_thread.h"

namespace rushlight {

// Part of the numeric contract: sums over classes are cut here.
inline constexpr int64_t kClassTile = 128;

// Columns of a panel, at any level.
inline constexpr int64_t kMostCols = 32;

inline const PerThread<Scratch> loss_rows_scratch;

struct ClassRange {
  int64_t first;
  int64_t count;
};

template <typename T>
class ScoreTiles {
 public:
  explicit ScoreTiles(const LinearCrossEntropy& problem)
      : problem_(problem),
        gemm_(gemm_engine<T>()),
        engine_(attention_engine<T>()),
        products_(problem) {}

  const LinearCrossEntropy& problem() const { return problem_; }
  const AttentionEngine<T>& engine() const { return engine_; }
  const GemmEngine<T>& gemm() const { return gemm_; }
  int64_t first() const { return first_; }
  int64_t rows() const { return rows_; }
  int64_t wide() const { return wide_; }      // columns of a tile, whole panels
  int64_t stride() const { return stride_; }  // between its rows
  int64_t panels() const { return wide_ / gemm_.cols; }
  int64_t panel_size() const { return problem_.features * gemm_.cols; }

  int64_t padded(int64_t rows) const { return (rows + gemm_.cols - 1) / gemm_.cols * gemm_.cols; }
  // Not a multiple of 256 bytes, so that neighbouring rows do not compete for a few cache sets.
  static int64_t stride_of(int64_t wide) { return wide * sizeof(T) % 256 == 0 ? wide + 16 : wide; }

  // Makes `count` rows of the input from `first` on the columns of the tiles that follow.
  void load_inputs(int64_t first, int64_t count, bool with_rows) {
    first_ = first;
    rows_ = count;
    wide_ = padded(count);
    stride_ = stride_of(wide_);
    const int64_t features = problem_.features;
    const MatrixRef source = offset(problem_.input, first, 0);
    T* columns = columns_scratch_.template get<T>(wide_ * features);
    for (int64_t i = 0; i < count; i += gemm_.cols) {
      const MatrixRef at = offset(source, i, 0);
      gemm_.pack(problem_.dtype, at.data, at.row_stride, at.col_stride,
                 std::min<int64_t>(gemm_.cols, count - i), features, gemm_.cols,
                 columns + i * features);
    }
    columns_ = columns;
    products_.load_inputs(source, count, wide_, with_rows);
    if (!with_rows) {
      return;
    }
    T* packed = rows_scratch_.template get<T>(padded(features) * count);
    for (int64_t j = 0; j < features; j += gemm_.cols) {
      const MatrixRef at = offset(source, 0, j);
      gemm_.pack(problem_.dtype, at.data, at.col_stride, at.row_stride,
                 std::min<int64_t>(gemm_.cols, features - j), count, gemm_.cols,
                 packed + j * count);
    }
    packed_rows_ = packed;
  }

  using Weights = ClassWeights<T>;
  Weights weights(const ClassRange& classes, Scratch* scratch) const {
    const MatrixRef at = offset(problem_.weight, classes.first, 0);
    if (at.dtype == kComputeDType<T>) {
      return {static_cast<const T*>(at.data), at.row_stride, at.col_stride};
    }
    const int64_t features = problem_.features;
    T* copy = scratch->get<T>(classes.count * features);
    for (int64_t j = 0; j < classes.count; ++j) {
      gemm_.load_row(at.dtype, offset(at, j, 0).data, at.col_stride, features, copy + j * features);
    }
    return {copy, features, 1};
  }

  // tile = weights * inputs + bias
  void scores(const ClassRange& classes, const Weights& w, T* tile) const {
    T beta = 0;
    if (problem_.bias != nullptr) {
      T bias[kClassTile];
      const auto* at = static_cast<const char*>(problem_.bias) +
                       classes.first * problem_.bias_stride * element_size(problem_.dtype);
      gemm_.load_row(problem_.dtype, at, problem_.bias_stride, classes.count, bias);
      for (int64_t j = 0; j < classes.count; ++j) {
        std::fill(tile + j * stride_, tile + j * stride_ + wide_, bias[j]);
      }
      beta = 1;
    }
    if (products_.scores(classes.count, w, beta, tile, stride_)) {
      return;
    }
    const int64_t features = problem_.features;
    if (features == 0 && beta == 0) {
      std::fill(tile, tile + classes.count * stride_, T{0});
    }
    for (int64_t p = 0; p < features; p += kGemmDepth) {
      const int64_t depth = std::min(kGemmDepth, features - p);
      const T* rows =
          packed(w.data + p * w.col_stride, w.row_stride, w.col_stride, classes.count, depth);
      for (int64_t i = 0; i < wide_; i += gemm_.cols) {
        gemm_.block(classes.count, gemm_.cols, depth, rows,
                    columns_ + i * features + p * gemm_.cols, 1, beta, tile + i, stride_);
      }
      beta = 1;
    }
  }

  // out (classes x features) = tile * inputs + beta * out
  void over_inputs(const ClassRange& classes, const T* tile, T beta, T* out,
                   int64_t out_stride) const {
    if (products_.over_inputs(classes.count, tile, stride_, beta, out, out_stride)) {
      return;
    }
    for (int64_t p = 0; p < rows_; p += kGemmDepth) {
      const int64_t depth = std::min(kGemmDepth, rows_ - p);
      const T* rows = packed(tile + p, stride_, 1, classes.count, depth);
      for (int64_t j = 0; j < problem_.features; j += gemm_.cols) {
        const int64_t cols = std::min<int64_t>(gemm_.cols, problem_.features - j);
        gemm_.block(classes.count, cols, depth, rows, packed_rows_ + j * rows_ + p * gemm_.cols, 1,
                    beta, out + j, out_stride);
      }
      beta = 1;
    }
  }

  // sums (features x inputs, in panels of columns) += weights^T * tile
  void over_classes(const ClassRange& classes, const Weights& w, const T* tile, T* sums) const {
    if (products_.over_classes(classes.count, w, tile, stride_, gemm_.cols, sums)) {
      return;
    }
    const T* rows = packed(w.data, w.col_stride, w.row_stride, problem_.features, classes.count);
    alignas(64) T columns[kClassTile * kMostCols];
    RUSHLIGHT_ASSERT(gemm_.cols <= kMostCols);
    for (int64_t i = 0; i < wide_; i += gemm_.cols) {
      const T* panel = panel_of(tile + i, classes.count, columns);
      gemm_.block(problem_.features, gemm_.cols, classes.count, rows, panel, 1, 1,
                  sums + i * problem_.features, gemm_.cols);
    }
  }

  // A panel of the tile's columns, packed.
  const T* panel_of(const T* tile, int64_t depth, T* out) const {
    for (int64_t p = 0; p < depth; ++p) {
      std::copy(tile + p * stride_, tile + p * stride_ + gemm_.cols, out + p * gemm_.cols);
    }
    return out;
  }

  // Rows of a left factor packed for the engine, until the thread packs again.
  const T* packed(const T* data, int64_t row_stride, int64_t col_stride, int64_t rows,
                  int64_t depth) const {
    const int64_t padded_rows = (rows + gemm_.rows - 1) / gemm_.rows * gemm_.rows;
    T* out = loss_rows_scratch->get<T>(padded_rows * depth);
    gemm_.pack(kComputeDType<T>, data, row_stride, col_stride, rows, depth, gemm_.rows, out);
    return out;
  }

  T class_weight(int64_t c) const {
    return problem_.class_weight == nullptr ? T{1}
                                            : static_cast<const T*>(problem_.class_weight)[c];
  }
  bool has_probabilities() const { return problem_.probabilities.data != nullptr; }
  int64_t target(int64_t row) const { return problem_.target[row * problem_.row_step]; }

  // Calls visit(column, class within the range, wanted) for all of the tile: the distribution that
  // probability targets want, smoothed and weighted.
  template <typename F>
  void each_wanted(const ClassRange& classes, F&& visit) const {
    T given[kClassTile];
    T weight[kClassTile];
    const T keep = static_cast<T>(1 - problem_.smoothing);
    const T share = static_cast<T>(problem_.smoothing / static_cast<double>(problem_.classes));
    for (int64_t j = 0; j < classes.count; ++j) {
      weight[j] = class_weight(classes.first + j);
    }
    for (int64_t i = 0; i < rows_; ++i) {
      const MatrixRef at = offset(problem_.probabilities, first_ + i, classes.first);
      gemm_.load_row(at.dtype, at.data, at.col_stride, classes.count, given);
      for (int64_t j = 0; j < classes.count; ++j) {
        visit(i, j, weight[j] * (given[j] * keep + share));
      }
    }
  }

 private:
  const LinearCrossEntropy& problem_;
  const GemmEngine<T>& gemm_;
  const AttentionEngine<T>& engine_;
  LossTileProducts<T> products_;
  int64_t first_ = 0;
  int64_t rows_ = 0;
  int64_t wide_ = 0;
  int64_t stride_ = 0;
  const T* columns_ = nullptr;
  const T* packed_rows_ = nullptr;
  Scratch columns_scratch_;
  Scratch rows_scratch_;
};

}  // namespace rushlight
