// Convolutions of images whose channels lie side by side: pixels are the rows of the product, read
// where they lie, and results its columns, so that the factors alone are packed.
#include <algorithm>
#include <cstring>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::convolutions {
namespace {

// Multiplications that are worth a task of their own (about 5 us).
constexpr int64_t kTaskWork = 1 << 18;
// Pixels of a task: a panel of factors is read once for all of them, their sums stay near.
constexpr int64_t kPixels = 224;
// Factors of a panel that stay in the first-level cache.
constexpr int64_t kNearBytes = 16 << 10;
// Channels whose factors are packed together.
constexpr int64_t kPackedChannels = 64;

const PerThread<Scratch> pixels_scratch;
const PerThread<Scratch> row_scratch;
const PerThread<Scratch> factors_scratch;
const PerThread<Scratch> grid_scratch;
const PerThread<Scratch> part_scratch;
const PerThread<Scratch> sums_scratch;
const PerThread<Scratch> turned_scratch;
const PerThread<Scratch> bias_scratch;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

template <typename T>
struct Pixels {
  const T* data;
  int64_t image;  // distances
  int64_t pitch;
};

// An odd number of cache lines, so that neighbours do not fall into the same sets.
template <typename T>
int64_t pitch_of(int64_t channels) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  return channels < kLine ? channels : (ceil_div(channels, kLine) | 1) * kLine;
}

// Whether pixels are those of the source, far enough from falling into the same sets.
bool lies_ready(const Windows& windows, DType dtype, DType compute, const ImagesRef& source) {
  const auto& strides = source.strides;
  return dtype == compute && windows.planes() == 1 && windows.size == windows.source &&
         windows.step == Extent{1, 1, 1} && windows.starts[0][0] == 0 &&
         windows.starts[1][0] == 0 && windows.starts[2][0] == 0 && strides[1] == 1 &&
         strides[4] > 0 && strides[4] * element_size(dtype) % 4096 != 0 &&
         (strides[3] == windows.size[2] * strides[4] || windows.size[1] == 1) &&
         (strides[2] == windows.size[1] * strides[3] || windows.size[0] == 1) && strides[0] >= 0;
}

template <typename T>
Pixels<T> lay_out(const WindowProduct& product, int64_t first, int64_t images) {
  const Windows& windows = product.windows;
  if (lies_ready(windows, product.dtype, kComputeDType<T>, product.source)) {
    const auto& strides = product.source.strides;
    return {static_cast<const T*>(product.source.data) + first * strides[0], strides[0],
            strides[4]};
  }
  const int64_t channels = product.groups * product.in;
  const int64_t pitch = pitch_of<T>(channels);
  const int64_t size = windows.channel() * pitch;
  const int64_t rows = plane_rows(windows);
  const Borders borders = borders_of(windows);
  T* out = pixels_scratch->get<T>(images * size + kPlaneSlack);
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / (windows.size[2] * pitch));
  parallel_for(0, images * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      prepare_pixels(windows, borders, product.dtype, product.source, first + i / rows, 0, channels,
                     pitch, i % rows, out + i / rows * size);
    }
  });
  return {out, size, pitch};
}

// Where a tap's factor lies.
int64_t tap_place(const WindowProduct& product, int64_t tap) {
  const Extent& kernel = product.kernel;
  return tap / (kernel[1] * kernel[2]) * product.weight.tap[0] +
         tap / kernel[2] % kernel[1] * product.weight.tap[1] +
         tap % kernel[2] * product.weight.tap[2];
}

// The factors of all taps for the results [first, first + items) of a group and some channels, in
// one panel: (channel, tap, result).
template <typename T>
void pack_panel(const WindowProduct& product, const char* data, int64_t items, int64_t channels,
                int64_t panel, T* out) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const Factors& weight = product.weight;
  const int64_t taps = count(product.kernel);
  const int64_t item = element_size(product.dtype);
  bool dense = true;
  for (int64_t t = 0; t < taps; ++t) {
    dense = dense && tap_place(product, t) == t;
  }
  if (dense && weight.channel == taps) {
    engine.pack(product.dtype, data, weight.row, 1, items, channels * taps, panel, out);
  } else if (dense && taps > 1) {
    for (int64_t c = 0; c < channels; ++c) {
      engine.pack(product.dtype, data + c * weight.channel * item, weight.row, 1, items, taps,
                  panel, out + c * taps * panel);
    }
  } else {
    T* part = part_scratch->get<T>(channels * panel + kPlaneSlack);
    for (int64_t t = 0; t < taps; ++t) {
      engine.pack(product.dtype, data + tap_place(product, t) * item, weight.row, weight.channel,
                  items, channels, panel, part);
      for (int64_t c = 0; c < channels; ++c) {
        std::memcpy(out + (c * taps + t) * panel, part + c * panel,
                    static_cast<size_t>(panel) * sizeof(T));
      }
    }
  }
}

