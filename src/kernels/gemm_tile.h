// Register tiles, for the vectors and in the namespace of RUSHLIGHT_LEVEL. Included once by the
// file of each level, with the level's target set; so the templates differ in name between levels.

namespace rushlight::RUSHLIGHT_LEVEL {

template <typename V>
using TileFunction = void (*)(int64_t k, const typename V::T* a, int64_t a_row_stride,
                              int64_t a_col_stride, const typename V::T* b, int64_t b_stride,
                              typename V::T alpha, typename V::T beta, typename V::T* c,
                              int64_t c_stride, int64_t cols);

// C = alpha * A B + beta * C for a tile of kRows x (kVectors vectors), of which `cols` columns are
// stored. With kPanel > 0, A is a packed panel that many rows wide, and its strides are ignored.
template <typename V, int kRows, int kVectors, int kPanel>
void tile(int64_t k, const typename V::T* a, int64_t a_row_stride, int64_t a_col_stride,
          const typename V::T* b, int64_t b_stride, typename V::T alpha, typename V::T beta,
          typename V::T* c, int64_t c_stride, int64_t cols) {
  using R = typename V::R;
  constexpr int kWidth = V::kWidth;
  // Where vectors can, most factors are read by the instructions that multiply them: fewer
  // instructions, more loads. Three of four are best where another thread has part of the core (a
  // tenth faster than none), and as good elsewhere. There, B falls out of the first-level cache:
  // asking for it some steps ahead gains a little more.
  constexpr bool kReads = kPanel > 0 && requires(R r) { V::fma_read(a, r, r); };
  constexpr int64_t kAhead = 12;
  R sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = V::zero();
    }
  }
  // The tile of C comes while the sums are formed. Small products (unpacked A) have C in the caches
  // and are better off without the addresses. A is read in order, which the hardware sees: asking
  // for it costs more than it brings, and so does a shorter loop (measured).
  if constexpr (kPanel > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        __builtin_prefetch(c + i * c_stride + j * kWidth, 1);
      }
    }
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p) {
    R right[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      right[j] = V::load(b + j * kWidth);
      if constexpr (kReads) {
        __builtin_prefetch(b + kAhead * b_stride + j * kWidth);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      if constexpr (kReads) {
        if (i % 4 != 3) {
#pragma GCC unroll 4
          for (int j = 0; j < kVectors; ++j) {
            sum[i][j] = V::fma_read(a + i, right[j], sum[i][j]);
          }
          continue;
        }
      }
      const R left = V::set1(kPanel > 0 ? a[i] : a[i * a_row_stride]);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        sum[i][j] = V::fma(left, right[j], sum[i][j]);
      }
    }
    a += kPanel > 0 ? kPanel : a_col_stride;
    b += b_stride;
  }
  const R factor = V::set1(alpha);
  const R old_factor = V::set1(beta);
  const int64_t last = cols - (kVectors - 1) * kWidth;
  if (last == kWidth && beta == 0) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        V::store(c + i * c_stride + j * kWidth, sum[i][j] * factor);
      }
    }
    return;
  }
  if (last == kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        typename V::T* out = c + i * c_stride + j * kWidth;
        V::store(out, V::fma(old_factor, V::load(out), sum[i][j] * factor));
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      typename V::T* out = c + i * c_stride + j * kWidth;
      const int64_t count = j + 1 == kVectors ? last : kWidth;
      const R scaled = sum[i][j] * factor;
      const R old = beta == 0 ? V::zero() : V::load_first(out, count);
      V::store_first(out, beta == 0 ? scaled : V::fma(old_factor, old, scaled), count);
    }
  }
}

// The tile for the next rows: of kMost rows where there are as many, at the lower edge of as many
// as remain, or of a power of two where kMost is large.
template <typename V, int kMost, int kVectors, int kPanel>
TileFunction<V> tile_for_rows(int64_t rows, int* taken) {
  if constexpr (kMost == 1) {
    *taken = 1;
    return tile<V, 1, kVectors, kPanel>;
  } else {
    if (rows >= kMost) {
      *taken = kMost;
      return tile<V, kMost, kVectors, kPanel>;
    }
    constexpr int kNext = kMost > 8 ? 8 : kMost - 1;
    return tile_for_rows<V, kNext, kVectors, kPanel>(rows, taken);
  }
}

// Rows to take of those that are left. Four rows keep two units busy, fewer do not, so that the
// last ones are shared out evenly: 8 as 4 and 4 rather than 6 and 2, 16 as 8 and 8, 10 as 5 and 5.
template <int kMost, int kPanel>
int64_t rows_of_tile(int64_t left) {
  if (kMost == 6) {
    return kPanel == 0 && (left == 7 || left == 8) ? 4 : left;
  }
  if (kMost > 8 && kPanel == 0 && (left == kMost + 1 || left == kMost + 2)) {
    return 8;
  }
  return kMost > 8 && left > 8 && left < kMost ? (left + 1) / 2 : left;
}

// One panel of B, at most two vectors wide, against all rows of A.
template <typename V, int kMost, int kVectors, int kPanel>
void column(int64_t m, int64_t n, int64_t k, const typename V::T* a, int64_t a_row_stride,
            int64_t a_col_stride, const typename V::T* b, int64_t b_stride, typename V::T alpha,
            typename V::T beta, typename V::T* c, int64_t c_stride) {
  int taken = 0;
  for (int64_t i = 0; i < m; i += taken) {
    const int64_t wanted = rows_of_tile<kMost, kPanel>(m - i);
    const TileFunction<V> run = tile_for_rows<V, kMost, kVectors, kPanel>(wanted, &taken);
    const int64_t inside = kPanel > 0 ? i % kMost : 0;
    const typename V::T* rows = kPanel > 0 ? a + (i - inside) * k + inside : a + i * a_row_stride;
    run(k, rows, a_row_stride, a_col_stride, b, b_stride, alpha, beta, c + i * c_stride, c_stride,
        n);
  }
}

template <typename V, int kMost>
void block(int64_t m, int64_t n, int64_t k, const typename V::T* a, const typename V::T* b,
           typename V::T alpha, typename V::T beta, typename V::T* c, int64_t c_stride) {
  constexpr int64_t kCols = 2 * V::kWidth;
  for (int64_t j = 0; j < n; j += kCols) {
    const int64_t cols = n - j < kCols ? n - j : kCols;
    const auto run = cols > V::kWidth ? column<V, kMost, 2, kMost> : column<V, kMost, 1, kMost>;
    run(m, cols, k, a, 0, 0, b + j * k, kCols, alpha, beta, c + j, c_stride);
  }
}

template <typename V, int kMost>
void strip(int64_t m, int64_t n, int64_t k, const typename V::T* a, int64_t a_row_stride,
           int64_t a_col_stride, const typename V::T* b, int64_t b_stride, typename V::T alpha,
           typename V::T beta, typename V::T* c, int64_t c_stride) {
  const auto run = n > V::kWidth ? column<V, kMost, 2, 0> : column<V, kMost, 1, 0>;
  run(m, n, k, a, a_row_stride, a_col_stride, b, b_stride, alpha, beta, c, c_stride);
}

}  // namespace rushlight::RUSHLIGHT_LEVEL
