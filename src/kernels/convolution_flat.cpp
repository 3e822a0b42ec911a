#include <algorithm>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/gemm_product.h"
#include "runtime/parallel.h"

namespace rushlight::convolutions {
namespace {

thread_local Scratch planes_scratch;
thread_local Scratch row_scratch;
thread_local Scratch factors_scratch;
thread_local Scratch sums_scratch;

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
  T* factors = factors_scratch.get<T>(total * each);
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

// All results of one grid in one channel: the planes are summed as if they were one row, and what
// lies between the rows of the result is left out.
template <typename T>
void sum_grid(const WindowProduct& product, const Grid& grid, const T* planes, const T* factors,
              const std::vector<int64_t>& rows, T bias, int64_t image, int64_t channel) {
  const GemmEngine<T>& engine = gemm_engine<T>();
  const Extent& size = grid.size;
  const auto& strides = product.result.strides;
  const int64_t item = element_size(product.dtype);
  const int64_t pitch = product.windows.size[2];
  const int64_t length = (size[1] - 1) * pitch + size[2];
  T* sums = row_scratch.get<T>(length + kPlaneSlack);
  for (int64_t z = 0; z < size[0]; ++z) {
    convolution_engine<T>().flat(planes + product.windows.at({z, 0, 0}), rows.data(), factors,
                                 static_cast<int64_t>(rows.size()), bias, length, sums);
    int64_t target = image * strides[0] + channel * strides[1] +
                     (grid.first[0] + z * grid.step[0]) * strides[2] + grid.first[1] * strides[3] +
                     grid.first[2] * strides[4];
    for (int64_t y = 0; y < size[1]; ++y) {
      engine.store_row(product.dtype, sums + y * pitch, size[2],
                       static_cast<char*>(product.result.data) + target * item,
                       strides[4] * grid.step[2]);
      target += grid.step[1] * strides[3];
    }
  }
}

// Channels whose results are made at a time: a cache line of them where they lie side by side.
int64_t channels_together(const WindowProduct& product) {
  return product.result.strides[1] == 1 && product.result.strides[4] != 1 ? 16 : 1;
}

}  // namespace

template <typename T>
void sum_windows(const WindowProduct& product) {
  const Windows& windows = product.windows;
  const FlatGrids<T> grids = flat_grids<T>(product, windows.channel());
  const int64_t together = channels_together(product);
  const int64_t blocks = (product.groups + together - 1) / together;
  const int64_t work = together * product.in * product.out * windows.channel() *
                       static_cast<int64_t>(windows.grids.size());
  const int64_t grain = std::max<int64_t>(1, kTaskWork / work);
  const auto run = [&](int64_t image, int64_t group) {
    T* planes = planes_scratch.get<T>(product.in * windows.channel() + kPlaneSlack);
    for (int64_t c = 0; c < product.in; ++c) {
      prepare_channel(windows, product.dtype, product.source, image, group * product.in + c,
                      planes + c * windows.channel());
    }
    for (int64_t row = 0; row < product.out; ++row) {
      const int64_t channel = group * product.out + row;
      T bias = 0;
      if (product.bias != nullptr) {
        const auto* at =
            static_cast<const char*>(product.bias) + channel * element_size(product.dtype);
        gemm_engine<T>().load_row(product.dtype, at, 1, 1, &bias);
      }
      for (size_t i = 0; i < windows.grids.size(); ++i) {
        const auto depth = static_cast<int64_t>(grids.rows[i].size());
        sum_grid(product, windows.grids[i], planes, grids.factors[i] + channel * depth,
                 grids.rows[i], bias, image, channel);
      }
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
    T* planes = planes_scratch.get<T>(windows.channel() + kPlaneSlack);
    T* row = row_scratch.get<T>(problem.output[2] + kPlaneSlack);
    T* sums = sums_scratch.get<T>(outs * taps * tools.width);
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
