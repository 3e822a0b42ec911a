// The inner loops of convolutions, for the vectors and in the namespace of RUSHLIGHT_LEVEL.
// Included once by the file of each level, with the level's target set.

namespace rushlight::RUSHLIGHT_LEVEL {

template <typename V>
[[gnu::always_inline]] inline void copy_panel(const typename V::T* from, typename V::T* to) {
  const typename V::R low = V::load(from);
  const typename V::R high = V::load(from + V::kWidth);
  V::store(to, low);
  V::store(to + V::kWidth, high);
}

// What a run writes beyond its end is written again by the next one, or by the next row.
template <typename V>
void pack_windows(const typename V::T* base, const int64_t* rows, int64_t depth,
                  const WindowRun* runs, int64_t count, typename V::T* out) {
  constexpr int64_t kPanel = 2 * V::kWidth;
  const typename V::T* first = base + runs[0].source;
  if (count == 1) {
    for (int64_t p = 0; p < depth; ++p) {
      copy_panel<V>(first + rows[p], out);
      out += kPanel;
    }
    return;
  }
  for (int64_t p = 0; p < depth; ++p) {
    for (int64_t r = 0; r < count; ++r) {
      copy_panel<V>(base + runs[r].source + rows[p], out + runs[r].at);
    }
    out += kPanel;
  }
}

template <typename V, int kRows, int kVectors>
void rows_tile(int64_t outer, int64_t inner, const typename V::T* a, int64_t a_outer,
               const int64_t* rows, const typename V::T* b, typename V::T* c, bool first) {
  using R = typename V::R;
  constexpr int64_t kPanel = 2 * V::kWidth;
  int64_t at[kRows];
  R sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    at[i] = rows[i];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = V::zero();
    }
  }
  for (int64_t o = 0; o < outer; ++o) {
    const typename V::T* from = a + o * a_outer;
    for (int64_t p = 0; p < inner; ++p) {
      R right[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        right[j] = V::load(b + j * V::kWidth);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const R left = V::set1(from[at[i]]);
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) {
          sum[i][j] = V::fma(left, right[j], sum[i][j]);
        }
      }
      ++from;
      b += kPanel;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      typename V::T* out = c + i * kPanel + j * V::kWidth;
      V::store(out, first ? sum[i][j] : sum[i][j] + V::load(out));
    }
  }
}

template <typename V, int kVectors>
void strip_columns(int64_t m, int64_t outer, int64_t inner, const typename V::T* a, int64_t a_outer,
                   const int64_t* rows, const typename V::T* b, typename V::T* c, bool first) {
  constexpr int64_t kPanel = 2 * V::kWidth;
  int64_t i = 0;
  // Four rows keep two units busy, fewer do not: 7 and 8 rows left are better taken in halves.
  for (; m - i >= 6 && m - i != 7 && m - i != 8; i += 6) {
    rows_tile<V, 6, kVectors>(outer, inner, a, a_outer, rows + i, b, c + i * kPanel, first);
  }
  for (; m - i >= 4; i += 4) {
    rows_tile<V, 4, kVectors>(outer, inner, a, a_outer, rows + i, b, c + i * kPanel, first);
  }
  if (m - i == 3) {
    rows_tile<V, 3, kVectors>(outer, inner, a, a_outer, rows + i, b, c + i * kPanel, first);
  } else if (m - i == 2) {
    rows_tile<V, 2, kVectors>(outer, inner, a, a_outer, rows + i, b, c + i * kPanel, first);
  } else if (m - i == 1) {
    rows_tile<V, 1, kVectors>(outer, inner, a, a_outer, rows + i, b, c + i * kPanel, first);
  }
}

template <typename V>
void strip_rows(int64_t m, int64_t n, int64_t outer, int64_t inner, const typename V::T* a,
                int64_t a_outer, const int64_t* rows, const typename V::T* b, typename V::T* c,
                bool first) {
  const auto run = n > V::kWidth ? strip_columns<V, 2> : strip_columns<V, 1>;
  run(m, outer, inner, a, a_outer, rows, b, c, first);
}

