// The two products of attention's forward pass, for a tile of queries in panels: scores of keys by
// queries, and sums of values by queries.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/attention_tile.h"
#include "kernels/gemm_tiles.h"
#include "runtime/per_thread.h"

namespace rushlight {

// A tile of queries of one head.
struct QueryTile {
  uint64_t call;  // a number that each forward pass has of its own
  int64_t batch;
  int64_t head;
  int64_t kv_head;
  int64_t query;
  int64_t queries;
};

// By chains of multiply-adds, in the compute type.
template <typename T>
class ChainProducts {
 public:
  ChainProducts(const Attention& attention, const AttentionTile<T>& tile, const QueryTile& at)
      : attention_(attention), tile_(tile), at_(at) {}

  // The columns of each panel on their own.
  void load_queries() {
    const int64_t size = attention_.head_size;
    T* out = scratch_.q.template get<T>(size * tile_.width(at_.queries));
    q_ = out;
    for (int64_t i = 0; i < at_.queries; i += tile_.panel()) {
      tile_.columns(attention_.q, at_.batch, at_.head, at_.query + i,
                    std::min(tile_.panel(), at_.queries - i), size, out + size * i);
    }
  }

  void load_keys(int64_t key, int64_t keys) {
    keys_ = keys;
    more_ = key + 2 * keys <= attention_.keys;
    k_ = tile_.rows(attention_.k, at_.batch, at_.kv_head, key, keys, attention_.head_size, false,
                    &scratch_.k);
    v_ = tile_.rows(attention_.v, at_.batch, at_.kv_head, key, keys, attention_.value_size, false,
                    &scratch_.v);
  }

  // Of the first keys that were loaded, by the panel from query i of the tile on, `wide` columns.
  void scores(int64_t i, int64_t wide, int64_t keys, T* scores) const {
    const int64_t size = attention_.head_size;
    tile_.multiply(keys, wide, size, k_, q_ + size * i, wide, static_cast<T>(attention_.scale), 0,
                   scores, wide);
  }
  void add_values(int64_t wide, int64_t keys, const T* probabilities, T* sums) const {
    const Rows<T> turned = {v_.data, v_.col_stride, v_.row_stride};
    tile_.multiply(attention_.value_size, wide, keys, turned, probabilities, wide, 1, 1, sums,
                   wide);
  }

  // A cache line of each of the keys and values that come next: a different one for each panel.
  RowsAhead ahead(int64_t panel) const {
    constexpr int64_t kLine = 64 / sizeof(T);
    if (!more_ || (panel + 1) * kLine > std::min(attention_.head_size, attention_.value_size)) {
      return {};
    }
    const auto at = [&](const Rows<T>& rows) {
      return reinterpret_cast<const char*>(rows.data + keys_ * rows.row_stride + panel * kLine);
    };
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    return {{at(k_), at(v_)}, {k_.row_stride * kSize, v_.row_stride * kSize}};
  }

 private:
  struct Factors {
    Scratch q;
    Scratch k;
    Scratch v;
  };
  inline static const PerThread<Factors> factors;

  const Attention& attention_;
  const AttentionTile<T>& tile_;
  const QueryTile at_;
  Factors& scratch_ = *factors;
  const T* q_ = nullptr;
  Rows<T> k_ = {};
  Rows<T> v_ = {};
  int64_t keys_ = 0;
  bool more_ = false;
};

// Of bf16 on matrix tiles. Sums are f32; probabilities, at most 1, are rounded to bf16 for the
// second product, as its other factor is.
class TileProducts {
 public:
  TileProducts(const Attention& attention, const AttentionTile<float>& tile, const QueryTile& at)
      : attention_(attention), tile_(tile), at_(at), engine_(*tile_engine()) {}

  static bool take(const Attention& attention) {
    return attention.dtype == DType::BFloat16 && tile_engine() != nullptr;
  }

  void load_queries() {
    const int64_t size = attention_.head_size;
    auto* out = scratch_.q.get<std::byte>(bytes(at_.queries, size));
    pack(true, attention_.q, at_.head, at_.query, at_.queries, size, out);
    q_ = out;
  }

