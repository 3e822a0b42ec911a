#include <algorithm>
#include <cstddef>

#include "kernels/gemm_slab.h"
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
  return std::clamp<int64_t>(second_level_cache_bytes() / 2, kLeast, tiled ? kMostTiled : kMost);
}

// The limits on slabs bound the memory for packed copies.
constexpr int64_t kSlabElements = 2 << 20;

// Where B stays packed for all of A, a packed copy of A should not leave the caches before its use.
constexpr int64_t kNearElements = 512 << 10;
// Rows of A for which tiles of B are not worth keeping beyond the second-level cache.
constexpr int64_t kFewRows = 512;

// Depth of a slab, whole blocks of depth. `direct` where sums stay in C.
template <typename T>
int64_t slab_depth(const Product<T>& product, bool direct) {
  constexpr int64_t kNear = 1152;
  constexpr int64_t kFar = 4096;
  const int64_t block = format_of(product, product.tiles != nullptr).depth;
  return std::min(product.k, (direct ? kNear : kFar) / block * block);
}

// Multiplications that are worth a task of their own (about 5 us).
constexpr int64_t kTaskWork = 1 << 18;

const PerThread<Scratch> c_scratch;
const PerThread<Scratch> task_scratch;

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

// All columns of some rows, which the task packs for itself, a block of depth at a time.
template <typename T>
void multiply_own_rows(const Product<T>& product, const Slab<T>& slab, int64_t i, int64_t rows) {
  const Format& format = slab.format;
  const int64_t padded_n = round_up(slab.n, format.col_panel);
  Slab<T> own = slab;
  own.row = slab.row + i;
  own.m = rows;
  if (slab.sums != nullptr) {
    own.sums = slab.sums + i * slab.n;
  }
  for (int64_t start = 0; start < slab.k; start += format.depth) {
    own.depth_start = slab.depth_start + start;
    own.k = std::min(format.depth, slab.k - start);
    own.first = slab.first && start == 0;
    own.last = slab.last && start + own.k == slab.k;
    own.b = slab.b + start * padded_n * format.bytes;
    pack_rows(product, &own);
    multiply_task(product, own, 0, 0, rows, slab.n);
  }
}

// How a slab is cut into tasks: `down` ranges of rows by `across` ranges of columns, which differ
// by one step at most.
struct Grid {
  int64_t down;
  int64_t across;
  int64_t row_step;
  int64_t col_step;
};

// The items before range `index` of the `count` ranges that `items` are cut into.
int64_t range_start(int64_t items, int64_t step, int64_t count, int64_t index) {
  return std::min(items, ceil_div(items, step) * index / count * step);
}

// Columns that are finished at a time, while a block of so many rows is near. What finishes them
// may read other matrices, from far away: the more of a row at a time, the sooner the hardware sees
// it coming (a gradient of gelu took 1.4 times as long by 256 columns as by 1024).
int64_t finished_cols(int64_t rows) {
  constexpr int64_t kElements = 192 << 10;
  return std::clamp<int64_t>(kElements / rows, 256, 1024);
}