template <typename V, int kRows, int kVectors>
void flat_rows(const typename V::T* base, const int64_t* places, const typename V::T* weights,
               int64_t taps, const typename V::T* bias, int64_t n, typename V::T* out,
               int64_t out_stride) {
  using R = typename V::R;
  constexpr int64_t kWidth = V::kWidth;
  for (int64_t i = 0; i < n; i += kVectors * kWidth) {
    R sum[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int u = 0; u < kVectors; ++u) {
        sum[r][u] = V::set1(bias[r]);
      }
    }
    for (int64_t t = 0; t < taps; ++t) {
      const typename V::T* from = base + places[t] + i;
      R right[kVectors];
#pragma GCC unroll 4
      for (int u = 0; u < kVectors; ++u) {
        right[u] = V::load(from + u * kWidth);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const R weight = V::set1(weights[r * taps + t]);
#pragma GCC unroll 4
        for (int u = 0; u < kVectors; ++u) {
          sum[r][u] = V::fma(weight, right[u], sum[r][u]);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int u = 0; u < kVectors; ++u) {
        V::store(out + r * out_stride + i + u * kWidth, sum[r][u]);
      }
    }
  }
}

template <typename V>
void flat_sum(int64_t rows, const typename V::T* base, const int64_t* places,
              const typename V::T* weights, int64_t taps, const typename V::T* bias, int64_t n,
              typename V::T* out, int64_t out_stride) {
  switch (rows) {
    case 1:
      return flat_rows<V, 1, kFlatVectors>(base, places, weights, taps, bias, n, out, out_stride);
    case 2:
      return flat_rows<V, 2, kFlatVectors>(base, places, weights, taps, bias, n, out, out_stride);
    case 3:
      return flat_rows<V, 3, 2>(base, places, weights, taps, bias, n, out, out_stride);
    default:
      return flat_rows<V, 4, 2>(base, places, weights, taps, bias, n, out, out_stride);
  }
}

template <typename V, int kTaps>
void dots_of(const typename V::T* base, const int64_t* rows, const typename V::T* right, int64_t n,
             typename V::T* sums) {
  using R = typename V::R;
  constexpr int64_t kWidth = V::kWidth;
  R sum[kTaps];
#pragma GCC unroll 4
  for (int t = 0; t < kTaps; ++t) {
    sum[t] = V::load(sums + t * kWidth);
  }
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const R factor = V::load(right + i);
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) {
      sum[t] = V::fma(V::load(base + rows[t] + i), factor, sum[t]);
    }
  }
  if (i < n) {
    const R factor = V::load_first(right + i, n - i);
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) {
      sum[t] = V::fma(V::load_first(base + rows[t] + i, n - i), factor, sum[t]);
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTaps; ++t) {
    V::store(sums + t * kWidth, sum[t]);
  }
}

template <typename V>
void dot_taps(const typename V::T* base, const int64_t* rows, int64_t taps,
              const typename V::T* right, int64_t n, typename V::T* sums) {
  constexpr int64_t kWidth = V::kWidth;
  int64_t t = 0;
  for (; t + 3 <= taps; t += 3) {
    dots_of<V, 3>(base, rows + t, right, n, sums + t * kWidth);
  }
  for (; t < taps; ++t) {
    dots_of<V, 1>(base, rows + t, right, n, sums + t * kWidth);
  }
}

// Vectors of a group of channels that lie side by side, and how many sums of such are formed at a
// time.
template <typename V>
constexpr int kLaneVectors = kConvolutionLanes / V::kWidth;
template <typename V>
constexpr int kLaneSums = kLaneVectors<V> > 8 ? 1 : 8 / kLaneVectors<V>;

template <typename V, int kPositions>
[[gnu::always_inline]] inline void lane_tile(const typename V::T* in, const int64_t* places,
                                             const typename V::T* weights, int64_t taps,
                                             const typename V::T* bias, typename V::T* out) {
  using R = typename V::R;
  constexpr int kVectors = kLaneVectors<V>;
  R sum[kPositions][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kPositions; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = V::load(bias + v * V::kWidth);
    }
  }
  for (int64_t t = 0; t < taps; ++t) {
    const typename V::T* from = in + places[t] * kConvolutionLanes;
    R weight[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      weight[v] = V::load(weights + t * kConvolutionLanes + v * V::kWidth);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kPositions; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const R right = V::load(from + i * kConvolutionLanes + v * V::kWidth);
        sum[i][v] = V::fma(weight[v], right, sum[i][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPositions; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V::store(out + i * kConvolutionLanes + v * V::kWidth, sum[i][v]);
    }
  }
}

template <typename V>
void lane_sums(int64_t n, const typename V::T* in, const int64_t* places,
               const typename V::T* weights, int64_t taps, const typename V::T* bias,
               typename V::T* out) {
  constexpr int64_t kPositions = kLaneSums<V>;
  int64_t i = 0;
  for (; i + kPositions <= n; i += kPositions) {
    lane_tile<V, kPositions>(in + i * kConvolutionLanes, places, weights, taps, bias,
                             out + i * kConvolutionLanes);
  }
  for (; i < n; ++i) {
    lane_tile<V, 1>(in + i * kConvolutionLanes, places, weights, taps, bias,
                    out + i * kConvolutionLanes);
  }
}

template <typename V, int kTaps>
[[gnu::always_inline]] inline void lane_dots_of(int64_t n, const typename V::T* in,
                                                const int64_t* places, const typename V::T* right,
                                                typename V::T* sums) {
  using R = typename V::R;
  constexpr int kVectors = kLaneVectors<V>;
  R sum[kTaps][kVectors];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[t][v] = V::load(sums + t * kConvolutionLanes + v * V::kWidth);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    R factor[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      factor[v] = V::load(right + v * V::kWidth);
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const R left = V::load(in + places[t] * kConvolutionLanes + v * V::kWidth);
        sum[t][v] = V::fma(left, factor[v], sum[t][v]);
      }
    }
    in += kConvolutionLanes;
    right += kConvolutionLanes;
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V::store(sums + t * kConvolutionLanes + v * V::kWidth, sum[t][v]);
    }
  }
}

