// Tiles of attention: what forward and backward share.
//
// A tile has a row for each key and a column for each query. Then a product with keys or values on
// its left reads them by broadcasts where they lie, the softmax runs down columns without moving
// data between lanes, and only the queries are packed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/attention.h"
#include "kernels/attention_engine.h"
#include "kernels/gemm_engine.h"
#include "kernels/scratch.h"

namespace rushlight {

// Part of the numeric contract: sums over keys and queries are cut here.
inline constexpr int64_t kQueryTile = 64;
inline constexpr int64_t kKeyTile = 128;
inline constexpr int64_t kKeyBlock = 16;
// Keys at a time of the forward pass, whose tiles are one panel of queries wide.
inline constexpr int64_t kForwardKeys = 256;
// Most queries of a task of the forward pass, which reads all keys and values. No matter to bits.
inline constexpr int64_t kForwardQueries = 128;

// Rows of a matrix of type T: element (r, c) is data[r * row_stride + c * col_stride].
template <typename T>
struct Rows {
  const T* data;
  int64_t row_stride;
  int64_t col_stride;
};

// Where a tile lies in its head.
struct Extent {
  int64_t key;
  int64_t keys;
  int64_t query;
  int64_t queries;
};

// How queries and keys are cut into tiles, which never reach over the edge of a block.
class AttentionSchedule {
 public:
  explicit AttentionSchedule(const Attention& attention, int64_t most_queries = kQueryTile)
      : attention_(attention),
        blocks_(attention.blocks),
        q_block_(blocks_ == nullptr ? most_queries : blocks_->q_size),
        kv_block_(blocks_ == nullptr ? kKeyTile : blocks_->kv_size),
        q_tile_(std::min(most_queries, q_block_)),
        kv_tile_(std::min(kKeyTile, kv_block_)),
        q_cut_((q_block_ + q_tile_ - 1) / q_tile_),
        kv_cut_((kv_block_ + kv_tile_ - 1) / kv_tile_) {}

  int64_t query_tiles() const { return count(attention_.queries, q_block_, q_tile_, q_cut_); }
  int64_t key_tiles() const { return count(attention_.keys, kv_block_, kv_tile_, kv_cut_); }
  int64_t query_tile() const { return q_tile_; }

  struct Span {
    int64_t first;
    int64_t count;
  };
  // A tile of queries or keys; empty where a block that is cut unevenly has ended.
  Span queries(int64_t tile) const {
    return span(tile, q_block_, q_tile_, q_cut_, attention_.queries);
  }
  Span keys(int64_t tile) const {
    return span(tile, kv_block_, kv_tile_, kv_cut_, attention_.keys);
  }

  // Calls visit(first key, number of keys, partial) for all that a tile of queries has to see, in
  // ascending order, at most kForwardKeys keys at a time.
  template <typename F>
  void each_keys(int64_t batch, int64_t head, int64_t query, int64_t end, F&& visit) const {
    if (blocks_ == nullptr) {
      for (int64_t key = 0; key < end; key += kForwardKeys) {
        visit(key, std::min(kForwardKeys, end - key), true);
      }
      return;
    }
    const uint8_t* states = row(batch, head, query / q_block_);
    for (int64_t block = 0; block < blocks_->kv_blocks;) {
      const uint8_t state = states[block];
      int64_t last = block + 1;
      while (last < blocks_->kv_blocks && states[last] == state) {
        ++last;
      }
      const int64_t stop = std::min(last * kv_block_, end);
      for (int64_t key = block * kv_block_; state != 0 && key < stop; key += kForwardKeys) {
        visit(key, std::min(kForwardKeys, stop - key), state == 1);
      }
      block = last;
    }
  }

  // 0 none of the scores of two tiles takes part, 1 some do, 2 all.
  uint8_t state(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    return blocks_ == nullptr ? 1 : row(batch, head, query / q_block_)[key / kv_block_];
  }

 private:
  static int64_t count(int64_t length, int64_t block, int64_t size, int64_t cut) {
    return length / block * cut + (length % block + size - 1) / size;
  }
  static Span span(int64_t tile, int64_t block, int64_t size, int64_t cut, int64_t length) {
    const int64_t start = tile / cut * block;
    const int64_t first = start + tile % cut * size;
    return {first, std::max<int64_t>(std::min({size, start + block - first, length - first}), 0)};
  }
  const uint8_t* row(int64_t batch, int64_t head, int64_t block) const {
    return blocks_->states + batch * blocks_->batch_stride + head * blocks_->head_stride +
           block * blocks_->kv_blocks;
  }

  const Attention& attention_;
  const AttentionBlocks* blocks_;
  int64_t q_block_;
  int64_t kv_block_;
  int64_t q_tile_;
  int64_t kv_tile_;
  int64_t q_cut_;
  int64_t kv_cut_;
};

template <typename T>
class AttentionTile {
 public:
  explicit AttentionTile(const Attention& attention)
      : attention_(attention), gemm_(gemm_engine<T>()), engine_(attention_engine<T>()) {}

