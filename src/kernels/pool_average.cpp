#include <vector>

#include "kernels/copy.h"
#include "kernels/window_space.h"

namespace rushlight::kernels {

WindowAxis WindowAxis::adapted(int64_t size, int64_t count) {
  WindowAxis axis{size, count};
  axis.adaptive = count == 0 || size % count != 0 || size == 0;
  if (!axis.adaptive) {  // windows of one size, side by side
    axis.kernel = size / count;
    axis.stride = axis.kernel;
  }
  return axis;
}

namespace {

template <typename F>
void by_averaged_dtype(DType dtype, F&& function) {
  if (dtype == DType::Int64) {
    return function(int64_t{});
  }
  by_floating_dtype(dtype, "avg_pool", function);
}

int64_t divisor_of(const WindowSpace& space, Divisor divisor, int64_t d, int64_t h, int64_t w) {
  if (divisor.fixed != 0) {
    return divisor.fixed;
  }
  const auto& [depth, height, width] = space.axis;
  const int64_t count = divisor.padding ? depth.padded(d) * height.padded(h) * width.padded(w)
                                        : depth.inside(d) * height.inside(h) * width.inside(w);
  return std::max<int64_t>(count, 1);
}

template <typename C>
struct AverageScratch {
  std::vector<C> sum;  // of one row of results
  std::vector<C> row;  // one row of the input
  std::vector<C> spare;

  AverageScratch(int64_t results, int64_t width)
      : sum(static_cast<size_t>(results)),
        row(static_cast<size_t>(width)),
        spare(static_cast<size_t>(width)) {}
};

template <typename T>
class AveragePool {
 public:
  using C = Compute<T>;
  using Scratch = AverageScratch<C>;
  AveragePool(const WindowSpace& space, Divisor divisor) : space_(space), divisor_(divisor) {}

  // Row (d, h) of a plane: down the rows first, then along the one that results.
  void row(Scratch& s, const T* in, int64_t d, int64_t h) const {
    const WindowAxis& width = space_.axis[2];
    std::fill(s.row.begin(), s.row.end(), C{0});
    std::fill(s.sum.begin(), s.sum.end(), C{0});
    for_rows(space_, d, h, [&](int64_t row) {
      lines_.add(s.row.data(), read_line(in + row, width.size, s.spare.data()), 1, width.size);
    });
    if (width.adaptive) {
      for (int64_t x = 0; x < width.count; ++x) {
        for (int64_t at = width.begin(x); at < width.end(x); ++at) {
          s.sum[static_cast<size_t>(x)] += s.row[static_cast<size_t>(at)];
        }
      }
    } else {
      for (int64_t tap = 0; tap < width.kernel; ++tap) {
        const int64_t first = width.first(tap);
        const int64_t at = first * width.stride - width.pad + tap * width.dilation;
        if (const int64_t count = width.last(tap) - first; count > 0) {
          lines_.add(s.sum.data() + first, s.row.data() + at, width.stride, count);
        }
      }
    }
    divide(s.sum.data(), d, h);
  }

  // The adjoint: adds row (d, h) of a gradient, in s.sum, to the plane `sums`.
  void spread_row(Scratch& s, C* sums, int64_t d, int64_t h) const {
    const WindowAxis& width = space_.axis[2];
    divide(s.sum.data(), d, h);
    std::fill(s.row.begin(), s.row.end(), C{0});
    if (width.adaptive) {
      for (int64_t x = 0; x < width.count; ++x) {
        for (int64_t at = width.begin(x); at < width.end(x); ++at) {
          s.row[static_cast<size_t>(at)] += s.sum[static_cast<size_t>(x)];
        }
      }
    } else {
      for (int64_t tap = 0; tap < width.kernel; ++tap) {
        const int64_t first = width.first(tap);
        const int64_t at = first * width.stride - width.pad + tap * width.dilation;
        if (const int64_t count = width.last(tap) - first; count > 0) {
          lines_.spread(s.row.data() + at, width.stride, s.sum.data() + first, count);
        }
      }
    }
    for_rows(space_, d, h,
             [&](int64_t row) { lines_.add(sums + row, s.row.data(), 1, width.size); });
  }

