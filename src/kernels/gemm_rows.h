// Packing, products of rows and the epilogue, for the vectors and in the namespace of
// RUSHLIGHT_LEVEL. Included once by the file of each level that has vectors for it.

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

template <typename T>
inline void narrow(T x, T* out) {
  *out = x;
}
inline void narrow(float x, BFloat16* out) {
  *out = to_bfloat16(x);
}
inline void narrow(float x, Half* out) {
  *out = to_half(x);
}

template <typename S>
inline S* writable(const S* p) {
  return const_cast<S*>(p);
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

// ---- packing
// -------------------------------------------------------------------------------------

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
        if (count == width && first + i + kWidth <= items && p + 1 < depth) {
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
      return pack_panels<V, 6>(source, depth_stride, panels, depth, out);
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
#pragma GCC unroll 8
  for (int r = 0; r < kWidth; ++r) {
    rows[r] = r < kRows ? V::load(source + r * item_stride) : V::zero();
  }
  V::transpose(rows);
#pragma GCC unroll 8
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
  constexpr int64_t kWidth = V::kWidth;
  typename V::R rows[kWidth];
  for (int64_t r = 0; r < kWidth; ++r) {
    rows[r] = r < items ? V::load(source + r * item_stride) : V::zero();
  }
  V::transpose(rows);
  for (int64_t r = 0; r < kWidth; ++r) {
    V::store_first(out + r * width, rows[r], wide);
  }
}

// Steps of depth are adjacent. One panel. The rows that come next are fetched meanwhile: each is a
// stream of its own, too short for the hardware to see.
template <typename V, typename S>
void pack_transpose(const S* source, int64_t item_stride, int64_t items, int64_t depth,
                    int64_t width, typename V::T* out) {
  constexpr int64_t kWidth = V::kWidth;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(S));
  constexpr int64_t kNarrow = 6;
  const int64_t whole = depth / kWidth * kWidth;
  const bool narrow = kWidth > kNarrow && width == kNarrow && items == kNarrow;
  for (int64_t i = 0; i < width; i += kWidth) {
    const int64_t wide = width - i < kWidth ? width - i : kWidth;
    const S* rows_at = source + i * item_stride;
    for (int64_t p = 0; p < whole; p += kWidth) {
      if (p % kLine == 0) {
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

// ---- products of rows
// ----------------------------------------------------------------------------

// Four chains for each row hide the latency of the additions.
template <typename V, typename S>
void dot_rows_from(const S* matrix, int64_t stride, int64_t rows, int64_t k, const typename V::T* x,
                   typename V::T* out) {
  using R = typename V::R;
  constexpr int64_t kWidth = V::kWidth;
  for (int64_t i = 0; i < rows; ++i) {
    const S* row = matrix + i * stride;
    R sum[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    int64_t p = 0;
    for (; p + 4 * kWidth <= k; p += 4 * kWidth) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        sum[u] = V::fma(V::load(row + p + u * kWidth), V::load(x + p + u * kWidth), sum[u]);
      }
    }
    for (; p + kWidth <= k; p += kWidth) {
      sum[0] = V::fma(V::load(row + p), V::load(x + p), sum[0]);
    }
    if (p < k) {
      sum[1] = V::fma(load_part<V>(row + p, k - p), V::load_first(x + p, k - p), sum[1]);
    }
    out[i] = V::sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

// Sums stay in the first-level cache while four rows at a time stream past them.
template <typename V, typename S>
void sum_rows_from(const S* matrix, int64_t stride, int64_t cols, int64_t k, const typename V::T* x,
                   typename V::T* out) {
  using R = typename V::R;
  constexpr int64_t kWidth = V::kWidth;
  constexpr int64_t kBlock = 1024;
  for (int64_t start = 0; start < cols; start += kBlock) {
    const int64_t n = cols - start < kBlock ? cols - start : kBlock;
    typename V::T* sums = out + start;
    for (int64_t j = 0; j < n; ++j) {
      sums[j] = 0;
    }
    int64_t p = 0;
    while (p < k) {
      const int64_t step = k - p >= 4 ? 4 : 1;
      const S* row = matrix + p * stride + start;
      const R factor[4] = {V::set1(x[p]), V::set1(step == 4 ? x[p + 1] : 0),
                           V::set1(step == 4 ? x[p + 2] : 0), V::set1(step == 4 ? x[p + 3] : 0)};
      int64_t j = 0;
      for (; j + kWidth <= n; j += kWidth) {
        R sum = V::fma(factor[0], V::load(row + j), V::load(sums + j));
        if (step == 4) {
          sum = V::fma(factor[1], V::load(row + stride + j), sum);
          sum = V::fma(factor[2], V::load(row + 2 * stride + j), sum);
          sum = V::fma(factor[3], V::load(row + 3 * stride + j), sum);
        }
        V::store(sums + j, sum);
      }
      if (j < n) {
        R sum = V::load_first(sums + j, n - j);
        for (int64_t u = 0; u < step; ++u) {
          sum = V::fma(factor[u], load_part<V>(row + u * stride + j, n - j), sum);
        }
        V::store_first(sums + j, sum, n - j);
      }
      p += step;
    }
  }
}

// ---- rows of C
// -----------------------------------------------------------------------------------

template <typename V, typename S>
void load_row_from(const S* source, int64_t stride, int64_t n, typename V::T* out) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + V::kWidth <= n; i += V::kWidth) {
      V::store(out + i, V::load(source + i));
    }
  }
  for (; i < n; ++i) {
    out[i] = widen(source[i * stride]);
  }
}

template <typename V, typename S>
void store_row_to(const typename V::T* source, int64_t n, S* out, int64_t stride) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + V::kWidth <= n; i += V::kWidth) {
      V::store(out + i, V::load(source + i));
    }
  }
  for (; i < n; ++i) {
    narrow(source[i], out + i * stride);
  }
}

