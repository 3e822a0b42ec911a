#include "kernels/gemm_tiles.h"
#include "runtime/cpu.h"

#if defined(__x86_64__)

#include <immintrin.h>

// The compiler's own headers leave operands undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

// In force to the end of the file: nothing of the standard library is instantiated below.
#pragma GCC target( \
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16,avx2,fma,amx-tile,amx-bf16")

namespace rushlight::amx {
namespace {

constexpr int64_t kTileBytes = 1024;

constexpr int64_t steps_of(int64_t depth) {
  return (depth + kTileDepth - 1) / kTileDepth;
}

// ---- packing
// -------------------------------------------------------------------------------------

// 16 steps of depth of one item, or 16 items of one step.
inline __m512 load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline __m512 load(const Half* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline __m512 load(const BFloat16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline float widen(float x) {
  return x;
}
inline float widen(Half x) {
  return to_float(x);
}
inline float widen(BFloat16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}

// The largest magnitude so far, of each lane.
inline __m512i larger(__m512i largest, __m512 x) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  return _mm512_max_epu32(largest, _mm512_and_si512(_mm512_castps_si512(x), magnitude));
}

// A pair of elements whose step of depth differs by 16, as kParts pairs of bf16. Any order of depth
// will do that is the same in both factors, and with this one both are loaded by whole vectors.
template <int kParts>
[[gnu::always_inline]] inline void take_apart(__m512 low, __m512 high, __m512i* parts) {
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
#pragma GCC unroll 3
  for (int part = 0; part < kParts; ++part) {
    const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    parts[part] = _mm512_permutexvar_epi16(pairs, rounded);
    if (part + 1 < kParts) {
      low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_slli_epi32(parts[part], 16)));
      high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_and_si512(parts[part], upper)));
    }
  }
}

// 16 x 16 elements of 32 bits.
[[gnu::always_inline]] inline void transpose(__m512* r) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// One tile of each part, from 16 lines of 32 elements (`across` false: an item with its depth) or
// 32 lines of 16 (a step of depth of all items). `turned` where the tile wants the other.
template <int kParts, bool kAcross, bool kTurned, typename S>
[[gnu::always_inline]] inline void pack_tile(const S* source, int64_t stride, char* out,
                                             __m512i* largest) {
  const auto put = [&](int row, __m512 low, __m512 high) __attribute__((always_inline)) {
    __m512i parts[kParts];
    *largest = larger(larger(*largest, low), high);
    take_apart<kParts>(low, high, parts);
#pragma GCC unroll 3
    for (int part = 0; part < kParts; ++part) {
      _mm512_store_si512(out + part * kTileBytes + row * 64, parts[part]);
    }
  };
  if constexpr (!kTurned) {
    for (int row = 0; row < 16; ++row) {
      const S* line = source + row * stride;
      put(row, load(line), load(kAcross ? line + 16 * stride : line + 16));
    }
  } else {
    __m512 low[16];
    __m512 high[16];
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      low[row] = load(source + row * stride);
    }
    transpose(low);
    alignas(64) float kept[16][16];
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      _mm512_store_ps(kept[row], low[row]);
    }
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      high[row] = load(source + (kAcross ? (row + 16) * stride : row * stride + 16));
    }
    transpose(high);
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      put(row, _mm512_load_ps(kept[row]), high[row]);
    }
  }
}

// The same of what reaches over an edge or lies at any distance.
template <int kParts, bool kColumns, typename S>
void pack_edge(const S* source, int64_t item_stride, int64_t depth_stride, int64_t items,
               int64_t depth, char* out, __m512i* largest) {
  alignas(64) float whole[16][32] = {};
  for (int64_t i = 0; i < items; ++i) {
    for (int64_t p = 0; p < depth; ++p) {
      whole[i][p] = widen(source[i * item_stride + p * depth_stride]);
    }
  }
  pack_tile<kParts, false, kColumns>(whole[0], 32, out, largest);
}

