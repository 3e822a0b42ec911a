#include "kernels/convolution_windows.h"

#include <algorithm>
#include <cstring>

#include "kernels/convolution_engine.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::convolutions {
namespace {

// Channels that lie side by side and are turned together.
constexpr int64_t kTogether = 16;

const PerThread<Scratch> turned_scratch;

int64_t floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}
int64_t ceil_div(int64_t a, int64_t b) {
  return -floor_div(-a, b);
}

// What one dimension contributes to a grid.
struct Seen {
  int64_t first;
  int64_t size;
  std::vector<int64_t> taps;
  std::vector<int64_t> planes;
  std::vector<int64_t> offsets;
};

Grid combine(const Windows& windows, const Extent& step, const Extent& kernel, const Seen& z,
             const Seen& y, const Seen& x) {
  Grid made;
  made.first = {z.first, y.first, x.first};
  made.size = {z.size, y.size, x.size};
  made.step = step;
  const auto heights = static_cast<int64_t>(windows.starts[1].size());
  const auto widths = static_cast<int64_t>(windows.starts[2].size());
  for (size_t i = 0; i < z.taps.size(); ++i) {
    for (size_t j = 0; j < y.taps.size(); ++j) {
      for (size_t k = 0; k < x.taps.size(); ++k) {
        const int64_t plane = (z.planes[i] * heights + y.planes[j]) * widths + x.planes[k];
        made.taps.push_back((z.taps[i] * kernel[1] + y.taps[j]) * kernel[2] + x.taps[k]);
        made.offsets.push_back(plane * windows.plane() +
                               windows.at({z.offsets[i], y.offsets[j], x.offsets[k]}));
      }
    }
  }
  return made;
}

Inside inside(const Windows& windows, size_t d, int64_t start) {
  const int64_t first = std::clamp<int64_t>(ceil_div(-start, windows.step[d]), 0, windows.size[d]);
  const int64_t last =
      std::clamp(ceil_div(windows.source[d] - start, windows.step[d]), first, windows.size[d]);
  return {first, last};
}

// Calls `row(at, place)` for each row of the planes that has elements of the source, `at` being its
// place there and in the planes for start 0 of the width; clears the others through `clear`.
template <typename Row, typename Clear>
void each_row(const Windows& windows, Row row, Clear clear) {
  const auto widths = static_cast<int64_t>(windows.starts[2].size());
  int64_t place = 0;
  for (int64_t z_start : windows.starts[0]) {
    for (int64_t y_start : windows.starts[1]) {
      const Inside deep = inside(windows, 0, z_start);
      const Inside high = inside(windows, 1, y_start);
      for (int64_t z = 0; z < windows.size[0]; ++z) {
        for (int64_t y = 0; y < windows.size[1]; ++y) {
          const int64_t to = place + (z * windows.size[1] + y) * windows.size[2];
          if (z < deep.first || z >= deep.last || y < high.first || y >= high.last) {
            clear(to);
          } else {
            row(z * windows.step[0] + z_start, y * windows.step[1] + y_start, to);
          }
        }
      }
      place += widths * windows.plane();
    }
  }
}

// The row of each plane along the width, from a row of the source.
template <typename T>
void split_row(const Windows& windows, DType dtype, const void* row, int64_t stride, T* out) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const int64_t step = windows.step[2];
  for (int64_t start : windows.starts[2]) {
    const Inside wide = inside(windows, 2, start);
    std::fill(out, out + wide.first, T{0});
    const int64_t skip = (wide.first * step + start) * stride;
    const auto* from = static_cast<const char*>(row) + skip * element_size(dtype);
    engine.load_row(dtype, from, stride * step, wide.last - wide.first, out + wide.first);
    std::fill(out + wide.last, out + windows.size[2], T{0});
    out += windows.plane();
  }
}

template <typename T>
void clear_rows(const Windows& windows, T* out) {
  for (size_t i = 0; i < windows.starts[2].size(); ++i) {
    std::fill(out, out + windows.size[2], T{0});
    out += windows.plane();
  }
}

