// Groups of one channel and one result (depth-wise): channels are taken side by side, a group of
// them in the lanes of vectors, so that small planes and steps cost no more than others.
#include <algorithm>
#include <cstring>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::convolutions {
namespace {

constexpr int64_t kLanes = kConvolutionLanes;
// Multiplications that are worth a task of their own.
constexpr int64_t kTaskWork = 1 << 18;
// Results that are stored together, and positions whose products are added up in one chain.
constexpr int64_t kPositions = 1024;
// Groups of images whose products are added up by themselves.
constexpr int64_t kImageGroups = 8;

const PerThread<Scratch> planes_scratch;
const PerThread<Scratch> whole_scratch;
const PerThread<Scratch> sums_scratch;
const PerThread<Scratch> gathered_scratch;
const PerThread<Scratch> turned_scratch;
const PerThread<Scratch> factors_scratch;
const PerThread<Scratch> bias_scratch;
const PerThread<Scratch> partial_scratch;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// A small image whose rows are neighbours is turned whole, then cut into rows of planes.
bool turns_whole(const Windows& windows, const ImagesRef& source) {
  constexpr int64_t kSmall = 2048;
  return source.strides[4] == 1 && source.strides[1] != 1 && windows.source[0] == 1 &&
         source.strides[3] == windows.source[2] && count(windows.source) <= kSmall;
}

template <typename T>
void copy_lanes(const T* from, int64_t step, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * kLanes, from + i * step * kLanes, kLanes * sizeof(T));
  }
}

template <typename T>
void prepare_whole(const Windows& windows, const Borders& borders, DType dtype,
                   const ImagesRef& source, int64_t image, int64_t first, int64_t channels,
                   T* out) {
  T* turned = whole_scratch->get<T>(count(windows.source) * kLanes + kPlaneSlack);
  const int64_t at = image * source.strides[0] + first * source.strides[1];
  gemm_engine<T>().pack(dtype, static_cast<const char*>(source.data) + at * element_size(dtype),
                        source.strides[1], 1, channels, count(windows.source), kLanes, turned);
  const int64_t width = windows.size[2];
  for (size_t deep = 0; deep < windows.starts[0].size(); ++deep) {
    for (size_t high = 0; high < windows.starts[1].size(); ++high) {
      for (size_t wide = 0; wide < windows.starts[2].size(); ++wide) {
        const Inside& rows = borders[1][high];
        const Inside& columns = borders[2][wide];
        const int64_t left = columns.first * windows.step[2] + windows.starts[2][wide];
        for (int64_t z = 0; z < windows.size[0]; ++z) {
          const bool seen = z >= borders[0][deep].first && z < borders[0][deep].last;
          for (int64_t y = 0; y < windows.size[1]; ++y, out += width * kLanes) {
            if (!seen || y < rows.first || y >= rows.last) {
              std::fill(out, out + width * kLanes, T{0});
              continue;
            }
            const int64_t row = y * windows.step[1] + windows.starts[1][high];
            std::fill(out, out + columns.first * kLanes, T{0});
            copy_lanes(turned + (row * windows.source[2] + left) * kLanes, windows.step[2],
                       columns.last - columns.first, out + columns.first * kLanes);
            std::fill(out + columns.last * kLanes, out + width * kLanes, T{0});
          }
        }
      }
    }
  }
}

// Channels [first, first + channels) of an image, in planes of kLanes channels.
template <typename T>
void prepare_lanes(const Windows& windows, const Borders& borders, DType dtype,
                   const ImagesRef& source, int64_t image, int64_t first, int64_t channels,
                   T* out) {
  if (turns_whole(windows, source)) {
    return prepare_whole(windows, borders, dtype, source, image, first, channels, out);
  }
  for (int64_t row = 0; row < plane_rows(windows); ++row) {
    prepare_pixels(windows, borders, dtype, source, image, first, channels, kLanes, row, out);
  }
}

// The factors of a grid, (block, tap, lane).
template <typename T>
void turn_factors(const WindowProduct& product, const Grid& grid, T* out) {
  const auto taps = static_cast<int64_t>(grid.taps.size());
  const Factors& weight = product.weight;
  const auto* data = static_cast<const char*>(weight.data);
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t tap = grid.taps[static_cast<size_t>(t)];
    const int64_t at = tap / (product.kernel[1] * product.kernel[2]) * weight.tap[0] +
                       tap / product.kernel[2] % product.kernel[1] * weight.tap[1] +
                       tap % product.kernel[2] * weight.tap[2];
    for (int64_t first = 0; first < product.groups; first += kLanes) {
      const int64_t channels = std::min(kLanes, product.groups - first);
      T* to = out + (first * taps + t * kLanes);
      gemm_engine<T>().load_row(product.dtype,
                                data + (at + first * weight.group) * element_size(product.dtype),
                                weight.group, channels, to);
      std::fill(to + channels, to + kLanes, T{0});
    }
  }
}

