// Elementary functions of f32 vectors, for the vectors and in the namespace of RUSHLIGHT_LEVEL.

namespace rushlight::RUSHLIGHT_LEVEL {

[[gnu::always_inline]] inline F32::R all(float value) {
  return F32::set1(value);
}

// e^x within 2 ulp; underflow is gradual, overflow gives inf, NaN stays.
[[gnu::always_inline]] inline F32::R exp(F32::R x) {
  using R = F32::R;
  using I = F32::I;
  x = F32::max(all(-104.0f), F32::min(all(89.0f), x));
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const R magic = all(12582912.0f);
  const R shifted = F32::fma(x, all(1.44269504f), magic);
  const R n = shifted - magic;
  R r = F32::fma(n, all(-0.693359375f), x);
  r = F32::fma(n, all(2.12194440e-4f), r);
  R poly = all(1.9875691500e-4f);
  poly = F32::fma(poly, r, all(1.3981999507e-3f));
  poly = F32::fma(poly, r, all(8.3334519073e-3f));
  poly = F32::fma(poly, r, all(4.1665795894e-2f));
  poly = F32::fma(poly, r, all(1.6666665459e-1f));
  poly = F32::fma(poly, r, all(0.5f));
  const R value = F32::fma(poly, r * r, r) + all(1.0f);
  // 2^n in two factors, so that neither leaves the range of normal numbers.
  const I whole = reinterpret_cast<I>(shifted) - reinterpret_cast<I>(magic);
  const I half = whole >> 1;
  const R low = reinterpret_cast<R>((half + 127) << 23);
  const R high = reinterpret_cast<R>((whole - half + 127) << 23);
  return value * low * high;
}

// e^x within 2 ulp for x <= 88; 0 below -87.7, NaN stays. For sums of exponentials at most about 1,
// where what would be denormal does not count: half the work of `exp`.
[[gnu::always_inline]] inline F32::R exp_of_difference(F32::R x) {
  using R = F32::R;
  using I = F32::I;
  const R y = F32::max(all(-127.0f), x * all(1.44269504f));
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, with the bias of the
  // exponent where the shift below puts it.
  const R magic = all(12582912.0f + 127.0f);
  const R shifted = y + magic;
  const R r = y - (shifted - magic);
  R poly = all(1.3264727e-3f);
  poly = F32::fma(poly, r, all(9.671513e-3f));
  poly = F32::fma(poly, r, all(5.5507336e-2f));
  poly = F32::fma(poly, r, all(2.4022242e-1f));
  poly = F32::fma(poly, r, all(6.93147e-1f));
  poly = F32::fma(poly, r, all(1.0f));
  return poly * reinterpret_cast<R>(reinterpret_cast<I>(shifted) << 23);
}

// 1 / (1 + e^-x)
[[gnu::always_inline]] inline F32::R sigmoid(F32::R x) {
  const F32::R one = F32::set1(1.0f);
  return one / (one + RUSHLIGHT_LEVEL::exp(F32::zero() - x));
}

// tanh within 3 ulp; signs of zero and NaN stay.
[[gnu::always_inline]] inline F32::R tanh(F32::R x) {
  using R = F32::R;
  using I = F32::I;
  const I bits = reinterpret_cast<I>(x);
  const R size = reinterpret_cast<R>(bits & 0x7fffffff);
  const R square = x * x;
  R poly = all(-0x1.75619ap-8f);
  poly = F32::fma(poly, square, all(0x1.5207b8p-6f));
  poly = F32::fma(poly, square, all(-0x1.b83738p-5f));
  poly = F32::fma(poly, square, all(0x1.1106fcp-3f));
  poly = F32::fma(poly, square, all(-0x1.555532p-2f));
  const R near = F32::fma(square * size, poly, size);
  const R bounded = F32::min(all(10.0f), size);
  const R far = all(1.0f) - all(2.0f) / (RUSHLIGHT_LEVEL::exp(bounded + bounded) + all(1.0f));
  const R result = size < all(0.625f) ? near : far;
  return reinterpret_cast<R>(reinterpret_cast<I>(result) | (bits & ~0x7fffffff));
}

// The normal distribution function, by Hastings' form of erfc in the tail: fractional error below
// 3e-7 for x <= 0, absolute error below 2e-7.
[[gnu::always_inline]] inline F32::R normal_cdf(F32::R x) {
  using R = F32::R;
  const R z = F32::max(x, F32::zero() - x) * all(0.70710678f);
  const R t = all(1.0f) / F32::fma(all(0.5f), z, all(1.0f));
  R poly = all(0.17087277f);
  for (const float term : {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                           0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f}) {
    poly = F32::fma(poly, t, all(term));
  }
  const R tail = all(0.5f) * t * RUSHLIGHT_LEVEL::exp(F32::fma(F32::zero() - z, z, poly));
  return x > F32::zero() ? all(1.0f) - tail : tail;
}

}  // namespace rushlight::RUSHLIGHT_LEVEL
