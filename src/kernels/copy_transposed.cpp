#include "kernels/copy_transposed.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/element.h"
#include "runtime/parallel.h"
#include "runtime/streaming.h"

namespace rushlight::kernels {
namespace {

// Along the source's contiguous dimension a tile is kLines cache lines wide; along the target's,
// one. Powers of two as row lengths map all rows of a tile to one set of the first cache, so a
// tile is gathered into a buffer, and leaves it by whole lines that bypass the cache.
constexpr int64_t kLineBytes = 64;
constexpr int64_t kLines = 4;

void stream_line(void* to, const void* from) {
#if defined(__SSE2__)
  auto* out = static_cast<__m128i*>(to);
  const auto* in = static_cast<const __m128i*>(from);
  for (int i = 0; i < 4; ++i) {
    _mm_stream_si128(out + i, _mm_load_si128(in + i));
  }
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

// buffer[j][i] = from[i][j] for a block of 4 x 4.
inline void turn_block(uint32_t* buffer, int64_t buffer_row, const uint32_t* from,
                       int64_t from_row) {
#if defined(__SSE2__)
  __m128i rows[4];
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_row));
  }
  const __m128i a = _mm_unpacklo_epi32(rows[0], rows[1]);
  const __m128i b = _mm_unpacklo_epi32(rows[2], rows[3]);
  const __m128i c = _mm_unpackhi_epi32(rows[0], rows[1]);
  const __m128i d = _mm_unpackhi_epi32(rows[2], rows[3]);
  const __m128i out[4] = {_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b),
                          _mm_unpacklo_epi64(c, d), _mm_unpackhi_epi64(c, d)};
  for (int j = 0; j < 4; ++j) {
    _mm_store_si128(reinterpret_cast<__m128i*>(buffer + j * buffer_row), out[j]);
  }
#else
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) {
      buffer[j * buffer_row + i] = from[i * from_row + j];
    }
  }
#endif
}

// A whole tile into the buffer: one line of the target (`height` elements) by `width`.
template <typename T>
void gather_tile(T* buffer, const T* from, int64_t from_row) {
  constexpr int64_t height = kLineBytes / sizeof(T);
  constexpr int64_t width = kLines * height;
  if constexpr (sizeof(T) == 4) {
    for (int64_t i = 0; i < height; i += 4) {
      for (int64_t j = 0; j < width; j += 4) {
        turn_block(buffer + j * height + i, height, from + i * from_row + j, from_row);
      }
    }
  } else {
    for (int64_t i = 0; i < height; ++i) {
      const T* row = from + i * from_row;
      for (int64_t j = 0; j < width; ++j) {
        buffer[j * height + i] = row[j];
      }
    }
  }
}

// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns.
template <typename T>
void transpose_band(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows,
                    int64_t columns) {
  constexpr int64_t height = kLineBytes / sizeof(T);
  constexpr int64_t width = kLines * height;
  alignas(kLineBytes) T buffer[height * width];
  const bool streams = reinterpret_cast<uintptr_t>(to) % kLineBytes == 0 && to_row % height == 0;
  for (int64_t i = 0; i < rows; i += height) {
    const int64_t tall = std::min(height, rows - i);
    const bool whole = tall == height && columns == width;
    if (whole) {
      gather_tile(buffer, from + i * from_row, from_row);
    } else {
      for (int64_t y = 0; y < tall; ++y) {
        for (int64_t x = 0; x < columns; ++x) {
          buffer[x * height + y] = from[(i + y) * from_row + x];
        }
      }
    }
    for (int64_t x = 0; x < columns; ++x) {
      T* line = to + x * to_row + i;
      if (streams && tall == height) {
        stream_line(line, buffer + x * height);
      } else {
        std::memcpy(line, buffer + x * height, static_cast<size_t>(tall) * sizeof(T));
      }
    }
  }
}

template <typename T>
void run_bands(const Iteration& space, int turned) {
  constexpr int64_t width = kLines * kLineBytes / static_cast<int64_t>(sizeof(T));
  const int inner = space.rank - 1;
  const Operand& to = space.operands[0];
  const Operand& from = space.operands[1];
  const int64_t columns = space.sizes[turned];
  const int64_t bands = (columns + width - 1) / width;
  int64_t outer = 1;
  for (int d = 0; d < inner; ++d) {
    outer *= d == turned ? 1 : space.sizes[d];
  }
  const int64_t band_bytes = width * space.sizes[inner] * static_cast<int64_t>(sizeof(T));
  const int64_t grain = std::max<int64_t>(1, (256 * 1024) / std::max<int64_t>(band_bytes, 1));
  parallel_for(0, outer * bands, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % bands * width;
      int64_t at = task / bands;
      int64_t to_offset = column * to.strides[turned];
      int64_t from_offset = column;
      for (int d = inner - 1; d >= 0; --d) {
        if (d != turned) {
          to_offset += at % space.sizes[d] * to.strides[d];
          from_offset += at % space.sizes[d] * from.strides[d];
          at /= space.sizes[d];
        }
      }
      transpose_band(reinterpret_cast<T*>(to.data) + to_offset, to.strides[turned],
                     reinterpret_cast<const T*>(from.data) + from_offset, from.strides[inner],
                     space.sizes[inner], std::min(width, columns - column));
    }
    finish_streams();
  });
}

