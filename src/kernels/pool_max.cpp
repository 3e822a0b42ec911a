#include <limits>
#include <vector>

#include "kernels/copy.h"
#include "kernels/window_space.h"

namespace rushlight::kernels {
namespace {

template <typename C>
constexpr C lowest() {
  return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                              : std::numeric_limits<C>::lowest();
}

template <typename F>
void by_pooled_dtype(DType dtype, F&& function) {
  by_real_dtype(dtype, "max_pool", [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                  std::is_floating_point_v<T> ||
                  (std::is_integral_v<T> && (std::is_signed_v<T> || std::is_same_v<T, uint8_t>))) {
      if constexpr (!std::is_same_v<T, bool>) {
        return function(T{});
      }
    }
    fail(ErrorKind::NotImplemented, "", "\"max_pool\" not implemented for '",
         scalar_type_name(dtype), "'");
  });
}

// Lines of one row of results, and of one row of the input.
template <typename C>
struct MaxScratch {
  std::vector<C> best;
  std::vector<int32_t> where;
  std::vector<C> row;
  std::vector<C> spare;

  MaxScratch(int64_t results, int64_t width)
      : best(static_cast<size_t>(results)),
        where(static_cast<size_t>(results)),
        row(static_cast<size_t>(width)),
        spare(static_cast<size_t>(width)) {}
};

template <typename T>
class MaxPool {
 public:
  using C = Compute<T>;
  using Scratch = MaxScratch<C>;
  MaxPool(const WindowSpace& space, const T* input) : space_(space), input_(input) {}

  // Places are found by lines where windows are regular and places fit 32 bits.
  bool by_lines() const {
    return !space_.axis[0].adaptive && !space_.axis[1].adaptive && !space_.axis[2].adaptive &&
           space_.in_plane() < std::numeric_limits<int32_t>::max();
  }

  // Row (d, h) of the results of a plane: best and where.
  void row_at(Scratch& s, int64_t plane, int64_t d, int64_t h) const {
    const WindowAxis& width = space_.axis[2];
    const T* in = input_ + plane * space_.in_plane();
    const int64_t corner =
        (space_.axis[0].begin(d) * space_.axis[1].size + space_.axis[1].begin(h)) * width.size;
    for (int64_t x = 0; x < width.count; ++x) {
      s.best[static_cast<size_t>(x)] = lowest<C>();
      s.where[static_cast<size_t>(x)] = static_cast<int32_t>(corner + width.begin(x));
    }
    for_rows(space_, d, h, [&](int64_t row) {
      const C* line = read_line(in + row, width.size, s.spare.data());
      for (int64_t tap = 0; tap < width.kernel; ++tap) {
        const int64_t first = width.first(tap);
        const int64_t at = first * width.stride - width.pad + tap * width.dilation;
        if (const int64_t count = width.last(tap) - first; count > 0) {
          lines_.max_at(s.best.data() + first, s.where.data() + first, line + at, width.stride,
                        count, static_cast<int32_t>(row + at), static_cast<int32_t>(width.stride));
        }
      }
    });
  }

  // The same without places: down the rows first, then along the one that results.
  void row(Scratch& s, int64_t plane, int64_t d, int64_t h) const {
    const WindowAxis& width = space_.axis[2];
    const T* in = input_ + plane * space_.in_plane();
    std::fill(s.row.begin(), s.row.end(), lowest<C>());
    std::fill(s.best.begin(), s.best.end(), lowest<C>());
    for_rows(space_, d, h, [&](int64_t row) {
      const C* line = read_line(in + row, width.size, s.spare.data());
      lines_.max(s.row.data(), line, 1, width.size);
    });
    if (width.adaptive) {
      for (int64_t x = 0; x < width.count; ++x) {
        for (int64_t at = width.begin(x); at < width.end(x); ++at) {
          lines_.max(s.best.data() + x, s.row.data() + at, 1, 1);
        }
      }
      return;
    }
    for (int64_t tap = 0; tap < width.kernel; ++tap) {
      const int64_t first = width.first(tap);
      const int64_t at = first * width.stride - width.pad + tap * width.dilation;
      if (const int64_t count = width.last(tap) - first; count > 0) {
        lines_.max(s.best.data() + first, s.row.data() + at, width.stride, count);
      }
    }
  }

  // Channels [first, first + count) of result (d, h, w) of an image with the channels last.
  template <bool kPlaces>
  void pixel(Scratch& s, int64_t image, int64_t first, int64_t count, int64_t d, int64_t h,
             int64_t w) const {
    const T* in = input_ + image * space_.in_plane() * space_.channels + first;
    std::fill_n(s.best.begin(), count, lowest<C>());
    const auto& [depth, height, width] = space_.axis;
    const int64_t corner =
        (depth.begin(d) * height.size + height.begin(h)) * width.size + width.begin(w);
    std::fill_n(s.where.begin(), count, static_cast<int32_t>(corner));
    for_positions(space_, d, h, w, [&](int64_t at) {
      const C* line = read_line(in + at * space_.channels, count, s.spare.data());
      if constexpr (kPlaces) {
        lines_.max_at(s.best.data(), s.where.data(), line, 1, count, static_cast<int32_t>(at), 0);
      } else {
        lines_.max(s.best.data(), line, 1, count);
      }
    });
  }

