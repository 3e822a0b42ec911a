// The loops behind window_engine.h, for all levels. The strides that occur most are constants, so
// that the compiler makes vectors of them.
#pragma once

namespace rushlight::RUSHLIGHT_LEVEL {

template <typename F>
[[gnu::always_inline]] inline void by_stride(int64_t stride, F&& function) {
  if (stride == 1) {
    function(std::integral_constant<int64_t, 1>());
  } else if (stride == 2) {
    function(std::integral_constant<int64_t, 2>());
  } else {
    function(stride);
  }
}

template <typename T>
void max_at_line(T* __restrict best, int32_t* __restrict where, const T* __restrict in,
                 int64_t stride, int64_t count, int32_t base, int32_t step) {
  by_stride(stride, [&](auto by) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const T value = in[i * by];
      const T old = best[i];
      const bool take = (value > old) | (value != value);
      best[i] = take ? value : old;
      where[i] = take ? base + static_cast<int32_t>(i) * step : where[i];
    }
  });
}

template <typename T>
void max_line(T* __restrict best, const T* __restrict in, int64_t stride, int64_t count) {
  by_stride(stride, [&](auto by) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      const T value = in[i * by];
      const T old = best[i];
      best[i] = (value > old) | (value != value) ? value : old;
    }
  });
}

template <typename T>
void add_line(T* __restrict sum, const T* __restrict in, int64_t stride, int64_t count) {
  by_stride(stride, [&](auto by) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      sum[i] = static_cast<T>(sum[i] + in[i * by]);
    }
  });
}

template <typename T>
void spread_line(T* __restrict sum, int64_t stride, const T* __restrict in, int64_t count) {
  by_stride(stride, [&](auto by) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      sum[i * by] = static_cast<T>(sum[i * by] + in[i]);
    }
  });
}

template <typename T>
void add_scaled_line(T* __restrict sum, const T* __restrict in, T factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    sum[i] = static_cast<T>(sum[i] + static_cast<T>(in[i] * factor));
  }
}

// Columns [first, first + kColumns) stay in registers from row to row.
inline constexpr int64_t kRowBytes = 256;
inline constexpr int64_t kFetched = 16;

template <typename T, int64_t kColumns>
[[gnu::always_inline]] inline void add_row_columns(T* __restrict sum, const T* __restrict table,
                                                   int64_t width, const int64_t* index,
                                                   int64_t rows, int64_t skipped, int64_t ahead) {
  T sums[kColumns];
  for (int64_t i = 0; i < kColumns; ++i) {
    sums[i] = sum[i];
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (r + kFetched < ahead) {
      const T* next = table + index[r + kFetched] * width;
      for (int64_t i = 0; i < kColumns; i += 64 / static_cast<int64_t>(sizeof(T))) {
        __builtin_prefetch(next + i);
      }
    }
    if (index[r] == skipped) {
      continue;
    }
    const T* row = table + index[r] * width;
    for (int64_t i = 0; i < kColumns; ++i) {
      sums[i] = static_cast<T>(sums[i] + row[i]);
    }
  }
  for (int64_t i = 0; i < kColumns; ++i) {
    sum[i] = sums[i];
  }
}

template <typename T>
void add_rows_lines(T* __restrict sum, const T* __restrict table, int64_t width,
                    const int64_t* index, int64_t rows, int64_t skipped, int64_t ahead) {
  constexpr int64_t kColumns = kRowBytes / sizeof(T);
  constexpr int64_t kFew = 32 / sizeof(T);
  int64_t first = 0;
  for (; first + kColumns <= width; first += kColumns) {
    add_row_columns<T, kColumns>(sum + first, table + first, width, index, rows, skipped, ahead);
  }
  for (; first + kFew <= width; first += kFew) {
    add_row_columns<T, kFew>(sum + first, table + first, width, index, rows, skipped, ahead);
  }
  for (; first < width; ++first) {
    add_row_columns<T, 1>(sum + first, table + first, width, index, rows, skipped, 0);
  }
}

template <typename T>
constexpr WindowLines<T> kWindowLines{max_at_line<T>, max_line<T>,        add_line<T>,
                                      spread_line<T>, add_scaled_line<T>, add_rows_lines<T>};

// Samples [first, count), one by one.
template <typename T>
void sample_singly(T* out, const T* in, const int32_t* offset, const T* weight, int64_t step,
                   int corners, int64_t first, int64_t count, bool add) {
  for (int64_t p = first; p < count; ++p) {
    T sum = add ? out[p] : T{0};
    for (int k = 0; k < corners; ++k) {
      const int32_t at = offset[k * step + p];
      sum += at >= 0 ? weight[k * step + p] * in[at] : T{0};
    }
    out[p] = sum;
  }
}

}  // namespace rushlight::RUSHLIGHT_LEVEL
