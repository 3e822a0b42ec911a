// The corners of a block of samples: see grid_sample.h.
#pragma once

#include <rushlight/dtype.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernels/grid_sample.h"

namespace rushlight::kernels {

inline constexpr int64_t kSampleBlock = 256;
inline constexpr int kMostTaps = 4;

// Places along one dimension, their weights, and the first and second derivatives of those by the
// grid's coordinate.
template <typename T>
struct Taps {
  int count;
  std::array<int64_t, kMostTaps> at;  // -1: outside, nothing is there
  std::array<T, kMostTaps> weight;
  std::array<T, kMostTaps> slope;
  std::array<T, kMostTaps> bend;
};

// Pairs of taps of a block of samples; `has_low` and `has_high` are -1 or 0.
template <typename T>
struct AxisLine {
  int32_t low[kSampleBlock];
  int32_t has_low[kSampleBlock];
  int32_t has_high[kSampleBlock];
  T low_weight[kSampleBlock];
  T high_weight[kSampleBlock];
  T slope[kSampleBlock];
};

template <typename T>
class GridAxis {
 public:
  GridAxis(int64_t size, const GridSampling& how, bool flat)
      : size_(size), how_(how), flat_(flat) {}

  // Whether `line` serves: the common case of planes.
  bool simple() const {
    return flat_ && how_.interpolation != Interpolation::Cubic && how_.border != Border::Reflect &&
           how_.places != DType::Float16 && how_.places != DType::BFloat16 && size_ < (1 << 22);
  }

  // What `taps` gives, of many coordinates `step` apart, without branches: the lower element (less
  // than -1: nothing is there, nor above), whether it and the one above are inside, the weights of
  // both, and the slope of the upper one.
  void line(const T* coordinates, int64_t step, int64_t count, AxisLine<T>& made) const {
    const bool clamps = how_.border == Border::Clamp;
    const T size = static_cast<T>(how_.align ? size_ - 1 : size_);
    const T slope = size / 2;
    const T shift = how_.align ? T{0} : T{0.5};
    const T last = static_cast<T>(size_ - 1);
    const auto elements = static_cast<int32_t>(size_);
    const bool nearest = how_.interpolation == Interpolation::Nearest;
    // Adding and subtracting this rounds to a whole number, ties to even.
    constexpr T kRounder = sizeof(T) == 4 ? T{0x1.8p23} : T{0x1.8p52};
    for (int64_t p = 0; p < count; ++p) {
      T x = (coordinates[p * step] + 1) * slope - shift;
      T moves = slope;
      if (clamps) {
        moves = x > 0 && x < last ? slope : T{0};
        x = x > 0 ? x : T{0};  // NaN too
        x = x < last ? x : last;
      }
      // NaN and what lies far outside become -2, which has no elements.
      T near = x > T{-2} && x < last + 2 ? x : T{-2};
      if (nearest) {
        near = near + kRounder - kRounder;
        moves = 0;
      }
      const auto whole = static_cast<int32_t>(near);
      const int32_t low = whole - (static_cast<T>(whole) > near ? 1 : 0);
      const T floor = static_cast<T>(low);
      made.low[p] = low;
      made.has_low[p] = low >= 0 && low < elements ? -1 : 0;
      made.has_high[p] = low >= -1 && low < elements - 1 ? -1 : 0;
      made.low_weight[p] = floor + 1 - near;
      made.high_weight[p] = near - floor;
      made.slope[p] = moves;
    }
  }

  Taps<T> taps(T coordinate) const {
    T slope = 0;
    T at = place(coordinate, slope);
    if (how_.interpolation == Interpolation::Cubic) {
      return cubic(at, slope);
    }
    at = inside(at, slope);
    return how_.interpolation == Interpolation::Nearest ? nearest(at) : linear(at, slope);
  }

 private:
  T rounded(T x) const {
    switch (how_.places) {
      case DType::Float16:
        return to_float(to_half(static_cast<float>(x)));
      case DType::BFloat16:
        return to_float(to_bfloat16(static_cast<float>(x)));
      default:
        return x;
    }
  }

  // Where the coordinate lies among the elements, and how fast it moves there.
  T place(T x, T& slope) const {
    const T size = rounded(static_cast<T>(how_.align ? size_ - 1 : size_));
    slope = rounded(size / 2);
    const T from_zero = rounded(x + 1);
    if (flat_) {
      const T at = rounded(from_zero * slope);
      return how_.align ? at : rounded(at - T{0.5});
    }
    return how_.align ? rounded(rounded(from_zero / 2) * size)
                      : rounded(rounded(rounded(from_zero * size) - 1) / 2);
  }