  // One result and its place, of any window.
  std::pair<C, int64_t> single(int64_t image, int64_t channel, int64_t d, int64_t h,
                               int64_t w) const {
    const int64_t step = space_.channels_last ? space_.channels : 1;
    const T* in =
        input_ + (space_.channels_last ? image * space_.in_plane() * space_.channels + channel
                                       : (image * space_.channels + channel) * space_.in_plane());
    const auto& [depth, height, width] = space_.axis;
    C best = lowest<C>();
    int64_t where = (depth.begin(d) * height.size + height.begin(h)) * width.size + width.begin(w);
    for_positions(space_, d, h, w, [&](int64_t at) {
      const C value = load_value(in[at * step]);
      if (value > best || value != value) {
        best = value;
        where = at;
      }
    });
    return {best, where};
  }

 private:
  const WindowSpace& space_;
  const T* input_;
  const WindowLines<C>& lines_ = window_lines<C>();
};

int64_t taps(const WindowSpace& space) {
  int64_t count = 1;
  for (const WindowAxis& axis : space.axis) {
    count *= axis.adaptive ? axis.size / std::max<int64_t>(axis.count, 1) + 1 : axis.kernel;
  }
  return count;
}

template <typename T>
void pool_planes(T* values, int64_t* places, const MaxPool<T>& pool, const WindowSpace& space) {
  const WindowAxis& width = space.axis[2];
  const bool by_lines = places == nullptr || pool.by_lines();
  const int64_t cost = width.count * taps(space);
  for_output_rows(
      space, space.planes(), cost,
      [&] { return typename MaxPool<T>::Scratch(width.count, width.size); },
      [&](auto& s, int64_t plane, int64_t d, int64_t h) {
        const int64_t at = plane * space.out_plane() + (d * space.axis[1].count + h) * width.count;
        if (!by_lines) {
          for (int64_t x = 0; x < width.count; ++x) {
            const auto [value, place] =
                pool.single(plane / space.channels, plane % space.channels, d, h, x);
            values[at + x] = store_value<T>(value);
            places[at + x] = place;
          }
          return;
        }
        if (places == nullptr) {
          pool.row(s, plane, d, h);
        } else {
          pool.row_at(s, plane, d, h);
          std::copy_n(s.where.begin(), width.count, places + at);
        }
        write_line(values + at, s.best.data(), width.count);
      });
}

template <typename T>
void pool_images(T* values, int64_t* places, const MaxPool<T>& pool, const WindowSpace& space) {
  const int64_t width = space.axis[2].count;
  const int64_t channels = space.channels;
  const bool large = space.in_plane() >= std::numeric_limits<int32_t>::max();
  for_output_rows(
      space, space.batch, width * channels * taps(space),
      [&] { return typename MaxPool<T>::Scratch(channels, channels); },
      [&](auto& s, int64_t image, int64_t d, int64_t h) {
        for (int64_t x = 0; x < width; ++x) {
          const int64_t at =
              (image * space.out_plane() + (d * space.axis[1].count + h) * width + x) * channels;
          if (places == nullptr) {
            pool.template pixel<false>(s, image, 0, channels, d, h, x);
          } else if (!large) {
            pool.template pixel<true>(s, image, 0, channels, d, h, x);
            std::copy_n(s.where.begin(), channels, places + at);
          } else {
            for (int64_t c = 0; c < channels; ++c) {
              const auto [value, place] = pool.single(image, c, d, h, x);
              s.best[static_cast<size_t>(c)] = value;
              places[at + c] = place;
            }
          }
          write_line(values + at, s.best.data(), channels);
        }
      });
}

// Sums of gradients in what is computed in, of a plane or of a block of channels.
template <typename T>
struct GradientScratch {
  MaxScratch<Compute<T>> best;
  std::vector<Compute<T>> sums;
  std::vector<int64_t> places;
};

template <typename T>
GradientScratch<T> make_gradient_scratch(int64_t sums, int64_t line, int64_t width) {
  return {MaxScratch<Compute<T>>(line, width), std::vector<Compute<T>>(static_cast<size_t>(sums)),
          std::vector<int64_t>(static_cast<size_t>(line))};
}

template <typename T>
void gradient_planes(T* made, const T* grad, const int64_t* places, const MaxPool<T>& pool,
                     const WindowSpace& space) {
  const WindowAxis& width = space.axis[2];
  const int64_t size = space.in_plane();
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(size, 1));
  parallel_for(0, space.planes(), grain, [&](int64_t begin, int64_t end) {
    auto s = make_gradient_scratch<T>(is_small_float<T> ? size : 0, width.count, width.size);
    for (int64_t plane = begin; plane < end; ++plane) {
      Compute<T>* sums = s.sums.data();
      if constexpr (!is_small_float<T>) {
        sums = made + plane * size;
      }
      std::fill_n(sums, size, Compute<T>{0});
      for (int64_t row = 0; row < space.axis[0].count * space.axis[1].count; ++row) {
        const int64_t d = row / space.axis[1].count;
        const int64_t h = row % space.axis[1].count;
        const int64_t at = plane * space.out_plane() + row * width.count;
        const int64_t* where = places + at;
        if (places == nullptr && pool.by_lines()) {
          pool.row_at(s.best, plane, d, h);
          std::copy_n(s.best.where.begin(), width.count, s.places.begin());
          where = s.places.data();
        } else if (places == nullptr) {
          for (int64_t x = 0; x < width.count; ++x) {
            s.places[static_cast<size_t>(x)] =
                pool.single(plane / space.channels, plane % space.channels, d, h, x).second;
          }
          where = s.places.data();
        }
        for (int64_t x = 0; x < width.count; ++x) {
          if (where[x] >= 0 && where[x] < size) {
            sums[where[x]] = static_cast<Compute<T>>(sums[where[x]] + load_value(grad[at + x]));
          }
        }
      }
      if constexpr (is_small_float<T>) {
        write_line(made + plane * size, sums, size);
      }
    }
  });
}