  const GemmEngine<T>& gemm() const { return gemm_; }
  const AttentionEngine<T>& engine() const { return engine_; }
  int64_t width(int64_t queries) const { return round_to_vectors(queries); }
  int64_t round_to_vectors(int64_t n) const {
    return (n + gemm_.vector - 1) / gemm_.vector * gemm_.vector;
  }

  // Keys that take part for some query before `query_end`, and the first query that key `key` may
  // take part for.
  int64_t key_end(int64_t query_end) const {
    return attention_.causal ? std::min(attention_.keys, query_end) : attention_.keys;
  }
  int64_t query_start(int64_t key) const { return attention_.causal ? key : 0; }

  // Keys of the tile that take part for some query of the columns before `column_end`. With a
  // causal mask the products below leave out what lies beyond, panel by panel; it is never read.
  int64_t visible(int64_t key, int64_t keys, int64_t query, int64_t column_end) const {
    return attention_.causal ? std::clamp<int64_t>(query + column_end - key, 0, keys) : keys;
  }
  int64_t panel() const { return std::max<int64_t>(gemm_.cols, kKeyBlock); }

  // C (m x n) = alpha A B + beta C, with A read by broadcasts and B (k x n) by vectors.
  void multiply(int64_t m, int64_t n, int64_t k, const Rows<T>& a, const T* b, int64_t b_stride,
                T alpha, T beta, T* c, int64_t c_stride) const {
    for (int64_t j = 0; j < n; j += gemm_.cols) {
      gemm_.strip(m, std::min<int64_t>(gemm_.cols, n - j), k, a.data, a.row_stride, a.col_stride,
                  b + j, b_stride, alpha, beta, c + j, c_stride);
    }
  }

  // tile (keys x queries) = alpha * left (keys x size) * columns (size x queries)
  void by_keys(const Extent& at, int64_t size, const Rows<T>& left, const T* columns, T alpha,
               T* tile) const {
    const int64_t wide = width(at.queries);
    for (int64_t i = 0; i < wide; i += panel()) {
      const int64_t count = std::min(panel(), wide - i);
      multiply(visible(at.key, at.keys, at.query, i + count), count, size, left, columns + i, wide,
               alpha, 0, tile + i, wide);
    }
  }

  // sums (size x queries) += alpha * left^T (size x keys) * tile (keys x queries)
  void over_keys(const Extent& at, int64_t size, const Rows<T>& left, const T* tile, T alpha,
                 T* sums) const {
    const int64_t wide = width(at.queries);
    const Rows<T> turned = {left.data, left.col_stride, left.row_stride};
    for (int64_t i = 0; i < wide; i += panel()) {
      const int64_t count = std::min(panel(), wide - i);
      multiply(size, count, visible(at.key, at.keys, at.query, i + count), turned, tile + i, wide,
               alpha, 1, sums + i, wide);
    }
  }

  // sums (keys x size) += alpha * tile (keys x queries) * rows (queries x size)
  void over_queries(const Extent& at, int64_t size, const T* tile, const Rows<T>& rows, T alpha,
                    T* sums) const {
    const int64_t wide = width(at.queries);
    for (int64_t j = 0; j < at.keys; j += kKeyBlock) {
      const int64_t hidden = attention_.causal ? std::max<int64_t>(at.key + j - at.query, 0) : 0;
      const int64_t first = hidden / panel() * panel();
      if (first >= at.queries) {
        return;
      }
      const int64_t seen = visible(at.key, at.keys, at.query, std::min(first + panel(), wide));
      multiply(std::min(kKeyBlock, seen - j), size, at.queries - first,
               {tile + j * wide + first, wide, 1}, rows.data + first * rows.row_stride,
               rows.row_stride, alpha, 1, sums + j * size, size);
    }
  }

  // `count` rows from `first` on of one head. They are read where they lie if their type allows
  // and, where rows are to be read by vectors, their layout does; else they are copied.
  Rows<T> rows(const HeadsRef& heads, int64_t batch, int64_t head, int64_t first, int64_t count,
               int64_t size, bool by_vectors, Scratch* scratch) const {
    const char* data = row(heads, attention_.dtype, batch, head, first);
    const bool own_type = attention_.dtype == (sizeof(T) == 8 ? DType::Float64 : DType::Float32);
    const bool vectors = heads.col_stride == 1 && size % gemm_.vector == 0;
    if (own_type && (!by_vectors || vectors)) {
      return {reinterpret_cast<const T*>(data), heads.row_stride, heads.col_stride};
    }
    const int64_t padded = round_to_vectors(size);
    T* copy = scratch->get<T>(count * padded);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t skip = r * heads.row_stride * element_size(attention_.dtype);
      gemm_.load_row(attention_.dtype, data + skip, heads.col_stride, size, copy + r * padded);
      std::fill(copy + r * padded + size, copy + (r + 1) * padded, T{0});
    }
    return {copy, padded, 1};
  }