  // Every channel of result (d, h, w) of an image with the channels last.
  void pixel(Scratch& s, const T* in, int64_t d, int64_t h, int64_t w) const {
    std::fill(s.sum.begin(), s.sum.end(), C{0});
    for_positions(space_, d, h, w, [&](int64_t at) {
      const C* line = read_line(in + at * space_.channels, space_.channels, s.spare.data());
      lines_.add(s.sum.data(), line, 1, space_.channels);
    });
    divide_all(s.sum.data(), space_.channels, divisor_of(space_, divisor_, d, h, w));
  }

  // The adjoint for `count` channels, in s.sum, on sums that are `pitch` apart.
  void spread_pixel(Scratch& s, C* sums, int64_t pitch, int64_t count, int64_t d, int64_t h,
                    int64_t w) const {
    divide_all(s.sum.data(), count, divisor_of(space_, divisor_, d, h, w));
    for_positions(space_, d, h, w,
                  [&](int64_t at) { lines_.add(sums + at * pitch, s.sum.data(), 1, count); });
  }

 private:
  static void divide_all(C* sum, int64_t count, int64_t divisor) {
    for (int64_t i = 0; i < count; ++i) {
      sum[i] /= static_cast<C>(divisor);
    }
  }

  void divide(C* sum, int64_t d, int64_t h) const {
    const WindowAxis& width = space_.axis[2];
    // Windows away from the borders have one divisor.
    const int64_t own = divisor_of(space_, divisor_, d, h, width.count / 2);
    int64_t first = 0;
    int64_t last = width.count;
    if (divisor_.fixed == 0) {
      while (first < last && divisor_of(space_, divisor_, d, h, first) != own) {
        sum[first] /= static_cast<C>(divisor_of(space_, divisor_, d, h, first));
        ++first;
      }
      if (width.adaptive) {
        last = first;
        for (int64_t x = first; x < width.count; ++x) {
          sum[x] /= static_cast<C>(divisor_of(space_, divisor_, d, h, x));
        }
      }
      while (!width.adaptive && last > first &&
             divisor_of(space_, divisor_, d, h, last - 1) != own) {
        --last;
        sum[last] /= static_cast<C>(divisor_of(space_, divisor_, d, h, last));
      }
    }
    divide_all(sum + first, last - first, own);
  }