// The factors of all groups: (group, panel, channel, tap, result).
template <typename T>
const T* pack_all(const WindowProduct& product) {
  const int64_t panel = gemm_engine<T>().cols;
  const int64_t panels = ceil_div(product.out, panel);
  const int64_t taps = count(product.kernel);
  const int64_t parts = ceil_div(product.in, kPackedChannels);
  const int64_t item = element_size(product.dtype);
  const Factors& weight = product.weight;
  T* out =
      factors_scratch->get<T>(product.groups * panels * panel * product.in * taps + kPlaneSlack);
  const int64_t work = panel * std::min(product.in, kPackedChannels) * taps;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / work);
  parallel_for(0, product.groups * panels * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % parts * kPackedChannels;
      const int64_t row = i / parts % panels * panel;
      const int64_t at =
          i / parts / panels * weight.group + row * weight.row + first * weight.channel;
      pack_panel(product, static_cast<const char*>(weight.data) + at * item,
                 std::min(panel, product.out - row), std::min(kPackedChannels, product.in - first),
                 panel, out + (i / parts * product.in + first) * taps * panel);
    }
  });
  return out;
}

// Those of the taps of a grid.
template <typename T>
const T* of_grid(const WindowProduct& product, const Grid& grid, const T* all) {
  const int64_t panel = gemm_engine<T>().cols;
  const int64_t taps = count(product.kernel);
  const auto own = static_cast<int64_t>(grid.taps.size());
  if (own == taps) {
    return all;
  }
  const int64_t channels = product.groups * ceil_div(product.out, panel) * product.in;
  T* out = grid_scratch->get<T>(channels * own * panel);
  parallel_for(0, channels, 256, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t t = 0; t < own; ++t) {
        std::memcpy(out + (c * own + t) * panel,
                    all + (c * taps + grid.taps[static_cast<size_t>(t)]) * panel,
                    static_cast<size_t>(panel) * sizeof(T));
      }
    }
  });
  return out;
}

// The steps of depth of a row of results: without taps whose rows lie in the border.
struct RowSteps {
  std::vector<PixelStep> steps;
  std::vector<int64_t> starts;  // of each stretch of depth that is taken at a time, and the end
};

// What the rows of a grid see.
struct Seen {
  std::vector<size_t> kinds;  // by row of a grid, an index into:
  std::vector<RowSteps> rows;
};

// Depth whose factors are taken at a time: they stay in the first-level cache while all pixels
// pass them. No stretch goes beyond a block of depth.
int64_t stretch_of(int64_t panel_bytes) {
  return std::min(kGemmDepth, kNearBytes / panel_bytes);
}

// Which taps of a grid see the source from row (z, y) of the planes.
std::vector<bool> taps_inside(const Windows& windows, const Borders& borders, const Grid& grid,
                              int64_t z, int64_t y) {
  const auto heights = static_cast<int64_t>(windows.starts[1].size());
  const auto widths = static_cast<int64_t>(windows.starts[2].size());
  const auto within = [&](size_t d, int64_t start, int64_t at) {
    const Inside& seen = borders[d][static_cast<size_t>(start)];
    return at >= seen.first && at < seen.last;
  };
  std::vector<bool> made;
  for (int64_t offset : grid.offsets) {
    const int64_t plane = offset / windows.plane() / widths;
    const int64_t row = offset % windows.plane() / windows.size[2];
    made.push_back(within(0, plane / heights, z + row / windows.size[1]) &&
                   within(1, plane % heights, y + row % windows.size[1]));
  }
  return made;
}

RowSteps steps_of(const WindowProduct& product, const Grid& grid, const std::vector<bool>& taken,
                  int64_t pitch, int64_t panel, int64_t stretch) {
  const auto taps = static_cast<int64_t>(grid.taps.size());
  const int64_t depth = product.in * taps;
  RowSteps made;
  int64_t next = 0;
  for (int64_t p = 0; p < depth; ++p) {
    if (p == next) {
      made.starts.push_back(static_cast<int64_t>(made.steps.size()));
      next = std::min(p + stretch, (p / kGemmDepth + 1) * kGemmDepth);
    }
    const auto tap = static_cast<size_t>(p % taps);
    if (taken[tap]) {
      made.steps.push_back({grid.offsets[tap] * pitch + p / taps, p * panel});
    }
  }
  made.starts.push_back(static_cast<int64_t>(made.steps.size()));
  return made;
}

