#include "kernels/cross.h"

#include <algorithm>

#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kGrain = 4096;  // vectors a task, at least

template <typename T>
void run(T* __restrict to, const T* __restrict a, const T* __restrict b, int64_t inner,
         int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t at = block * 3 * inner;
    for (int64_t i = at; i < at + inner; ++i) {
      const int64_t j = i + inner;
      const int64_t k = j + inner;
      to[i] = a[j] * b[k] - a[k] * b[j];
      to[j] = a[k] * b[i] - a[i] * b[k];
      to[k] = a[i] * b[j] - a[j] * b[i];
    }
  }
}

template <typename T>
void split(T* to, const T* a, const T* b, int64_t outer, int64_t inner) {
  parallel_for(0, outer, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    if (inner == 1) {
      run(to, a, b, 1, begin, end);
    } else {
      run(to, a, b, inner, begin, end);
    }
  });
}

}  // namespace

void cross(float* to, const float* a, const float* b, int64_t outer, int64_t inner) {
  split(to, a, b, outer, inner);
}

void cross(double* to, const double* a, const double* b, int64_t outer, int64_t inner) {
  split(to, a, b, outer, inner);
}

}  // namespace rushlight::kernels
