#include "kernels/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

#include "runtime/parallel.h"

namespace rushlight {
namespace {

using kernels::FftLines;

template <typename T>
std::vector<T> random_numbers(int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(count));
  std::normal_distribution<T> normal;
  std::vector<T> made(static_cast<size_t>(count));
  for (T& x : made) {
    x = normal(generator);
  }
  return made;
}

// By the definition, of one line of pairs.
template <typename T>
std::vector<std::complex<double>> slow_transform(const T* x, int64_t step, int64_t n, int sign) {
  std::vector<std::complex<double>> made(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < n; ++j) {
      const double angle = sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / n;
      made[static_cast<size_t>(k)] +=
          std::polar(1.0, angle) * std::complex<double>(static_cast<double>(x[j * step]),
                                                        static_cast<double>(x[j * step + 1]));
    }
  }
  return made;
}

template <typename T>
class Fft : public ::testing::Test {};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Fft, Precisions);

TYPED_TEST(Fft, LinesWithGapsAndColumns) {
  using T = TypeParam;
  constexpr int64_t kCount = 21;
  for (int64_t n : {1, 2, 6, 16, 17, 37, 60, 74, 105, 128}) {
    // Rows with a gap, and columns.
    for (const auto& [step, apart] : {std::pair<int64_t, int64_t>{2, 2 * n + 6}, {2 * kCount, 2}}) {
      for (const bool forward : {true, false}) {
        const std::vector<T> in = random_numbers<T>(kCount * (2 * n + 6));
        std::vector<T> out(in.size());
        kernels::fft_complex<T>(
            FftLines<T>{n, T(1), in.data(), out.data(), step, step, {kCount}, {apart}, {apart}},
            forward);
        for (int64_t l = 0; l < kCount; ++l) {
          const auto expected = slow_transform(in.data() + l * apart, step, n, forward ? -1 : 1);
          const double bound = 16 * std::sqrt(static_cast<double>(n)) * std::log2(n + 1.0) *
                               static_cast<double>(std::numeric_limits<T>::epsilon());
          for (int64_t k = 0; k < n; ++k) {
            const T* found = out.data() + l * apart + k * step;
            ASSERT_NEAR(static_cast<double>(found[0]), expected[static_cast<size_t>(k)].real(),
                        bound)
                << "n " << n << " line " << l << " element " << k;
            ASSERT_NEAR(static_cast<double>(found[1]), expected[static_cast<size_t>(k)].imag(),
                        bound);
          }
        }
      }
    }
  }
}

TYPED_TEST(Fft, BackIsTheReverse) {
  using T = TypeParam;
  for (int64_t n : {2, 15, 64, 1000, 1009, 30030}) {
    const std::vector<T> in = random_numbers<T>(3 * n);
    const int64_t half = n / 2 + 1;
    std::vector<T> middle(static_cast<size_t>(3 * 2 * half));
    std::vector<T> out(in.size());
    kernels::fft_from_real<T>(
        FftLines<T>{n, T(1), in.data(), middle.data(), 1, 2, {3}, {n}, {2 * half}}, false);
    kernels::fft_to_real<T>(FftLines<T>{n,
                                        static_cast<T>(1.0 / static_cast<double>(n)),
                                        middle.data(),
                                        out.data(),
                                        2,
                                        1,
                                        {3},
                                        {2 * half},
                                        {n}});
    for (size_t i = 0; i < in.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(in[i]),
                  64 * static_cast<double>(std::numeric_limits<T>::epsilon()))
          << "n " << n;
    }
  }
}

TYPED_TEST(Fft, InPlace) {
  using T = TypeParam;
  for (int64_t n : {12, 256, 4099}) {
    const std::vector<T> in = random_numbers<T>(2 * n);
    std::vector<T> out(in.size());
    std::vector<T> place = in;
    kernels::fft_complex<T>(FftLines<T>{n, T(1), in.data(), out.data(), 2, 2, {}, {}, {}}, true);
    kernels::fft_complex<T>(FftLines<T>{n, T(1), place.data(), place.data(), 2, 2, {}, {}, {}},
                            true);
    EXPECT_EQ(place, out) << "n " << n;
  }
}

}  // namespace
}  // namespace rushlight
