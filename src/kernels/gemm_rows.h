// Products of rows and the epilogue, for the vectors and in the namespace of
// RUSHLIGHT_LEVEL. Included once by the file of each level that has vectors for it, after
// gemm_pack.h.

namespace rushlight::RUSHLIGHT_LEVEL {

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

// Sums stay in the first-level cache while four rows at a time stream past them, in runs that are
// long enough for the hardware to fetch ahead.
template <typename V, typename S>
void sum_rows_from(const S* matrix, int64_t stride, int64_t cols, int64_t k, const typename V::T* x,
                   typename V::T* out) {
  using R = typename V::R;
  constexpr int64_t kWidth = V::kWidth;
  constexpr int64_t kBlock = 16384 / sizeof(typename V::T);
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

// ---- products of small matrices
// ----------------------------------------------------------------------------

// A row of C is one vector. kDepth is k where that is known, else 0.
template <typename V, int kDepth>
void small_products(const SmallProducts<typename V::T>& s) {
  using T = typename V::T;
  using R = typename V::R;
  constexpr int64_t kWidth = V::kWidth;
  const int64_t k = kDepth > 0 ? kDepth : s.k;
  const R factor = V::set1(s.alpha);
  alignas(64) T packed[kSmallSize * kWidth] = {};
  for (int64_t item = 0; item < s.batch; ++item) {
    const T* a = s.a + item * s.a_batch;
    const T* b = s.b + item * s.b_batch;
    T* c = s.c + item * s.c_batch;
    R right[kDepth > 0 ? kDepth : kSmallSize];
    if (s.b_col == 1) {
      for (int64_t p = 0; p < k; ++p) {
        right[p] = V::load_first(b + p * s.b_row, s.n);
      }
    } else {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < s.n; ++j) {
          packed[p * kWidth + j] = b[p * s.b_row + j * s.b_col];
        }
      }
      for (int64_t p = 0; p < k; ++p) {
        right[p] = V::load(packed + p * kWidth);
      }
    }
    for (int64_t i = 0; i < s.m; ++i) {
      R sum = V::zero();
      for (int64_t p = 0; p < k; ++p) {
        sum = V::fma(V::set1(a[i * s.a_row + p * s.a_col]), right[p], sum);
      }
      sum = sum * factor;
      if (s.c_col == 1) {
        V::store_first(c + i * s.c_row, sum, s.n);
      } else {
        alignas(64) T row[kWidth];
        V::store(row, sum);
        for (int64_t j = 0; j < s.n; ++j) {
          c[i * s.c_row + j * s.c_col] = row[j];
        }
      }
    }
  }
}

template <typename V>
void small_any(const SmallProducts<typename V::T>& products) {
  switch (products.k) {
    case 2:
      return small_products<V, 2>(products);
    case 3:
      return small_products<V, 3>(products);
    case 4:
      return small_products<V, 4>(products);
    default:
      return small_products<V, 0>(products);
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
  if (stride == 2) {  // a constant, of which the compiler makes vectors
    for (; i < n; ++i) {
      out[i] = widen(source[2 * i]);
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
constexpr GemmEngine<float> kEngineF32 = {
    kRows,        2 * F32::kWidth, block<F32, kRows>, F32::kWidth, strip<F32, kRows>,
    pack_f32,     dot_rows_f32,    sum_rows_f32,      F32::kWidth, small_any<F32>,
    load_row_f32, store_row_f32,   add_row<F32>,      activate_f32};
constexpr GemmEngine<double> kEngineF64 = {
    kRows,        2 * F64::kWidth, block<F64, kRows>, F64::kWidth, strip<F64, kRows>,
    pack_f64,     dot_rows_f64,    sum_rows_f64,      F64::kWidth, small_any<F64>,
    load_row_f64, store_row_f64,   add_row<F64>,      activate_f64};

}  // namespace rushlight::RUSHLIGHT_LEVEL
