#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "kernels/gemm_product.h"
#include "kernels/scratch.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

// A block of A stays in the second-level cache while panels of B stream past it: about half of that
// cache, and no more than pays. Nothing that is chosen here or below affects results.
int64_t block_bytes(bool tiled) {
  constexpr int64_t kLeast = 144 << 10;
  constexpr int64_t kMost = 288 << 10;
  constexpr int64_t kMostTiled = 832 << 10;
  static const int64_t half = sysconf(_SC_LEVEL2_CACHE_SIZE) / 2;
  return std::clamp<int64_t>(half, kLeast, tiled ? kMostTiled : kMost);
}

// The limits on slabs bound the memory for packed copies.
constexpr int64_t kSlabElements = 2 << 20;
constexpr int64_t kSlabDepth = 16 * kGemmDepth;
// Where B stays packed for all of A, a packed copy of A should not leave the caches before its use.
constexpr int64_t kNearElements = 512 << 10;
constexpr int64_t kNearDepth = 4 * kGemmDepth;
// Rows of A for which tiles of B are not worth keeping beyond the second-level cache.
constexpr int64_t kFewRows = 512;
// Adjacent items that are packed at a time: some cache lines of them. More panels at once would
// fall into the same sets of the first-level cache.
constexpr int64_t kPackedTogether = 64;
// Multiplications that are worth a task of their own (about 5 us).
constexpr int64_t kTaskWork = 1 << 18;

const PerThread<Scratch> a_scratch;
const PerThread<Scratch> b_scratch;
const PerThread<Scratch> a_spare_scratch;
const PerThread<Scratch> b_spare_scratch;
const PerThread<Scratch> c_scratch;
const PerThread<Scratch> task_scratch;

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
  const std::byte* a = nullptr;  // packed; none: read A where it lies
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
};

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

template <typename T>
void multiply_packed(const Product<T>& product, bool tiled, int64_t rows, int64_t cols,
                     int64_t depth, const std::byte* a, const std::byte* b, T beta, T* sums,
                     int64_t sums_stride) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (tiled) {
      product.tiles->block(product.scheme, rows, cols, depth, a, depth, b, depth, product.alpha,
                           beta, sums, sums_stride);
      return;
    }
  }
  product.engine.block(rows, cols, depth, reinterpret_cast<const T*>(a),
                       reinterpret_cast<const T*>(b), product.alpha, beta, sums, sums_stride);
}

// Sums of rows x cols at (i, j) of the slab, for one block of depth at `start`.
template <typename T>
void multiply_depth(const Product<T>& product, const Slab<T>& slab, int64_t i, int64_t j,
                    int64_t rows, int64_t cols, int64_t start, T beta, T* sums,
                    int64_t sums_stride) {
  const GemmEngine<T>& engine = product.engine;
  const Format& format = slab.format;
  const int64_t depth = std::min(format.depth, slab.k - start);
  const int64_t padded_m = round_up(slab.m, format.row_panel);
  const int64_t padded_n = round_up(slab.n, format.col_panel);
  const int64_t filled = round_up(depth, format.step);
  if (slab.a != nullptr) {
    const std::byte* a = slab.a + (start * padded_m + i * filled) * format.bytes;
    const std::byte* b = slab.b + (start * padded_n + j * filled) * format.bytes;
    multiply_packed(product, slab.tiled, rows, cols, depth, a, b, beta, sums, sums_stride);
    return;
  }
  const int64_t p = slab.depth_start + start;
  const MatrixRef& a = product.a;
  const T* left = static_cast<const T*>(offset(a, slab.row + i, p).data);
  for (int64_t col = 0; col < cols; col += engine.cols) {
    const int64_t wide = std::min<int64_t>(engine.cols, cols - col);
    const T* b = nullptr;
    int64_t b_stride = engine.cols;
    if (slab.b != nullptr) {
      b = reinterpret_cast<const T*>(slab.b) + start * padded_n + (j + col) * depth;
    } else if (wide % engine.vector != 0) {
      b = slab.b_edge + start * engine.cols;
    } else {
      b = static_cast<const T*>(offset(product.b, p, slab.col + j + col).data);
      b_stride = product.b.row_stride;
    }
    engine.strip(rows, wide, depth, left, a.row_stride, a.col_stride, b, b_stride, product.alpha,
                 beta, sums + col, sums_stride);
  }
}

