#include "kernels/grid_sample.h"

#include <algorithm>
#include <limits>

#include "kernels/grid_corners.h"
#include "kernels/window_engine.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::kernels {
namespace {

template <typename T>
struct Sampling {
  IntList plane_sizes;
  int64_t batch, channels, plane, samples, dims;
  const T* planes;
  const T* grid;
  GridSampling how;

  Sampling(const Tensor& from, const Tensor& at, const GridSampling& sampling)
      : plane_sizes(from.sizes().last(static_cast<size_t>(from.dim() - 2))),
        batch(from.size(0)),
        channels(from.size(1)),
        plane(1),
        samples(batch == 0 ? 0 : at.numel() / batch / (from.dim() - 2)),
        dims(from.dim() - 2),
        planes(static_cast<const T*>(from.data())),
        grid(static_cast<const T*>(at.data())),
        how(sampling) {
    for (int64_t size : plane_sizes) {
      plane *= size;
    }
    if (plane > std::numeric_limits<int32_t>::max()) {
      fail(ErrorKind::Runtime, "grid_sampler",
           "expected planes of fewer than 2^31 elements, got sizes ", from.sizes());
    }
  }

  const T* image(int64_t n) const { return planes + n * channels * plane; }
  const T* coordinates(int64_t n, int64_t sample) const {
    return grid + (n * samples + sample) * dims;
  }
};

// Calls body(tables, image, first sample, samples) for each block of samples, in parallel.
template <typename T, typename F>
void for_blocks(const Sampling<T>& s, Order order, F&& body) {
  const int64_t blocks = (s.samples + kSampleBlock - 1) / kSampleBlock;
  parallel_for(0, s.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    Corners<T> corners(s.plane_sizes, s.how);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks;
      const int64_t first = i % blocks * kSampleBlock;
      const int64_t count = std::min(kSampleBlock, s.samples - first);
      corners.fill(s.coordinates(n, first), count, order);
      body(corners, n, first, count);
    }
  });
}

// sums[p] (+)= weights . elements at the corners of sample p.
template <typename T>
void sample_line(T* sums, const T* plane, const Corners<T>& corners, const T* weights,
                 int64_t count, bool add) {
  grid_lines<T>().sample(sums, plane, corners.offset.data(), weights, kSampleBlock, corners.count(),
                         count, add);
}

// Adds each gradient, times its weights, to the corners it came from: planes are split among
// threads, so that each element's sum has one order.
template <typename T, typename Weights>
void scatter(T* made, const T* grad, const Sampling<T>& s, Order order, Weights&& weights_of) {
  const int64_t blocks = (s.samples + kSampleBlock - 1) / kSampleBlock;
  const auto image = [&](int64_t n, int64_t begin, int64_t end) {
    Corners<T> corners(s.plane_sizes, s.how);
    std::fill_n(made + (n * s.channels + begin) * s.plane, (end - begin) * s.plane, T{0});
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = b * kSampleBlock;
      const int64_t count = std::min(kSampleBlock, s.samples - first);
      corners.fill(s.coordinates(n, first), count, order);
      const T* weights = weights_of(corners, n, first, count);
      for (int64_t c = begin; c < end; ++c) {
        T* plane = made + (n * s.channels + c) * s.plane;
        const T* given = grad + (n * s.channels + c) * s.samples + first;
        for (int k = 0; k < corners.count(); ++k) {
          const int32_t* offset = corners.offset.data() + Corners<T>::at(k);
          const T* weight = weights + Corners<T>::at(k);
          for (int64_t p = 0; p < count; ++p) {
            if (offset[p] >= 0) {
              plane[offset[p]] += weight[p] * given[p];
            }
          }
        }
      }
    }
  };
  // Channels that share a table: as many as leave work for all threads.
  const int64_t wanted = std::clamp<int64_t>(4 * num_threads() / std::max<int64_t>(1, s.batch), 1,
                                             std::max<int64_t>(1, s.channels));
  const int64_t group = std::max<int64_t>(1, (s.channels + wanted - 1) / wanted);
  const int64_t groups = (s.channels + group - 1) / group;
  parallel_for(0, s.batch * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % groups * group;
      image(i / groups, first, std::min(first + group, s.channels));
    }
  });
}

