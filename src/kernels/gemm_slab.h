// A slab of a product: a range of its rows, columns and depth, packed at one time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm_product.h"

namespace rushlight {

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

// How packed factors lie: [depth block][panel][what the engine makes of a panel].
struct Format {
  int64_t row_panel;  // items of a panel
  int64_t col_panel;
  int64_t depth;  // steps of a depth block
  int64_t step;   // to a multiple of which the last of them is filled up
  int64_t bytes;  // of an element
};

template <typename T>
Format format_of(const Product<T>& product, bool tiled) {
  if (tiled) {
    return {kTileItems, kTileItems, kTileBlockDepth, kTileDepth, 2 * parts_of(product.scheme)};
  }
  const GemmEngine<T>& engine = product.engine;
  return {engine.rows, engine.cols, kGemmDepth, 1, static_cast<int64_t>(sizeof(T))};
}

// A range of rows, columns and depth of the product, with what is packed of it.
template <typename T>
struct Slab {
  int64_t row;
  int64_t col;
  int64_t depth_start;
  int64_t m;
  int64_t n;
  int64_t k;
  const std::byte* a = nullptr;  // packed; none: read A where it lies, but for `own_a`
  bool own_a = false;            // tasks pack the rows of A that they take
  const std::byte* b = nullptr;  // packed; none: read B where it lies, but for the last panel
  const T* b_edge = nullptr;
  const std::byte* b_tiles = nullptr;  // as tiles, whether or not this slab uses them
  uint32_t b_largest = 0;              // see `tiles_take`
  const std::byte* a_tiles = nullptr;
  uint32_t a_largest = 0;
  Format format = {};
  bool tiled = false;
  T* sums = nullptr;  // partial sums of C where C is not direct and depth takes several slabs
  bool first;
  bool last;

  // Takes the next `depth` steps of all, from `start` on.
  void take_depth(int64_t start, int64_t depth, int64_t all) {
    depth_start = start;
    k = depth < all - start ? depth : all - start;
    first = start == 0;
    last = start + k == all;
  }
};

// Of the calling thread's core.
int64_t second_level_cache_bytes();

// Whether factors are packed where the product is made of chains; A by each task for itself where
// `packs_own_a`.
template <typename T>
bool packs_own_a(const Product<T>& product);
template <typename T>
bool packs_a(const Product<T>& product);
template <typename T>
bool packs_b(const Product<T>& product);

// Packs what is asked of a slab, as tiles or, where its elements forbid that, for chains; the sides
// not asked for are there from a slab before, or are read where they lie.
template <typename T>
void pack_slab(const Product<T>& product, bool with_a, bool with_b, Slab<T>* slab);

// Packs all rows of a slab for chains, on the calling thread, in memory that lasts until the thread
// packs rows again.
template <typename T>
void pack_rows(const Product<T>& product, Slab<T>* slab);

}  // namespace rushlight
