// What transforms of one length share: their stages and the roots of unity. Made once a length and
// kept, up to a number of bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/fft_engine.h"

namespace rushlight::kernels {

// Of n complex elements. Lengths with a prime above kFftMaxRadix go by way of a convolution, made
// of transforms of friendlier lengths: with the powers of a root of unity in another order where n
// is prime and n - 1 is smooth (Rader), else with exp(i pi k^2 / n) (Bluestein).
template <typename T>
struct FftPlan {
  explicit FftPlan(int64_t n);

  int64_t length;
  int64_t room;  // elements that a group needs while it is transformed
  std::vector<FftStage<T>> stages;
  std::vector<T> tables;                          // what the stages point into
  std::shared_ptr<const FftPlan<T>> convolution;  // what it is made of; null: stages
  std::vector<T> filter;                          // the kernel's transform, over its length
  std::vector<T> chirp;                           // Bluestein: exp(-i pi k^2 / n)
  std::vector<T> chirp_back;                      // its conjugates
  std::vector<int32_t> powers;                    // Rader: g^q mod n, q < n - 1, of a root g
  int64_t bytes() const;
  bool by_powers() const { return !powers.empty(); }

 private:
  void make_stages();
  void make_chirp();
  void make_powers();
  void make_filter(std::vector<double> kernel);
};

// Of n = rows * columns complex elements: transforms of columns, `turn`, transforms of rows. Groups
// are then made of the columns and rows of one line.
template <typename T>
struct FftSplit {
  explicit FftSplit(int64_t n);

  int64_t rows = 0;  // 0: n cannot be split well
  int64_t columns = 0;
  double cost = 0;                               // lanes in use and not, over n
  std::shared_ptr<const FftPlan<T>> of_columns;  // of `rows` elements
  std::shared_ptr<const FftPlan<T>> of_rows;
  std::vector<T> each;    // for each group of columns: exp(-2 pi i k first / n), k < rows
  std::vector<T> within;  // lanes: exp(-2 pi i k l / n)
  int64_t bytes() const;
};

// exp(-2 pi i k / n) for 4 k <= n.
template <typename T>
struct FftRoots {
  explicit FftRoots(int64_t n);
  std::vector<T> values;
  int64_t bytes() const { return static_cast<int64_t>(values.size() * sizeof(T)); }
};

// One of those for the length n, made now or before.
template <typename Made>
std::shared_ptr<const Made> fft_cached(int64_t n);

// n has no prime above kFftMaxRadix.
bool fft_is_smooth(int64_t n);

}  // namespace rushlight::kernels
