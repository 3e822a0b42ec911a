#include "ops/interpolate_taps.h"

#include <cmath>

namespace rushlight {
namespace {

// Keys' cubic convolution. The wide form takes another parameter, as image libraries do.
double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) {
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  }
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

double linear_weight(double distance) {
  return std::max(1 - std::fabs(distance), 0.0);
}

Taps empty_taps(size_t count) {
  return {std::vector<std::vector<int64_t>>(count), std::vector<std::vector<double>>(count)};
}

Taps linear_taps(const Axis& axis) {
  Taps taps = empty_taps(2);
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const double where = axis.position(i, true);
    const int64_t low = std::min(static_cast<int64_t>(where), axis.size - 1);
    const double share = std::clamp(where - static_cast<double>(low), 0.0, 1.0);
    taps.at[0].push_back(low);
    taps.at[1].push_back(std::min(low + 1, axis.size - 1));
    taps.weights[0].push_back(1 - share);
    taps.weights[1].push_back(share);
  }
  return taps;
}

Taps cubic_taps(const Axis& axis) {
  Taps taps = empty_taps(4);
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const double where = axis.position(i, false);
    const double low = std::floor(where);
    for (int k = 0; k < 4; ++k) {
      const int64_t tap = static_cast<int64_t>(low) + k - 1;
      taps.at[static_cast<size_t>(k)].push_back(std::clamp<int64_t>(tap, 0, axis.size - 1));
      taps.weights[static_cast<size_t>(k)].push_back(cubic_weight(where - low - (k - 1), -0.75));
    }
  }
  return taps;
}

// The filter is stretched over the elements that a step spans, cut off at the ends of the line, and
// its weights sum to 1.
template <typename T>
Taps wide_taps(const Axis& axis, bool cubic) {
  const T step = axis.step<T>();
  const T stretch = std::max(step, T{1});
  const T reach = (cubic ? T{2} : T{1}) * stretch;
  Taps taps;
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const T middle = step * (static_cast<T>(i) + T{0.5});
    const auto first = std::max<int64_t>(static_cast<int64_t>(middle - reach + T{0.5}), 0);
    const auto end = std::min(static_cast<int64_t>(middle + reach + T{0.5}), axis.size);
    std::vector<double> weights;
    double total = 0;
    for (int64_t k = first; k < end; ++k) {
      const T distance = (static_cast<T>(k) - middle + T{0.5}) / stretch;
      weights.push_back(cubic ? cubic_weight(distance, -0.5) : linear_weight(distance));
      total += weights.back();
    }
    while (taps.at.size() < weights.size()) {  // elements before had fewer
      taps.at.emplace_back(static_cast<size_t>(i), 0);
      taps.weights.emplace_back(static_cast<size_t>(i), 0.0);
    }
    for (size_t k = 0; k < taps.at.size(); ++k) {
      const bool used = k < weights.size();
      taps.at[k].push_back(used ? first + static_cast<int64_t>(k) : 0);
      taps.weights[k].push_back(used && total != 0 ? weights[k] / total : 0.0);
    }
  }
  return taps;
}

}  // namespace

Taps taps_of(Method method, const Axis& axis) {
  switch (method) {
    case Method::Cubic:
      return cubic_taps(axis);
    case Method::WideLinear:
    case Method::WideCubic: {
      const bool cubic = method == Method::WideCubic;
      return axis.wide ? wide_taps<double>(axis, cubic) : wide_taps<float>(axis, cubic);
    }
    default:
      return linear_taps(axis);
  }
}

Taps merged(Taps taps) {
  for (size_t k = 1; k < taps.at.size(); ++k) {
    for (size_t i = 0; i < taps.at[k].size(); ++i) {
      for (size_t before = 0; before < k; ++before) {
        if (taps.at[before][i] == taps.at[k][i]) {
          taps.weights[before][i] += taps.weights[k][i];
          taps.weights[k][i] = 0;
          break;
        }
      }
    }
  }
  return taps;
}

int fixed_point_places(const Taps& taps) {
  double most = 0;
  for (const std::vector<double>& line : taps.weights) {
    for (double weight : line) {
      most = std::max(most, weight);
    }
  }
  constexpr double kLimit = 1 << 15;
  int places = 0;
  while (places < 22 && std::floor(0.5 + std::ldexp(most, places + 1)) < kLimit) {
    ++places;
  }
  return places;
}

}  // namespace rushlight