template <typename T>
void multiply_task(const Product<T>& product, const Slab<T>& slab, int64_t i, int64_t j,
                   int64_t rows, int64_t cols) {
  const bool direct = product.direct();
  T* sums = nullptr;
  int64_t sums_stride = cols;
  if (direct) {
    sums = product.c_at(slab.row + i, slab.col + j);
    sums_stride = product.c.row_stride;
  } else if (slab.sums != nullptr) {
    sums = slab.sums + i * slab.n + j;
    sums_stride = slab.n;
  } else {
    sums = task_scratch->get<T>(rows * cols);
  }
  for (int64_t start = 0; start < slab.k; start += slab.format.depth) {
    const T fresh = direct ? product.beta : 0;
    const T beta = slab.first && start == 0 ? fresh : 1;
    multiply_depth(product, slab, i, j, rows, cols, start, beta, sums, sums_stride);
  }
  if (slab.last && (!direct || product.finishes())) {
    finish(product, slab.row + i, slab.col + j, rows, cols, sums, sums_stride);
  }
  if (slab.last && product.done != nullptr) {
    (*product.done)(slab.row + i, slab.col + j, rows, cols);
  }
}

// How a slab is cut into tasks of equal size.
struct Grid {
  int64_t rows;
  int64_t cols;
  int64_t down;
  int64_t across;
};

// The largest tasks that fit the caches and still make enough for all threads, in a number that
// they can share evenly.
template <typename T>
Grid cut(const Product<T>& product, const Slab<T>& slab, double work) {
  // Two panels of tiles make a square of them, which uses what it loads twice.
  const int64_t row_step = slab.format.row_panel * (slab.tiled ? 2 : 1);
  const int64_t col_step = slab.format.col_panel * (slab.tiled ? 2 : 1);
  const int64_t depth = std::min(slab.k, slab.format.depth);
  const int64_t cache_rows = block_bytes(slab.tiled) / (depth * slab.format.bytes);
  int64_t down = ceil_div(slab.m, cache_rows);
  const bool whole = product.direct() && product.done == nullptr;
  int64_t across = whole ? 1 : ceil_div(slab.n, 256);
  const auto useful = static_cast<int64_t>(std::min(work / static_cast<double>(kTaskWork), 1e6));
  const int64_t threads = std::min<int64_t>(num_threads(), useful);
  if (threads > 1) {
    const int64_t wanted = std::min(useful, 4 * threads);
    across = std::max(across, std::min(ceil_div(wanted, down), slab.n / (8 * col_step)));
    down = std::max(down, std::min(ceil_div(wanted, across), slab.m / (4 * row_step)));
    across = std::max(across, std::min(ceil_div(wanted, down), slab.n / col_step));
    if (down * across % threads != 0 && across % threads != 0) {
      down = round_up(down, threads);
    }
  }
  const int64_t rows = round_up(ceil_div(slab.m, down), row_step);
  const int64_t cols = round_up(ceil_div(slab.n, across), col_step);
  return {rows, cols, ceil_div(slab.m, rows), ceil_div(slab.n, cols)};
}

template <typename T>
void multiply_slab(const Product<T>& product, const Slab<T>& slab) {
  const double work =
      static_cast<double>(slab.m) * static_cast<double>(slab.n) * static_cast<double>(slab.k);
  const Grid grid = cut(product, slab, work);
  const int64_t tasks = grid.down * grid.across;
  const int64_t grain = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(kTaskWork * tasks) / (work + 1)));
  parallel_for(0, tasks, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t i = task / grid.across * grid.rows;
      const int64_t j = task % grid.across * grid.cols;
      multiply_task(product, slab, i, j, std::min(grid.rows, slab.m - i),
                    std::min(grid.cols, slab.n - j));
    }
  });
}

// Without depth there is nothing to add up.
template <typename T>
void clear_product(const Product<T>& product) {
  T* zeros = task_scratch->get<T>(product.n);
  for (int64_t i = 0; i < product.m; ++i) {
    std::fill(zeros, zeros + product.n, T{0});
    T* row = zeros;
    if (product.direct()) {
      row = product.c_at(i, 0);
      if (product.beta != 0) {
        product.engine.add_row(row, product.beta, product.n, zeros);
      }
      std::copy(zeros, zeros + product.n, row);
    }
    finish(product, i, 0, 1, product.n, row, product.n);
  }
}