template <int kParts, bool kColumns, typename S>
uint32_t pack_panels(const S* source, int64_t item_stride, int64_t depth_stride, int64_t items,
                     int64_t depth, char* out) {
  __m512i largest = _mm512_setzero_si512();
  const int64_t steps = steps_of(depth);
  const int64_t panels = (items + kTileItems - 1) / kTileItems;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t deep = depth - step * kTileDepth;
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t wide = items - panel * kTileItems;
      const S* from = source + panel * kTileItems * item_stride + step * kTileDepth * depth_stride;
      char* to = out + (panel * steps + step) * kParts * kTileBytes;
      const bool inside = wide >= kTileItems && deep >= kTileDepth;
      if (inside && depth_stride == 1) {
        pack_tile<kParts, false, kColumns>(from, item_stride, to, &largest);
      } else if (inside && item_stride == 1) {
        pack_tile<kParts, true, !kColumns>(from, depth_stride, to, &largest);
      } else {
        pack_edge<kParts, kColumns>(from, item_stride, depth_stride,
                                    wide < kTileItems ? wide : kTileItems,
                                    deep < kTileDepth ? deep : kTileDepth, to, &largest);
      }
    }
  }
  return _mm512_reduce_max_epu32(largest);
}

template <bool kColumns>
uint32_t pack_from(TileScheme scheme, DType dtype, const void* source, int64_t item_stride,
                   int64_t depth_stride, int64_t items, int64_t depth, char* out) {
  switch (dtype) {
    case DType::BFloat16:
      return pack_panels<1, kColumns>(static_cast<const BFloat16*>(source), item_stride,
                                      depth_stride, items, depth, out);
    case DType::Float16:
      return pack_panels<2, kColumns>(static_cast<const Half*>(source), item_stride, depth_stride,
                                      items, depth, out);
    default: {
      const auto run = scheme == TileScheme::whole    ? pack_panels<1, kColumns, float>
                       : scheme == TileScheme::halves ? pack_panels<2, kColumns, float>
                                                      : pack_panels<3, kColumns, float>;
      return run(static_cast<const float*>(source), item_stride, depth_stride, items, depth, out);
    }
  }
}

uint32_t pack(TileScheme scheme, bool columns, DType dtype, const void* source, int64_t item_stride,
              int64_t depth_stride, int64_t items, int64_t depth, void* out) {
  char* bytes = static_cast<char*>(out);
  return columns ? pack_from<true>(scheme, dtype, source, item_stride, depth_stride, items, depth,
                                   bytes)
                 : pack_from<false>(scheme, dtype, source, item_stride, depth_stride, items, depth,
                                    bytes);
}

// ---- products
// ------------------------------------------------------------------------------------

struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Packed panels and how many bytes one takes.
struct Packed {
  const char* data;
  int64_t panel;
};

// Tiles 0-3 are sums, 4 and 5 rows of A, 6 and 7 columns of B. Functions that name a tile in an
// instruction need its number as a constant.
template <int kDown>
[[gnu::always_inline]] inline void load_rows(const char* a, int64_t panel) {
  _tile_loadd(4, a, 64);
  if constexpr (kDown > 1) {
    _tile_loadd(5, a + panel, 64);
  }
}

template <int kAcross>
[[gnu::always_inline]] inline void load_columns(const char* b, int64_t panel) {
  _tile_loadd(6, b, 64);
  if constexpr (kAcross > 1) {
    _tile_loadd(7, b + panel, 64);
  }
}

// The products of what is loaded, column after column, or row after row. Each tile of that side has
// its last use as early as may be, and is filled again from `next` at once, if there is one.
template <int kDown, int kAcross>
[[gnu::always_inline]] inline void multiply_by_columns(const char* next, int64_t panel) {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kDown > 1) {
    _tile_dpbf16ps(2, 5, 6);
  }
  if (next != nullptr) {
    _tile_loadd(6, next, 64);
  }
  if constexpr (kAcross > 1) {
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kDown > 1) {
      _tile_dpbf16ps(3, 5, 7);
    }
    if (next != nullptr) {
      _tile_loadd(7, next + panel, 64);
    }
  }
}

template <int kDown, int kAcross>
[[gnu::always_inline]] inline void multiply_by_rows(const char* next, int64_t panel) {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kAcross > 1) {
    _tile_dpbf16ps(1, 4, 7);
  }
  if (next != nullptr) {
    _tile_loadd(4, next, 64);
  }
  if constexpr (kDown > 1) {
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kAcross > 1) {
      _tile_dpbf16ps(3, 5, 7);
    }
    if (next != nullptr) {
      _tile_loadd(5, next + panel, 64);
    }
  }
}