constexpr int64_t kMostPlanes = 4;
constexpr int64_t kPlanePart = 8192;  // elements of a plane for a task

// planes[p * apart + i] = pixels[i * kPlanes + p], or back.
template <int kPlanes, typename T>
void split_planes(T* planes, int64_t apart, const T* pixels, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (int p = 0; p < kPlanes; ++p) {
      planes[p * apart + i] = pixels[i * kPlanes + p];
    }
  }
}

template <int kPlanes, typename T>
void join_planes(T* pixels, const T* planes, int64_t apart, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (int p = 0; p < kPlanes; ++p) {
      pixels[i * kPlanes + p] = planes[p * apart + i];
    }
  }
}

// Images of few planes, whose pixels lie together on one side and planes on the other: dimension
// `plane` counts the planes, `pixel` the pixels.
template <typename T>
void copy_planes(const Iteration& space, int plane, int pixel, bool joins) {
  const Operand& to = space.operands[0];
  const Operand& from = space.operands[1];
  const int64_t pixels = space.sizes[pixel];
  const int64_t parts = (pixels + kPlanePart - 1) / kPlanePart;
  int64_t outer = 1;
  for (int d = 0; d < space.rank; ++d) {
    outer *= d == plane || d == pixel ? 1 : space.sizes[d];
  }
  const auto by_planes = [&]<int kPlanes>(std::integral_constant<int, kPlanes>) {
    parallel_for(0, outer * parts, 4, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task % parts * kPlanePart;
        int64_t at = task / parts;
        int64_t to_offset = first * to.strides[pixel];
        int64_t from_offset = first * from.strides[pixel];
        for (int d = space.rank - 1; d >= 0; --d) {
          if (d != plane && d != pixel) {
            to_offset += at % space.sizes[d] * to.strides[d];
            from_offset += at % space.sizes[d] * from.strides[d];
            at /= space.sizes[d];
          }
        }
        T* target = reinterpret_cast<T*>(to.data) + to_offset;
        const T* source = reinterpret_cast<const T*>(from.data) + from_offset;
        const int64_t count = std::min(kPlanePart, pixels - first);
        if (joins) {
          join_planes<kPlanes>(target, source, from.strides[plane], count);
        } else {
          split_planes<kPlanes>(target, to.strides[plane], source, count);
        }
      }
    });
  };
  switch (space.sizes[plane]) {
    case 2:
      return by_planes(std::integral_constant<int, 2>{});
    case 3:
      return by_planes(std::integral_constant<int, 3>{});
    default:
      return by_planes(std::integral_constant<int, 4>{});
  }
}

// Finds two dimensions of which one counts planes: next to each other on one side, and far on the
// other.
bool copy_few_planes(const Iteration& space) {
  const int inner = space.rank - 1;
  const Operand& to = space.operands[0];
  const Operand& from = space.operands[1];
  for (int d = 0; d < inner; ++d) {
    const bool joins = from.strides[d] == 1;
    const int plane = joins && space.sizes[inner] <= kMostPlanes ? inner : d;
    const int pixel = plane == d ? inner : d;
    const int64_t planes = space.sizes[plane];
    const Operand& together = plane == inner ? to : from;
    if (planes < 2 || planes > kMostPlanes || space.sizes[pixel] < 64 ||
        together.strides[plane] != 1 || together.strides[pixel] != planes ||
        (plane == inner ? from : to).strides[pixel] != 1) {
      continue;
    }
    by_element_size(to.element_size,
                    [&]<typename T>(T) { copy_planes<T>(space, plane, pixel, plane == inner); });
    return true;
  }
  return false;
}

}  // namespace

bool copy_transposed(const Iteration& space) {
  const int inner = space.rank - 1;
  const Operand& to = space.operands[0];
  const Operand& from = space.operands[1];
  if (space.numel < 4096 || to.strides[inner] != 1 || from.strides[inner] <= 1) {
    return false;
  }
  if (copy_few_planes(space)) {
    return true;
  }
  if (space.sizes[inner] < 8) {
    return false;
  }
  for (int d = 0; d < inner; ++d) {
    if (from.strides[d] == 1 && space.sizes[d] >= 8) {
      by_element_size(to.element_size, [&]<typename T>(T) { run_bands<T>(space, d); });
      return true;
    }
  }
  return false;
}

}  // namespace rushlight::kernels