template <typename V>
void lane_dots(int64_t n, const typename V::T* in, const int64_t* places, int64_t taps,
               const typename V::T* right, typename V::T* sums) {
  constexpr int64_t kTaps = kLaneSums<V>;
  int64_t t = 0;
  for (; t + kTaps <= taps; t += kTaps) {
    lane_dots_of<V, kTaps>(n, in, places + t, right, sums + t * kConvolutionLanes);
  }
  for (; t < taps; ++t) {
    lane_dots_of<V, 1>(n, in, places + t, right, sums + t * kConvolutionLanes);
  }
}

// As many registers as there are hold sums.
template <typename V>
constexpr int kPixelRows = sizeof(typename V::R) == 64 ? 14 : 6;

template <typename V, int kRows, int kVectors>
void pixel_tile(int64_t k, const typename V::T* a, int64_t a_row, const PixelStep* steps,
                const typename V::T* b, typename V::T* c, bool fresh) {
  using R = typename V::R;
  constexpr int64_t kPanel = 2 * V::kWidth;
  R sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = fresh ? V::zero() : V::load(c + i * kPanel + j * V::kWidth);
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    const typename V::T* from = a + steps[p].pixel;
    const typename V::T* factors = b + steps[p].factor;
    R right[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      right[j] = V::load(factors + j * V::kWidth);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const R left = V::set1(from[i * a_row]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        sum[i][j] = V::fma(left, right[j], sum[i][j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      V::store(c + i * kPanel + j * V::kWidth, sum[i][j]);
    }
  }
}

template <typename V, int kRows, int kVectors>
[[gnu::always_inline]] inline void pixel_tile_of(int64_t rows, int64_t k, const typename V::T* a,
                                                 int64_t a_row, const PixelStep* steps,
                                                 const typename V::T* b, typename V::T* c,
                                                 bool fresh) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return pixel_tile_of<V, kRows - 1, kVectors>(rows, k, a, a_row, steps, b, c, fresh);
    }
  }
  pixel_tile<V, kRows, kVectors>(k, a, a_row, steps, b, c, fresh);
}

// Rows are shared out evenly: few of them do not keep the units busy.
template <typename V, int kVectors>
void pixel_columns(int64_t m, int64_t k, const typename V::T* a, int64_t a_row,
                   const PixelStep* steps, const typename V::T* b, typename V::T* c, bool fresh) {
  constexpr int64_t kPanel = 2 * V::kWidth;
  constexpr int64_t kMost = kPixelRows<V>;
  for (int64_t tiles = (m + kMost - 1) / kMost; tiles > 0; --tiles) {
    const int64_t rows = (m + tiles - 1) / tiles;
    pixel_tile_of<V, kMost, kVectors>(rows, k, a, a_row, steps, b, c, fresh);
    a += rows * a_row;
    c += rows * kPanel;
    m -= rows;
  }
}

template <typename V>
void pixel_sums(int64_t m, int64_t n, int64_t k, const typename V::T* a, int64_t a_row,
                const PixelStep* steps, const typename V::T* b, typename V::T* c, bool fresh) {
  const auto run = n > V::kWidth ? pixel_columns<V, 2> : pixel_columns<V, 1>;
  run(m, k, a, a_row, steps, b, c, fresh);
}

template <typename V>
constexpr ConvolutionEngine<typename V::T> kConvolution = {
    V::kWidth,   pack_windows<V>, strip_rows<V>, flat_sum<V>,
    dot_taps<V>, lane_sums<V>,    lane_dots<V>,  pixel_sums<V>};

}  // namespace rushlight::RUSHLIGHT_LEVEL