  // The border's rule for a place outside.
  T inside(T x, T& slope) const {
    if (how_.border == Border::Zeros) {
      return x;
    }
    return clamped(how_.border == Border::Reflect ? reflected(x, slope) : x, slope);
  }
  T clamped(T x, T& slope) const {
    const T last = rounded(static_cast<T>(size_ - 1));
    if (!(x > 0)) {  // NaN too
      slope = 0;
      return 0;
    }
    if (x >= last) {
      slope = 0;
      return last;
    }
    return x;
  }
  T reflected(T x, T& slope) const {
    const T low = how_.align ? T{0} : T{-0.5};
    const T span = rounded(static_cast<T>(how_.align ? size_ - 1 : size_));
    if (span == 0) {
      slope = 0;
      return 0;
    }
    const T distance = std::abs(rounded(x - low));
    const T flips = std::floor(rounded(distance / span));
    const T rest = rounded(std::fmod(distance, span));
    const bool odd = std::fmod(flips, T{2}) != 0;
    slope = (x < low) != odd ? -slope : slope;
    return rounded(odd ? rounded(span - rest) + low : rest + low);
  }

  // The element at a whole number, -1 outside.
  int64_t element(T x) const {
    return x >= 0 && x <= static_cast<T>(size_ - 1) ? static_cast<int64_t>(x) : -1;
  }

  Taps<T> nearest(T x) const { return {1, {element(std::nearbyint(x))}, {1}, {0}, {0}}; }

  Taps<T> linear(T x, T slope) const {
    const T low = std::floor(x);
    const T share = x - low;
    return {2, {element(low), element(low + 1)}, {low + 1 - x, share}, {-slope, slope}, {0, 0}};
  }

  // Keys' cubic convolution with a = -3/4; the border's rule is that of each element.
  Taps<T> cubic(T x, T slope) const {
    constexpr T kA = T{-0.75};
    Taps<T> made{4, {}, {}, {}, {}};
    const T low = std::floor(x);
    const T share = x - low;
    for (int k = 0; k < 4; ++k) {
      T ignored = 0;
      const auto i = static_cast<size_t>(k);
      made.at[i] = element(std::nearbyint(inside(low + static_cast<T>(k - 1), ignored)));
      const T side = k < 2 ? T{1} : T{-1};  // of the element, seen from x
      const T d = k < 2 ? share + static_cast<T>(1 - k) : static_cast<T>(k - 1) - share;
      if (k == 1 || k == 2) {
        made.weight[i] = ((kA + 2) * d - (kA + 3)) * d * d + 1;
        made.slope[i] = side * slope * (3 * (kA + 2) * d - 2 * (kA + 3)) * d;
        made.bend[i] = slope * slope * (6 * (kA + 2) * d - 2 * (kA + 3));
      } else {
        made.weight[i] = ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
        made.slope[i] = side * slope * ((3 * kA * d - 10 * kA) * d + 8 * kA);
        made.bend[i] = slope * slope * (6 * kA * d - 10 * kA);
      }
    }
    return made;
  }

  int64_t size_;
  GridSampling how_;
  bool flat_;
};

// How much of the tables is wanted.
enum class Order : uint8_t { Weights, Slopes, Bends };

// Tables [corner][sample] of a block. An offset of -1 has nothing there.
template <typename T>
class Corners {
 public:
  // `sizes` of the plane, its last two or three dimensions.
  Corners(IntArrayRef sizes, const GridSampling& how) {
    for (size_t d = sizes.size(); d-- > 0;) {  // x first, as in the grid
      axes_.push_back(GridAxis<T>(sizes[d], how, sizes.size() == 2));
      strides_.push_back(strides_.empty() ? 1 : strides_.back() * sizes[d + 1]);
    }
    const int taps = how.interpolation == Interpolation::Nearest  ? 1
                     : how.interpolation == Interpolation::Linear ? 2
                                                                  : 4;
    count_ = dims() == 2 ? taps * taps : taps * taps * taps;
    offset.resize(static_cast<size_t>(count_ * kSampleBlock));
    weight.resize(offset.size());
  }

  int dims() const { return static_cast<int>(axes_.size()); }
  int count() const { return count_; }

  // Of `samples` coordinates, of dims() numbers each.
  void fill(const T* grid, int64_t samples, Order order) {
    const auto n = static_cast<size_t>(dims());
    slope.resize(order == Order::Weights ? 0 : n * offset.size());
    bend.resize(order == Order::Bends ? n * n * offset.size() : 0);
    if (dims() == 2 && order != Order::Bends && axes_[0].simple()) {
      return fill_lines(grid, samples, order);
    }
    if (order == Order::Weights && dims() == 2) {
      return fill_flat(grid, samples);
    }
    for (int64_t p = 0; p < samples; ++p) {
      const T* at = grid + p * dims();
      Taps<T> taps[3] = {axes_[0].taps(at[0]), axes_[1].taps(at[1]), {1, {0}, {1}, {0}, {0}}};
      if (dims() == 3) {
        taps[2] = axes_[2].taps(at[2]);
      }
      int corner = 0;
      for (int z = 0; z < taps[2].count; ++z) {
        for (int y = 0; y < taps[1].count; ++y) {
          for (int x = 0; x < taps[0].count; ++x) {
            put(corner++, p, taps, {x, y, z}, order);
          }
        }
      }
    }
  }