const char* place(const ImagesRef& source, DType dtype, int64_t image, int64_t channel, int64_t z,
                  int64_t y) {
  const int64_t skip = image * source.strides[0] + channel * source.strides[1] +
                       z * source.strides[2] + y * source.strides[3];
  return static_cast<const char*>(source.data) + skip * element_size(dtype);
}

// Channels [first, first + channels), which are adjacent in memory while the width is not.
template <typename T>
void prepare_turned(const Windows& windows, DType dtype, const ImagesRef& source, int64_t image,
                    int64_t first, int64_t channels, T* out) {
  const int64_t width = windows.source[2];
  T* turned = turned_scratch->get<T>(channels * width + kPlaneSlack);
  const int64_t distance = windows.channel();
  each_row(
      windows,
      [&](int64_t z, int64_t y, int64_t to) {
        gemm_engine<T>().pack(dtype, place(source, dtype, image, first, z, y), source.strides[4], 1,
                              width, channels, width, turned);
        for (int64_t c = 0; c < channels; ++c) {
          split_row<T>(windows, kComputeDType<T>, turned + c * width, 1, out + c * distance + to);
        }
      },
      [&](int64_t to) {
        for (int64_t c = 0; c < channels; ++c) {
          clear_rows(windows, out + c * distance + to);
        }
      });
}

// Whether the source is its own only plane.
bool lies_ready(const Windows& windows, DType dtype, DType compute, const ImagesRef& source) {
  if (windows.planes() != 1 || windows.size != windows.source || dtype != compute ||
      windows.starts[0][0] != 0 || windows.starts[1][0] != 0 || windows.starts[2][0] != 0 ||
      windows.step != Extent{1, 1, 1}) {
    return false;
  }
  const Extent& size = windows.size;
  return (source.strides[4] == 1 || size[2] == 1) &&
         (source.strides[3] == size[2] || size[1] == 1) &&
         (source.strides[2] == size[1] * size[2] || size[0] == 1) && source.strides[0] >= 0 &&
         source.strides[1] >= 0;
}

}  // namespace

Borders borders_of(const Windows& windows) {
  Borders made;
  for (size_t d = 0; d < 3; ++d) {
    for (int64_t start : windows.starts[d]) {
      made[d].push_back(inside(windows, d, start));
    }
  }
  return made;
}

bool Windows::wasteful() const {
  const auto all = static_cast<double>(planes()) * static_cast<double>(size[0]) *
                   static_cast<double>(size[1]) * static_cast<double>(size[2]);
  return all > 8.0 * static_cast<double>(count(source)) + 4096.0;
}

Windows windows_of(const Convolution& problem) {
  Windows made;
  made.source = problem.input;
  made.step = problem.stride;
  made.complete = true;
  std::array<Seen, 3> seen;
  for (size_t d = 0; d < 3; ++d) {
    Seen& own = seen[d];
    own.first = 0;
    own.size = problem.output[d];
    std::vector<int64_t>& starts = made.starts[d];
    for (int64_t t = 0; t < problem.kernel[d]; ++t) {
      const int64_t distance = t * problem.dilation[d];
      const int64_t start = distance % problem.stride[d] - problem.padding[d];
      const auto found = std::find(starts.begin(), starts.end(), start);
      own.planes.push_back(found - starts.begin());
      if (found == starts.end()) {
        starts.push_back(start);
      }
      own.taps.push_back(t);
      own.offsets.push_back(distance / problem.stride[d]);
    }
    made.size[d] = problem.output[d] + own.offsets.back();
  }
  made.grids.push_back(combine(made, {1, 1, 1}, problem.kernel, seen[0], seen[1], seen[2]));
  return made;
}

