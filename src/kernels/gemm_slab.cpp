#include "kernels/gemm_slab.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>

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
const PerThread<Scratch> rows_scratch;

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

// A side on its way to packed panels, cut into jobs: some panels by a block of depth each.
struct Packing {
  Side side;
  Format format;
  bool tiled;
  int64_t depth;
  std::byte* out;
  int64_t wide;    // items of a job
  int64_t across;  // jobs to a block of depth
  int64_t jobs;
  std::atomic<uint32_t> largest;  // bits of the largest magnitude, of tiles

  Packing(const Side& source, const Format& layout, bool tiles, int64_t steps, Scratch* scratch)
      : side(source), format(layout), tiled(tiles), depth(steps), largest(0) {
    const int64_t width = side.panel;
    const int64_t panels = ceil_div(side.count, width);
    out = scratch->get<std::byte>(panels * width * round_up(depth, format.step) * format.bytes);
    // Panels of adjacent items are packed side by side: each reads only part of a cache line, and
    // the lines may lie a page apart.
    const int64_t together =
        side.item_stride == 1 ? std::clamp<int64_t>(panels / 8, 1, kPackedTogether / width) : 1;
    wide = together * width;
    across = ceil_div(panels, together);
    jobs = across * ceil_div(depth, format.depth);
  }
};

template <typename T>
void pack_job(const Product<T>& product, Packing* packing, int64_t job) {
  const Side& side = packing->side;
  const Format& format = packing->format;
  const int64_t start = job / packing->across * format.depth;
  const int64_t item = job % packing->across * packing->wide;
  const int64_t steps = std::min(format.depth, packing->depth - start);
  const int64_t skip = item * side.item_stride + start * side.depth_stride;
  const DType dtype = side.source.dtype;
  const auto* data = static_cast<const char*>(side.source.data) + skip * element_size(dtype);
  const int64_t count = std::min(packing->wide, side.count - item);
  const int64_t all = round_up(side.count, side.panel);
  std::byte* to = packing->out + (start * all + item * round_up(steps, format.step)) * format.bytes;
  if (!packing->tiled) {
    product.engine.pack(dtype, data, side.item_stride, side.depth_stride, count, steps, side.panel,
                        reinterpret_cast<T*>(to));
  } else {
    raise(&packing->largest,
          product.tiles->pack(product.scheme, side.columns, dtype, data, side.item_stride,
                              side.depth_stride, count, steps, to));
  }
}

// Packs what is there of the two sides, in one parallel loop.
template <typename T>
void pack(const Product<T>& product, std::optional<Packing>* first,
          std::optional<Packing>* second) {
  constexpr int64_t kGrainElements = 1 << 15;
  int64_t jobs = 0;
  double elements = 0;
  for (const auto* packing : {first, second}) {
    if (*packing) {
      jobs += (*packing)->jobs;
      elements +=
          static_cast<double>((*packing)->side.count) * static_cast<double>((*packing)->depth);
    }
  }
  const int64_t ahead = *first ? (*first)->jobs : 0;
  const auto grain =
      static_cast<int64_t>(kGrainElements * static_cast<double>(jobs) / (elements + 1));
  parallel_for(0, jobs, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
    for (int64_t job = begin; job < end; ++job) {
      if (job < ahead) {
        pack_job(product, &**first, job);
      } else {
        pack_job(product, &**second, job - ahead);
      }
    }
  });
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
  std::optional<Packing> b;
  std::optional<Packing> a;
  if (with_b) {
    b.emplace(side_b(product, *slab, format), format, true, slab->k, &*b_scratch);
  }
  if (with_a) {
    a.emplace(side_a(product, *slab, format), format, true, slab->k, &*a_scratch);
  }
  pack(product, &b, &a);
  if (b) {
    slab->b_tiles = b->out;
    slab->b_largest = b->largest.load(std::memory_order_relaxed);
  }
  if (a) {
    slab->a_tiles = a->out;
    slab->a_largest = a->largest.load(std::memory_order_relaxed);
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

int64_t second_level_cache_bytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes;
}

// Each task packs the rows of A that it takes, a block of depth at a time, which stays in its own
// caches. It takes all columns, so there must be rows enough for all threads, and a block of depth
// of B, which every task reads, must be near: else threads are better off with columns of their
// own. Between blocks of depth, sums must stay in C.
template <typename T>
bool packs_own_a(const Product<T>& product) {
  constexpr int64_t kPanels = 16;
  const int64_t depth = std::min(product.k, kGemmDepth);
  const int64_t near = second_level_cache_bytes() * 3 / 4;
  return product.tiles == nullptr && (product.direct() || product.k <= kGemmDepth) &&
         product.n * depth * static_cast<int64_t>(sizeof(T)) <= near &&
         product.m >= kPanels * num_threads() * product.engine.rows;
}

// A tile reads A by broadcasts, which cost the same from where A lies. Packing pays only when many
// panels of B use it, and when A outgrows the caches (measured; either choice gives the same bits).
template <typename T>
bool packs_a(const Product<T>& product) {
  const double least_work = packs_own_a(product) ? 1 << 24 : 1 << 26;
  constexpr int64_t kCols = 192;
  const bool large = static_cast<double>(product.m) * static_cast<double>(product.n) *
                         static_cast<double>(product.k) >=
                     least_work;
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
  std::optional<Packing> b;
  std::optional<Packing> a;
  if (with_b) {
    slab->b = b.emplace(side_b(product, *slab, format), format, false, slab->k, own_b).out;
  }
  if (with_a) {
    slab->a = a.emplace(side_a(product, *slab, format), format, false, slab->k, own_a).out;
  }
  pack(product, &b, &a);
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

template <typename T>
void pack_rows(const Product<T>& product, Slab<T>* slab) {
  const Format& format = slab->format;
  Packing packing(side_a(product, *slab, format), format, false, slab->k, &*rows_scratch);
  for (int64_t job = 0; job < packing.jobs; ++job) {
    pack_job(product, &packing, job);
  }
  slab->a = packing.out;
}

template bool packs_own_a(const Product<float>&);
template bool packs_own_a(const Product<double>&);
template bool packs_a(const Product<float>&);
template bool packs_a(const Product<double>&);
template bool packs_b(const Product<float>&);
template bool packs_b(const Product<double>&);
template void pack_slab(const Product<float>&, bool, bool, Slab<float>*);
template void pack_slab(const Product<double>&, bool, bool, Slab<double>*);
template void pack_rows(const Product<float>&, Slab<float>*);
template void pack_rows(const Product<double>&, Slab<double>*);

}  // namespace rushlight
