// Lines resized by weighted sums of their elements.
#pragma once

#include <cstdint>

namespace rushlight::kernels {

// Lines of `size` elements become lines of `wanted`; neighbours of a line are `inner` apart in
// contiguous memory, and `outer` blocks of `inner` lines follow one another.
struct Resample {
  int64_t outer;
  int64_t size;
  int64_t wanted;
  int64_t inner;
  int64_t taps;
};

// to[i] = from[at[0][i]] * weight[0][i] + from[at[1][i]] * weight[1][i] + ..., added up in this
// order, each step rounded. `at` and `weight`: (taps, wanted). The same bits for any number of
// threads.
void resample(float* to, const float* from, const Resample& form, const int64_t* at,
              const float* weight);
void resample(double* to, const double* from, const Resample& form, const int64_t* at,
              const double* weight);

}  // namespace rushlight::kernels