// Stores `count` neighbours along the width, whose channels lie side by side.
template <typename T>
void store_lanes(const WindowProduct& product, int64_t target, int64_t step, int64_t channels,
                 int64_t count, const T* sums) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const int64_t item = element_size(product.dtype);
  auto* result = static_cast<char*>(product.result.data);
  const int64_t channel = product.result.strides[1];
  if (channel == 1 && (step != 1 || count == 1)) {
    const bool plain = product.dtype == kComputeDType<T> && channels == kLanes;
    for (int64_t i = 0; i < count; ++i) {
      char* to = result + (target + i * step) * item;
      if (plain) {
        std::memcpy(to, sums + i * kLanes, kLanes * sizeof(T));
      } else {
        engine.store_row(product.dtype, sums + i * kLanes, channels, to, 1);
      }
    }
    return;
  }
  T* turned = turned_scratch->get<T>(kLanes * count + kPlaneSlack);
  engine.pack(kComputeDType<T>, sums, kLanes, 1, count, channels, count, turned);
  for (int64_t c = 0; c < channels; ++c) {
    engine.store_row(product.dtype, turned + c * count, count,
                     result + (target + c * channel) * item, step);
  }
}

// Whether results of several grids, which lie between each other, are gathered before they are
// stored: a plane at once.
bool gathers(const WindowProduct& product) {
  constexpr int64_t kNear = 4096;  // positions whose lanes stay in the second-level cache
  const auto& strides = product.result.strides;
  const Extent& size = product.result_size;
  return product.windows.grids.size() > 1 && product.windows.complete && count(size) <= kNear &&
         (size[1] == 1 || strides[3] == size[2] * strides[4]) &&
         (size[0] == 1 || strides[2] == size[1] * strides[3]);
}

// All results of a grid for a group of channels of an image: stored, or at their places of the
// plane `gathered`.
template <typename T>
void sum_grid(const WindowProduct& product, const Grid& grid, const T* planes, const T* factors,
              const T* bias, int64_t image, int64_t first, int64_t channels, T* gathered) {
  const auto& strides = product.result.strides;
  const Extent& size = grid.size;
  const auto taps = static_cast<int64_t>(grid.taps.size());
  // Rows that are neighbours in the result are stored at once.
  const bool joins = grid.whole() && strides[3] == size[2] * strides[4];
  const int64_t together = joins ? std::clamp<int64_t>(kPositions / size[2], 1, size[1]) : 1;
  T* sums = sums_scratch->get<T>(together * size[2] * kLanes);
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; y += together) {
      const int64_t rows = std::min(together, size[1] - y);
      for (int64_t i = 0; i < rows; ++i) {
        const T* in = planes + product.windows.at({z, y + i, 0}) * kLanes;
        convolution_engine<T>().lane_sums(size[2], in, grid.offsets.data(), factors, taps, bias,
                                          sums + i * size[2] * kLanes);
      }
      const Extent at{grid.first[0] + z * grid.step[0], grid.first[1] + y * grid.step[1],
                      grid.first[2]};
      if (gathered != nullptr) {
        const Extent& whole = product.result_size;
        T* to = gathered + ((at[0] * whole[1] + at[1]) * whole[2] + at[2]) * kLanes;
        for (int64_t x = 0; x < size[2]; ++x) {
          std::memcpy(to + x * grid.step[2] * kLanes, sums + x * kLanes, kLanes * sizeof(T));
        }
        continue;
      }
      const int64_t target = image * strides[0] + first * strides[1] + at[0] * strides[2] +
                             at[1] * strides[3] + at[2] * strides[4];
      store_lanes(product, target, strides[4] * grid.step[2], channels, rows * size[2], sums);
    }
  }
}

// Rows [row, row + rows) of the gradient of the output of a group of channels, in their order.
template <typename T>
void lay_out_lanes(const Convolution& problem, const ImagesRef& output, int64_t image,
                   int64_t first, int64_t channels, int64_t row, int64_t rows, T* out) {
  const Extent& size = problem.output;
  const auto* data = static_cast<const char*>(output.data);
  // Rows that are neighbours in memory are taken as one.
  const bool joined = size[0] == 1 && output.strides[3] == size[2] * output.strides[4];
  const int64_t together = joined ? rows : 1;
  for (int64_t y = row; y < row + rows; y += together) {
    const int64_t skip = image * output.strides[0] + first * output.strides[1] +
                         y / size[1] * output.strides[2] + y % size[1] * output.strides[3];
    gemm_engine<T>().pack(problem.dtype, data + skip * element_size(problem.dtype),
                          output.strides[1], output.strides[4], channels, together * size[2],
                          kLanes, out + (y - row) * size[2] * kLanes);
  }
}

}  // namespace