  // Index of a number of corner `k`; of the slope along `d`; of the bend along `d` and `e`.
  static size_t at(int k) { return static_cast<size_t>(k) * kSampleBlock; }
  const T* slopes(int d) const { return slope.data() + static_cast<size_t>(d) * offset.size(); }
  const T* bends(int d, int e) const {
    return bend.data() + static_cast<size_t>(d * dims() + e) * offset.size();
  }

  std::vector<int32_t> offset;
  std::vector<T> weight;
  std::vector<T> slope;
  std::vector<T> bend;

 private:
  // Linear interpolation in planes, and the nearest element, line by line.
  void fill_lines(const T* grid, int64_t samples, Order order) {
    AxisLine<T> across;
    AxisLine<T> down;
    axes_[0].line(grid, 2, samples, across);
    axes_[1].line(grid + 1, 2, samples, down);
    const auto row = static_cast<int32_t>(strides_[1]);
    for (int k = 0; k < count_; ++k) {
      const bool right = k % 2 != 0;
      const bool below = k / 2 != 0;
      const int32_t* has_x = right ? across.has_high : across.has_low;
      const int32_t* has_y = below ? down.has_high : down.has_low;
      const T* x = right ? across.high_weight : across.low_weight;
      const T* y = below ? down.high_weight : down.low_weight;
      int32_t* places = offset.data() + at(k);
      T* weights = weight.data() + at(k);
      const int32_t corner = (right ? 1 : 0) + (below ? row : 0);
      for (int64_t p = 0; p < samples; ++p) {
        const int32_t inside = has_x[p] & has_y[p];
        places[p] = ((across.low[p] + down.low[p] * row + corner) & inside) | ~inside;
        weights[p] = x[p] * y[p];
      }
      if (order == Order::Weights) {
        continue;
      }
      T* by_x = slope.data() + at(k);
      T* by_y = by_x + offset.size();
      for (int64_t p = 0; p < samples; ++p) {
        by_x[p] = (right ? across.slope[p] : -across.slope[p]) * y[p];
        by_y[p] = x[p] * (below ? down.slope[p] : -down.slope[p]);
      }
    }
  }

  // Weights alone of planes: what every other forward pass fills.
  void fill_flat(const T* grid, int64_t samples) {
    const int64_t row = strides_[1];
    for (int64_t p = 0; p < samples; ++p) {
      const Taps<T> across = axes_[0].taps(grid[2 * p]);
      const Taps<T> down = axes_[1].taps(grid[2 * p + 1]);
      auto i = static_cast<size_t>(p);
      for (size_t y = 0; y < static_cast<size_t>(down.count); ++y) {
        for (size_t x = 0; x < static_cast<size_t>(across.count); ++x) {
          const int64_t place = across.at[x] + down.at[y] * row;
          offset[i] = static_cast<int32_t>((across.at[x] | down.at[y]) < 0 ? -1 : place);
          weight[i] = across.weight[x] * down.weight[y];
          i += kSampleBlock;
        }
      }
    }
  }

  void put(int corner, int64_t p, const Taps<T> (&taps)[3], const std::array<int, 3>& tap,
           Order order) {
    const size_t i = at(corner) + static_cast<size_t>(p);
    int64_t place = 0;
    T w[3], s[3], b[3];
    for (size_t d = 0; d < 3; ++d) {
      const auto t = static_cast<size_t>(tap[d]);
      const int64_t element = taps[d].at[t];
      const int64_t stride = d < strides_.size() ? strides_[d] : 0;
      place = element < 0 || place < 0 ? -1 : place + element * stride;
      w[d] = taps[d].weight[t];
      s[d] = taps[d].slope[t];
      b[d] = taps[d].bend[t];
    }
    offset[i] = static_cast<int32_t>(place);
    weight[i] = w[0] * w[1] * w[2];
    if (order == Order::Weights) {
      return;
    }
    const auto n = static_cast<size_t>(dims());
    for (size_t d = 0; d < n; ++d) {
      T product = s[d];
      for (size_t o = 0; o < 3; ++o) {
        product *= o == d ? T{1} : w[o];
      }
      slope[d * offset.size() + i] = product;
    }
    for (size_t d = 0; order == Order::Bends && d < n; ++d) {
      for (size_t e = 0; e < n; ++e) {
        T product = d == e ? b[d] : s[d] * s[e];
        for (size_t o = 0; o < 3; ++o) {
          product *= o == d || o == e ? T{1} : w[o];
        }
        bend[(d * n + e) * offset.size() + i] = product;
      }
    }
  }

  std::vector<GridAxis<T>> axes_;
  std::vector<int64_t> strides_;
  int count_ = 1;
};

}  // namespace rushlight::kernels