// By the coordinates along `d` of a block: the sum over channels of grad times the sampled `plane`
// under other weights.
template <typename T>
void add_by_coordinate(T* sums, const T* grad, const T* image, const Corners<T>& corners,
                       const T* weights, const Sampling<T>& s, int64_t first, int64_t count) {
  T line[kSampleBlock];
  for (int64_t c = 0; c < s.channels; ++c) {
    sample_line(line, image + c * s.plane, corners, weights, count, false);
    const T* given = grad + c * s.samples + first;
    for (int64_t p = 0; p < count; ++p) {
      sums[p] += line[p] * given[p];
    }
  }
}

constexpr int kMostDims = 3;

// What corner `k` adds to the gradient by each coordinate: its slopes times the sum over channels
// of grad times the element there, which is read once for all coordinates.
template <typename T>
void add_corner(T (&sums)[kMostDims][kSampleBlock], const T* grad, const T* image,
                const Corners<T>& corners, int k, const Sampling<T>& s, int64_t count) {
  const int32_t* offset = corners.offset.data() + Corners<T>::at(k);
  T products[kSampleBlock] = {};
  for (int64_t c = 0; c < s.channels; ++c) {
    grid_lines<T>().sample(products, image + c * s.plane, offset, grad + c * s.samples,
                           kSampleBlock, 1, count, true);
  }
  for (int d = 0; d < corners.dims(); ++d) {
    const T* slopes = corners.slopes(d) + Corners<T>::at(k);
    for (int64_t p = 0; p < count; ++p) {
      const T part = slopes[p] * products[p];
      sums[d][p] += offset[p] >= 0 ? part : T{0};
    }
  }
}

// Weights for a step of the coordinates: sum over d of step[p][d] * table(d).
template <typename T, typename Table>
void blend(std::vector<T>& weights, const T* step, const Corners<T>& corners, int64_t count,
           Table&& table) {
  weights.assign(corners.offset.size(), T{0});
  for (int d = 0; d < corners.dims(); ++d) {
    const T* part = table(d);
    for (int k = 0; k < corners.count(); ++k) {
      for (int64_t p = 0; p < count; ++p) {
        const size_t i = Corners<T>::at(k) + static_cast<size_t>(p);
        weights[i] += step[p * corners.dims() + d] * part[i];
      }
    }
  }
}

template <typename F>
void by_dtype(const Tensor& tensor, F&& function) {
  if (tensor.dtype() == DType::Float64) {
    return function(double{});
  }
  function(float{});
}

template <typename T>
const T* read(const Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.data()) : nullptr;
}

template <typename T>
void second_order(const GridSecond& made, const T* of_planes, const T* of_grid, const T* grad,
                  const Sampling<T>& s) {
  T* by_grad = static_cast<T*>(made.by_grad.data());
  T* by_grid = static_cast<T*>(made.by_grid.data());
  const int dims = static_cast<int>(s.dims);
  for_blocks(s, Order::Bends, [&](Corners<T>& corners, int64_t n, int64_t first, int64_t count) {
    std::vector<T> weights;
    const T* step = of_grid == nullptr ? nullptr : of_grid + (n * s.samples + first) * dims;
    const int64_t image = n * s.channels * s.plane;
    const int64_t given = n * s.channels * s.samples;
    if (step != nullptr) {
      blend(weights, step, corners, count, [&](int d) { return corners.slopes(d); });
    }
    for (int64_t c = 0; c < s.channels; ++c) {
      T* out = by_grad + given + c * s.samples + first;
      std::fill_n(out, count, T{0});
      if (of_planes != nullptr) {
        sample_line(out, of_planes + image + c * s.plane, corners, corners.weight.data(), count,
                    true);
      }
      if (step != nullptr) {
        sample_line(out, s.image(n) + c * s.plane, corners, weights.data(), count, true);
      }
    }
    for (int d = 0; d < dims; ++d) {
      T sums[kSampleBlock] = {};
      if (of_planes != nullptr) {
        add_by_coordinate(sums, grad + given, of_planes + image, corners, corners.slopes(d), s,
                          first, count);
      }
      if (step != nullptr) {
        blend(weights, step, corners, count, [&](int e) { return corners.bends(d, e); });
        add_by_coordinate(sums, grad + given, s.image(n), corners, weights.data(), s, first, count);
      }
      for (int64_t p = 0; p < count; ++p) {
        by_grid[(n * s.samples + first + p) * dims + d] = sums[p];
      }
    }
  });
}

}  // namespace

