// Products on matrix tiles (AMX), where the CPU has them.
//
// Tiles multiply bf16 exactly and add up in f32. An f16, or an f32 where 16 bits of significand
// will do, is taken apart into two bf16; any f32 is the exact sum of three. The products of parts
// that are left out are below 2^-25 of a product of f32, half of what rounding that product would
// lose. What is smaller than 2^-126 counts as zero, parts as well as products: see `tiles_take`.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

namespace rushlight {

// How factors are taken apart, and which products of parts are formed.
enum class TileScheme : uint8_t {
  whole,   // bf16, or f32 rounded to it
  halves,  // two parts: all products but that of the two low ones
  thirds,  // three parts: all products but the three smallest
};

constexpr int parts_of(TileScheme scheme) {
  return static_cast<int>(scheme) + 1;
}

// Items (rows of A, columns of B) of a tile, and steps of depth.
inline constexpr int64_t kTileItems = 16;
inline constexpr int64_t kTileDepth = 32;

// Products are cut at multiples of this many k: part of the numeric contract, as `kGemmDepth` is
// for chains. Far more than for those: tiles stand still while C comes and goes.
inline constexpr int64_t kTileBlockDepth = 1024;

// Whether factors whose largest magnitudes have these bits (as f32) may be multiplied in parts.
// Infinities and NaN have no parts, nor has what rounds up to infinity. Products of three parts
// must moreover lie well within the range of f32, so that what counts as zero is below 2^-40 of the
// largest product, and first parts do not overflow where the whole would not.
constexpr bool tiles_take(TileScheme scheme, uint32_t largest_a, uint32_t largest_b) {
  constexpr uint32_t kRoundsToInfinity = 0x7f7f8000;
  if (scheme != TileScheme::thirds) {
    return largest_a < kRoundsToInfinity && largest_b < kRoundsToInfinity;
  }
  const auto exponent = [](uint32_t bits) { return static_cast<int>(bits >> 23) - 127; };
  const auto takes = [&](uint32_t bits) {
    return bits == 0 || (exponent(bits) >= -100 && exponent(bits) <= 100);
  };
  const int together = exponent(largest_a) + exponent(largest_b);
  const bool product = largest_a == 0 || largest_b == 0 || (together >= -80 && together <= 100);
  return takes(largest_a) && takes(largest_b) && product;
}

struct TileEngine {
  // Packs items x depth elements: [panel of 16 items][32 of depth][part][tile of 1 KiB], zero
  // beyond the edges. Tiles of A hold an item a row, tiles of B an item a column. Returns the bits
  // of the largest magnitude, as f32: see `tiles_take`.
  uint32_t (*pack)(TileScheme scheme, bool columns, DType dtype, const void* source,
                   int64_t item_stride, int64_t depth_stride, int64_t items, int64_t depth,
                   void* out);
  // C = alpha * A B + beta * C of packed factors, the first k steps of them; C has unit column
  // stride and is not read where beta is 0. The factors may have been packed to greater depths.
  void (*block)(TileScheme scheme, int64_t m, int64_t n, int64_t k, const void* a, int64_t a_depth,
                const void* b, int64_t b_depth, float alpha, float beta, float* c,
                int64_t c_stride);
};

// None where the CPU level has no tiles.
const TileEngine* tile_engine();

// How products of f32 are made now: by tiles, or by chains where there is no engine.
struct TileChoice {
  const TileEngine* engine = nullptr;
  TileScheme scheme = TileScheme::whole;
};
TileChoice f32_tiles();

// Bytes of a packed factor.
constexpr int64_t tile_bytes(TileScheme scheme, int64_t items, int64_t depth) {
  const int64_t panels = (items + kTileItems - 1) / kTileItems;
  const int64_t steps = (depth + kTileDepth - 1) / kTileDepth;
  return panels * steps * kTileItems * kTileDepth * 2 * parts_of(scheme);
}

}  // namespace rushlight
