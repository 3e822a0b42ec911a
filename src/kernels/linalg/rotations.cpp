#include "kernels/linalg/rotations.h"

#include <algorithm>

#include "kernels/linalg/vectors.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kKept = 1 << 15;  // rotations

template <typename T>
int64_t panels_of(int64_t rows) {
  return (rows + kPanelRows<T> - 1) / kPanelRows<T>;
}

}  // namespace

template <typename T>
Rotations<T>::Rotations(int64_t rows, int64_t columns, const T* a, int64_t lda)
    : rows_(rows),
      columns_(columns),
      panels_(static_cast<size_t>(panels_of<T>(rows) * columns * kPanelRows<T>)) {
  constexpr int64_t kRows = kPanelRows<T>;
  for (int64_t p = 0; p < panels_of<T>(rows); ++p) {
    const int64_t height = std::min(kRows, rows - p * kRows);
    for (int64_t j = 0; j < columns; ++j) {
      std::copy_n(a + j * lda + p * kRows, height, panels_.data() + (p * columns + j) * kRows);
    }
  }
}

template <typename T>
void Rotations<T>::begin(int64_t at, int64_t step) {
  if (rows_ != 0) {
    sweeps_.push_back({at, step, cosines_.size(), 0});
  }
}

template <typename T>
void Rotations<T>::add(double c, double s) {
  if (rows_ != 0) {
    cosines_.push_back(static_cast<T>(c));
    sines_.push_back(static_cast<T>(s));
  }
}

template <typename T>
void Rotations<T>::end() {
  if (rows_ == 0) {
    return;
  }
  sweeps_.back().count = static_cast<int64_t>(cosines_.size() - sweeps_.back().first);
  if (cosines_.size() >= kKept) {
    apply();
  }
}

template <typename T>
void Rotations<T>::apply() {
  const VectorOps<T>& ops = vector_ops<T>();
  const int64_t grain = std::max<int64_t>(1, 4096 / static_cast<int64_t>(cosines_.size() + 1));
  parallel_for(0, panels_of<T>(rows_), grain, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      T* panel = panels_.data() + p * columns_ * kPanelRows<T>;
      for (const Sweep& sweep : sweeps_) {
        ops.rotate(sweep.count, cosines_.data() + sweep.first, sines_.data() + sweep.first, panel,
                   sweep.at, sweep.step);
      }
    }
  });
  sweeps_.clear();
  cosines_.clear();
  sines_.clear();
}

template <typename T>
void Rotations<T>::finish(const std::vector<int64_t>& order, const std::vector<uint8_t>& flip, T* a,
                          int64_t lda) {
  constexpr int64_t kRows = kPanelRows<T>;
  if (rows_ == 0) {
    return;
  }
  apply();
  for (int64_t p = 0; p < panels_of<T>(rows_); ++p) {
    const int64_t height = std::min(kRows, rows_ - p * kRows);
    for (size_t j = 0; j < order.size(); ++j) {
      const T* from = panels_.data() + (p * columns_ + order[j]) * kRows;
      T* to = a + static_cast<int64_t>(j) * lda + p * kRows;
      const bool negate = !flip.empty() && flip[static_cast<size_t>(order[j])] != 0;
      for (int64_t i = 0; i < height; ++i) {
        to[i] = negate ? -from[i] : from[i];
      }
    }
  }
}

template class Rotations<float>;
template class Rotations<double>;

}  // namespace rushlight::kernels