// The largest tasks that fit the caches and still make enough for all threads, in a number that
// they can share evenly. Columns are what threads share first: then both halves of a block of rows
// run at the same time, and no thread waits long for the last one.
template <typename T>
Grid cut(const Product<T>& product, const Slab<T>& slab, double work) {
  // Two panels of tiles make a square of them, which uses what it loads twice.
  const int64_t row_step = slab.format.row_panel * (slab.tiled ? 2 : 1);
  const int64_t col_step = slab.format.col_panel * (slab.tiled ? 2 : 1);
  const int64_t depth = std::min(slab.k, slab.format.depth);
  const int64_t cache_rows = block_bytes(slab.tiled) / (depth * slab.format.bytes);
  int64_t down = ceil_div(slab.m, cache_rows);
  const bool whole = product.direct() && product.done == nullptr;
  const int64_t finished = finished_cols(std::min(cache_rows, slab.m));
  int64_t across = whole ? 1 : ceil_div(slab.n, finished);
  // Narrower tasks would read A too often.
  const int64_t wide_tasks = slab.n / (whole ? 4 * col_step : finished);
  const auto useful = static_cast<int64_t>(std::min(work / static_cast<double>(kTaskWork), 1e6));
  const int64_t threads = std::min<int64_t>(num_threads(), useful);
  if (threads > 1) {
    const int64_t wanted = std::min(useful, 4 * threads);
    across = std::max(across, std::min(ceil_div(wanted, down), wide_tasks));
    if (round_up(across, threads) <= wide_tasks) {
      across = round_up(across, threads);
    }
    down = std::max(down, std::min(ceil_div(wanted, across), slab.m / (4 * row_step)));
    across = std::max(across, std::min(ceil_div(wanted, down), slab.n / col_step));
    if (down * across % threads != 0 && across % threads != 0) {
      down = round_up(down, threads);
    }
  }
  if (slab.own_a) {
    down = std::max(down, std::min(4 * threads, slab.m / (4 * row_step)));
    across = 1;
  }
  down = std::min(down, ceil_div(slab.m, row_step));
  across = std::min(across, ceil_div(slab.n, col_step));
  return {down, across, row_step, col_step};
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
      const int64_t down = task / grid.across;
      const int64_t across = task % grid.across;
      const int64_t i = range_start(slab.m, grid.row_step, grid.down, down);
      const int64_t j = range_start(slab.n, grid.col_step, grid.across, across);
      const int64_t rows = range_start(slab.m, grid.row_step, grid.down, down + 1) - i;
      const int64_t cols = range_start(slab.n, grid.col_step, grid.across, across + 1) - j;
      if (slab.own_a) {
        multiply_own_rows(product, slab, i, rows);
      } else {
        multiply_task(product, slab, i, j, rows, cols);
      }
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
  const int64_t depth = slab_depth(product, true);
  const bool own_a = with_a && packs_own_a(product);
  const int64_t m = with_a && !own_a ? slab_rows(product, kNearElements, depth) : product.m;
  Slab<T> slab = {};
  slab.own_a = own_a;
  slab.col = col;
  slab.n = n;
  for (int64_t p = 0; p < product.k; p += depth) {
    slab.take_depth(p, depth, product.k);
    for (int64_t i = 0; i < product.m; i += m) {
      slab.row = i;
      slab.m = std::min(m, product.m - i);
      pack_slab(product, with_a && !own_a, with_b && i == 0, &slab);
      multiply_slab(product, slab);
    }
  }
}

// The same with sums of a slab at a time in a buffer.
template <typename T>
void multiply_cols_apart(const Product<T>& product, bool with_a, bool with_b, int64_t col,
                         int64_t n) {
  const int64_t depth = slab_depth(product, false);
  const bool own_a = with_a && packs_own_a(product);
  const int64_t m = with_a ? slab_rows(product, kSlabElements, depth) : product.m;
  Slab<T> slab = {};
  slab.own_a = own_a;
  slab.col = col;
  slab.n = n;
  for (int64_t i = 0; i < product.m; i += m) {
    slab.row = i;
    slab.m = std::min(m, product.m - i);
    if (product.k > depth) {
      slab.sums = c_scratch->get<T>(slab.m * slab.n);
    }
    for (int64_t p = 0; p < product.k; p += depth) {
      slab.take_depth(p, depth, product.k);
      const bool b_stays = slab.b != nullptr && product.k == depth && i > 0;
      pack_slab(product, with_a && !own_a, with_b && !b_stays, &slab);
      multiply_slab(product, slab);
    }
  }
}

// Few rows by tiles, where sums stay in C: A is packed once for all columns, and tiles of B, which
// few rows use, stay in the second-level caches. Whether a slab may be tiles at all is found for
// all of it, so its size must not depend on the number of threads.
template <typename T>
void multiply_few_rows(const Product<T>& product) {
  constexpr int64_t n = 256;
  const int64_t depth = slab_depth(product, true);
  Slab<T> slab = {};
  slab.m = product.m;
  for (int64_t p = 0; p < product.k; p += depth) {
    slab.take_depth(p, depth, product.k);
    for (int64_t j = 0; j < product.n; j += n) {
      slab.col = j;
      slab.n = std::min(n, product.n - j);
      pack_slab(product, j == 0, true, &slab);
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
  const int64_t depth = slab_depth(product, product.direct());
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
