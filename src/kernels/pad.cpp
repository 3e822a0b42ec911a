#include "kernels/pad.h"

#include <algorithm>
#include <cstring>

#include "kernels/element.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kGrain = 16384;  // elements a task, at least

template <typename T>
void pad_row(T* to, const T* from, const PadAxis& axis) {
  for (int64_t i = 0; i < axis.first; ++i) {
    to[i] = from[axis.at[static_cast<size_t>(i)]];
  }
  if (axis.first < axis.last) {
    std::memcpy(to + axis.first, from + axis.at[static_cast<size_t>(axis.first)],
                static_cast<size_t>(axis.last - axis.first) * sizeof(T));
  }
  const auto length = static_cast<int64_t>(axis.at.size());
  for (int64_t i = std::max(axis.first, axis.last); i < length; ++i) {
    to[i] = from[axis.at[static_cast<size_t>(i)]];
  }
}

}  // namespace

void pad_border(const Tensor& target, const Tensor& source, const std::vector<PadAxis>& axes) {
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  const PadAxis& inner = axes.back();
  const size_t outer = axes.size() - 1;  // axes that number the rows of a block
  const auto length = static_cast<int64_t>(inner.at.size());
  const int64_t source_length = source.size(-1);
  int64_t block = 1;
  for (size_t a = 0; a < outer; ++a) {
    block *= source.size(static_cast<int64_t>(a) - static_cast<int64_t>(axes.size()));
  }
  by_element_size(target.element_size(), [&]<typename T>(T) {
    T* to = static_cast<T*>(target.data());
    const T* from = static_cast<const T*>(source.data());
    const int64_t rows = target.numel() / length;
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> position(outer);
      int64_t plane = begin;
      for (size_t a = outer; a-- > 0;) {
        const auto size = static_cast<int64_t>(axes[a].at.size());
        position[a] = plane % size;
        plane /= size;
      }
      for (int64_t row = begin; row < end; ++row) {
        int64_t source_row = 0;
        for (size_t a = 0; a < outer; ++a) {
          const int64_t dim = static_cast<int64_t>(a) - static_cast<int64_t>(axes.size());
          source_row = source_row * source.size(dim) + axes[a].at[static_cast<size_t>(position[a])];
        }
        pad_row(to + row * length, from + (plane * block + source_row) * source_length, inner);
        size_t a = outer;
        while (a > 0 && ++position[a - 1] == static_cast<int64_t>(axes[a - 1].at.size())) {
          position[--a] = 0;
        }
        plane += a == 0 ? 1 : 0;
      }
    });
  });
}

}  // namespace rushlight::kernels
