// What goes on around the stages: lines to lanes and back, real lines, turns; for all levels.
#pragma once

namespace rushlight::RUSHLIGHT_LEVEL {

// a0 b0 a1 b1 ... from a0 a1 ... and b0 b1 ..., and back; over two vectors.
template <typename V>
RUSHLIGHT_INLINE void fft_interleave(typename V::R& a, typename V::R& b) {
  const auto x = a;
  const auto y = b;
  if constexpr (V::kWidth == 2) {
    a = __builtin_shufflevector(x, y, 0, 2);
    b = __builtin_shufflevector(x, y, 1, 3);
  } else if constexpr (V::kWidth == 4) {
    a = __builtin_shufflevector(x, y, 0, 4, 1, 5);
    b = __builtin_shufflevector(x, y, 2, 6, 3, 7);
  } else if constexpr (V::kWidth == 8) {
    a = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    b = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
  } else {
    a = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    b = __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}
template <typename V>
RUSHLIGHT_INLINE void fft_separate(typename V::R& a, typename V::R& b) {
  const auto x = a;
  const auto y = b;
  if constexpr (V::kWidth == 2) {
    a = __builtin_shufflevector(x, y, 0, 2);
    b = __builtin_shufflevector(x, y, 1, 3);
  } else if constexpr (V::kWidth == 4) {
    a = __builtin_shufflevector(x, y, 0, 2, 4, 6);
    b = __builtin_shufflevector(x, y, 1, 3, 5, 7);
  } else if constexpr (V::kWidth == 8) {
    a = __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14);
    b = __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
  } else {
    a = __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    b = __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  }
}

// Whether line l starts l * distance after line 0.
template <typename V, typename T>
bool fft_lines_apart(const FftAccess<T>& access, int64_t distance) {
  for (int l = 1; l < access.count; ++l) {
    if (access.lines[l] - access.lines[0] != distance * l) {
      return false;
    }
  }
  return true;
}

// Lines whose elements lie one after another, complex ones: a square of as many numbers as a vector
// has lanes goes at once. Returns how many elements were done.
template <typename V>
int64_t fft_load_rows(typename V::T* lanes, const FftAccess<const typename V::T>& from,
                      int64_t count, bool swap) {
  constexpr int kWidth = V::kWidth;
  const int64_t flip = swap ? 1 : 0;
  const typename V::T* lines[kWidth];
  for (int l = 0; l < kWidth; ++l) {
    lines[l] = from.lines[l < from.count ? l : 0];
  }
  int64_t j = 0;
  for (; j + kWidth / 2 <= count; j += kWidth / 2) {
    typename V::R square[kWidth];
#pragma GCC unroll 16
    for (int l = 0; l < kWidth; ++l) {
      square[l] = V::load(lines[l] + 2 * j);
    }
    V::transpose(square);
#pragma GCC unroll 16
    for (int k = 0; k < kWidth; ++k) {
      V::store(lanes + (2 * j + (k ^ flip)) * kWidth, square[k]);
    }
  }
  return j;
}

template <typename V>
int64_t fft_store_rows(const typename V::T* lanes, const FftAccess<typename V::T>& to,
                       int64_t count, bool swap, typename V::R scale) {
  constexpr int kWidth = V::kWidth;
  const int64_t flip = swap ? 1 : 0;
  // Lanes without a line write what the first one does, before it.
  typename V::T* lines[kWidth];
  for (int l = 0; l < kWidth; ++l) {
    lines[l] = to.lines[l < to.count ? l : 0];
  }
  int64_t j = 0;
  for (; j + kWidth / 2 <= count; j += kWidth / 2) {
    typename V::R square[kWidth];
#pragma GCC unroll 16
    for (int k = 0; k < kWidth; ++k) {
      square[k] = V::load(lanes + (2 * j + (k ^ flip)) * kWidth) * scale;
    }
    V::transpose(square);
#pragma GCC unroll 16
    for (int l = kWidth - 1; l >= 0; --l) {
      V::store(lines[l] + 2 * j, square[l]);
    }
  }
  return j;
}

// Neighbouring lines of complex elements.
template <typename V>
void fft_load_pairs(typename V::T* lanes, const FftAccess<const typename V::T>& from, int64_t count,
                    bool swap) {
  constexpr int kWidth = V::kWidth;
  const int low = 2 * from.count < kWidth ? 2 * from.count : kWidth;
  const int high = 2 * from.count - low;
  const bool whole = high == kWidth;
  for (int64_t j = 0; j < count; ++j) {
    const typename V::T* p = from.lines[0] + j * from.step;
    auto a = whole ? V::load(p) : V::load_first(p, low);
    auto b = whole ? V::load(p + kWidth) : high > 0 ? V::load_first(p + kWidth, high) : V::zero();
    fft_separate<V>(a, b);
    fft_store<V>(lanes + 2 * j * kWidth, swap ? FftNumber<V>{b, a} : FftNumber<V>{a, b});
  }
}

template <typename V>
void fft_store_pairs(const typename V::T* lanes, const FftAccess<typename V::T>& to, int64_t count,
                     bool swap, typename V::R scale) {
  constexpr int kWidth = V::kWidth;
  const int low = 2 * to.count < kWidth ? 2 * to.count : kWidth;
  const int high = 2 * to.count - low;
  const bool whole = high == kWidth;
  for (int64_t j = 0; j < count; ++j) {
    typename V::T* p = to.lines[0] + j * to.step;
    const FftNumber<V> x = fft_load<V>(lanes + 2 * j * kWidth);
    auto a = (swap ? x.im : x.re) * scale;
    auto b = (swap ? x.re : x.im) * scale;
    fft_interleave<V>(a, b);
    if (whole) {
      V::store(p, a);
      V::store(p + kWidth, b);
    } else {
      V::store_first(p, a, low);
      if (high > 0) {
        V::store_first(p + kWidth, b, high);
      }
    }
  }
}

// Neighbouring lines of real elements.
template <typename V>
void fft_load_reals(typename V::T* lanes, const FftAccess<const typename V::T>& from, int64_t count,
                    bool swap) {
  constexpr int kWidth = V::kWidth;
  const bool whole = from.count == kWidth;
  for (int64_t j = 0; j < count; ++j) {
    const typename V::T* p = from.lines[0] + j * from.step;
    const auto a = whole ? V::load(p) : V::load_first(p, from.count);
    auto b = V::zero();
    if (from.imag != 0) {
      b = whole ? V::load(p + from.imag) : V::load_first(p + from.imag, from.count);
    }
    fft_store<V>(lanes + 2 * j * kWidth, swap ? FftNumber<V>{b, a} : FftNumber<V>{a, b});
  }
}

template <typename V>
void fft_store_reals(const typename V::T* lanes, const FftAccess<typename V::T>& to, int64_t count,
                     bool swap, typename V::R scale) {
  constexpr int kWidth = V::kWidth;
  const bool whole = to.count == kWidth;
  for (int64_t j = 0; j < count; ++j) {
    typename V::T* p = to.lines[0] + j * to.step;
    const FftNumber<V> x = fft_load<V>(lanes + 2 * j * kWidth);
    const auto a = (swap ? x.im : x.re) * scale;
    const auto b = (swap ? x.re : x.im) * scale;
    if (whole) {
      V::store(p, a);
    } else {
      V::store_first(p, a, to.count);
    }
    if (to.imag != 0 && whole) {
      V::store(p + to.imag, b);
    } else if (to.imag != 0) {
      V::store_first(p + to.imag, b, to.count);
    }
  }
}

template <typename V>
void fft_load(typename V::T* lanes, const FftAccess<const typename V::T>& from, int64_t count,
              bool swap) {
  using T = typename V::T;
  constexpr int kWidth = V::kWidth;
  if (from.imag == 1 && from.count > 1 && fft_lines_apart<V>(from, 2)) {
    return fft_load_pairs<V>(lanes, from, count, swap);
  }
  if (from.count > 1 && fft_lines_apart<V>(from, 1)) {
    return fft_load_reals<V>(lanes, from, count, swap);
  }
  int64_t first = 0;
  if (from.imag == 1 && from.step == 2) {
    first = fft_load_rows<V>(lanes, from, count, swap);
  }
  const int re = swap ? kWidth : 0;
  for (int64_t j = first; j < count; ++j) {
    T* to = lanes + 2 * j * kWidth;
    for (int l = 0; l < kWidth; ++l) {
      const T* p = from.lines[l < from.count ? l : 0] + j * from.step;
      to[re + l] = p[0];
      to[kWidth - re + l] = from.imag != 0 ? p[from.imag] : T(0);
    }
  }
}

template <typename V>
void fft_store_lines(const typename V::T* lanes, const FftAccess<typename V::T>& to, int64_t count,
                     bool swap, typename V::T scale) {
  using T = typename V::T;
  constexpr int kWidth = V::kWidth;
  if (to.imag == 1 && to.count > 1 && fft_lines_apart<V>(to, 2)) {
    return fft_store_pairs<V>(lanes, to, count, swap, V::set1(scale));
  }
  if (to.count > 1 && fft_lines_apart<V>(to, 1)) {
    return fft_store_reals<V>(lanes, to, count, swap, V::set1(scale));
  }
  int64_t first = 0;
  if (to.imag == 1 && to.step == 2) {
    first = fft_store_rows<V>(lanes, to, count, swap, V::set1(scale));
  }
  const int re = swap ? kWidth : 0;
  for (int64_t j = first; j < count; ++j) {
    const T* from = lanes + 2 * j * kWidth;
    for (int l = 0; l < to.count; ++l) {
      T* p = to.lines[l] + j * to.step;
      p[0] = from[re + l] * scale;
      if (to.imag != 0) {
        p[to.imag] = from[kWidth - re + l] * scale;
      }
    }
  }
}

template <typename V>
void fft_multiply_lanes(typename V::T* out, const typename V::T* a, const typename V::T* factors,
                        int64_t count, bool swap) {
  for (int64_t k = 0; k < count; ++k) {
    const FftNumber<V> x =
        fft_multiply<V>(fft_load<V>(a + 2 * k * V::kWidth), fft_number<V>(factors + 2 * k));
    fft_store<V>(out + 2 * k * V::kWidth, swap ? FftNumber<V>{x.im, x.re} : x);
  }
}

template <typename V>
void fft_pick(typename V::T* to, const typename V::T* from, const int32_t* powers, int64_t count) {
  for (int64_t q = 0; q < count; ++q) {
    fft_store<V>(to + 2 * q * V::kWidth, fft_load<V>(from + int64_t{2 * V::kWidth} * powers[q]));
  }
}

template <typename V>
void fft_place(typename V::T* to, const typename V::T* from, const int32_t* powers, int64_t count,
               const typename V::T* start) {
  const FftNumber<V> x = fft_load<V>(start);
  for (int64_t q = 0; q < count; ++q) {
    const FftNumber<V> y = fft_load<V>(from + 2 * q * V::kWidth);
    const int64_t at = powers[q == 0 ? 0 : count - q];
    fft_store<V>(to + 2 * at * V::kWidth, x + FftNumber<V>{y.im, y.re});
  }
}

// Of a = z[k] and b = z[half - k]: what the transform of x is at k and at half - k. The even
// elements of x have the transform (a + conj b) / 2, the odd ones (a - conj b) / 2i.
template <typename V>
RUSHLIGHT_INLINE void fft_split_pair(FftNumber<V>& a, FftNumber<V>& b, const FftNumber<V>& root) {
  const auto by = V::set1(static_cast<typename V::T>(0.5));
  const FftNumber<V> even = {(a.re + b.re) * by, (a.im - b.im) * by};
  const FftNumber<V> odd = {(a.im + b.im) * by, (b.re - a.re) * by};
  const FftNumber<V> turned = fft_multiply<V>(odd, root);
  a = even + turned;
  b = {even.re - turned.re, turned.im - even.im};
}

// The reverse, times 2.
template <typename V>
RUSHLIGHT_INLINE void fft_join_pair(FftNumber<V>& a, FftNumber<V>& b, const FftNumber<V>& root) {
  const FftNumber<V> even = {a.re + b.re, a.im - b.im};
  const FftNumber<V> difference = {a.re - b.re, a.im + b.im};
  const FftNumber<V> odd = fft_multiply<V>(difference, {root.re, V::zero() - root.im});
  a = {even.re - odd.im, even.im + odd.re};
  b = {even.re + odd.im, odd.re - even.im};
}

template <typename V>
void fft_split_real(typename V::T* lanes, const typename V::T* roots, int64_t half) {
  constexpr int64_t kElement = 2 * V::kWidth;
  const FftNumber<V> z = fft_load<V>(lanes);
  fft_store<V>(lanes, {z.re + z.im, V::zero()});
  fft_store<V>(lanes + half * kElement, {z.re - z.im, V::zero()});
  for (int64_t k = 1; 2 * k <= half; ++k) {
    FftNumber<V> a = fft_load<V>(lanes + k * kElement);
    FftNumber<V> b = fft_load<V>(lanes + (half - k) * kElement);
    fft_split_pair<V>(a, b, fft_number<V>(roots + 2 * k));
    fft_store<V>(lanes + (half - k) * kElement, b);
    fft_store<V>(lanes + k * kElement, a);
  }
}

template <typename V>
void fft_join_real(typename V::T* lanes, const typename V::T* roots, int64_t half) {
  constexpr int64_t kElement = 2 * V::kWidth;
  const FftNumber<V> first = fft_load<V>(lanes);
  const FftNumber<V> last = fft_load<V>(lanes + half * kElement);
  fft_store<V>(lanes, {first.re - last.re, first.re + last.re});
  for (int64_t k = 1; 2 * k <= half; ++k) {
    FftNumber<V> a = fft_load<V>(lanes + k * kElement);
    FftNumber<V> b = fft_load<V>(lanes + (half - k) * kElement);
    fft_join_pair<V>(a, b, fft_number<V>(roots + 2 * k));
    fft_store<V>(lanes + (half - k) * kElement, {b.im, b.re});
    fft_store<V>(lanes + k * kElement, {a.im, a.re});
  }
}

template <typename V>
void fft_mirror(typename V::T* lanes, int64_t n, bool swapped) {
  constexpr int64_t kElement = 2 * V::kWidth;
  V::store(lanes + (swapped ? 0 : V::kWidth), V::zero());
  for (int64_t k = 1; 2 * k < n; ++k) {
    const FftNumber<V> x = fft_load<V>(lanes + k * kElement);
    fft_store<V>(lanes + (n - k) * kElement, swapped ? FftNumber<V>{V::zero() - x.re, x.im}
                                                     : FftNumber<V>{x.re, V::zero() - x.im});
  }
}

template <typename V>
void fft_turn(typename V::T* rows, int64_t apart, const typename V::T* lanes, int64_t count,
              int columns, const typename V::T* each, const typename V::T* within) {
  using T = typename V::T;
  constexpr int kWidth = V::kWidth;
  for (int64_t k = 0; k < count; k += kWidth) {
    const int some = count - k < kWidth ? static_cast<int>(count - k) : kWidth;
    typename V::R re[kWidth];
    typename V::R im[kWidth];
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) {
      const int64_t at = k + (i < some ? i : 0);
      const FftNumber<V> x = fft_load<V>(lanes + 2 * at * kWidth);
      const FftNumber<V> part = fft_multiply<V>(x, fft_load<V>(within + 2 * at * kWidth));
      const FftNumber<V> product = fft_multiply<V>(part, fft_number<V>(each + 2 * at));
      re[i] = product.re;
      im[i] = product.im;
    }
    V::transpose(re);
    V::transpose(im);
    T* to = rows + (k / kWidth) * apart * 2 * kWidth;
#pragma GCC unroll 16
    for (int l = 0; l < kWidth; ++l) {
      if (l < columns) {
        fft_store<V>(to + 2 * l * kWidth, {re[l], im[l]});
      }
    }
  }
}