// Rows of a slab, whole panels of them.
template <typename T>
int64_t slab_rows(const Product<T>& product, int64_t elements, int64_t depth) {
  const int64_t most = std::max<int64_t>(elements / depth, 480);
  const int64_t panel = format_of(product, product.tiles != nullptr).row_panel;
  return most / panel * panel;
}

template <typename T>
int64_t slab_cols(const Product<T>& product, int64_t elements, int64_t depth) {
  const int64_t most = std::max<int64_t>(elements / depth, 480);
  const int64_t panel = format_of(product, product.tiles != nullptr).col_panel;
  return most / panel * panel;
}

// Columns of C from `col` on, where sums may stay in C itself: B is packed once.
template <typename T>
void multiply_cols(const Product<T>& product, bool with_a, bool with_b, int64_t col, int64_t n) {
  const int64_t depth = std::min(product.k, kNearDepth);
  const int64_t m = with_a ? slab_rows(product, kNearElements, depth) : product.m;
  Slab<T> slab = {};
  slab.col = col;
  slab.n = n;
  for (int64_t p = 0; p < product.k; p += depth) {
    slab.depth_start = p;
    slab.k = std::min(depth, product.k - p);
    slab.first = p == 0;
    slab.last = p + slab.k == product.k;
    for (int64_t i = 0; i < product.m; i += m) {
      slab.row = i;
      slab.m = std::min(m, product.m - i);
      pack_slab(product, with_a, with_b && i == 0, &slab);
      multiply_slab(product, slab);
    }
  }
}

// The same of few rows by tiles: A is packed once for all columns, and tiles of B, which few rows
// use, stay in the second-level caches. Whether a slab may be tiles at all is found for all of it,
// so its size must not depend on the number of threads.
template <typename T>
void multiply_few_rows(const Product<T>& product) {
  constexpr int64_t n = 256;
  const int64_t depth = std::min(product.k, kNearDepth);
  Slab<T> slab = {};
  slab.m = product.m;
  for (int64_t p = 0; p < product.k; p += depth) {
    slab.depth_start = p;
    slab.k = std::min(depth, product.k - p);
    slab.first = p == 0;
    slab.last = p + slab.k == product.k;
    for (int64_t j = 0; j < product.n; j += n) {
      slab.col = j;
      slab.n = std::min(n, product.n - j);
      pack_slab(product, j == 0, true, &slab);
      multiply_slab(product, slab);
    }
  }
}

// The same with sums of a slab at a time in a buffer.
template <typename T>
void multiply_cols_apart(const Product<T>& product, bool with_a, bool with_b, int64_t col,
                         int64_t n) {
  const int64_t depth = std::min(product.k, kSlabDepth);
  const int64_t m = with_a ? slab_rows(product, kSlabElements, depth) : product.m;
  Slab<T> slab = {};
  slab.col = col;
  slab.n = n;
  for (int64_t i = 0; i < product.m; i += m) {
    slab.row = i;
    slab.m = std::min(m, product.m - i);
    if (product.k > depth) {
      slab.sums = c_scratch->get<T>(slab.m * slab.n);
    }
    for (int64_t p = 0; p < product.k; p += depth) {
      slab.depth_start = p;
      slab.k = std::min(depth, product.k - p);
      slab.first = p == 0;
      slab.last = p + slab.k == product.k;
      const bool b_stays = slab.b != nullptr && product.k == depth && i > 0;
      pack_slab(product, with_a, with_b && !b_stays, &slab);
      multiply_slab(product, slab);
    }
  }
}

}  // namespace

template <typename T>
void multiply_blocks(const Product<T>& product) {
  if (product.k == 0) {
    return clear_product(product);
  }
  if (product.tiles != nullptr && product.direct() && product.m <= kFewRows) {
    return multiply_few_rows(product);
  }
  const bool with_a = product.tiles != nullptr || packs_a(product);
  const bool with_b = with_a || packs_b(product);
  const int64_t depth = std::min(product.k, product.direct() ? kNearDepth : kSlabDepth);
  const int64_t most = with_b ? slab_cols(product, kSlabElements, depth) : product.n;
  for (int64_t j = 0; j < product.n; j += most) {
    const int64_t n = std::min(most, product.n - j);
    if (product.direct()) {
      multiply_cols(product, with_a, with_b, j, n);
    } else {
      multiply_cols_apart(product, with_a, with_b, j, n);
    }
  }
}

template void multiply_blocks(const Product<float>&);
template void multiply_blocks(const Product<double>&);

}  // namespace rushlight
