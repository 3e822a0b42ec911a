// Packing of factors, for the vectors and in the namespace of RUSHLIGHT_LEVEL. Included once by the
// file of each level, with the level's target set.

namespace rushlight::RUSHLIGHT_LEVEL {

template <typename T>
inline T widen(T x) {
  return x;
}
inline float widen(BFloat16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
inline float widen(Half x) {
  return to_float(x);
}

// The first n elements, n < kWidth, of a source that ends there.
template <typename V, typename S>
typename V::R load_part(const S* p, int64_t n) {
  if constexpr (__is_same(S, typename V::T)) {
    return V::load_first(p, n);
  } else {
    S whole[V::kWidth] = {};
    for (int64_t i = 0; i < n; ++i) {
      whole[i] = p[i];
    }
    return V::load(whole);
  }
}

// Items are adjacent: each step of depth is a copy. All panels advance together, so that whole
// cache lines are read. What a vector writes beyond its step is written again by the next one.
template <typename V, typename S>
void pack_steps(const S* source, int64_t depth_stride, int64_t items, int64_t start, int64_t depth,
                int64_t width, typename V::T* out) {
  constexpr int64_t kWidth = V::kWidth;
  source += start * depth_stride;
  out += start * width;
  for (int64_t p = start; p < depth; ++p) {
    typename V::T* to = out;
    for (int64_t first = 0; first < items; first += width) {
      const int64_t count = items - first < width ? items - first : width;
      int64_t i = 0;
      for (; i + kWidth <= count; i += kWidth) {
        V::store(to + i, V::load(source + first + i));
      }
      if (i < count) {
        const bool spills = i + kWidth <= 2 * width && p + 1 < depth;
        if (count == width && first + i + kWidth <= items && spills) {
          V::store(to + i, V::load(source + first + i));
        } else {
          V::store_first(to + i, load_part<V>(source + first + i, count - i), count - i);
        }
      }
      for (i = count; i < width; ++i) {
        to[i] = 0;
      }
      to += depth * width;
    }
    source += depth_stride;
    out += width;
  }
}

// The same for whole panels of a width known here, all steps but the last: what a vector reads and
// writes beyond a step lies in the next one. Four steps of a panel at a time are one cache line or
// more. Returns the steps taken.
template <typename V, int64_t kPanel, typename S>
int64_t pack_panels(const S* source, int64_t depth_stride, int64_t panels, int64_t depth,
                    typename V::T* out) {
  constexpr int64_t kWidth = V::kWidth;
  constexpr int64_t kSteps = 4;
  const int64_t taken = depth > kSteps ? (depth - 1) / kSteps * kSteps : 0;
  for (int64_t p = 0; p < taken; p += kSteps) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      const S* from = source + p * depth_stride + panel * kPanel;
      typename V::T* to = out + (panel * depth + p) * kPanel;
#pragma GCC unroll 4
      for (int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kPanel; i += kWidth) {
          V::store(to + step * kPanel + i, V::load(from + step * depth_stride + i));
        }
      }
    }
  }
  return taken;
}

// Packs the first steps of those panels that are whole, where the width is one that tiles have.
template <typename V, typename S>
int64_t pack_known(const S* source, int64_t depth_stride, int64_t panels, int64_t depth,
                   int64_t width, typename V::T* out) {
  if (depth_stride < width + V::kWidth) {
    return 0;
  }
  switch (width) {
    case 6:
      // Two steps must hold what a vector writes beyond the first.
      if constexpr (V::kWidth <= 12) {
        return pack_panels<V, 6>(source, depth_stride, panels, depth, out);
      }
      return 0;
    case 8:
      return pack_panels<V, 8>(source, depth_stride, panels, depth, out);
    case 14:
      return pack_panels<V, 14>(source, depth_stride, panels, depth, out);
    case 16:
      return pack_panels<V, 16>(source, depth_stride, panels, depth, out);
    case 32:
      return pack_panels<V, 32>(source, depth_stride, panels, depth, out);
    default:
      return 0;
  }
}

// A square of one vector's width, of which kRows rows are there, transposed in registers. With
// `spills`, what the last vector writes beyond its step is written again later.
template <typename V, int kRows, typename S>
void pack_square(const S* source, int64_t item_stride, int64_t width, bool spills,
                 typename V::T* out) {
  constexpr int kWidth = V::kWidth;
  typename V::R rows[kWidth];
#pragma GCC unroll 16
  for (int r = 0; r < kWidth; ++r) {
    rows[r] = r < kRows ? V::load(source + r * item_stride) : V::zero();
  }
  V::transpose(rows);
#pragma GCC unroll 16
  for (int r = 0; r + 1 < kWidth; ++r) {
    V::store(out + r * width, rows[r]);
  }
  if (kRows == kWidth || spills) {
    V::store(out + (kWidth - 1) * width, rows[kWidth - 1]);
  } else {
    V::store_first(out + (kWidth - 1) * width, rows[kWidth - 1], kRows);
  }
}

// The same at the edges of a matrix and in panels that are no whole number of vectors.
template <typename V, typename S>
void pack_edge_square(const S* source, int64_t item_stride, int64_t items, int64_t wide,
                      int64_t width, typename V::T* out) {
  constexpr int kWidth = V::kWidth;
  typename V::R rows[kWidth];
#pragma GCC unroll 16
  for (int r = 0; r < kWidth; ++r) {
    rows[r] = r < items ? V::load(source + r * item_stride) : V::zero();
  }
  V::transpose(rows);
#pragma GCC unroll 16
  for (int r = 0; r < kWidth; ++r) {
    V::store_first(out + r * width, rows[r], wide);
  }
}