template <typename V>
void add_row(const typename V::T* addend, typename V::T scale, int64_t n, typename V::T* out) {
  const typename V::R factor = V::set1(scale);
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) {
    V::store(out + i, V::fma(factor, V::load(addend + i), V::load(out + i)));
  }
  if (i < n) {
    const typename V::R old = V::load_first(out + i, n - i);
    V::store_first(out + i, V::fma(factor, V::load_first(addend + i, n - i), old), n - i);
  }
}

[[gnu::always_inline]] inline F32::R activated(Activation activation, F32::R x) {
  switch (activation) {
    case Activation::relu:
      return F32::max(F32::zero(), x);
    case Activation::gelu_erf:
      return x * normal_cdf(x);
    case Activation::gelu_tanh: {
      // 0.5 (1 + tanh u) is sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
      const F32::R cubic = F32::fma(x * x * x, F32::set1(0.044715f), x);
      return x * sigmoid(cubic * F32::set1(1.5957691216f));
    }
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::none:
      break;
  }
  return x;
}

inline void activate_f32(Activation activation, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + F32::kWidth <= n; i += F32::kWidth) {
    F32::store(out + i, activated(activation, F32::load(out + i)));
  }
  if (i < n) {
    const F32::R last = activated(activation, F32::load_first(out + i, n - i));
    F32::store_first(out + i, last, n - i);
  }
}

inline void activate_f64(Activation activation, int64_t n, double* out) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = out[i];
    switch (activation) {
      case Activation::relu:
        out[i] = x < 0 ? 0 : x;
        break;
      case Activation::gelu_erf:
        out[i] = x * 0.5 * __builtin_erfc(-x * 0.70710678118654752440);
        break;
      case Activation::gelu_tanh:
        out[i] = x / (1 + __builtin_exp(-1.5957691216057307118 * (x + 0.044715 * x * x * x)));
        break;
      case Activation::silu:
        out[i] = x / (1 + __builtin_exp(-x));
        break;
      case Activation::none:
        break;
    }
  }
}

// ---- choice of the source type
// -------------------------------------------------------------------

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
inline void dot_rows_f32(DType dtype, const void* matrix, int64_t stride, int64_t rows, int64_t k,
                         const float* x, float* out) {
  with_f32_source(dtype, matrix, [&](const auto* typed) __attribute__((always_inline)) {
    dot_rows_from<F32>(typed, stride, rows, k, x, out);
  });
}
inline void dot_rows_f64(DType, const void* matrix, int64_t stride, int64_t rows, int64_t k,
                         const double* x, double* out) {
  dot_rows_from<F64>(static_cast<const double*>(matrix), stride, rows, k, x, out);
}
inline void sum_rows_f32(DType dtype, const void* matrix, int64_t stride, int64_t cols, int64_t k,
                         const float* x, float* out) {
  with_f32_source(dtype, matrix, [&](const auto* typed) __attribute__((always_inline)) {
    sum_rows_from<F32>(typed, stride, cols, k, x, out);
  });
}
inline void sum_rows_f64(DType, const void* matrix, int64_t stride, int64_t cols, int64_t k,
                         const double* x, double* out) {
  sum_rows_from<F64>(static_cast<const double*>(matrix), stride, cols, k, x, out);
}
inline void load_row_f32(DType dtype, const void* source, int64_t stride, int64_t n, float* out) {
  with_f32_source(dtype, source, [&](const auto* typed) __attribute__((always_inline)) {
    load_row_from<F32>(typed, stride, n, out);
  });
}
inline void load_row_f64(DType, const void* source, int64_t stride, int64_t n, double* out) {
  load_row_from<F64>(static_cast<const double*>(source), stride, n, out);
}
inline void store_row_f32(DType dtype, const float* source, int64_t n, void* out, int64_t stride) {
  with_f32_source(dtype, out, [&](const auto* typed) __attribute__((always_inline)) {
    store_row_to<F32>(source, n, writable(typed), stride);
  });
}
inline void store_row_f64(DType, const double* source, int64_t n, void* out, int64_t stride) {
  store_row_to<F64>(source, n, static_cast<double*>(out), stride);
}

// The table of a level whose vectors are F32 and F64.
inline constexpr int kRows = 6;
constexpr GemmEngine<float> kEngineF32 = {kRows,         2 * F32::kWidth,   block<F32, kRows>,
                                          F32::kWidth,   strip<F32, kRows>, pack_f32,
                                          dot_rows_f32,  sum_rows_f32,      load_row_f32,
                                          store_row_f32, add_row<F32>,      activate_f32};
constexpr GemmEngine<double> kEngineF64 = {kRows,         2 * F64::kWidth,   block<F64, kRows>,
                                           F64::kWidth,   strip<F64, kRows>, pack_f64,
                                           dot_rows_f64,  sum_rows_f64,      load_row_f64,
                                           store_row_f64, add_row<F64>,      activate_f64};

}  // namespace rushlight::RUSHLIGHT_LEVEL
