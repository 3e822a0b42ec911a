// Products of half types on matrix tiles (AMX), where the CPU has them.
//
// Tiles multiply bf16 exactly and add up in f32. An f16, or an f32 where less than its own accuracy
// will do, is taken apart into two bf16: 16 bits of significand. What is smaller than 2^-126 counts
// as zero, parts as well as products.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

namespace rushlight {

// How factors are taken apart, and which products of parts are formed.
enum class TileScheme : uint8_t {
  whole,   // bf16, or f32 rounded to it
  halves,  // two parts: all products but that of the two low ones
};

constexpr int parts_of(TileScheme scheme) {
  return scheme == TileScheme::whole ? 1 : 2;
}

// Items (rows of A, columns of B) of a tile, and steps of depth.
inline constexpr int64_t kTileItems = 16;
inline constexpr int64_t kTileDepth = 32;

// Products are cut at multiples of this many k: part of the numeric contract, as `kGemmDepth` is
// for chains. Blocks of fewer parts are deeper, so that C is as seldom read and written.
constexpr int64_t tile_block_depth(TileScheme scheme) {
  return 1024 / parts_of(scheme);
}

struct TileEngine {
  // Packs items x depth elements: [panel of 16 items][32 of depth][part][tile of 1 KiB], zero
  // beyond the edges. Tiles of A hold an item a row, tiles of B an item a column. Returns whether
  // all elements are finite: others must not be multiplied in parts.
  bool (*pack)(TileScheme scheme, bool columns, DType dtype, const void* source,
               int64_t item_stride, int64_t depth_stride, int64_t items, int64_t depth, void* out);
  // C = alpha * A B + beta * C of packed factors, the first k steps of them; C has unit column
  // stride and is not read where beta is 0. The factors may have been packed to greater depths.
  void (*block)(TileScheme scheme, int64_t m, int64_t n, int64_t k, const void* a, int64_t a_depth,
                const void* b, int64_t b_depth, float alpha, float beta, float* c,
                int64_t c_stride);
};

// None where the CPU level has no tiles.
const TileEngine* tile_engine();

}  // namespace rushlight
