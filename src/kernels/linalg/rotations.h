// Sweeps of plane rotations over the columns of a matrix, kept back until they are worth a pass.
//
// The matrix lies in panels of kPanelRows rows, each column of a panel contiguous: a panel stays in
// the caches while many sweeps pass over it, and panels are shared among threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rushlight::kernels {

template <typename T>
class Rotations {
 public:
  // The columns of a column-major rows x columns matrix are copied. An empty one (rows 0) only
  // counts nothing: adding to it is free.
  Rotations(int64_t rows, int64_t columns, const T* a, int64_t lda);

  // A sweep over pairs of columns (at, at + step), (at + step, at + 2 step), ...: each pair (x, y)
  // becomes (c x + s y, c y - s x).
  void begin(int64_t at, int64_t step);
  void add(double c, double s);
  void end();

  // Column j of the result is column order[j], times -1 where flip[order[j]] is not zero.
  void finish(const std::vector<int64_t>& order, const std::vector<uint8_t>& flip, T* a,
              int64_t lda);

 private:
  struct Sweep {
    int64_t at;
    int64_t step;
    size_t first;
    int64_t count;
  };
  void apply();

  int64_t rows_;
  int64_t columns_;
  std::vector<T> panels_;
  std::vector<Sweep> sweeps_;
  std::vector<T> cosines_;
  std::vector<T> sines_;
};

}  // namespace rushlight::kernels
