// Which elements of a line each element of the resized line is made of, and with which weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace rushlight {

// WideLinear and WideCubic are those that see every element which a step of the result spans.
enum class Method : uint8_t { Nearest, NearestExact, Linear, Cubic, WideLinear, WideCubic };

// The input's positions for one dimension of the result.
struct Axis {
  int64_t size;
  int64_t wanted;
  std::optional<double> factor;
  bool align;
  bool wide;  // elements of double precision

  // In the precision T of the elements, so that both round alike.
  template <typename T>
  T step() const {
    if (align) {
      return wanted > 1 ? static_cast<T>(size - 1) / static_cast<T>(wanted - 1) : T{0};
    }
    return factor && *factor > 0 ? static_cast<T>(1.0 / *factor)
                                 : static_cast<T>(size) / static_cast<T>(wanted);
  }
  template <typename T>
  T position_of(int64_t i, bool clip) const {
    if (align) {
      return step<T>() * static_cast<T>(i);
    }
    const T at = step<T>() * (static_cast<T>(i) + T{0.5}) - T{0.5};
    return clip ? std::max(at, T{0}) : at;
  }
  double position(int64_t i, bool clip) const {
    return wide ? position_of<double>(i, clip) : static_cast<double>(position_of<float>(i, clip));
  }
};

// at[k][i] and weights[k][i]: the k-th element that goes into element i of the result. Those that
// have fewer than others end with weights of 0.
struct Taps {
  std::vector<std::vector<int64_t>> at;
  std::vector<std::vector<double>> weights;
};

// Of one of the methods that interpolate.
Taps taps_of(Method method, const Axis& axis);

// The same with one weight for each element that goes in: those at the ends of a line stand in for
// what lies beyond.
Taps merged(Taps taps);

// How many binary places the weights have where they are kept in 16 bits.
int fixed_point_places(const Taps& taps);

}  // namespace rushlight
