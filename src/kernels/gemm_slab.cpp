#include "kernels/gemm_slab.h"

#include <algorithm>
#include <atomic>

#include "kernels/scratch.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

// Adjacent items that are packed at a time: some cache lines of them. More panels at once would
// fall into the same sets of the first-level cache.
constexpr int64_t kPackedTogether = 64;
const PerThread<Scratch> a_scratch;
const PerThread<Scratch> b_scratch;
const PerThread<Scratch> a_spare_scratch;
const PerThread<Scratch> b_spare_scratch;

// One of the factors: a slab of A by its rows, or of B by its columns.
struct Side {
  MatrixRef source;
  int64_t item_stride;
  int64_t depth_stride;
  int64_t count;
  int64_t panel;
  bool columns;
};

void raise(std::atomic<uint32_t>* most, uint32_t value) {
  uint32_t seen = most->load(std::memory_order_relaxed);
  while (seen < value && !most->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// Packs all panels and depth blocks of a side in parallel. Returns the bits of the largest
// magnitude where they become tiles.
template <typename T>
uint32_t pack(const Product<T>& product, const Side& side, const Format& format, bool tiled,
              int64_t depth, std::byte* out) {
  const int64_t width = side.panel;
  const int64_t panels = ceil_div(side.count, width);
  // Panels of adjacent items are packed side by side: each reads only part of a cache line, and
  // the lines may lie a page apart.
  const int64_t together =
      side.item_stride == 1 ? std::clamp<int64_t>(panels / 8, 1, kPackedTogether / width) : 1;
  const int64_t wide = together * width;
  const int64_t across = ceil_div(panels, together);
  const int64_t jobs = across * ceil_div(depth, format.depth);
  std::atomic<uint32_t> largest = 0;
  const auto pack_jobs = [&](int64_t first, int64_t last) {
    for (int64_t job = first; job < last; ++job) {
      const int64_t start = job / across * format.depth;
      const int64_t item = job % across * wide;
      const int64_t steps = std::min(format.depth, depth - start);
      const int64_t skip = item * side.item_stride + start * side.depth_stride;
      const DType dtype = side.source.dtype;
      const auto* data = static_cast<const char*>(side.source.data) + skip * element_size(dtype);
      const int64_t count = std::min(wide, side.count - item);
      std::byte* to =
          out + (start * panels * width + item * round_up(steps, format.step)) * format.bytes;
      if (!tiled) {
        product.engine.pack(dtype, data, side.item_stride, side.depth_stride, count, steps, width,
                            reinterpret_cast<T*>(to));
      } else {
        raise(&largest, product.tiles->pack(product.scheme, side.columns, dtype, data,
                                            side.item_stride, side.depth_stride, count, steps, to));
      }
    }
  };
  parallel_for(0, jobs, ceil_div(1 << 15, wide * format.depth), pack_jobs);
  return largest.load(std::memory_order_relaxed);
}

template <typename T>
uint32_t pack_side(const Product<T>& product, const Side& side, const Format& format, bool tiled,
                   int64_t depth, Scratch* scratch, const std::byte** packed) {
  const int64_t elements = round_up(side.count, side.panel) * round_up(depth, format.step);
  auto* out = scratch->get<std::byte>(elements * format.bytes);
  *packed = out;
  return pack(product, side, format, tiled, depth, out);
}

template <typename T>
Side side_a(const Product<T>& product, const Slab<T>& slab, const Format& format) {
  const MatrixRef a = offset(product.a, slab.row, slab.depth_start);
  return {a, a.row_stride, a.col_stride, slab.m, format.row_panel, false};
}

template <typename T>
Side side_b(const Product<T>& product, const Slab<T>& slab, const Format& format) {
  const MatrixRef b = offset(product.b, slab.depth_start, slab.col);
  return {b, b.col_stride, b.row_stride, slab.n, format.col_panel, true};
}

// Packs a slab as tiles, those sides that are not there from a slab before. False where its
// elements forbid it.
template <typename T>
bool pack_tiles(const Product<T>& product, bool with_a, bool with_b, Slab<T>* slab) {
  const Format format = format_of(product, true);
  if (with_b) {
    slab->b_largest = pack_side(product, side_b(product, *slab, format), format, true, slab->k,
                                &*b_scratch, &slab->b_tiles);
  }
  if (with_a) {
    slab->a_largest = pack_side(product, side_a(product, *slab, format), format, true, slab->k,
                                &*a_scratch, &slab->a_tiles);
  }
  if (!tiles_take(product.scheme, slab->a_largest, slab->b_largest)) {
    return false;
  }
  slab->format = format;
  slab->tiled = true;
  slab->a = slab->a_tiles;
  slab->b = slab->b_tiles;
  return true;
}

}  // namespace

// A tile reads A by broadcasts, which cost the same from where A lies. Packing pays only when many
// panels of B use it, and when A outgrows the caches (measured; either choice gives the same bits).
template <typename T>
bool packs_a(const Product<T>& product) {
  constexpr int64_t kWork = int64_t{1} << 26;
  constexpr int64_t kCols = 192;
  const bool large = static_cast<double>(product.m) * static_cast<double>(product.n) *
                         static_cast<double>(product.k) >=
                     static_cast<double>(kWork);
  // Steps of depth that lie apart, often by a power of two, fall into few sets of the caches.
  constexpr int64_t kShort = 96;
  const bool apart = product.a.row_stride == 1 && product.a.col_stride > product.engine.cols &&
                     product.m >= kShort && product.n >= kShort && product.k >= kShort;
  return product.a.dtype != kComputeDType<T> || (large && product.n > kCols) || apart;
}

// B is read by whole vectors, so its rows must be contiguous. Packing them closer pays when many
// rows of A pass.
template <typename T>
bool packs_b(const Product<T>& product) {
  constexpr int64_t kRows = 192;
  constexpr int64_t kElements = 64 * 64;
  return product.b.dtype != kComputeDType<T> || product.b.col_stride != 1 ||
         (product.m > kRows && product.n * product.k > kElements);
}

template <typename T>
void pack_slab(const Product<T>& product, bool with_a, bool with_b, Slab<T>* slab) {
  Scratch* own_a = &*a_scratch;
  Scratch* own_b = &*b_scratch;
  if (product.tiles != nullptr) {
    if (pack_tiles(product, with_a, with_b, slab)) {
      return;
    }
    // Packed for chains, beside the tiles that other slabs may use.
    slab->tiled = false;
    with_a = true;
    with_b = true;
    own_a = &*a_spare_scratch;
    own_b = &*b_spare_scratch;
  }
  const GemmEngine<T>& engine = product.engine;
  const Format format = format_of(product, false);
  slab->format = format;
  if (with_a) {
    pack_side(product, side_a(product, *slab, format), format, false, slab->k, own_a, &slab->a);
  }
  if (with_b) {
    pack_side(product, side_b(product, *slab, format), format, false, slab->k, own_b, &slab->b);
  }
  if (slab->b != nullptr) {  // packed now or for an earlier slab
    return;
  }
  const int64_t edge = slab->n % engine.cols;
  if (edge % engine.vector != 0) {
    T* out = b_scratch->get<T>(engine.cols * slab->k);
    const MatrixRef last = offset(product.b, slab->depth_start, slab->col + slab->n - edge);
    engine.pack(last.dtype, last.data, 1, last.row_stride, edge, slab->k, engine.cols, out);
    slab->b_edge = out;
  }
}

template bool packs_a(const Product<float>&);
template bool packs_a(const Product<double>&);
template bool packs_b(const Product<float>&);
template bool packs_b(const Product<double>&);
template void pack_slab(const Product<float>&, bool, bool, Slab<float>*);
template void pack_slab(const Product<double>&, bool, bool, Slab<double>*);

}  // namespace rushlight
