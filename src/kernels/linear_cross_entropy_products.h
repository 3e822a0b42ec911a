// The three products of linear cross entropy on matrix tiles, for some classes and a chunk of
// inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/gemm_product.h"
#include "kernels/gemm_tiles.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/scratch.h"
#include "runtime/per_thread.h"

namespace rushlight {

// The weights of some classes, where they lie or converted.
template <typename T>
struct ClassWeights {
  const T* data;
  int64_t row_stride;
  int64_t col_stride;
};

// Each product returns false, and has done nothing, where it is not to be made on tiles.
template <typename T>
class LossTileProducts {
 public:
  explicit LossTileProducts(const LinearCrossEntropy&) {}
  void load_inputs(const MatrixRef&, int64_t, int64_t, bool) {}
  bool scores(int64_t, const ClassWeights<T>&, T, T*, int64_t) const { return false; }
  bool over_inputs(int64_t, const T*, int64_t, T, T*, int64_t) const { return false; }
  bool over_classes(int64_t, const ClassWeights<T>&, const T*, int64_t, int64_t, T*) const {
    return false;
  }
};

template <>
class LossTileProducts<float> {
 public:
  explicit LossTileProducts(const LinearCrossEntropy& problem) : features_(problem.features) {
    // Enough of everything for packing to be little beside the products.
    constexpr int64_t kEnough = 128;
    if (problem.dtype == DType::Float32 &&
        std::min({problem.rows, problem.classes, features_}) >= kEnough) {
      choice_ = f32_tiles();
    }
  }

  // `count` rows of the input, for tiles of `wide` columns.
  void load_inputs(const MatrixRef& source, int64_t count, int64_t wide, bool with_rows) {
    if (choice_.engine == nullptr) {
      return;
    }
    rows_ = count;
    wide_ = wide;
    const int64_t blocks = (features_ + kTileBlockDepth - 1) / kTileBlockDepth;
    std::byte* out = columns_.get<std::byte>(blocks * bytes(wide, kTileBlockDepth));
    largest_ = 0;
    columns_at_ = out;
    for (int64_t p = 0; p < features_; p += kTileBlockDepth) {
      const int64_t depth = std::min(kTileBlockDepth, features_ - p);
      std::fill(out + bytes(count, depth), out + bytes(wide, depth), std::byte{0});
      const MatrixRef at = offset(source, 0, p);
      largest_ =
          std::max(largest_, pack(true, at.data, at.row_stride, at.col_stride, count, depth, out));
      out += bytes(wide, depth);
    }
    if (with_rows) {
      out = packed_rows_.get<std::byte>(bytes(features_, count));
      pack(true, source.data, source.col_stride, source.row_stride, features_, count, out);
      rows_at_ = out;
    }
  }

  // tile (classes x wide) = weights * inputs + beta * tile
  bool scores(int64_t classes, const ClassWeights<float>& w, float beta, float* tile,
              int64_t stride) const {
    if (choice_.engine == nullptr) {
      return false;
    }
    const int64_t blocks = (features_ + kTileBlockDepth - 1) / kTileBlockDepth;
    std::byte* packed = scratch->left.get<std::byte>(blocks * bytes(classes, kTileBlockDepth));
    std::byte* out = packed;
    uint32_t largest = 0;
    for (int64_t p = 0; p < features_; p += kTileBlockDepth) {
      const int64_t depth = std::min(kTileBlockDepth, features_ - p);
      largest = std::max(largest, pack(false, w.data + p * w.col_stride, w.row_stride, w.col_stride,
                                       classes, depth, out));
      out += bytes(classes, depth);
    }
    if (!tiles_take(choice_.scheme, largest, largest_)) {
      return false;
    }
    const std::byte* right = columns_at_;
    for (int64_t p = 0; p < features_; p += kTileBlockDepth) {
      const int64_t depth = std::min(kTileBlockDepth, features_ - p);
      multiply(classes, wide_, depth, packed, right, p == 0 ? beta : 1, tile, stride);
      packed += bytes(classes, depth);
      right += bytes(wide_, depth);
    }
    return true;
  }

  // out (classes x features) = tile * inputs + beta * out
  bool over_inputs(int64_t classes, const float* tile, int64_t stride, float beta, float* out,
                   int64_t out_stride) const {
    if (choice_.engine == nullptr) {
      return false;
    }
    std::byte* left = scratch->left.get<std::byte>(bytes(classes, rows_));
    const uint32_t largest = pack(false, tile, stride, 1, classes, rows_, left);
    if (!tiles_take(choice_.scheme, largest, largest_)) {
      return false;
    }
    multiply(classes, features_, rows_, left, rows_at_, beta, out, out_stride);
    return true;
  }

  // sums (features x wide, in panels of `panel` columns) += weights^T * tile
  bool over_classes(int64_t classes, const ClassWeights<float>& w, const float* tile,
                    int64_t stride, int64_t panel, float* sums) const {
    if (choice_.engine == nullptr) {
      return false;
    }
    std::byte* left = scratch->left.get<std::byte>(bytes(features_, classes));
    std::byte* right = scratch->right.get<std::byte>(bytes(wide_, classes));
    const uint32_t a = pack(false, w.data, w.col_stride, w.row_stride, features_, classes, left);
    const uint32_t b = pack(true, tile, 1, stride, wide_, classes, right);
    if (!tiles_take(choice_.scheme, a, b)) {
      return false;
    }
    for (int64_t i = 0; i < wide_; i += panel) {
      multiply(features_, panel, classes, left, right + bytes(i, classes), 1, sums + i * features_,
               panel);
    }
    return true;
  }

 private:
  struct Factors {
    Scratch left;
    Scratch right;
  };
  inline static const PerThread<Factors> scratch;

  int64_t bytes(int64_t items, int64_t depth) const {
    return tile_bytes(choice_.scheme, items, depth);
  }
  uint32_t pack(bool columns, const void* source, int64_t item_stride, int64_t depth_stride,
                int64_t items, int64_t depth, std::byte* out) const {
    return choice_.engine->pack(choice_.scheme, columns, DType::Float32, source, item_stride,
                                depth_stride, items, depth, out);
  }
  void multiply(int64_t m, int64_t n, int64_t k, const std::byte* a, const std::byte* b, float beta,
                float* c, int64_t c_stride) const {
    choice_.engine->block(choice_.scheme, m, n, k, a, k, b, k, 1, beta, c, c_stride);
  }

  int64_t features_;
  TileChoice choice_;
  int64_t rows_ = 0;
  int64_t wide_ = 0;
  uint32_t largest_ = 0;  // of the inputs
  const std::byte* columns_at_ = nullptr;
  const std::byte* rows_at_ = nullptr;
  Scratch columns_;
  Scratch packed_rows_;
};

}  // namespace rushlight
