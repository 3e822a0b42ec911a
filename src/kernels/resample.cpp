#include "kernels/resample.h"

#include <algorithm>

#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kGrain = 8192;  // elements a task, at least

// One element of the result for each of `inner` lines.
template <typename T>
void blend_lines(T* __restrict to, const T* __restrict from, const Resample& form, int64_t i,
                 const int64_t* at, const T* weight) {
  const int64_t inner = form.inner;
  const T* a = from + at[i] * inner;
  if (form.taps == 2) {
    const T* b = from + at[form.wanted + i] * inner;
    const T first = weight[i];
    const T second = weight[form.wanted + i];
    for (int64_t j = 0; j < inner; ++j) {
      to[j] = a[j] * first + b[j] * second;
    }
    return;
  }
  for (int64_t j = 0; j < inner; ++j) {
    to[j] = a[j] * weight[i];
  }
  for (int64_t k = 1; k < form.taps; ++k) {
    const T* b = from + at[k * form.wanted + i] * inner;
    const T by = weight[k * form.wanted + i];
    for (int64_t j = 0; j < inner; ++j) {
      to[j] += b[j] * by;
    }
  }
}

// One line of adjacent elements.
template <int taps, typename T>
void blend_within(T* __restrict to, const T* __restrict from, int64_t wanted, const int64_t* at,
                  const T* weight) {
  for (int64_t i = 0; i < wanted; ++i) {
    T sum = from[at[i]] * weight[i];
    for (int k = 1; k < taps; ++k) {
      sum += from[at[k * wanted + i]] * weight[k * wanted + i];
    }
    to[i] = sum;
  }
}

template <typename T>
void blend_line(T* __restrict to, const T* __restrict from, const Resample& form, const int64_t* at,
                const T* weight) {
  if (form.taps == 2) {
    blend_within<2>(to, from, form.wanted, at, weight);
  } else if (form.taps == 4) {
    blend_within<4>(to, from, form.wanted, at, weight);
  } else {
    for (int64_t i = 0; i < form.wanted; ++i) {
      blend_lines(to + i, from, form, i, at, weight);
    }
  }
}

template <typename T>
void run(T* to, const T* from, const Resample& form, const int64_t* at, const T* weight) {
  if (form.inner == 1) {
    const int64_t grain = std::max<int64_t>(1, kGrain / form.wanted);
    parallel_for(0, form.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        blend_line(to + line * form.wanted, from + line * form.size, form, at, weight);
      }
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / form.inner);
  parallel_for(0, form.outer * form.wanted, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      blend_lines(to + row * form.inner, from + row / form.wanted * form.size * form.inner, form,
                  row % form.wanted, at, weight);
    }
  });
}

}  // namespace

void resample(float* to, const float* from, const Resample& form, const int64_t* at,
              const float* weight) {
  run(to, from, form, at, weight);
}

void resample(double* to, const double* from, const Resample& form, const int64_t* at,
              const double* weight) {
  run(to, from, form, at, weight);
}

}  // namespace rushlight::kernels
