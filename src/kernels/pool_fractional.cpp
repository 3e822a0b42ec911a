#include "kernels/pool_fractional.h"

#include <limits>
#include <vector>

#include "kernels/copy.h"
#include "kernels/element.h"
#include "kernels/element_type.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

// As a number of T holds it.
template <typename T>
Compute<T> rounded(Compute<T> value) {
  return load_value(store_value<T>(value));
}

// Where windows begin: an even step, rounded down from a random start; the last one ends the line.
template <typename T>
std::vector<int64_t> beginnings(const WindowAxis& axis, Compute<T> sample) {
  using C = Compute<T>;
  std::vector<int64_t> made(static_cast<size_t>(axis.count), axis.size - axis.kernel);
  if (axis.count > 1) {
    const C step = rounded<T>(rounded<T>(static_cast<C>(axis.size - axis.kernel)) /
                              rounded<T>(static_cast<C>(axis.count - 1)));
    const auto origin = static_cast<int64_t>(rounded<T>(sample * step));
    for (int64_t i = 0; i + 1 < axis.count; ++i) {
      const C at = rounded<T>(rounded<T>(rounded<T>(static_cast<C>(i)) + sample) * step);
      // Rounding of half types must not lead outside.
      made[static_cast<size_t>(i)] =
          std::clamp<int64_t>(static_cast<int64_t>(at) - origin, 0, axis.size - axis.kernel);
    }
  }
  return made;
}

template <typename T>
void pool_plane(T* values, int64_t* places, const T* plane, const WindowSpace& space,
                const std::vector<int64_t> (&begin)[3]) {
  const auto& [depth, height, width] = space.axis;
  int64_t out = 0;
  for (int64_t z0 : begin[0]) {
    for (int64_t y0 : begin[1]) {
      for (int64_t x0 : begin[2]) {
        int64_t where = (z0 * height.size + y0) * width.size + x0;
        auto best = -std::numeric_limits<Compute<T>>::infinity();
        for (int64_t z = z0; z < z0 + depth.kernel; ++z) {
          for (int64_t y = y0; y < y0 + height.kernel; ++y) {
            for (int64_t x = x0; x < x0 + width.kernel; ++x) {
              const int64_t at = (z * height.size + y) * width.size + x;
              const auto value = load_value(plane[at]);
              if (value > best || value != value) {
                best = value;
                where = at;
              }
            }
          }
        }
        values[out] = store_value<T>(best);
        places[out++] = where;
      }
    }
  }
}

}  // namespace

void fractional_max_pool(const Tensor& values, const Tensor& indices, const Tensor& input,
                         const WindowSpace& space, int dims, const Tensor& samples) {
  by_floating_dtype(input.dtype(), "fractional_max_pool", [&]<typename T>(T) {
    T* out = static_cast<T*>(values.data());
    auto* places = static_cast<int64_t*>(indices.data());
    const T* in = static_cast<const T*>(input.data());
    const T* random = static_cast<const T*>(samples.data());
    parallel_for(0, space.planes(), 1, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        const auto number = [&](int i) { return load_value(random[plane * dims + i]); };
        const std::vector<int64_t> begin[3] = {
            dims == 3 ? beginnings<T>(space.axis[0], number(0)) : std::vector<int64_t>{0},
            beginnings<T>(space.axis[1], number(1)),
            beginnings<T>(space.axis[2], number(dims == 3 ? 2 : 0))};
        pool_plane(out + plane * space.out_plane(), places + plane * space.out_plane(),
                   in + plane * space.in_plane(), space, begin);
      }
    });
  });
}

void max_unpool(const Tensor& made, const Tensor& input, const Tensor& indices,
                const WindowSpace& space) {
  // The planes that are made are the space's input.
  const auto* places = static_cast<const int64_t*>(indices.data());
  const int64_t size = space.in_plane();
  zero(made);
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (places[i] < 0 || places[i] >= size) {
      fail(ErrorKind::Runtime, "max_unpool", "Found an invalid max index: ", places[i],
           " (output volumes are of size ", space.axis[0].size, "x", space.axis[1].size, "x",
           space.axis[2].size, ")");
    }
  }
  const int64_t count = space.out_plane();
  const int64_t channels = space.channels;
  by_element_size(input.element_size(), [&]<typename T>(T) {
    T* out = static_cast<T*>(made.data());
    const T* in = static_cast<const T*>(input.data());
    if (space.channels_last) {
      parallel_for(0, space.batch, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first * count * channels; i < last * count * channels; ++i) {
          const int64_t image = i / (count * channels);
          out[(image * size + places[i]) * channels + i % channels] = in[i];
        }
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(count, 1));
    parallel_for(0, space.planes(), grain, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        for (int64_t i = plane * count; i < (plane + 1) * count; ++i) {
          out[plane * size + places[i]] = in[i];
        }
      }
    });
  });
}

}  // namespace rushlight::kernels
