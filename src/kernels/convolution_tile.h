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

template <typename V, int kRows>
void rows_tile(int64_t k, const typename V::T* a, const int64_t* rows, const typename V::T* b,
               typename V::T* c, bool first) {
  using R = typename V::R;
  constexpr int64_t kPanel = 2 * V::kWidth;
  int64_t at[kRows];
  R sum[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    at[i] = rows[i];
    sum[i][0] = V::zero();
    sum[i][1] = V::zero();
  }
  for (int64_t p = 0; p < k; ++p) {
    const R low = V::load(b);
    const R high = V::load(b + V::kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const R left = V::set1(a[at[i]]);
      sum[i][0] = V::fma(left, low, sum[i][0]);
      sum[i][1] = V::fma(left, high, sum[i][1]);
    }
    ++a;
    b += kPanel;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    typename V::T* out = c + i * kPanel;
    V::store(out, first ? sum[i][0] : sum[i][0] + V::load(out));
    V::store(out + V::kWidth, first ? sum[i][1] : sum[i][1] + V::load(out + V::kWidth));
  }
}

template <typename V>
void strip_rows(int64_t m, int64_t k, const typename V::T* a, const int64_t* rows,
                const typename V::T* b, typename V::T* c, bool first) {
  constexpr int64_t kPanel = 2 * V::kWidth;
  int64_t i = 0;
  // Four rows keep two units busy, fewer do not: 7 and 8 rows left are better taken in halves.
  for (; m - i >= 6 && m - i != 7 && m - i != 8; i += 6) {
    rows_tile<V, 6>(k, a, rows + i, b, c + i * kPanel, first);
  }
  for (; m - i >= 4; i += 4) {
    rows_tile<V, 4>(k, a, rows + i, b, c + i * kPanel, first);
  }
  if (m - i == 3) {
    rows_tile<V, 3>(k, a, rows + i, b, c + i * kPanel, first);
  } else if (m - i == 2) {
    rows_tile<V, 2>(k, a, rows + i, b, c + i * kPanel, first);
  } else if (m - i == 1) {
    rows_tile<V, 1>(k, a, rows + i, b, c + i * kPanel, first);
  }
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

template <typename V>
constexpr ConvolutionEngine<typename V::T> kConvolution = {V::kWidth, pack_windows<V>,
                                                           strip_rows<V>, flat_sum<V>, dot_taps<V>};

}  // namespace rushlight::RUSHLIGHT_LEVEL