// The lanes in the opposite order.
template <typename V>
RUSHLIGHT_INLINE FftNumber<V> fft_reversed(const FftNumber<V>& x) {
  if constexpr (V::kWidth == 2) {
    return {__builtin_shufflevector(x.re, x.re, 1, 0), __builtin_shufflevector(x.im, x.im, 1, 0)};
  } else if constexpr (V::kWidth == 4) {
    return {__builtin_shufflevector(x.re, x.re, 3, 2, 1, 0),
            __builtin_shufflevector(x.im, x.im, 3, 2, 1, 0)};
  } else if constexpr (V::kWidth == 8) {
    return {__builtin_shufflevector(x.re, x.re, 7, 6, 5, 4, 3, 2, 1, 0),
            __builtin_shufflevector(x.im, x.im, 7, 6, 5, 4, 3, 2, 1, 0)};
  } else {
    return {
        __builtin_shufflevector(x.re, x.re, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
        __builtin_shufflevector(x.im, x.im, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)};
  }
}

// Complex numbers that follow one another in memory, one a lane.
template <typename V>
RUSHLIGHT_INLINE FftNumber<V> fft_load_line(const typename V::T* p) {
  FftNumber<V> x = {V::load(p), V::load(p + V::kWidth)};
  fft_separate<V>(x.re, x.im);
  return x;
}
template <typename V>
RUSHLIGHT_INLINE void fft_store_line(typename V::T* p, FftNumber<V> x) {
  fft_interleave<V>(x.re, x.im);
  V::store(p, x.re);
  V::store(p + V::kWidth, x.im);
}

// One lane, for what is left of a line.
template <typename Element>
struct FftScalar {
  using T = Element;
  using R = Element;
  static constexpr int kWidth = 1;
  RUSHLIGHT_INLINE R zero() { return 0; }
  RUSHLIGHT_INLINE R set1(T x) { return x; }
  RUSHLIGHT_INLINE R fma(R a, R b, R c) { return a * b + c; }
  RUSHLIGHT_INLINE R fms(R a, R b, R c) { return a * b - c; }
};
template <typename V>
void fft_split_line(const typename V::T* line, typename V::T* out, const typename V::T* roots,
                    int64_t half, bool all) {
  using T = typename V::T;
  using S = FftScalar<T>;
  constexpr int64_t kWidth = V::kWidth;
  const T re = line[0];
  const T im = line[1];
  int64_t k = 1;
  for (; 2 * (k + kWidth - 1) < half; k += kWidth) {
    FftNumber<V> a = fft_load_line<V>(line + 2 * k);
    FftNumber<V> b = fft_reversed<V>(fft_load_line<V>(line + 2 * (half - k - kWidth + 1)));
    fft_split_pair<V>(a, b, fft_load_line<V>(roots + 2 * k));
    fft_store_line<V>(out + 2 * k, a);
    fft_store_line<V>(out + 2 * (half - k - kWidth + 1), fft_reversed<V>(b));
    if (all) {
      const FftNumber<V> c = {a.re, V::zero() - a.im};
      fft_store_line<V>(out + 2 * (2 * half - k - kWidth + 1), fft_reversed<V>(c));
      fft_store_line<V>(out + 2 * (half + k), {b.re, V::zero() - b.im});
    }
  }
  const auto put = [&](int64_t at, const FftNumber<S>& x) __attribute__((always_inline)) {
    out[2 * at] = x.re;
    out[2 * at + 1] = x.im;
    if (all) {
      out[2 * (2 * half - at)] = x.re;
      out[2 * (2 * half - at) + 1] = -x.im;
    }
  };
  for (; 2 * k <= half; ++k) {
    FftNumber<S> a = {line[2 * k], line[2 * k + 1]};
    FftNumber<S> b = {line[2 * (half - k)], line[2 * (half - k) + 1]};
    fft_split_pair<S>(a, b, {roots[2 * k], roots[2 * k + 1]});
    put(half - k, b);
    put(k, a);
  }
  out[0] = re + im;
  out[1] = 0;
  out[2 * half] = re - im;
  out[2 * half + 1] = 0;
}

template <typename V>
void fft_join_line(typename V::T* line, const typename V::T* in, const typename V::T* roots,
                   int64_t half) {
  using T = typename V::T;
  using S = FftScalar<T>;
  constexpr int64_t kWidth = V::kWidth;
  line[0] = in[0] + in[2 * half];
  line[1] = in[0] - in[2 * half];
  int64_t k = 1;
  for (; 2 * (k + kWidth - 1) < half; k += kWidth) {
    FftNumber<V> a = fft_load_line<V>(in + 2 * k);
    FftNumber<V> b = fft_reversed<V>(fft_load_line<V>(in + 2 * (half - k - kWidth + 1)));
    fft_join_pair<V>(a, b, fft_load_line<V>(roots + 2 * k));
    fft_store_line<V>(line + 2 * k, a);
    fft_store_line<V>(line + 2 * (half - k - kWidth + 1), fft_reversed<V>(b));
  }
  for (; 2 * k <= half; ++k) {
    FftNumber<S> a = {in[2 * k], in[2 * k + 1]};
    FftNumber<S> b = {in[2 * (half - k)], in[2 * (half - k) + 1]};
    fft_join_pair<S>(a, b, {roots[2 * k], roots[2 * k + 1]});
    line[2 * (half - k)] = b.re;
    line[2 * (half - k) + 1] = b.im;
    line[2 * k] = a.re;
    line[2 * k + 1] = a.im;
  }
}

template <typename V>
constexpr FftEngine<typename V::T> kFftEngine{
    V::kWidth,   fft_load<V>,       fft_store_lines<V>, fft_stages<V>,    fft_multiply_lanes<V>,
    fft_pick<V>, fft_place<V>,      fft_split_real<V>,  fft_join_real<V>, fft_mirror<V>,
    fft_turn<V>, fft_split_line<V>, fft_join_line<V>};

const FftEngine<float> fft_f32 = kFftEngine<F32>;
const FftEngine<double> fft_f64 = kFftEngine<F64>;

#undef RUSHLIGHT_INLINE

}  // namespace rushlight::RUSHLIGHT_LEVEL
