// Transforms of few elements in registers, and the stages made of them; for all levels.
#pragma once

namespace rushlight::RUSHLIGHT_LEVEL {

#define RUSHLIGHT_INLINE [[gnu::always_inline]] static inline

// A complex number for each lane.
template <typename V>
struct FftNumber {
  typename V::R re;
  typename V::R im;
};

template <typename V>
RUSHLIGHT_INLINE FftNumber<V> fft_load(const typename V::T* p) {
  return {V::load(p), V::load(p + V::kWidth)};
}
template <typename V>
RUSHLIGHT_INLINE void fft_store(typename V::T* p, const FftNumber<V>& x) {
  V::store(p, x.re);
  V::store(p + V::kWidth, x.im);
}
template <typename V>
RUSHLIGHT_INLINE FftNumber<V> operator+(const FftNumber<V>& a, const FftNumber<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename V>
RUSHLIGHT_INLINE FftNumber<V> operator-(const FftNumber<V>& a, const FftNumber<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename V>
RUSHLIGHT_INLINE FftNumber<V> fft_multiply(const FftNumber<V>& x, const FftNumber<V>& w) {
  return {V::fms(x.re, w.re, x.im * w.im), V::fma(x.re, w.im, x.im * w.re)};
}
template <typename V>
RUSHLIGHT_INLINE FftNumber<V> fft_number(const typename V::T* p) {
  return {V::set1(p[0]), V::set1(p[1])};
}
// x becomes its transform; `roots`: those of unity, of order kRadix * kApart. Odd numbers of
// elements, primes: sums and differences of those that mirror each other, times cosines and sines.
template <typename V, int kRadix, int kApart = 1>
struct FftButterfly {
  RUSHLIGHT_INLINE void run(FftNumber<V>* x, const typename V::T* roots) {
    constexpr int kHalf = kRadix / 2;
    FftNumber<V> sum[kHalf];
    FftNumber<V> difference[kHalf];
    const FftNumber<V> start = x[0];
#pragma GCC unroll 8
    for (int k = 0; k < kHalf; ++k) {
      sum[k] = x[k + 1] + x[kRadix - 1 - k];
      difference[k] = x[k + 1] - x[kRadix - 1 - k];
      x[0] = x[0] + sum[k];
    }
#pragma GCC unroll 8
    for (int j = 1; j <= kHalf; ++j) {
      FftNumber<V> even = start;
      FftNumber<V> odd = {V::zero(), V::zero()};
#pragma GCC unroll 8
      for (int k = 1; k <= kHalf; ++k) {
        const FftNumber<V> root = fft_number<V>(roots + 2 * kApart * (j * k % kRadix));
        even.re = V::fma(root.re, sum[k - 1].re, even.re);
        even.im = V::fma(root.re, sum[k - 1].im, even.im);
        odd.re = V::fma(root.im, difference[k - 1].re, odd.re);
        odd.im = V::fma(root.im, difference[k - 1].im, odd.im);
      }
      x[j] = {even.re - odd.im, even.im + odd.re};
      x[kRadix - j] = {even.re + odd.im, even.im - odd.re};
    }
  }
};

template <typename V, int kApart>
struct FftButterfly<V, 2, kApart> {
  RUSHLIGHT_INLINE void run(FftNumber<V>* x, const typename V::T*) {
    const FftNumber<V> a = x[0];
    x[0] = a + x[1];
    x[1] = a - x[1];
  }
};

template <typename V>
RUSHLIGHT_INLINE void fft_four(FftNumber<V>& a, FftNumber<V>& b, FftNumber<V>& c, FftNumber<V>& d) {
  const FftNumber<V> ac = a + c;
  const FftNumber<V> bd = b + d;
  const FftNumber<V> even = a - c;
  const FftNumber<V> odd = b - d;
  a = ac + bd;
  c = ac - bd;
  b = {even.re + odd.im, even.im - odd.re};
  d = {even.re - odd.im, even.im + odd.re};
}

template <typename V, int kApart>
struct FftButterfly<V, 4, kApart> {
  RUSHLIGHT_INLINE void run(FftNumber<V>* x, const typename V::T*) {
    fft_four<V>(x[0], x[1], x[2], x[3]);
  }
};

template <typename V, int kApart>
struct FftButterfly<V, 8, kApart> {
  RUSHLIGHT_INLINE void run(FftNumber<V>* x, const typename V::T* roots) {
    fft_four<V>(x[0], x[2], x[4], x[6]);
    fft_four<V>(x[1], x[3], x[5], x[7]);
    const auto half = V::set1(roots[2 * kApart]);  // sqrt(1/2)
    const FftNumber<V> three = {(x[3].re + x[3].im) * half, (x[3].im - x[3].re) * half};
    const FftNumber<V> five = {x[5].im, V::zero() - x[5].re};
    const FftNumber<V> seven = {(x[7].im - x[7].re) * half, (x[7].re + x[7].im) * half};
    const FftNumber<V> even[4] = {x[0], x[2], x[4], x[6]};
    x[0] = even[0] + x[1];
    x[4] = even[0] - x[1];
    x[1] = even[1] + three;
    x[5] = even[1] - three;
    x[2] = even[2] + five;
    x[6] = even[2] - five;
    x[3] = {even[3].re + seven.re, even[3].im - seven.im};
    x[7] = {even[3].re - seven.re, even[3].im + seven.im};
  }
};

// Of a times b elements: transforms of a, factors, transforms of b.
template <typename V, int kA, int kB, int kApart>
struct FftProduct {
  RUSHLIGHT_INLINE void run(FftNumber<V>* x, const typename V::T* roots) {
    FftNumber<V> y[kA * kB];
#pragma GCC unroll 16
    for (int b = 0; b < kB; ++b) {
      FftNumber<V> column[kA];
#pragma GCC unroll 16
      for (int a = 0; a < kA; ++a) {
        column[a] = x[a * kB + b];
      }
      FftButterfly<V, kA, kB * kApart>::run(column, roots);
      y[b] = column[0];
#pragma GCC unroll 16
      for (int a = 1; a < kA; ++a) {
        y[a * kB + b] = b == 0
                            ? column[a]
                            : fft_multiply<V>(column[a], fft_number<V>(roots + 2 * kApart * a * b));
      }
    }
#pragma GCC unroll 16
    for (int a = 0; a < kA; ++a) {
      FftButterfly<V, kB, kA * kApart>::run(y + a * kB, roots);
#pragma GCC unroll 16
      for (int b = 0; b < kB; ++b) {
        x[a + kA * b] = y[a * kB + b];
      }
    }
  }
};
template <typename V, int kApart>
struct FftButterfly<V, 6, kApart> : FftProduct<V, 2, 3, kApart> {};
template <typename V, int kApart>
struct FftButterfly<V, 9, kApart> : FftProduct<V, 3, 3, kApart> {};
template <typename V, int kApart>
struct FftButterfly<V, 10, kApart> : FftProduct<V, 2, 5, kApart> {};
template <typename V, int kApart>
struct FftButterfly<V, 12, kApart> : FftProduct<V, 4, 3, kApart> {};
template <typename V, int kApart>
struct FftButterfly<V, 15, kApart> : FftProduct<V, 3, 5, kApart> {};
template <typename V, int kApart>
struct FftButterfly<V, 16, kApart> : FftProduct<V, 4, 4, kApart> {};

// Elements p + m j of each run of s become elements p radix + j, times their twiddles.
template <typename V, int kRadix>
void fft_stage(const FftStage<typename V::T>& stage, const typename V::T* __restrict in,
               typename V::T* __restrict out) {
  using T = typename V::T;
  constexpr int64_t kElement = 2 * V::kWidth;
  const int64_t run = stage.s * kElement;
  const T* twiddles = stage.twiddles;
  for (int64_t p = 0; p < stage.m; ++p) {
    const T* from = in + p * run;
    T* to = out + p * kRadix * run;
    for (int64_t q = 0; q < run; q += kElement) {
      FftNumber<V> x[kRadix];
#pragma GCC unroll 16
      for (int j = 0; j < kRadix; ++j) {
        x[j] = fft_load<V>(from + q + stage.m * run * j);
      }
      FftButterfly<V, kRadix>::run(x, stage.roots);
      fft_store<V>(to + q, x[0]);
      if (p == 0) {
#pragma GCC unroll 16
        for (int j = 1; j < kRadix; ++j) {
          fft_store<V>(to + q + run * j, x[j]);
        }
      } else {
#pragma GCC unroll 16
        for (int j = 1; j < kRadix; ++j) {
          fft_store<V>(to + q + run * j,
                       fft_multiply<V>(x[j], fft_number<V>(twiddles + 2 * (j - 1))));
        }
      }
    }
    twiddles += p == 0 ? 0 : 2 * (kRadix - 1);
  }
}

// The same for primes that have no code of their own.
template <typename V>
void fft_stage_odd(const FftStage<typename V::T>& stage, const typename V::T* __restrict in,
                   typename V::T* __restrict out) {
  using T = typename V::T;
  constexpr int64_t kElement = 2 * V::kWidth;
  constexpr int kMost = kFftMaxRadix / 2;
  const int radix = stage.radix;
  const int half = radix / 2;
  const int64_t run = stage.s * kElement;
  const T one[2] = {1, 0};
  for (int64_t i = 0; i < stage.m * stage.s; ++i) {
    const int64_t p = i / stage.s;
    const T* from = in + i * kElement;
    T* to = out + (p * radix * stage.s + i % stage.s) * kElement;
    FftNumber<V> sum[kMost];
    FftNumber<V> difference[kMost];
    const FftNumber<V> start = fft_load<V>(from);
    FftNumber<V> all = start;
    for (int k = 1; k <= half; ++k) {
      const FftNumber<V> a = fft_load<V>(from + stage.m * run * k);
      const FftNumber<V> b = fft_load<V>(from + stage.m * run * (radix - k));
      sum[k - 1] = a + b;
      difference[k - 1] = a - b;
      all = all + sum[k - 1];
    }
    fft_store<V>(to, all);
    for (int j = 1; j <= half; ++j) {
      FftNumber<V> even = start;
      FftNumber<V> odd = {V::zero(), V::zero()};
      int at = 0;
      for (int k = 0; k < half; ++k) {
        at = at + j < radix ? at + j : at + j - radix;
        const FftNumber<V> root = fft_number<V>(stage.roots + 2 * at);
        even.re = V::fma(root.re, sum[k].re, even.re);
        even.im = V::fma(root.re, sum[k].im, even.im);
        odd.re = V::fma(root.im, difference[k].re, odd.re);
        odd.im = V::fma(root.im, difference[k].im, odd.im);
      }
      const T* twiddles = stage.twiddles + 2 * (p - 1) * (radix - 1);
      const T* low = p == 0 ? one : twiddles + 2 * (j - 1);
      const T* high = p == 0 ? one : twiddles + 2 * (radix - j - 1);
      const FftNumber<V> x = {even.re - odd.im, even.im + odd.re};
      const FftNumber<V> y = {even.re + odd.im, even.im - odd.re};
      fft_store<V>(to + run * j, fft_multiply<V>(x, fft_number<V>(low)));
      fft_store<V>(to + run * (radix - j), fft_multiply<V>(y, fft_number<V>(high)));
    }
  }
}

template <typename V>
typename V::T* fft_stages(const FftStage<typename V::T>* stages, int count, typename V::T* a,
                          typename V::T* b) {
  for (int i = 0; i < count; ++i) {
    const auto& stage = stages[i];
    switch (stage.radix) {
      case 2:
        fft_stage<V, 2>(stage, a, b);
        break;
      case 3:
        fft_stage<V, 3>(stage, a, b);
        break;
      case 4:
        fft_stage<V, 4>(stage, a, b);
        break;
      case 5:
        fft_stage<V, 5>(stage, a, b);
        break;
      case 6:
        fft_stage<V, 6>(stage, a, b);
        break;
      case 7:
        fft_stage<V, 7>(stage, a, b);
        break;
      case 8:
        fft_stage<V, 8>(stage, a, b);
        break;
      case 9:
        fft_stage<V, 9>(stage, a, b);
        break;
      case 10:
        fft_stage<V, 10>(stage, a, b);
        break;
      case 11:
        fft_stage<V, 11>(stage, a, b);
        break;
      case 12:
        fft_stage<V, 12>(stage, a, b);
        break;
      case 13:
        fft_stage<V, 13>(stage, a, b);
        break;
      case 15:
        fft_stage<V, 15>(stage, a, b);
        break;
      case 16:
        fft_stage<V, 16>(stage, a, b);
        break;
      default:
        fft_stage_odd<V>(stage, a, b);
    }
    auto* result = b;
    b = a;
    a = result;
  }
  return a;
}

}  // namespace rushlight::RUSHLIGHT_LEVEL