Windows unsplit_windows_of(const Convolution& problem) {
  Windows made;
  made.source = problem.input;
  made.step = {1, 1, 1};
  made.complete = true;
  made.apart = problem.stride;
  std::array<Seen, 3> seen;
  for (size_t d = 0; d < 3; ++d) {
    made.starts[d] = {-problem.padding[d]};
    seen[d] = {0, problem.output[d], {}, {}, {}};
    for (int64_t t = 0; t < problem.kernel[d]; ++t) {
      seen[d].taps.push_back(t);
      seen[d].planes.push_back(0);
      seen[d].offsets.push_back(t * problem.dilation[d]);
    }
    made.size[d] = (problem.output[d] - 1) * problem.stride[d] + seen[d].offsets.back() + 1;
  }
  made.grids.push_back(combine(made, {1, 1, 1}, problem.kernel, seen[0], seen[1], seen[2]));
  return made;
}

Windows transposed_windows_of(const Convolution& problem) {
  Windows made;
  made.source = problem.output;
  made.step = {1, 1, 1};
  made.complete = true;
  std::array<std::vector<Seen>, 3> seen;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t stride = problem.stride[d];
    const int64_t least =
        floor_div(problem.padding[d] - (problem.kernel[d] - 1) * problem.dilation[d], stride);
    made.starts[d] = {least};
    made.size[d] = 1;
    int64_t visited = 0;
    std::vector<std::vector<int64_t>> by_first(
        static_cast<size_t>(std::min(stride, problem.input[d])));
    for (int64_t t = 0; t < problem.kernel[d]; ++t) {
      const int64_t distance = t * problem.dilation[d] - problem.padding[d];
      const int64_t first = distance - floor_div(distance, stride) * stride;
      if (first < static_cast<int64_t>(by_first.size())) {
        by_first[static_cast<size_t>(first)].push_back(t);
      }
    }
    for (size_t first = 0; first < by_first.size(); ++first) {
      if (by_first[first].empty()) {
        continue;
      }
      Seen own;
      own.first = static_cast<int64_t>(first);
      own.size = ceil_div(problem.input[d] - own.first, stride);
      own.taps = by_first[first];
      for (int64_t t : own.taps) {
        const int64_t at = own.first + problem.padding[d] - t * problem.dilation[d];
        own.planes.push_back(0);
        own.offsets.push_back(at / stride - least);
        made.size[d] = std::max(made.size[d], own.size + own.offsets.back());
      }
      visited += own.size;
      seen[d].push_back(std::move(own));
    }
    made.complete = made.complete && visited == problem.input[d];
  }
  for (const Seen& z : seen[0]) {
    for (const Seen& y : seen[1]) {
      for (const Seen& x : seen[2]) {
        made.grids.push_back(combine(made, problem.stride, problem.kernel, z, y, x));
      }
    }
  }
  return made;
}

template <typename T>
void prepare_channel(const Windows& windows, DType dtype, const ImagesRef& source, int64_t image,
                     int64_t channel, T* out) {
  each_row(
      windows,
      [&](int64_t z, int64_t y, int64_t to) {
        split_row<T>(windows, dtype, place(source, dtype, image, channel, z, y), source.strides[4],
                     out + to);
      },
      [&](int64_t to) { clear_rows(windows, out + to); });
}

template <typename T>
Planes<T> prepare(const Windows& windows, DType dtype, const ImagesRef& source, int64_t first,
                  int64_t images, int64_t channels, Scratch& scratch) {
  if (lies_ready(windows, dtype, kComputeDType<T>, source)) {
    const auto* data = static_cast<const T*>(source.data) + first * source.strides[0];
    const int64_t readable =
        (images - 1) * source.strides[0] + (channels - 1) * source.strides[1] + windows.plane();
    return {data, source.strides[0], source.strides[1], readable};
  }
  return copy_planes<T>(windows, dtype, source, first, images, channels, scratch);
}

template <typename T>
Planes<T> copy_planes(const Windows& windows, DType dtype, const ImagesRef& source, int64_t first,
                      int64_t images, int64_t channels, Scratch& scratch) {
  const int64_t distance = windows.channel();
  T* out = scratch.get<T>(images * channels * distance + kPlaneSlack);
  const bool turned = source.strides[1] == 1 && source.strides[4] != 1 && channels > 1;
  const int64_t together = turned ? kTogether : 1;
  const int64_t blocks = ceil_div(channels, together);
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / (together * distance));
  parallel_for(0, images * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / blocks;
      const int64_t c = i % blocks * together;
      T* to = out + (image * channels + c) * distance;
      if (turned) {
        prepare_turned(windows, dtype, source, first + image, c, std::min(together, channels - c),
                       to);
      } else {
        prepare_channel(windows, dtype, source, first + image, c, to);
      }
    }
  });
  std::fill(out + images * channels * distance, out + images * channels * distance + kPlaneSlack,
            T{0});
  return {out, channels * distance, distance, images * channels * distance + kPlaneSlack};
}