  void load_keys(int64_t key, int64_t keys) {
    keys_ = keys;
    const int64_t k_size = bytes(kForwardKeys, attention_.head_size);
    const int64_t v_size = bytes(attention_.value_size, kForwardKeys);
    const int64_t blocks = (attention_.keys + kForwardKeys - 1) / kForwardKeys;
    const bool kept = attention_.blocks == nullptr && blocks * (k_size + v_size) <= kMostKept;
    const int64_t block = kept ? key / kForwardKeys : 0;
    std::byte* k = scratch_.k.get<std::byte>(kept ? blocks * k_size : k_size) + block * k_size;
    std::byte* v = scratch_.v.get<std::byte>(kept ? blocks * v_size : v_size) + block * v_size;
    if (!kept || !is_packed(block, keys)) {
      pack(false, attention_.k, at_.kv_head, key, keys, attention_.head_size, k);
      const HeadsRef& heads = attention_.v;
      const char* data = tile_.row(heads, attention_.dtype, at_.batch, at_.kv_head, key);
      engine_.pack(kScheme, false, attention_.dtype, data, heads.col_stride, heads.row_stride,
                   attention_.value_size, keys, v);
    }
    k_ = k;
    v_ = v;
  }

  void scores(int64_t i, int64_t wide, int64_t keys, float* scores) const {
    const int64_t size = attention_.head_size;
    engine_.block(kScheme, keys, wide, size, k_, size, q_ + bytes(i, size), size,
                  static_cast<float>(attention_.scale), 0, scores, wide);
  }
  void add_values(int64_t wide, int64_t keys, const float* probabilities, float* sums) const {
    auto* packed = scratch_.p.get<std::byte>(bytes(wide, keys));
    engine_.pack(kScheme, true, DType::Float32, probabilities, 1, wide, wide, keys, packed);
    engine_.block(kScheme, attention_.value_size, wide, keys, v_, keys_, packed, keys, 1, 1, sums,
                  wide);
  }

  RowsAhead ahead(int64_t panel) const { return {}; }

 private:
  static constexpr TileScheme kScheme = TileScheme::whole;
  // Bytes of packed keys and values that a thread keeps from one tile of queries to the next.
  static constexpr int64_t kMostKept = int64_t{2} << 20;

  struct Factors {
    Scratch q;
    Scratch k;
    Scratch v;
    Scratch p;
    // What k and v hold: of a head of a forward pass, how many keys of each block.
    uint64_t call = 0;
    int64_t plane = 0;
    std::vector<int64_t> packed;
  };
  inline static const PerThread<Factors> factors;

  static int64_t bytes(int64_t items, int64_t depth) { return tile_bytes(kScheme, items, depth); }

  // Whether the keys of a block are there from a tile of queries before; they are from now on.
  bool is_packed(int64_t block, int64_t keys) {
    const int64_t plane = at_.batch * attention_.kv_heads + at_.kv_head;
    if (scratch_.call != at_.call || scratch_.plane != plane) {
      scratch_.call = at_.call;
      scratch_.plane = plane;
      scratch_.packed.clear();
    }
    if (block >= static_cast<int64_t>(scratch_.packed.size())) {
      scratch_.packed.resize(static_cast<size_t>(block) + 1, 0);
    }
    return std::exchange(scratch_.packed[static_cast<size_t>(block)], keys) == keys;
  }

  void pack(bool columns, const HeadsRef& heads, int64_t head, int64_t first, int64_t count,
            int64_t size, std::byte* out) const {
    const char* data = tile_.row(heads, attention_.dtype, at_.batch, head, first);
    engine_.pack(kScheme, columns, attention_.dtype, data, heads.row_stride, heads.col_stride,
                 count, size, out);
  }

  const Attention& attention_;
  const AttentionTile<float>& tile_;
  const QueryTile at_;
  const TileEngine& engine_;
  Factors& scratch_ = *factors;
  const std::byte* q_ = nullptr;
  const std::byte* k_ = nullptr;
  const std::byte* v_ = nullptr;
  int64_t keys_ = 0;
};

}  // namespace rushlight
