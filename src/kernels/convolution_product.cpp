#include <algorithm>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::convolutions {
namespace {

// Panels whose windows are packed together: the factors are read once for all of them.
constexpr int64_t kPanels = 8;
// Rows of factors that stay in the second-level cache meanwhile, in bytes.
constexpr int64_t kFactorBytes = 144 << 10;
// Multiplications that are worth a task of their own (about 5 us).
constexpr int64_t kTaskWork = 1 << 18;

const PerThread<Scratch> planes_scratch;
const PerThread<Scratch> dense_scratch;
const PerThread<Scratch> factors_scratch;
const PerThread<Scratch> windows_scratch;
const PerThread<Scratch> sums_scratch;
const PerThread<Scratch> turned_scratch;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Columns of a task that are neighbours in the result.
struct Run {
  int64_t at;
  int64_t source;
  int64_t target;
  int64_t length;
};

// One grid of a product, over some images.
template <typename T>
struct Part {
  const WindowProduct& product;
  const Grid& grid;
  const GemmEngine<T>& engine;
  const ConvolutionEngine<T>& tools;
  Planes<T> planes;
  int64_t first_image;
  int64_t depth;                     // in * taps
  const T* factors;                  // [group][depth block][panel][depth][rows]
  const std::vector<int64_t>& rows;  // where windows lie, by depth
  int64_t most;                      // of rows

  int64_t padded_out() const { return ceil_div(product.out, engine.rows) * engine.rows; }
};

// The runs of columns [first, first + columns), counted through all images.
template <typename T>
void find_runs(const Part<T>& part, int64_t group, int64_t first, int64_t columns,
               std::vector<Run>* runs) {
  runs->clear();
  const Grid& grid = part.grid;
  const Extent& size = grid.size;
  const auto& strides = part.product.result.strides;
  const int64_t positions = count(size);
  for (int64_t at = 0; at < columns;) {
    const int64_t image = (first + at) / positions;
    const int64_t position = (first + at) % positions;
    const Extent g{position / (size[1] * size[2]), position / size[2] % size[1],
                   position % size[2]};
    Run run;
    run.at = at;
    run.length = std::min(size[2] - g[2], columns - at);
    run.source = image * part.planes.image + group * part.product.in * part.planes.channel +
                 part.product.windows.at(g);
    run.target = (part.first_image + image) * strides[0] + group * part.product.out * strides[1];
    for (size_t d = 0; d < 3; ++d) {
      run.target += (grid.first[d] + g[d] * grid.step[d]) * strides[d + 2];
    }
    runs->push_back(run);
    at += run.length;
  }
}

// Elements from one packed panel to the next: a row more than it has, for what is written beyond
// its end. It also keeps panels from falling into the same sets of the caches.
template <typename T>
int64_t panel_distance(const Part<T>& part, int64_t depth) {
  return (depth + 1) * part.engine.cols;
}

// Where the runs go in packed panels. Returns whether whole panels may be read from each.
template <typename T>
bool place_runs(const Part<T>& part, const std::vector<Run>& runs, int64_t depth,
                std::vector<WindowRun>* made) {
  const int64_t panel = part.engine.cols;
  bool inside = true;
  made->clear();
  for (const Run& run : runs) {
    for (int64_t done = 0; done < run.length;) {
      const int64_t at = run.at + done;
      const int64_t length = std::min(run.length - done, panel - at % panel);
      made->push_back(
          {at / panel * panel_distance(part, depth) + at % panel, run.source + done, length});
      inside = inside && run.source + done + part.most + panel <= part.planes.readable;
      done += length;
    }
  }
  return inside;
}

// Windows of the runs for `depth` rows from `start` on, in panels. A row of all panels is packed
// before the next: they are neighbours in the source.
template <typename T>
void pack_columns(const Part<T>& part, const std::vector<Run>& runs, int64_t start, int64_t depth,
                  T* out) {
  static const PerThread<std::vector<WindowRun>> own_places;
  std::vector<WindowRun>& places = *own_places;
  const int64_t* rows = part.rows.data() + start;
  if (place_runs(part, runs, depth, &places)) {
    part.tools.pack(part.planes.data, rows, depth, places.data(),
                    static_cast<int64_t>(places.size()), out);
    return;
  }
  for (int64_t p = 0; p < depth; ++p) {
    for (const WindowRun& run : places) {
      const T* from = part.planes.data + run.source + rows[p];
      std::copy(from, from + run.length, out + p * part.engine.cols + run.at);
    }
  }
}

// Adds the bias and stores `columns` columns of all rows of a group.
template <typename T>
void store_columns(const Part<T>& part, const std::vector<Run>& runs, int64_t group, int64_t stride,
                   T* sums) {
  const WindowProduct& product = part.product;
  const GemmEngine<T>& engine = part.engine;
  const int64_t item = element_size(product.dtype);
  auto* result = static_cast<char*>(product.result.data);
  const int64_t step = product.result.strides[4] * part.grid.step[2];
  const int64_t columns = runs.back().at + runs.back().length;
  if (product.bias != nullptr) {
    const auto* bias = static_cast<const char*>(product.bias) + group * product.out * item;
    for (int64_t row = 0; row < product.out; ++row) {
      T value;
      engine.load_row(product.dtype, bias + row * item, 1, 1, &value);
      T* to = sums + row * stride;
      for (int64_t i = 0; i < columns; ++i) {
        to[i] += value;
      }
    }
  }
  if (product.result.strides[1] == 1 && product.out > 1 && step != 1) {  // channels are adjacent
    T* turned = turned_scratch->get<T>(columns * product.out + kPlaneSlack);
    engine.pack(kComputeDType<T>, sums, stride, 1, product.out, columns, product.out, turned);
    for (const Run& run : runs) {
      for (int64_t i = 0; i < run.length; ++i) {
        engine.store_row(product.dtype, turned + (run.at + i) * product.out, product.out,
                         result + (run.target + i * step) * item, 1);
      }
    }
    return;
  }
  for (int64_t row = 0; row < product.out; ++row) {
    char* to = result + row * product.result.strides[1] * item;
    for (const Run& run : runs) {
      engine.store_row(product.dtype, sums + row * stride + run.at, run.length,
                       to + run.target * item, step);
    }
  }
}

template <typename T>
void multiply_columns(const Part<T>& part, int64_t group, int64_t first, int64_t columns) {
  const int64_t panel = part.engine.cols;
  const int64_t panels = ceil_div(columns, panel);
  const int64_t stride = panels * panel;
  const int64_t out = part.product.out;
  const int64_t most = std::min(part.depth, kGemmDepth);
  static const PerThread<std::vector<Run>> own_runs;
  std::vector<Run>& runs = *own_runs;
  find_runs(part, group, first, columns, &runs);
  T* windows = windows_scratch->get<T>(panels * panel_distance(part, most) + panel);
  T* sums = sums_scratch->get<T>(out * stride);
  const int64_t padded = part.padded_out();
  const int64_t chunk = std::max<int64_t>(
      part.engine.rows, kFactorBytes / (kGemmDepth * static_cast<int64_t>(sizeof(T))) /
                            part.engine.rows * part.engine.rows);
  const T* factors = part.factors + group * padded * part.depth;
  for (int64_t start = 0; start < part.depth; start += kGemmDepth) {
    const int64_t depth = std::min(kGemmDepth, part.depth - start);
    pack_columns(part, runs, start, depth, windows);
    const int64_t distance = panel_distance(part, depth);
    for (int64_t row = 0; row < out; row += chunk) {
      for (int64_t i = 0; i < panels; ++i) {
        part.engine.block(std::min(chunk, out - row), std::min(panel, columns - i * panel), depth,
                          factors + start * padded + row * depth, windows + i * distance, T{1},
                          start == 0 ? T{0} : T{1}, sums + row * stride + i * panel, stride);
      }
    }
  }
  store_columns(part, runs, group, stride, sums);
}

// How many panels a task has.
int64_t panels_together(int64_t panels, int64_t work) {
  int64_t most = kPanels;
  while (most > 1 && ceil_div(panels, most) < 4 * num_threads() && work * (most / 2) >= kTaskWork) {
    most /= 2;
  }
  return most;
}

template <typename T>
void multiply_part(const Part<T>& part, int64_t images) {
  const WindowProduct& product = part.product;
  const int64_t panel = part.engine.cols;
  const int64_t columns = images * count(part.grid.size);
  const int64_t work = product.out * part.depth * panel;
  const int64_t wide = panel * panels_together(product.groups * ceil_div(columns, panel), work);
  const int64_t across = ceil_div(columns, wide);
  const int64_t grain = std::max<int64_t>(1, kTaskWork / (work * (wide / panel) + 1));
  parallel_for(0, product.groups * across, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % across * wide;
      multiply_columns(part, i / across, first, std::min(wide, columns - first));
    }
  });
}