int64_t images_together(int64_t images, int64_t elements) {
  constexpr int64_t kElements = 2 << 20;
  return std::clamp<int64_t>(kElements / std::max<int64_t>(elements, 1), 1, images);
}

// One element, without the call that a row takes.
template <typename T>
static void load_one(DType dtype, const char* from, T* to) {
  if (dtype == kComputeDType<T>) {
    std::memcpy(to, from, sizeof(T));
  } else {
    gemm_engine<T>().load_row(dtype, from, 1, 1, to);
  }
}

template <typename T>
void gather_factors(const WindowProduct& product, const Grid& grid, int64_t group, T* out) {
  const Factors& weight = product.weight;
  const GemmEngine<T>& engine = gemm_engine<T>();
  const auto taps = static_cast<int64_t>(grid.taps.size());
  std::vector<int64_t> skip;
  bool dense = true;
  for (int64_t tap : grid.taps) {
    const int64_t z = tap / (product.kernel[1] * product.kernel[2]);
    const int64_t y = tap / product.kernel[2] % product.kernel[1];
    const int64_t x = tap % product.kernel[2];
    skip.push_back(z * weight.tap[0] + y * weight.tap[1] + x * weight.tap[2]);
    dense = dense && skip.back() == static_cast<int64_t>(skip.size()) - 1;
  }
  const int64_t item = element_size(product.dtype);
  const auto* data = static_cast<const char*>(weight.data) + group * weight.group * item;
  const int64_t grain = std::max<int64_t>(1, (1 << 13) / (product.in * taps));
  if (dense && taps == 1 && weight.row == 1 && weight.channel != 1) {  // rows are adjacent: turned
    parallel_for(0, product.out, std::max<int64_t>(grain, 16), [&](int64_t begin, int64_t end) {
      engine.pack(product.dtype, data + begin * item, weight.channel, 1, product.in, end - begin,
                  product.in, out + begin * product.in);
    });
    return;
  }
  const bool whole = dense && (weight.channel == taps || product.in == 1);
  parallel_for(0, product.out, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* to = out + row * product.in * taps;
      if (whole) {
        engine.load_row(product.dtype, data + row * weight.row * item, 1, product.in * taps, to);
        continue;
      }
      for (int64_t c = 0; c < product.in; ++c) {
        const char* from = data + (row * weight.row + c * weight.channel) * item;
        if (dense) {
          engine.load_row(product.dtype, from, 1, taps, to + c * taps);
          continue;
        }
        for (int64_t t = 0; t < taps; ++t) {
          load_one(product.dtype, from + skip[static_cast<size_t>(t)] * item, to + c * taps + t);
        }
      }
    }
  });
}

std::vector<int64_t> window_rows(const Grid& grid, int64_t channels, int64_t distance) {
  std::vector<int64_t> made;
  made.reserve(static_cast<size_t>(channels) * grid.offsets.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t offset : grid.offsets) {
      made.push_back(c * distance + offset);
    }
  }
  return made;
}

#define RUSHLIGHT_INSTANTIATE(T)                                                                   \
  template Planes<T> prepare<T>(const Windows&, DType, const ImagesRef&, int64_t, int64_t,         \
                                int64_t, Scratch&);                                                \
  template Planes<T> copy_planes<T>(const Windows&, DType, const ImagesRef&, int64_t, int64_t,     \
                                    int64_t, Scratch&);                                            \
  template void prepare_channel<T>(const Windows&, DType, const ImagesRef&, int64_t, int64_t, T*); \
  template void gather_factors<T>(const WindowProduct&, const Grid&, int64_t, T*);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::convolutions