void grid_sample(const Tensor& samples, const Tensor& planes, const Tensor& grid,
                 const GridSampling& sampling) {
  by_dtype(samples, [&]<typename T>(T) {
    const Sampling<T> s(planes, grid, sampling);
    T* out = static_cast<T*>(samples.data());
    for_blocks(
        s, Order::Weights, [&](const Corners<T>& corners, int64_t n, int64_t first, int64_t count) {
          for (int64_t c = 0; c < s.channels; ++c) {
            sample_line(out + (n * s.channels + c) * s.samples + first, s.image(n) + c * s.plane,
                        corners, corners.weight.data(), count, false);
          }
        });
  });
}

void grid_sample_gradient(const Tensor& by_planes, const Tensor& by_grid, const Tensor& grad,
                          const Tensor& planes, const Tensor& grid, const GridSampling& sampling) {
  by_dtype(grad, [&]<typename T>(T) {
    const Sampling<T> s(planes, grid, sampling);
    const T* given = read<T>(grad);
    if (by_planes.defined()) {
      scatter(static_cast<T*>(by_planes.data()), given, s, Order::Weights,
              [](const Corners<T>& corners, int64_t, int64_t, int64_t) {
                return corners.weight.data();
              });
    }
    if (!by_grid.defined()) {
      return;
    }
    T* made = static_cast<T*>(by_grid.data());
    const int dims = static_cast<int>(s.dims);
    for_blocks(s, Order::Slopes,
               [&](const Corners<T>& corners, int64_t n, int64_t first, int64_t count) {
                 T sums[kMostDims][kSampleBlock] = {};
                 const T* of_image = given + n * s.channels * s.samples + first;
                 for (int k = 0; k < corners.count(); ++k) {
                   add_corner(sums, of_image, s.image(n), corners, k, s, count);
                 }
                 for (int64_t p = 0; p < count; ++p) {
                   for (int d = 0; d < dims; ++d) {
                     made[(n * s.samples + first + p) * dims + d] = sums[d][p];
                   }
                 }
               });
  });
}

void grid_sample_second(const GridSecond& made, const Tensor& of_planes, const Tensor& of_grid,
                        const Tensor& grad, const Tensor& planes, const Tensor& grid,
                        const GridSampling& sampling) {
  by_dtype(grad, [&]<typename T>(T) {
    const Sampling<T> s(planes, grid, sampling);
    const T* steps = read<T>(of_grid);
    second_order(made, read<T>(of_planes), steps, read<T>(grad), s);
    T* by_planes = static_cast<T*>(made.by_planes.data());
    if (steps == nullptr) {
      std::fill_n(by_planes, made.by_planes.numel(), T{0});
      return;
    }
    scatter(by_planes, read<T>(grad), s, Order::Slopes,
            [&](const Corners<T>& corners, int64_t n, int64_t first, int64_t count) {
              static const PerThread<std::vector<T>> own_weights;
              std::vector<T>& weights = *own_weights;
              blend(weights, steps + (n * s.samples + first) * s.dims, corners, count,
                    [&](int d) { return corners.slopes(d); });
              return weights.data();
            });
  });
}

}  // namespace rushlight::kernels