// The factors of a grid, packed for the engine.
template <typename T>
void pack_factors(const WindowProduct& product, const Grid& grid, int64_t depth, T* out) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const int64_t padded = ceil_div(product.out, engine.rows) * engine.rows;
  T* dense = dense_scratch->get<T>(product.out * depth);
  for (int64_t group = 0; group < product.groups; ++group) {
    gather_factors(product, grid, group, dense);
    T* to = out + group * padded * depth;
    const int64_t panels = padded / engine.rows;
    const int64_t blocks = ceil_div(depth, kGemmDepth);
    parallel_for(0, blocks * panels, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / panels * kGemmDepth;
        const int64_t row = i % panels * engine.rows;
        const int64_t steps = std::min(kGemmDepth, depth - start);
        engine.pack(kComputeDType<T>, dense + row * depth + start, depth, 1,
                    std::min<int64_t>(engine.rows, product.out - row), steps, engine.rows,
                    to + start * padded + row * steps);
      }
    });
  }
}

}  // namespace

template <typename T>
void multiply_windows(const WindowProduct& product) {
  const Windows& windows = product.windows;
  const GemmEngine<T>& engine = gemm_engine<T>();
  const int64_t padded = ceil_div(product.out, engine.rows) * engine.rows;
  const int64_t channels = product.groups * product.in;
  const int64_t together = images_together(product.batch, channels * windows.channel());
  for (int64_t image = 0; image < product.batch; image += together) {
    const int64_t images = std::min(together, product.batch - image);
    const Planes<T> planes = prepare<T>(windows, product.dtype, product.source, image, images,
                                        channels, *planes_scratch);
    for (const Grid& grid : windows.grids) {
      const int64_t depth = product.in * static_cast<int64_t>(grid.taps.size());
      T* factors = factors_scratch->get<T>(product.groups * padded * depth);
      if (image == 0 || windows.grids.size() > 1) {
        pack_factors(product, grid, depth, factors);
      }
      const std::vector<int64_t> rows = window_rows(grid, product.in, planes.channel);
      const int64_t most = *std::max_element(rows.begin(), rows.end());
      const Part<T> part{product, grid, engine, convolution_engine<T>(), planes, image, depth,
                         factors, rows, most};
      multiply_part(part, images);
    }
  }
}

template void multiply_windows<float>(const WindowProduct&);
template void multiply_windows<double>(const WindowProduct&);

}  // namespace rushlight::convolutions