// One step of depth: every product of parts that counts, each part loaded as seldom as registers
// allow.
template <TileScheme kScheme, int kDown, int kAcross>
[[gnu::always_inline]] inline void step(const Packed& left, const Packed& right, int64_t at) {
  const char* a = left.data + at;
  const char* b = right.data + at;
  constexpr int64_t kPart = kTileBytes;
  const auto by_columns = [&](const char* next) __attribute__((always_inline)) {
    multiply_by_columns<kDown, kAcross>(next, right.panel);
  };
  const auto by_rows = [&](const char* next) __attribute__((always_inline)) {
    multiply_by_rows<kDown, kAcross>(next, left.panel);
  };
  load_rows<kDown>(a, left.panel);
  load_columns<kAcross>(b + (parts_of(kScheme) - 1) * kPart, right.panel);
  if constexpr (kScheme == TileScheme::whole) {
    by_rows(nullptr);
  } else if constexpr (kScheme == TileScheme::halves) {
    by_columns(b);
    by_rows(a + kPart);
    by_rows(nullptr);
  } else {
    by_columns(b + kPart);
    by_columns(b);
    by_rows(a + kPart);
    by_columns(b + kPart);
    by_rows(a + 2 * kPart);
    load_columns<kAcross>(b, right.panel);
    by_rows(nullptr);
  }
}

// rows x cols (at most 16 each) of C from a tile.
void add_tile(const float* sums, float alpha, float beta, float* c, int64_t c_stride, int64_t rows,
              int64_t cols) {
  const __m512 factor = _mm512_set1_ps(alpha);
  const __m512 old_factor = _mm512_set1_ps(beta);
  const auto mask = static_cast<__mmask16>((uint32_t{1} << cols) - 1);
  for (int64_t i = 0; i < rows; ++i) {
    const __m512 scaled = _mm512_mul_ps(_mm512_load_ps(sums + 16 * i), factor);
    float* row = c + i * c_stride;
    if (beta == 0) {
      _mm512_mask_storeu_ps(row, mask, scaled);
    } else {
      const __m512 old = _mm512_maskz_loadu_ps(mask, row);
      _mm512_mask_storeu_ps(row, mask, _mm512_fmadd_ps(old_factor, old, scaled));
    }
  }
}

// The instruction names its register, so the number must be spelt out.
template <int kTile>
[[gnu::always_inline]] inline void store_tile(float* out, int64_t stride_bytes) {
  if constexpr (kTile == 0) {
    _tile_stored(0, out, stride_bytes);
  } else if constexpr (kTile == 1) {
    _tile_stored(1, out, stride_bytes);
  } else if constexpr (kTile == 2) {
    _tile_stored(2, out, stride_bytes);
  } else {
    _tile_stored(3, out, stride_bytes);
  }
}

template <int kTile>
[[gnu::always_inline]] inline void load_tile(const float* in, int64_t stride_bytes) {
  if constexpr (kTile == 0) {
    _tile_loadd(0, in, stride_bytes);
  } else if constexpr (kTile == 1) {
    _tile_loadd(1, in, stride_bytes);
  } else if constexpr (kTile == 2) {
    _tile_loadd(2, in, stride_bytes);
  } else {
    _tile_loadd(3, in, stride_bytes);
  }
}

// Compilers do not know that loads of tiles read memory.
[[gnu::always_inline]] inline void read_barrier() {
  asm volatile("" ::: "memory");
}

// A tile of sums that are added to C.
template <int kTile>
[[gnu::always_inline]] inline void start_tile(const float* c, int64_t c_stride, int64_t rows,
                                              int64_t cols) {
  if (rows >= 16 && cols >= 16) {
    load_tile<kTile>(c, c_stride * static_cast<int64_t>(sizeof(float)));
  } else {
    alignas(64) float sums[256] = {};
    const auto mask = static_cast<__mmask16>((uint32_t{1} << (cols < 16 ? cols : 16)) - 1);
    for (int64_t i = 0; i < rows && i < 16; ++i) {
      _mm512_store_ps(sums + 16 * i, _mm512_maskz_loadu_ps(mask, c + i * c_stride));
    }
    read_barrier();
    load_tile<kTile>(sums, 64);
  }
}