template <typename T>
void sum_windows_by_lanes(const WindowProduct& product) {
  const Windows& windows = product.windows;
  const Borders borders = borders_of(windows);
  const int64_t blocks = ceil_div(product.groups, kLanes);
  int64_t taps = 0;
  for (const Grid& grid : windows.grids) {
    taps += static_cast<int64_t>(grid.taps.size());
  }
  T* factors = factors_scratch->get<T>(blocks * kLanes * taps);
  T* at = factors;
  for (const Grid& grid : windows.grids) {
    turn_factors(product, grid, at);
    at += blocks * kLanes * static_cast<int64_t>(grid.taps.size());
  }
  T* bias = bias_scratch->get<T>(blocks * kLanes);
  std::fill(bias, bias + blocks * kLanes, T{0});
  if (product.bias != nullptr) {
    gemm_engine<T>().load_row(product.dtype, product.bias, 1, product.groups, bias);
  }
  const int64_t work = kLanes * (count(product.result_size) * taps + windows.channel());
  const int64_t grain = std::max<int64_t>(1, kTaskWork / work);
  const int64_t positions = count(product.result_size);
  const bool gathers_planes = gathers(product);
  parallel_for(0, product.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    T* planes = planes_scratch->get<T>(windows.channel() * kLanes);
    T* gathered = gathers_planes ? gathered_scratch->get<T>(positions * kLanes) : nullptr;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / blocks;
      const int64_t block = i % blocks;
      const int64_t first = block * kLanes;
      const int64_t channels = std::min(kLanes, product.groups - first);
      prepare_lanes(windows, borders, product.dtype, product.source, image, first, channels,
                    planes);
      const T* own = factors;
      for (const Grid& grid : windows.grids) {
        const auto depth = static_cast<int64_t>(grid.taps.size());
        sum_grid(product, grid, planes, own + block * depth * kLanes, bias + first, image, first,
                 channels, gathered);
        own += blocks * depth * kLanes;
      }
      if (gathered != nullptr) {
        const auto& strides = product.result.strides;
        store_lanes(product, image * strides[0] + first * strides[1], strides[4], channels,
                    positions, gathered);
      }
    }
  });
}

template <typename T>
void sum_for_weight_by_lanes(const Convolution& problem, const Windows& windows,
                             const ImagesRef& input, const ImagesRef& output,
                             const MutableImagesRef& weight) {
  const ConvolutionEngine<T>& tools = convolution_engine<T>();
  const Borders borders = borders_of(windows);
  const Grid& grid = windows.grids[0];
  const auto taps = static_cast<int64_t>(grid.taps.size());
  const int64_t blocks = ceil_div(problem.groups, kLanes);
  const int64_t sets = std::min(problem.batch, kImageGroups);
  const int64_t size = taps * kLanes;
  const int64_t rows = problem.output[0] * problem.output[1];
  const int64_t together = std::clamp<int64_t>(kPositions / problem.output[2], 1, rows);
  T* partial = partial_scratch->get<T>(blocks * sets * size);
  parallel_for(0, blocks * sets, 1, [&](int64_t begin, int64_t end) {
    T* planes = planes_scratch->get<T>(windows.channel() * kLanes);
    T* right = turned_scratch->get<T>(together * problem.output[2] * kLanes);
    T* sums = sums_scratch->get<T>(size);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / sets * kLanes;
      const int64_t channels = std::min(kLanes, problem.groups - first);
      T* total = partial + i * size;
      std::fill(total, total + size, T{0});
      const int64_t last_image = (i % sets + 1) * problem.batch / sets;
      for (int64_t n = i % sets * problem.batch / sets; n < last_image; ++n) {
        prepare_lanes(windows, borders, problem.dtype, input, n, first, channels, planes);
        for (int64_t start = 0; start < rows; start += together) {
          std::fill(sums, sums + size, T{0});
          const int64_t end = std::min(start + together, rows);
          lay_out_lanes(problem, output, n, first, channels, start, end - start, right);
          for (int64_t y = start; y < end; ++y) {
            const Extent at{y / problem.output[1], y % problem.output[1], 0};
            tools.lane_dots(problem.output[2], planes + windows.at(at) * kLanes,
                            grid.offsets.data(), taps,
                            right + (y - start) * problem.output[2] * kLanes, sums);
          }
          gemm_engine<T>().add_row(sums, T{1}, size, total);
        }
      }
    }
  });
  for (int64_t block = 0; block < blocks; ++block) {
    T* total = partial + block * sets * size;
    for (int64_t set = 1; set < sets; ++set) {
      gemm_engine<T>().add_row(total + set * size, T{1}, size, total);
    }
    const int64_t first = block * kLanes;
    const int64_t channels = std::min(kLanes, problem.groups - first);
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t to = first * weight.strides[0] +
                         t / (problem.kernel[1] * problem.kernel[2]) * weight.strides[2] +
                         t / problem.kernel[2] % problem.kernel[1] * weight.strides[3] +
                         t % problem.kernel[2] * weight.strides[4];
      gemm_engine<T>().store_row(problem.dtype, total + t * kLanes, channels,
                                 static_cast<char*>(weight.data) + to * element_size(problem.dtype),
                                 weight.strides[0]);
    }
  }
}

#define RUSHLIGHT_INSTANTIATE(T)                                                                 \
  template void sum_windows_by_lanes<T>(const WindowProduct&);                                   \
  template void sum_for_weight_by_lanes<T>(const Convolution&, const Windows&, const ImagesRef&, \
                                           const ImagesRef&, const MutableImagesRef&);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::convolutions
