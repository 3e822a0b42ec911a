#include <algorithm>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::convolutions {
namespace {

const PerThread<Scratch> planes_scratch;
const PerThread<Scratch> row_scratch;
const PerThread<Scratch> factors_scratch;
const PerThread<Scratch> sums_scratch;
const PerThread<Scratch> far_scratch;

constexpr int64_t kTaskWork = 1 << 18;

// The factors of all groups, grid after grid, and where their windows lie.
template <typename T>
struct FlatGrids {
  std::vector<const T*> factors;
  std::vector<std::vector<int64_t>> rows;
};

template <typename T>
FlatGrids<T> flat_grids(const WindowProduct& product, int64_t distance) {
  FlatGrids<T> made;
  int64_t total = 0;
  for (const Grid& grid : product.windows.grids) {
    total += static_cast<int64_t>(grid.taps.size());
  }
  const int64_t each = product.groups * product.out * product.in;
  T* factors = factors_scratch->get<T>(total * each);
  for (const Grid& grid : product.windows.grids) {
    const auto taps = static_cast<int64_t>(grid.taps.size());
    made.factors.push_back(factors);
    made.rows.push_back(window_rows(grid, product.in, distance));
    for (int64_t group = 0; group < product.groups; ++group) {
      gather_factors(product, grid, group, factors);
      factors += product.out * product.in * taps;
    }
  }
  return made;
}

// Rows [first, first + rows) of a grid's results, counted through depth and height, for all
// channels of a group: the planes are summed as if they were one row, and what lies between the
// rows of the result is left out.
template <typename T>
struct FlatTask {
  const WindowProduct& product;
  const Grid& grid;
  const T* planes;
  const T* factors;
  const std::vector<int64_t>& places;
  const T* bias;
  int64_t image;
  int64_t group;

  void run(int64_t first, int64_t rows) const {
    while (rows > 0) {  // a stretch within one step of depth
      const int64_t z = first / grid.size[1];
      const int64_t y = first % grid.size[1];
      const int64_t own = std::min(rows, grid.size[1] - y);
      sum_rows(z, y, own);
      first += own;
      rows -= own;
    }
  }

 private:
  void sum_rows(int64_t z, int64_t y, int64_t rows) const {
    const int64_t pitch = product.windows.size[2];
    const int64_t length = (rows - 1) * pitch + grid.size[2];
    const int64_t stride = length + kPlaneSlack;
    T* sums = row_scratch->get<T>(product.out * stride);
    convolution_engine<T>().flat(product.out, planes + product.windows.at({z, y, 0}), places.data(),
                                 factors, static_cast<int64_t>(places.size()), bias, length, sums,
                                 stride);
    for (int64_t row = 0; row < product.out; ++row) {
      store(row, z, y, rows, sums + row * stride);
    }
  }

  void store(int64_t row, int64_t z, int64_t y, int64_t rows, const T* sums) const {
    const auto& strides = product.result.strides;
    const int64_t item = element_size(product.dtype);
    int64_t target = image * strides[0] + (group * product.out + row) * strides[1] +
                     (grid.first[0] + z * grid.step[0]) * strides[2] +
                     (grid.first[1] + y * grid.step[1]) * strides[3] + grid.first[2] * strides[4];
    for (int64_t i = 0; i < rows; ++i) {
      gemm_engine<T>().store_row(product.dtype, sums + i * product.windows.size[2], grid.size[2],
                                 static_cast<char*>(product.result.data) + target * item,
                                 strides[4] * grid.step[2]);
      target += grid.step[1] * strides[3];
    }
  }
};

// The biases of all results, zero where there are none.
template <typename T>
std::vector<T> biases(const WindowProduct& product) {
  std::vector<T> made(static_cast<size_t>(product.groups * product.out));
  if (product.bias != nullptr) {
    gemm_engine<T>().load_row(product.dtype, product.bias, 1, product.groups * product.out,
                              made.data());
  }
  return made;
}

// Channels whose results are made at a time: a cache line of them where they lie side by side.
int64_t channels_together(const WindowProduct& product) {
  return product.result.strides[1] == 1 && product.result.strides[4] != 1 ? 16 : 1;
}

// Each task prepares the planes of a group, which stay in the caches, and makes all its results.
template <typename T>
void sum_near(const WindowProduct& product) {
  const Windows& windows = product.windows;
  const FlatGrids<T> grids = flat_grids<T>(product, windows.channel());
  const std::vector<T> bias = biases<T>(product);
  const int64_t together = channels_together(product);
  const int64_t blocks = (product.groups + together - 1) / together;
  const int64_t work = together * product.in * product.out * windows.channel() *
                       static_cast<int64_t>(windows.grids.size());
  const int64_t grain = std::max<int64_t>(1, kTaskWork / work);
  const auto run = [&](int64_t image, int64_t group) {
    T* planes = planes_scratch->get<T>(product.in * windows.channel() + kPlaneSlack);
    for (int64_t c = 0; c < product.in; ++c) {
      prepare_channel(windows, product.dtype, product.source, image, group * product.in + c,
                      planes + c * windows.channel());
    }
    for (size_t i = 0; i < windows.grids.size(); ++i) {
      const Grid& grid = windows.grids[i];
      const auto depth = static_cast<int64_t>(grids.rows[i].size());
      const FlatTask<T> task{product,       grid,
                             planes,        grids.factors[i] + group * product.out * depth,
                             grids.rows[i], bias.data() + group * product.out,
                             image,         group};
      task.run(0, grid.size[0] * grid.size[1]);
    }
  };
  parallel_for(0, product.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * together;
      for (int64_t g = first; g < std::min(first + together, product.groups); ++g) {
        run(i / blocks, g);
      }
    }
  });
}