template <typename T>
void gradient_images(T* made, const T* grad, const int64_t* places, const MaxPool<T>& pool,
                     const WindowSpace& space) {
  const int64_t size = space.in_plane();
  const int64_t width = space.axis[2].count;
  const int64_t high = space.axis[1].count;
  const auto make = [&] {
    return make_gradient_scratch<T>(channel_sums_size<T>(size), kChannelBlock, kChannelBlock);
  };
  for_channel_blocks(space, make, [&](auto& s, int64_t image, int64_t first, int64_t count) {
    const ChannelSums<T> sums(made + image * size * space.channels + first, space.channels, size,
                              count, s.sums.data());
    const auto add = [&](int64_t c, int64_t where, Compute<T> given) {
      Compute<T>& sum = sums.data()[where * sums.pitch() + c];
      sum = static_cast<Compute<T>>(sum + given);
    };
    for (int64_t i = 0; i < space.out_plane(); ++i) {
      const int64_t at = (image * space.out_plane() + i) * space.channels + first;
      const int64_t d = i / width / high;
      const int64_t h = i / width % high;
      if (places == nullptr && size < std::numeric_limits<int32_t>::max()) {
        pool.template pixel<true>(s.best, image, first, count, d, h, i % width);
        const Compute<T>* given = read_line(grad + at, count, s.best.spare.data());
        for (int64_t c = 0; c < count; ++c) {
          add(c, s.best.where[static_cast<size_t>(c)], given[c]);
        }
        continue;
      }
      for (int64_t c = 0; c < count; ++c) {
        const int64_t where = places == nullptr
                                  ? pool.single(image, first + c, d, h, i % width).second
                                  : places[at + c];
        if (where >= 0 && where < size) {
          add(c, where, load_value(grad[at + c]));
        }
      }
    }
    sums.finish();
  });
}

int64_t* places_of(const Tensor& indices) {
  return indices.defined() ? indices.data_ptr<int64_t>() : nullptr;
}

}  // namespace

void max_pool(const Tensor& values, const Tensor& indices, const Tensor& input,
              const WindowSpace& space) {
  if (values.numel() == 0) {
    return;
  }
  by_pooled_dtype(input.dtype(), [&]<typename T>(T) {
    const MaxPool<T> pool(space, static_cast<const T*>(input.data()));
    T* out = static_cast<T*>(values.data());
    if (space.channels_last) {
      pool_images(out, places_of(indices), pool, space);
    } else {
      pool_planes(out, places_of(indices), pool, space);
    }
  });
}

void max_pool_gradient(const Tensor& made, const Tensor& grad, const Tensor& indices,
                       const Tensor& input, const WindowSpace& space) {
  if (made.numel() == 0) {
    return;
  }
  by_pooled_dtype(made.dtype(), [&]<typename T>(T) {
    const MaxPool<T> pool(space, input.defined() ? static_cast<const T*>(input.data()) : nullptr);
    T* out = static_cast<T*>(made.data());
    const T* given = static_cast<const T*>(grad.data());
    if (space.channels_last) {
      gradient_images(out, given, places_of(indices), pool, space);
    } else {
      gradient_planes(out, given, places_of(indices), pool, space);
    }
  });
}

}  // namespace rushlight::kernels
