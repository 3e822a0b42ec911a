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

template <typename T>
constexpr WindowLines<T> kWindowLines{max_at_line<T>, max_line<T>, add_line<T>, spread_line<T>,
                                      add_scaled_line<T>};

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