  const WindowSpace& space_;
  Divisor divisor_;
  const WindowLines<C>& lines_ = window_lines<C>();
};

template <typename T>
void average_planes(T* made, const T* input, const AveragePool<T>& pool, const WindowSpace& space) {
  const WindowAxis& width = space.axis[2];
  for_output_rows(
      space, space.planes(), width.size * 4,
      [&] { return typename AveragePool<T>::Scratch(width.count, width.size); },
      [&](auto& s, int64_t plane, int64_t d, int64_t h) {
        pool.row(s, input + plane * space.in_plane(), d, h);
        const int64_t at = plane * space.out_plane() + (d * space.axis[1].count + h) * width.count;
        write_line(made + at, s.sum.data(), width.count);
      });
}

template <typename T>
void average_images(T* made, const T* input, const AveragePool<T>& pool, const WindowSpace& space) {
  const int64_t width = space.axis[2].count;
  const int64_t channels = space.channels;
  for_output_rows(
      space, space.batch, width * channels * 4,
      [&] { return typename AveragePool<T>::Scratch(channels, channels); },
      [&](auto& s, int64_t image, int64_t d, int64_t h) {
        for (int64_t x = 0; x < width; ++x) {
          pool.pixel(s, input + image * space.in_plane() * channels, d, h, x);
          const int64_t at = image * space.out_plane() + (d * space.axis[1].count + h) * width + x;
          write_line(made + at * channels, s.sum.data(), channels);
        }
      });
}

template <typename T>
void spread_planes(T* made, const T* grad, const AveragePool<T>& pool, const WindowSpace& space) {
  using C = Compute<T>;
  const WindowAxis& width = space.axis[2];
  const int64_t size = space.in_plane();
  const int64_t rows = space.axis[0].count * space.axis[1].count;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(size, 1));
  parallel_for(0, space.planes(), grain, [&](int64_t begin, int64_t end) {
    AverageScratch<C> s(width.count, width.size);
    std::vector<C> spare(is_small_float<T> ? static_cast<size_t>(size) : 0);
    for (int64_t plane = begin; plane < end; ++plane) {
      C* sums = spare.data();
      if constexpr (!is_small_float<T>) {
        sums = made + plane * size;
      }
      std::fill_n(sums, size, C{0});
      for (int64_t row = 0; row < rows; ++row) {
        const T* given = grad + plane * space.out_plane() + row * width.count;
        for (int64_t x = 0; x < width.count; ++x) {
          s.sum[static_cast<size_t>(x)] = load_value(given[x]);
        }
        pool.spread_row(s, sums, row / space.axis[1].count, row % space.axis[1].count);
      }
      if constexpr (is_small_float<T>) {
        write_line(made + plane * size, sums, size);
      }
    }
  });
}

template <typename T>
void spread_images(T* made, const T* grad, const AveragePool<T>& pool, const WindowSpace& space) {
  using C = Compute<T>;
  const int64_t size = space.in_plane();
  const int64_t width = space.axis[2].count;
  const int64_t high = space.axis[1].count;
  const auto make = [&] {
    return std::pair(AverageScratch<C>(kChannelBlock, kChannelBlock),
                     std::vector<C>(static_cast<size_t>(channel_sums_size<T>(size))));
  };
  for_channel_blocks(space, make, [&](auto& s, int64_t image, int64_t first, int64_t count) {
    auto& [lines, spare] = s;
    const ChannelSums<T> sums(made + image * size * space.channels + first, space.channels, size,
                              count, spare.data());
    for (int64_t i = 0; i < space.out_plane(); ++i) {
      const T* given = grad + (image * space.out_plane() + i) * space.channels + first;
      const C* line = read_line(given, count, lines.spare.data());
      std::copy_n(line, count, lines.sum.data());
      pool.spread_pixel(lines, sums.data(), sums.pitch(), count, i / width / high, i / width % high,
                        i % width);
    }
    sums.finish();
  });
}

}  // namespace

void average_pool(const Tensor& made, const Tensor& input, const WindowSpace& space,
                  Divisor divisor) {
  by_averaged_dtype(input.dtype(), [&]<typename T>(T) {
    if (made.numel() == 0) {
      return;
    }
    const AveragePool<T> pool(space, divisor);
    T* out = static_cast<T*>(made.data());
    const T* in = static_cast<const T*>(input.data());
    if (space.channels_last) {
      average_images(out, in, pool, space);
    } else {
      average_planes(out, in, pool, space);
    }
  });
}

void average_pool_gradient(const Tensor& made, const Tensor& grad, const WindowSpace& space,
                           Divisor divisor) {
  if (made.numel() == 0 || grad.numel() == 0) {  // no planes, or no windows
    return fill(made, 0);
  }
  by_averaged_dtype(made.dtype(), [&]<typename T>(T) {
    const AveragePool<T> pool(space, divisor);
    T* out = static_cast<T*>(made.data());
    const T* given = static_cast<const T*>(grad.data());
    if (space.channels_last) {
      spread_images(out, given, pool, space);
    } else {
      spread_planes(out, given, pool, space);
    }
  });
}

}  // namespace rushlight::kernels
