#include "kernels/columns.h"

#include <complex>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/element.h"
#include "kernels/window_space.h"

namespace rushlight::kernels {
namespace {

// Calls function(y tap, x tap, output row, input row or -1, first, last, input position of first)
// for each stretch of a row of results that one tap of the window fills.
template <typename F>
void for_stretches(const WindowSpace& space, F&& function) {
  const WindowAxis& height = space.axis[1];
  const WindowAxis& width = space.axis[2];
  for (int64_t ky = 0; ky < height.kernel; ++ky) {
    for (int64_t kx = 0; kx < width.kernel; ++kx) {
      const int64_t first = width.first(kx);
      const int64_t last = std::max(width.last(kx), first);
      const int64_t at = first * width.stride - width.pad + kx * width.dilation;
      for (int64_t oy = 0; oy < height.count; ++oy) {
        const int64_t y = oy * height.stride - height.pad + ky * height.dilation;
        function(ky * width.kernel + kx, oy, y >= 0 && y < height.size ? y : -1,
                 std::min(first, width.count), last, at);
      }
    }
  }
}

template <typename T>
void gather_plane(T* columns, const T* plane, const WindowSpace& space) {
  const WindowAxis& width = space.axis[2];
  for_stretches(
      space, [&](int64_t tap, int64_t oy, int64_t y, int64_t first, int64_t last, int64_t at) {
        T* out = columns + (tap * space.axis[1].count + oy) * width.count;
        if (y < 0 || last <= first) {
          std::memset(static_cast<void*>(out), 0, static_cast<size_t>(width.count) * sizeof(T));
          return;
        }
        const T* in = plane + y * width.size + at;
        const auto bytes = [](int64_t count) { return static_cast<size_t>(count) * sizeof(T); };
        std::memset(static_cast<void*>(out), 0, bytes(first));
        if (width.stride == 1) {
          std::memcpy(static_cast<void*>(out + first), in, bytes(last - first));
        } else {
          for (int64_t x = first; x < last; ++x) {
            out[x] = in[(x - first) * width.stride];
          }
        }
        std::memset(static_cast<void*>(out + last), 0, bytes(width.count - last));
      });
}

// What columns are added up in.
template <typename T>
struct Added {
  using C = Compute<T>;
  static void line(C* sums, int64_t stride, const T* in, int64_t count, C* spare) {
    window_lines<C>().spread(sums, stride, read_line(in, count, spare), count);
  }
};
template <typename T>
struct Added<std::complex<T>> {
  using C = std::complex<T>;
  static void line(C* sums, int64_t stride, const C* in, int64_t count, C*) {
    for (int64_t i = 0; i < count; ++i) {
      sums[i * stride] += in[i];
    }
  }
};
template <>
struct Added<bool> {
  using C = bool;
  static void line(bool* sums, int64_t stride, const bool* in, int64_t count, bool*) {
    for (int64_t i = 0; i < count; ++i) {
      sums[i * stride] = sums[i * stride] || in[i];
    }
  }
};

template <typename T>
void scatter_planes(T* made, const T* columns, const WindowSpace& space) {
  using C = typename Added<T>::C;
  constexpr bool kDirect = std::is_same_v<C, T>;
  const WindowAxis& width = space.axis[2];
  const int64_t size = space.in_plane();
  const int64_t taps = space.axis[1].kernel * width.kernel;
  const auto length = [](int64_t count) { return static_cast<size_t>(count); };
  parallel_for(0, space.planes(), 1, [&](int64_t begin, int64_t end) {
    auto own = std::make_unique<C[]>(kDirect ? 0 : length(size));
    auto spare = std::make_unique<C[]>(length(width.count));
    for (int64_t plane = begin; plane < end; ++plane) {
      C* sums = own.get();
      if constexpr (kDirect) {
        sums = made + plane * size;
      }
      std::fill_n(sums, size, C{});
      const T* from = columns + plane * taps * space.out_plane();
      for_stretches(space, [&](int64_t tap, int64_t oy, int64_t y, int64_t first, int64_t last,
                               int64_t at) {
        if (y >= 0 && last > first) {
          const T* in = from + (tap * space.axis[1].count + oy) * width.count + first;
          Added<T>::line(sums + y * width.size + at, width.stride, in, last - first, spare.get());
        }
      });
      if constexpr (!kDirect) {
        write_line(made + plane * size, sums, size);
      }
    }
  });
}

template <typename T>
void scatter_into(const Tensor& made, const Tensor& columns, const WindowSpace& space) {
  scatter_planes(static_cast<T*>(made.data()), static_cast<const T*>(columns.data()), space);
}

}  // namespace

void planes_to_columns(const Tensor& columns, const Tensor& input, const WindowSpace& space) {
  const int64_t size = space.axis[1].kernel * space.axis[2].kernel * space.out_plane();
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(size, 1));
  by_element_size(input.element_size(), [&]<typename T>(T) {
    T* out = static_cast<T*>(columns.data());
    const T* in = static_cast<const T*>(input.data());
    parallel_for(0, space.planes(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        gather_plane(out + plane * size, in + plane * space.in_plane(), space);
      }
    });
  });
}

void columns_to_planes(const Tensor& made, const Tensor& columns, const WindowSpace& space) {
  switch (made.dtype()) {
    case DType::Float32:
      return scatter_into<float>(made, columns, space);
    case DType::Float64:
      return scatter_into<double>(made, columns, space);
    case DType::Float16:
      return scatter_into<Half>(made, columns, space);
    case DType::BFloat16:
      return scatter_into<BFloat16>(made, columns, space);
    case DType::Complex64:
      return scatter_into<std::complex<float>>(made, columns, space);
    case DType::Complex128:
      return scatter_into<std::complex<double>>(made, columns, space);
    case DType::Bool:
      return scatter_into<bool>(made, columns, space);
    default:
      fail(ErrorKind::NotImplemented, "", "\"col2im\" not implemented for '",
           scalar_type_name(made.dtype()), "'");
  }
}

}  // namespace rushlight::kernels