  // The same rows as columns (size x width), zero beyond `count`.
  void columns(const HeadsRef& heads, int64_t batch, int64_t head, int64_t first, int64_t count,
               int64_t size, T* out) const {
    gemm_.pack(attention_.dtype, row(heads, attention_.dtype, batch, head, first), heads.row_stride,
               heads.col_stride, count, size, width(count), out);
  }
  const T* columns(const HeadsRef& heads, int64_t batch, int64_t head, int64_t first, int64_t count,
                   int64_t size, Scratch* scratch) const {
    T* out = scratch->get<T>(size * width(count));
    columns(heads, batch, head, first, count, size, out);
    return out;
  }

  // Scaled and masked scores of a tile from its queries as columns.
  void scores(int64_t batch, int64_t head, int64_t key, int64_t keys, int64_t query,
              int64_t queries, const Rows<T>& k, const T* q_columns, T* tile, Scratch* scratch) {
    const int64_t wide = width(queries);
    multiply(keys, wide, attention_.head_size, k, q_columns, wide, static_cast<T>(attention_.scale),
             0, tile, wide);
    hide({key, keys, query, queries}, batch, head, tile, scratch);
  }

  // Masks scores.
  void hide(const Extent& at, int64_t batch, int64_t head, T* tile, Scratch* scratch) {
    const auto [key, keys, query, queries] = at;
    const int64_t wide = width(queries);
    if (attention_.mask.data != nullptr) {
      add_mask(batch, head, key, keys, query, queries, tile, scratch);
    }
    if (attention_.causal) {
      for (int64_t j = 0; j < keys; ++j) {
        const int64_t hidden = std::min(key + j - query, queries);
        if (hidden > 0) {
          std::fill(tile + j * wide, tile + j * wide + hidden, -std::numeric_limits<T>::infinity());
        }
      }
    }
  }

  // Multiplies a tile by the dropout factors.
  void drop(int64_t batch, int64_t head, int64_t key, int64_t keys, int64_t query, int64_t queries,
            T* tile) const {
    const HeadsRef& keep = attention_.keep;
    const int64_t wide = width(queries);
    const auto factor = static_cast<T>(attention_.keep_scale);
    const auto* data =
        reinterpret_cast<const uint8_t*>(row(keep, DType::UInt8, batch, head, query)) +
        key * keep.col_stride;
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        tile[j * wide + i] *= data[i * keep.row_stride + j * keep.col_stride] != 0 ? factor : 0;
      }
    }
  }

  static const char* row(const HeadsRef& heads, DType dtype, int64_t batch, int64_t head,
                         int64_t first) {
    const int64_t elements =
        batch * heads.batch_stride + head * heads.head_stride + first * heads.row_stride;
    return static_cast<const char*>(heads.data) + elements * element_size(dtype);
  }

  // Rows (count x size) of T, to one head of a tensor of the attention's dtype.
  void store(const T* rows, int64_t stride, int64_t count, int64_t size,
             const MutableHeadsRef& heads, int64_t batch, int64_t head, int64_t first) const {
    const HeadsRef as_input = {heads.data, heads.batch_stride, heads.head_stride, heads.row_stride,
                               heads.col_stride};
    const int64_t bytes = element_size(attention_.dtype);
    auto* out = const_cast<char*>(row(as_input, attention_.dtype, batch, head, first));
    for (int64_t r = 0; r < count; ++r) {
      gemm_.store_row(attention_.dtype, rows + r * stride, size, out + r * heads.row_stride * bytes,
                      heads.col_stride);
    }
  }

  // The same of columns (size x width).
  void store_columns(const T* columns, int64_t count, int64_t size, const MutableHeadsRef& heads,
                     int64_t batch, int64_t head, int64_t first, Scratch* scratch) const {
    T* rows = scratch->get<T>(count * size);
    constexpr DType kType = sizeof(T) == 8 ? DType::Float64 : DType::Float32;
    gemm_.pack(kType, columns, width(count), 1, size, count, size, rows);
    store(rows, size, count, size, heads, batch, head, first);
  }

 private:
  void add_mask(int64_t batch, int64_t head, int64_t key, int64_t keys, int64_t query,
                int64_t queries, T* tile, Scratch* scratch) {
    const HeadsRef& mask = attention_.mask;
    const DType dtype = attention_.mask_dtype;
    const int64_t wide = width(queries);
    const char* data =
        row(mask, dtype, batch, head, query) + key * mask.col_stride * element_size(dtype);
    if (dtype == DType::Bool) {
      const auto* takes_part = reinterpret_cast<const uint8_t*>(data);
      for (int64_t i = 0; i < queries; ++i) {
        for (int64_t j = 0; j < keys; ++j) {
          if (takes_part[i * mask.row_stride + j * mask.col_stride] == 0) {
            tile[j * wide + i] = -std::numeric_limits<T>::infinity();
          }
        }
      }
      return;
    }
    T* added = scratch->get<T>(keys * wide);
    gemm_.pack(dtype, data, mask.row_stride, mask.col_stride, queries, keys, wide, added);
    gemm_.add_row(added, 1, keys * wide, tile);
  }

  const Attention& attention_;
  const GemmEngine<T>& gemm_;
  const AttentionEngine<T>& engine_;
};

}  // namespace rushlight