// Steps of depth that are less than a vector, where they are adjacent.
template <typename V, typename S>
void pack_last_steps(const S* source, int64_t item_stride, int64_t items, int64_t steps,
                     int64_t width, typename V::T* out) {
  constexpr int kWidth = V::kWidth;
  for (int64_t i = 0; i < width; i += kWidth) {
    const int64_t wide = width - i < kWidth ? width - i : kWidth;
    typename V::R rows[kWidth];
#pragma GCC unroll 16
    for (int r = 0; r < kWidth; ++r) {
      rows[r] = i + r < items ? load_part<V>(source + (i + r) * item_stride, steps) : V::zero();
    }
    V::transpose(rows);
#pragma GCC unroll 16
    for (int r = 0; r < kWidth; ++r) {
      if (r < steps) {
        V::store_first(out + r * width + i, rows[r], wide);
      }
    }
  }
}

// Steps of depth are adjacent. One panel. Where a vector is less than a cache line, the rows that
// come next are fetched meanwhile: each is a stream of its own, too short for the hardware to see.
// Whole lines come as fast without (measured).
template <typename V, typename S>
void pack_transpose(const S* source, int64_t item_stride, int64_t items, int64_t depth,
                    int64_t width, typename V::T* out) {
  constexpr int64_t kWidth = V::kWidth;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(S));
  // Panels of A of the tiles of this level.
  constexpr int kNarrow = kWidth > 14 ? 14 : 6;
  const int64_t whole = depth / kWidth * kWidth;
  const bool narrow = kWidth > kNarrow && width == kNarrow && items == kNarrow;
  for (int64_t i = 0; i < width; i += kWidth) {
    const int64_t wide = width - i < kWidth ? width - i : kWidth;
    const S* rows_at = source + i * item_stride;
    for (int64_t p = 0; p < whole; p += kWidth) {
      if (kWidth < kLine && p % kLine == 0) {
        for (int64_t r = 0; r < kWidth; ++r) {
          __builtin_prefetch(rows_at + (wide + r) * item_stride + p);
        }
      }
      typename V::T* to = out + p * width + i;
      if (i + kWidth <= items) {
        pack_square<V, kWidth>(rows_at + p, item_stride, width, true, to);
      } else if (narrow) {
        const bool spills = p + kWidth < depth;
        pack_square<V, kNarrow>(rows_at + p, item_stride, width, spills, to);
      } else {
        pack_edge_square<V>(rows_at + p, item_stride, items - i, wide, width, to);
      }
    }
  }
  if (depth - whole >= kWidth / 4) {
    pack_last_steps<V>(source + whole, item_stride, items, depth - whole, width,
                       out + whole * width);
    return;
  }
  for (int64_t p = whole; p < depth; ++p) {
    for (int64_t i = 0; i < width; ++i) {
      out[p * width + i] = i < items ? widen(source[i * item_stride + p]) : 0;
    }
  }
}

template <typename V, typename S>
void pack_copy(const S* source, int64_t depth_stride, int64_t items, int64_t depth, int64_t width,
               typename V::T* out) {
  const int64_t panels = items / width;
  const int64_t taken = pack_known<V>(source, depth_stride, panels, depth, width, out);
  if (taken == 0) {
    return pack_steps<V>(source, depth_stride, items, 0, depth, width, out);
  }
  const int64_t whole = panels * width;
  pack_steps<V>(source, depth_stride, whole, taken, depth, width, out);
  pack_steps<V>(source + whole, depth_stride, items - whole, 0, depth, width, out + whole * depth);
}

template <typename V, typename S>
void pack_from(const S* source, int64_t item_stride, int64_t depth_stride, int64_t items,
               int64_t depth, int64_t width, typename V::T* out) {
  if (item_stride == 1) {
    pack_copy<V>(source, depth_stride, items, depth, width, out);
    return;
  }
  for (int64_t first = 0; first < items; first += width) {
    const int64_t count = items - first < width ? items - first : width;
    if (depth_stride == 1) {
      pack_transpose<V>(source, item_stride, count, depth, width, out);
    } else {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < width; ++i) {
          out[p * width + i] = i < count ? widen(source[i * item_stride + p * depth_stride]) : 0;
        }
      }
    }
    source += width * item_stride;
    out += width * depth;
  }
}

// Calls `use` with `data` typed by its dtype.
template <typename F>
[[gnu::always_inline]] inline void with_f32_source(DType dtype, const void* data, F use) {
  switch (dtype) {
    case DType::BFloat16:
      return use(static_cast<const BFloat16*>(data));
    case DType::Float16:
      return use(static_cast<const Half*>(data));
    default:
      return use(static_cast<const float*>(data));
  }
}

inline void pack_f32(DType dtype, const void* source, int64_t item_stride, int64_t depth_stride,
                     int64_t items, int64_t depth, int64_t width, float* out) {
  with_f32_source(dtype, source, [&](const auto* typed) __attribute__((always_inline)) {
    pack_from<F32>(typed, item_stride, depth_stride, items, depth, width, out);
  });
}
inline void pack_f64(DType, const void* source, int64_t item_stride, int64_t depth_stride,
                     int64_t items, int64_t depth, int64_t width, double* out) {
  pack_from<F64>(static_cast<const double*>(source), item_stride, depth_stride, items, depth, width,
                 out);
}

}  // namespace rushlight::RUSHLIGHT_LEVEL