Seen seen_by(const WindowProduct& product, const Grid& grid, int64_t pitch, int64_t panel,
             int64_t stretch) {
  Seen made;
  const Borders borders = borders_of(product.windows);
  std::vector<std::vector<bool>> masks;
  for (int64_t z = 0; z < grid.size[0]; ++z) {
    for (int64_t y = 0; y < grid.size[1]; ++y) {
      const std::vector<bool> mask =
          taps_inside(product.windows, borders, grid, z * product.windows.apart[0],
                      y * product.windows.apart[1]);
      const auto found = std::find(masks.begin(), masks.end(), mask);
      made.kinds.push_back(static_cast<size_t>(found - masks.begin()));
      if (found == masks.end()) {
        masks.push_back(mask);
        made.rows.push_back(steps_of(product, grid, mask, pitch, panel, stretch));
      }
    }
  }
  return made;
}

// One grid of a product, over some images. Its rows are counted through all of them.
template <typename T>
struct Part {
  const WindowProduct& product;
  const Grid& grid;
  const GemmEngine<T>& engine;
  const ConvolutionEngine<T>& tools;
  Pixels<T> pixels;
  int64_t first_image;
  const T* factors;  // of the grid
  const T* bias;     // of all results, or null
  Seen seen;

  int64_t depth() const { return product.in * static_cast<int64_t>(grid.taps.size()); }
  int64_t panels() const { return ceil_div(product.out, engine.cols); }
};

// A run of pixels at equal distances, of a row of a grid, and their results.
struct PixelRun {
  int64_t at;
  int64_t length;
  int64_t source;
  int64_t target;
  const RowSteps* seen;
};

// Rows are cut into pieces of at most kPixels, all but the last of one length.
int64_t pieces_of(const Extent& size) {
  return ceil_div(size[2], kPixels);
}
int64_t piece_length(const Extent& size) {
  return ceil_div(size[2], pieces_of(size));
}

// The pieces [first, first + number), counted through all images.
template <typename T>
std::vector<PixelRun> runs_of(const Part<T>& part, int64_t first, int64_t number) {
  const auto& strides = part.product.result.strides;
  const Extent& size = part.grid.size;
  const int64_t length = piece_length(size);
  std::vector<PixelRun> runs;
  int64_t at = 0;
  for (int64_t i = first; i < first + number; ++i) {
    const int64_t row = i / pieces_of(size);
    const Extent g{row / size[1] % size[0], row % size[1], i % pieces_of(size) * length};
    const int64_t image = row / (size[0] * size[1]);
    const auto kind = static_cast<size_t>(row % (size[0] * size[1]));
    PixelRun run{at, std::min(length, size[2] - g[2]), 0, 0,
                 &part.seen.rows[part.seen.kinds[kind]]};
    const Windows& windows = part.product.windows;
    const Extent at_pixel{g[0] * windows.apart[0], g[1] * windows.apart[1],
                          g[2] * windows.apart[2]};
    run.source = image * part.pixels.image + windows.at(at_pixel) * part.pixels.pitch;
    run.target = (part.first_image + image) * strides[0];
    for (size_t d = 0; d < 3; ++d) {
      run.target += (part.grid.first[d] + g[d] * part.grid.step[d]) * strides[d + 2];
    }
    at += run.length;
    runs.push_back(run);
  }
  return runs;
}

// Runs whose results are neighbours, as one.
template <typename T>
std::vector<PixelRun> joined(const Part<T>& part, const std::vector<PixelRun>& runs) {
  const int64_t step = part.product.result.strides[4] * part.grid.step[2];
  std::vector<PixelRun> made;
  for (const PixelRun& run : runs) {
    if (!made.empty() && made.back().target + made.back().length * step == run.target) {
      made.back().length += run.length;
    } else {
      made.push_back(run);
    }
  }
  return made;
}

