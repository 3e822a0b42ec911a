// What one call of a Fourier transform has to do, and where its lines lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/fft.h"
#include "kernels/fft_plan.h"

namespace rushlight::kernels {

enum class FftKind : uint8_t { Forward, Backward, FromReal, ToReal };

// What a call has, with its dimensions ordered for the walk.
template <typename T>
struct FftWork {
  FftKind kind;
  FftLines<T> lines;
  int64_t count = 1;
  IntList sizes;
  IntList in_strides;
  IntList out_strides;
  bool halved = false;  // real lines as complex ones of half the length
  bool all = false;     // elements of the transform of a real line
  const FftEngine<T>& engine = fft_engine<T>();
  std::shared_ptr<const FftPlan<T>> plan;    // of the complex transform
  std::shared_ptr<const FftRoots<T>> roots;  // halved
  std::shared_ptr<const FftSplit<T>> split;  // lines go one by one

  int64_t half() const { return lines.n / 2; }
  bool swap() const { return kind == FftKind::Backward || kind == FftKind::ToReal; }
};

// Dimensions with the smallest steps last, those that follow one another as one.
template <typename T>
void order_dimensions(FftWork<T>& work) {
  const FftLines<T>& lines = work.lines;
  std::vector<size_t> order;
  for (size_t i = 0; i < lines.sizes.size(); ++i) {
    work.count *= lines.sizes[i];
    if (lines.sizes[i] != 1) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::min(lines.in_strides[a], lines.out_strides[a]) >
           std::min(lines.in_strides[b], lines.out_strides[b]);
  });
  for (size_t i : order) {
    const int64_t size = lines.sizes[i];
    if (!work.sizes.empty() && work.in_strides.back() == size * lines.in_strides[i] &&
        work.out_strides.back() == size * lines.out_strides[i]) {
      work.sizes.back() *= size;
      work.in_strides.back() = lines.in_strides[i];
      work.out_strides.back() = lines.out_strides[i];
      continue;
    }
    work.sizes.push_back(size);
    work.in_strides.push_back(lines.in_strides[i]);
    work.out_strides.push_back(lines.out_strides[i]);
  }
  if (work.sizes.empty()) {
    work.sizes.push_back(1);
    work.in_strides.push_back(0);
    work.out_strides.push_back(0);
  }
}

template <typename T>
FftAccess<const T> input_access(const FftWork<T>& work) {
  const int64_t step = work.lines.in_step;
  switch (work.kind) {
    case FftKind::FromReal:
      return work.halved ? FftAccess<const T>{{}, 2 * step, step, 0}
                         : FftAccess<const T>{{}, step, 0, 0};
    default:
      return {{}, step, 1, 0};
  }
}

template <typename T>
FftAccess<T> output_access(const FftWork<T>& work) {
  const int64_t step = work.lines.out_step;
  if (work.kind == FftKind::ToReal) {
    return work.halved ? FftAccess<T>{{}, 2 * step, step, 0} : FftAccess<T>{{}, step, 0, 0};
  }
  return {{}, step, 1, 0};
}

// Sets where `count` lines from number `first` on start.
template <typename T>
void place_lines(const FftWork<T>& work, int64_t first, int count, FftAccess<const T>& in,
                 FftAccess<T>& out) {
  const size_t rank = work.sizes.size();
  int64_t index[64];
  int64_t rest = first;
  const T* from = work.lines.in;
  T* to = work.lines.out;
  for (size_t i = rank; i-- > 0;) {
    index[i] = rest % work.sizes[i];
    rest /= work.sizes[i];
    from += index[i] * work.in_strides[i];
    to += index[i] * work.out_strides[i];
  }
  in.count = count;
  out.count = count;
  for (int l = 0; l < count; ++l) {
    in.lines[l] = from;
    out.lines[l] = to;
    for (size_t i = rank; i-- > 0;) {
      from += work.in_strides[i];
      to += work.out_strides[i];
      if (++index[i] < work.sizes[i]) {
        break;
      }
      from -= index[i] * work.in_strides[i];
      to -= index[i] * work.out_strides[i];
      index[i] = 0;
    }
  }
}

}  // namespace rushlight::kernels