template <int kTile>
[[gnu::always_inline]] inline void put_tile(float alpha, float beta, float* c, int64_t c_stride,
                                            int64_t rows, int64_t cols) {
  if (alpha == 1 && beta == 0 && rows >= 16 && cols >= 16) {
    store_tile<kTile>(c, c_stride * static_cast<int64_t>(sizeof(float)));
    return;
  }
  alignas(64) float sums[256];
  store_tile<kTile>(sums, 64);
  add_tile(sums, alpha, beta, c, c_stride, rows < 16 ? rows : 16, cols < 16 ? cols : 16);
}

// Up to 32 x 32 of C.
template <TileScheme kScheme, int kDown, int kAcross>
void square(int64_t steps, const Packed& a, const Packed& b, float alpha, float beta, float* c,
            int64_t c_stride, int64_t rows, int64_t cols) {
  constexpr int64_t kStep = parts_of(kScheme) * kTileBytes;
  const bool onto = alpha == 1 && beta == 1;
  const auto each = [&](auto use) __attribute__((always_inline)) {
    use.template operator()<0>(c, rows, cols);
    if constexpr (kAcross > 1) {
      use.template operator()<1>(c + 16, rows, cols - 16);
    }
    if constexpr (kDown > 1) {
      use.template operator()<2>(c + 16 * c_stride, rows - 16, cols);
      if constexpr (kAcross > 1) {
        use.template operator()<3>(c + 16 * c_stride + 16, rows - 16, cols - 16);
      }
    }
  };
  if (onto) {
    read_barrier();
    each([&]<int kTile>(const float* at, int64_t down, int64_t across)
             __attribute__((always_inline)) { start_tile<kTile>(at, c_stride, down, across); });
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < steps; ++s) {
    step<kScheme, kDown, kAcross>(a, b, s * kStep);
  }
  each([&]<int kTile>(float* at, int64_t down, int64_t across) __attribute__((always_inline)) {
    put_tile<kTile>(alpha, onto ? 0 : beta, at, c_stride, down, across);
  });
}

template <TileScheme kScheme>
void block_of(int64_t m, int64_t n, int64_t k, const Packed& a, const Packed& b, float alpha,
              float beta, float* c, int64_t c_stride) {
  const int64_t steps = steps_of(k);
  for (int64_t j = 0; j < n; j += 32) {
    const int64_t cols = n - j < 32 ? n - j : 32;
    for (int64_t i = 0; i < m; i += 32) {
      const int64_t rows = m - i < 32 ? m - i : 32;
      const Packed left = {a.data + i / kTileItems * a.panel, a.panel};
      const Packed right = {b.data + j / kTileItems * b.panel, b.panel};
      const auto run = rows > 16   ? cols > 16 ? square<kScheme, 2, 2> : square<kScheme, 2, 1>
                         : cols > 16 ? square<kScheme, 1, 2>
                                   : square<kScheme, 1, 1>;
      run(steps, left, right, alpha, beta, c + i * c_stride + j, c_stride, rows, cols);
    }
  }
}

void block(TileScheme scheme, int64_t m, int64_t n, int64_t k, const void* a, int64_t a_depth,
           const void* b, int64_t b_depth, float alpha, float beta, float* c, int64_t c_stride) {
  const TileShapes shapes;
  _tile_loadconfig(&shapes);
  const int64_t step_bytes = parts_of(scheme) * kTileBytes;
  const Packed left = {static_cast<const char*>(a), steps_of(a_depth) * step_bytes};
  const Packed right = {static_cast<const char*>(b), steps_of(b_depth) * step_bytes};
  const auto run = scheme == TileScheme::whole    ? block_of<TileScheme::whole>
                   : scheme == TileScheme::halves ? block_of<TileScheme::halves>
                                                  : block_of<TileScheme::thirds>;
  run(m, n, k, left, right, alpha, beta, c, c_stride);
  _tile_release();
}

constexpr TileEngine kEngine = {pack, block};

}  // namespace
}  // namespace rushlight::amx

namespace rushlight {

const TileEngine* tile_engine() {
  return cpu_level() >= CpuLevel::v4amx ? &amx::kEngine : nullptr;
}

}  // namespace rushlight

#else

namespace rushlight {

const TileEngine* tile_engine() {
  return nullptr;
}

}  // namespace rushlight

#endif