// Stores `n` results of a panel at the pixels of some runs.
template <typename T>
void store_panel(const Part<T>& part, const std::vector<PixelRun>& runs, int64_t channel, int64_t n,
                 T* sums) {
  const WindowProduct& product = part.product;
  const int64_t panel = part.engine.cols;
  const int64_t item = element_size(product.dtype);
  const int64_t apart = product.result.strides[1];
  const int64_t step = product.result.strides[4] * part.grid.step[2];
  auto* result = static_cast<char*>(product.result.data) + channel * apart * item;
  const T* bias = part.bias == nullptr ? nullptr : part.bias + channel;
  for (const PixelRun& run : runs) {
    T* from = sums + run.at * panel;
    if (apart == 1 && step != 1) {
      const bool plain = product.dtype == kComputeDType<T>;
      for (int64_t i = 0; i < run.length; ++i) {
        if (bias != nullptr) {
          part.engine.add_row(bias, T{1}, n, from + i * panel);
        }
        char* to = result + (run.target + i * step) * item;
        if (plain) {
          std::memcpy(to, from + i * panel, static_cast<size_t>(n) * sizeof(T));
        } else {
          part.engine.store_row(product.dtype, from + i * panel, n, to, 1);
        }
      }
      continue;
    }
    T* turned = turned_scratch->get<T>(n * run.length + kPlaneSlack);
    part.engine.pack(kComputeDType<T>, from, panel, 1, run.length, n, run.length, turned);
    for (int64_t c = 0; c < n; ++c) {
      T* row = turned + c * run.length;
      for (int64_t i = 0; bias != nullptr && i < run.length; ++i) {
        row[i] += bias[c];
      }
      part.engine.store_row(product.dtype, row, run.length,
                            result + (run.target + c * apart) * item, step);
    }
  }
}

// Pieces [first, first + number) of the results of some panels of a group.
template <typename T>
void multiply_pieces(const Part<T>& part, int64_t group, int64_t first, int64_t number,
                     int64_t first_panel, int64_t last_panel) {
  const WindowProduct& product = part.product;
  const int64_t panel = part.engine.cols;
  const int64_t depth = part.depth();
  const std::vector<PixelRun> runs = runs_of(part, first, number);
  const std::vector<PixelRun> stored = joined(part, runs);
  const T* pixels = part.pixels.data + group * product.in;
  const int64_t size = (runs.back().at + runs.back().length) * panel;
  T* sums = sums_scratch->get<T>(2 * size);
  const int64_t stretch = stretch_of(panel * static_cast<int64_t>(sizeof(T)));
  for (int64_t p = first_panel; p < last_panel; ++p) {
    const int64_t n = std::min(panel, product.out - p * panel);
    const T* factors = part.factors + (group * part.panels() + p) * depth * panel;
    for (int64_t start = 0, piece = 0; start < depth; start += kGemmDepth) {
      // Chains of a block of depth are added to those before when they are complete.
      T* chains = start == 0 ? sums : sums + size;
      const int64_t end = std::min(start + kGemmDepth, depth);
      for (int64_t at = start; at < end; at += stretch, ++piece) {
        for (const PixelRun& run : runs) {
          const auto first_step = run.seen->starts[static_cast<size_t>(piece)];
          const auto last_step = run.seen->starts[static_cast<size_t>(piece) + 1];
          part.tools.pixels(run.length, n, last_step - first_step, pixels + run.source,
                            part.pixels.pitch * product.windows.apart[2],
                            run.seen->steps.data() + first_step, factors, chains + run.at * panel,
                            at == start);
        }
      }
      if (start != 0) {
        part.engine.add_row(chains, T{1}, size, sums);
      }
    }
    store_panel(part, stored, group * product.out + p * panel, n, sums);
  }
}

template <typename T>
void multiply_part(const Part<T>& part, int64_t images) {
  const Extent& size = part.grid.size;
  const int64_t all = images * size[0] * size[1] * pieces_of(size);
  const int64_t wanted = 4 * static_cast<int64_t>(num_threads());
  const int64_t piece_work = piece_length(size) * part.depth() * part.engine.cols;
  const int64_t panels = part.panels();
  const int64_t groups = part.product.groups;
  int64_t pieces = std::clamp<int64_t>(kPixels / piece_length(size), 1, all);
  int64_t split = 1;  // of the panels
  const auto tasks = [&] { return groups * ceil_div(all, pieces) * split; };
  const auto work = [&] { return pieces * piece_work * ceil_div(panels, split); };
  while (split < panels && tasks() < wanted && work() >= 2 * kTaskWork) {
    ++split;
  }
  while (pieces > 1 && tasks() < wanted && work() >= 2 * kTaskWork) {
    pieces = ceil_div(pieces, 2);
  }
  const int64_t bands = ceil_div(all, pieces);
  const int64_t grain = std::max<int64_t>(1, kTaskWork / (work() + 1));
  parallel_for(0, tasks(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / split % bands * pieces;
      const int64_t at = i % split;
      multiply_pieces(part, i / split / bands, first, std::min(pieces, all - first),
                      at * panels / split, (at + 1) * panels / split);
    }
  });
}

}  // namespace