// All planes are prepared first; a task makes some rows of the results.
template <typename T>
void sum_far(const WindowProduct& product) {
  const Windows& windows = product.windows;
  const std::vector<T> bias = biases<T>(product);
  const int64_t channels = product.groups * product.in;
  const int64_t together = images_together(product.batch, channels * windows.channel());
  for (int64_t image = 0; image < product.batch; image += together) {
    const int64_t images = std::min(together, product.batch - image);
    const Planes<T> planes = copy_planes<T>(windows, product.dtype, product.source, image, images,
                                            channels, *far_scratch);
    const FlatGrids<T> grids = flat_grids<T>(product, planes.channel);
    for (size_t i = 0; i < windows.grids.size(); ++i) {
      const Grid& grid = windows.grids[i];
      const auto depth = static_cast<int64_t>(grids.rows[i].size());
      const int64_t all = grid.size[0] * grid.size[1];
      const int64_t work = product.out * depth * windows.size[2];
      const int64_t rows = std::clamp<int64_t>(kTaskWork / work, 1, all);
      const int64_t blocks = (all + rows - 1) / rows;
      parallel_for(0, images * product.groups * blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          const int64_t group = at / blocks % product.groups;
          const int64_t own = at / blocks / product.groups;
          const FlatTask<T> task{
              product,
              grid,
              planes.data + own * planes.image + group * product.in * planes.channel,
              grids.factors[i] + group * product.out * depth,
              grids.rows[i],
              bias.data() + group * product.out,
              image + own,
              group};
          const int64_t first = at % blocks * rows;
          task.run(first, std::min(rows, all - first));
        }
      });
    }
  }
}

}  // namespace

template <typename T>
void sum_windows(const WindowProduct& product) {
  constexpr int64_t kBytes = 256 << 10;
  const int64_t bytes = product.in * product.windows.channel() * static_cast<int64_t>(sizeof(T));
  bytes <= kBytes ? sum_near<T>(product) : sum_far<T>(product);
}

template <typename T>
void sum_for_weight(const Convolution& problem, const Windows& windows, const ImagesRef& input,
                    const ImagesRef& output, const MutableImagesRef& weight) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const ConvolutionEngine<T>& tools = convolution_engine<T>();
  const Grid& grid = windows.grids[0];
  const auto taps = static_cast<int64_t>(grid.taps.size());
  const int64_t item = element_size(problem.dtype);
  const int64_t outs = problem.out_channels;
  const auto run_group = [&](int64_t group) {
    T* planes = planes_scratch->get<T>(windows.channel() + kPlaneSlack);
    T* row = row_scratch->get<T>(problem.output[2] + kPlaneSlack);
    T* sums = sums_scratch->get<T>(outs * taps * tools.width);
    std::fill(sums, sums + outs * taps * tools.width, T{0});
    for (int64_t n = 0; n < problem.batch; ++n) {
      prepare_channel(windows, problem.dtype, input, n, group, planes);
      for (int64_t c = 0; c < outs; ++c) {
        for (int64_t y = 0; y < problem.output[0] * problem.output[1]; ++y) {
          const Extent at{y / problem.output[1], y % problem.output[1], 0};
          const int64_t skip = n * output.strides[0] + (group * outs + c) * output.strides[1] +
                               at[0] * output.strides[2] + at[1] * output.strides[3];
          const auto* from = static_cast<const char*>(output.data) + skip * item;
          const T* right = reinterpret_cast<const T*>(from);
          if (problem.dtype != kComputeDType<T> || output.strides[4] != 1) {
            engine.load_row(problem.dtype, from, output.strides[4], problem.output[2], row);
            right = row;
          }
          tools.dots(planes + windows.at(at), grid.offsets.data(), taps, right, problem.output[2],
                     sums + c * taps * tools.width);
        }
      }
    }
    for (int64_t c = 0; c < outs; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        const T* lanes = sums + (c * taps + t) * tools.width;
        T total = 0;
        for (int lane = 0; lane < tools.width; ++lane) {
          total += lanes[lane];
        }
        const int64_t to = (group * outs + c) * weight.strides[0] +
                           t / (problem.kernel[1] * problem.kernel[2]) * weight.strides[2] +
                           t / problem.kernel[2] % problem.kernel[1] * weight.strides[3] +
                           t % problem.kernel[2] * weight.strides[4];
        engine.store_row(problem.dtype, &total, 1, static_cast<char*>(weight.data) + to * item, 1);
      }
    }
  };
  parallel_for(0, problem.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      run_group(group);
    }
  });
}

#define RUSHLIGHT_INSTANTIATE(T)                                                        \
  template void sum_windows<T>(const WindowProduct&);                                   \
  template void sum_for_weight<T>(const Convolution&, const Windows&, const ImagesRef&, \
                                  const ImagesRef&, const MutableImagesRef&);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::convolutions