int64_t plane_rows(const Windows& windows) {
  return static_cast<int64_t>(windows.starts[0].size() * windows.starts[1].size()) *
         windows.size[0] * windows.size[1];
}

template <typename T>
void prepare_pixels(const Windows& windows, const Borders& borders, DType dtype,
                    const ImagesRef& source, int64_t image, int64_t first, int64_t channels,
                    int64_t pitch, int64_t row, T* out) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const auto heights = static_cast<int64_t>(windows.starts[1].size());
  const auto widths = static_cast<int64_t>(windows.starts[2].size());
  const int64_t y = row % windows.size[1];
  const int64_t z = row / windows.size[1] % windows.size[0];
  const int64_t plane = row / (windows.size[1] * windows.size[0]);
  const auto high_at = static_cast<size_t>(plane % heights);
  const auto deep_at = static_cast<size_t>(plane / heights);
  const int64_t y_start = windows.starts[1][high_at];
  const int64_t z_start = windows.starts[0][deep_at];
  const int64_t step = windows.step[2];
  const int64_t row_size = windows.size[2] * pitch;
  const int64_t plane_size = windows.plane() * pitch;
  T* to = out + plane * widths * plane_size + (z * windows.size[1] + y) * row_size;
  const Inside& deep = borders[0][deep_at];
  const Inside& high = borders[1][high_at];
  if (z < deep.first || z >= deep.last || y < high.first || y >= high.last) {
    for (int64_t i = 0; i < widths; ++i) {
      std::fill(to + i * plane_size, to + i * plane_size + row_size, T{0});
    }
    return;
  }
  const int64_t at = image * source.strides[0] + first * source.strides[1] +
                     (z * windows.step[0] + z_start) * source.strides[2] +
                     (y * windows.step[1] + y_start) * source.strides[3];
  const char* data = static_cast<const char*>(source.data) + at * element_size(dtype);
  // Where every step-th position is wanted of a row whose positions are adjacent, it is turned
  // whole.
  const T* whole = nullptr;
  if (step != 1 && source.strides[4] == 1 && source.strides[1] != 1) {
    T* turned = row_scratch->get<T>(windows.source[2] * pitch + kPlaneSlack);
    engine.pack(dtype, data, source.strides[1], 1, channels, windows.source[2], pitch, turned);
    whole = turned;
  }
  for (size_t i = 0; i < windows.starts[2].size(); ++i) {
    const Inside& wide = borders[2][i];
    const int64_t skip = wide.first * step + windows.starts[2][i];
    std::fill(to, to + wide.first * pitch, T{0});
    if (whole != nullptr) {
      engine.pack(kComputeDType<T>, whole + skip * pitch, 1, step * pitch, pitch,
                  wide.last - wide.first, pitch, to + wide.first * pitch);
    } else {
      engine.pack(dtype, data + skip * source.strides[4] * element_size(dtype), source.strides[1],
                  source.strides[4] * step, channels, wide.last - wide.first, pitch,
                  to + wide.first * pitch);
    }
    std::fill(to + wide.last * pitch, to + row_size, T{0});
    to += plane_size;
  }
}

template <typename T>
void multiply_pixels(const WindowProduct& product) {
  const Windows& windows = product.windows;
  const int64_t channels = product.groups * product.in;
  const int64_t together =
      images_together(product.batch, pitch_of<T>(channels) * windows.channel());
  const T* all = pack_all<T>(product);
  T* bias = nullptr;
  if (product.bias != nullptr) {
    bias = bias_scratch->get<T>(product.groups * product.out);
    gemm_engine<T>().load_row(product.dtype, product.bias, 1, product.groups * product.out, bias);
  }
  for (int64_t image = 0; image < product.batch; image += together) {
    const int64_t images = std::min(together, product.batch - image);
    const Pixels<T> pixels = lay_out<T>(product, image, images);
    for (const Grid& grid : windows.grids) {
      Part<T> part{product,
                   grid,
                   gemm_engine<T>(),
                   convolution_engine<T>(),
                   pixels,
                   image,
                   of_grid(product, grid, all),
                   bias,
                   {}};
      const int64_t panel = part.engine.cols;
      part.seen = seen_by(product, grid, pixels.pitch, panel,
                          stretch_of(panel * static_cast<int64_t>(sizeof(T))));
      multiply_part(part, images);
    }
  }
}

#define RUSHLIGHT_INSTANTIATE(T)                                                           \
  template void prepare_pixels<T>(const Windows&, const Borders&, DType, const ImagesRef&, \
                                  int64_t, int64_t, int64_t, int64_t, int64_t, T*);        \
  template void multiply_pixels<T>(const WindowProduct&);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::convolutions
