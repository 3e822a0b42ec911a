#include "optim/line_search.h"

#include <rushlight/operators.h>

#include <cmath>
#include <optional>
#include <vector>

namespace rushlight::optim {
namespace {

constexpr double kSufficientDecrease = 1e-4;
constexpr double kCurvature = 0.9;
constexpr double kToleranceChange = 1e-9;
constexpr int kMostTries = 25;

template <typename F>
Number combine(const Number& a, const Number& b, F&& operation) {
  if (a.is_tensor() && b.is_tensor()) {
    return operation(a.tensor(), b.tensor());
  }
  if (a.is_tensor()) {
    return operation(a.tensor(), Scalar(b.value()));
  }
  if (b.is_tensor()) {
    return operation(Scalar(a.value()), b.tensor());
  }
  return operation(a.value(), b.value());
}

template <typename F>
bool compare(const Number& a, const Number& b, F&& operation) {
  const auto truth = [](const auto& result) {
    if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Tensor>) {
      return result.item().to_bool();
    } else {
      return static_cast<bool>(result);
    }
  };
  if (a.is_tensor() && b.is_tensor()) {
    return truth(operation(a.tensor(), b.tensor()));
  }
  if (a.is_tensor()) {
    return truth(operation(a.tensor(), Scalar(b.value())));
  }
  if (b.is_tensor()) {
    return truth(operation(Scalar(a.value()), b.tensor()));
  }
  return truth(operation(a.value(), b.value()));
}

// Comparisons of a number with a tensor ask the tensor.
struct Less {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    if constexpr (std::is_same_v<A, Scalar>) {
      return gt(b, a);
    } else {
      return a < b;
    }
  }
};

struct AtMost {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    if constexpr (std::is_same_v<A, Scalar>) {
      return ge(b, a);
    } else {
      return a <= b;
    }
  }
};

Number least(const Number& a, const Number& b) {
  return b < a ? b : a;
}

Number most(const Number& a, const Number& b) {
  return a < b ? b : a;
}

Number square(const Number& a) {
  return a.is_tensor() ? Number(pow(a.tensor(), 2)) : Number(std::pow(a.value(), 2));
}

Number root(const Number& a) {
  return a.is_tensor() ? Number(sqrt(a.tensor())) : Number(std::pow(a.value(), 0.5));
}

// The minimum, within the bounds, of the cubic with given values and slopes at two points.
Number cubic_minimum(const LinePoint& a, const LinePoint& b, const Number& low,
                     const Number& high) {
  const Number d1 = a.slope + b.slope - Number(3 * (a.loss - b.loss)) / (a.t - b.t);
  const Number d2_square = square(d1) - a.slope * b.slope;
  if (d2_square < 0) {
    return (low + high) / 2.0;
  }
  const Number d2 = root(d2_square);
  Number minimum;
  if (a.t <= b.t) {
    minimum = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + Number(2) * d2));
  } else {
    minimum = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + Number(2) * d2));
  }
  return least(most(minimum, low), high);
}

class Search {
 public:
  Search(const Evaluate& evaluate, const Tensor& direction, LinePoint start)
      : evaluate_(evaluate), direction_(direction), start_(std::move(start)) {
    longest_ = max(abs(direction));
    start_.gradient = clone(start_.gradient, MemoryFormat::Contiguous);
  }

  LineResult run(const Number& t) {
    extend(t);
    return {narrow(), evaluations_};
  }

 private:
  LinePoint at(const Number& t) {
    auto [loss, gradient] = evaluate_(t);
    ++evaluations_;
    const Tensor slope = dot(gradient, direction_);
    return {t, loss, gradient, slope};
  }

  bool too_high(const LinePoint& point) const {
    return start_.loss + Number(kSufficientDecrease) * point.t * start_.slope < point.loss;
  }

  bool flat(const LinePoint& point) const {
    return absolute(point.slope) <= Number(-kCurvature) * start_.slope;
  }

  // The next evaluation may reuse the gradient's memory.
  static LinePoint kept(const LinePoint& point) {
    return {point.t, point.loss, clone(point.gradient, MemoryFormat::Contiguous), point.slope};
  }

  // Goes on until two points hold a minimum between them, or one meets the conditions.
  void extend(const Number& t) {
    LinePoint previous = start_;
    LinePoint current = at(t);
    for (; tries_ < kMostTries; ++tries_) {
      if (too_high(current) || (tries_ > 1 && current.loss >= previous.loss)) {
        bracket_ = {previous, kept(current)};
        return;
      }
      if (flat(current)) {
        bracket_ = {current};
        done_ = true;
        return;
      }
      if (Number(0) <= current.slope) {
        bracket_ = {previous, kept(current)};
        return;
      }
      const Number low = current.t + Number(0.01) * (current.t - previous.t);
      const Number longer = cubic_minimum(previous, current, low, current.t * 10);
      previous = kept(current);
      current = at(longer);
    }
    bracket_ = {start_, current};
  }

  // Shrinks the bracket around a point that meets the conditions; gives its best end.
  LinePoint narrow() {
    bool stuck = false;
    const bool first = bracket_.size() == 1 || bracket_[0].loss <= bracket_[1].loss;
    size_t low = first ? 0 : 1;
    size_t high = first ? bracket_.size() - 1 : 0;
    while (!done_ && tries_ < kMostTries) {
      const Number& t0 = bracket_[0].t;
      const Number& t1 = bracket_[1].t;
      if (absolute(t1 - t0) * longest_ < kToleranceChange) {
        break;
      }
      const LinePoint point = at(next_between(t0, t1, &stuck));
      ++tries_;
      if (too_high(point) || point.loss >= bracket_[low].loss) {
        bracket_[high] = kept(point);
        low = bracket_[0].loss <= bracket_[1].loss ? 0 : 1;
        high = 1 - low;
      } else {
        if (flat(point)) {
          done_ = true;
        } else if (Number(0) <= point.slope * (bracket_[high].t - bracket_[low].t)) {
          bracket_[high] = bracket_[low];
        }
        bracket_[low] = kept(point);
      }
    }
    return bracket_[low];
  }

  // Too near an end twice: steps away from it, so that the bracket does shrink.
  Number next_between(const Number& t0, const Number& t1, bool* stuck) const {
    const Number shortest = least(t0, t1);
    const Number longest = most(t0, t1);
    const Number t = cubic_minimum(bracket_[0], bracket_[1], shortest, longest);
    const Number margin = Number(0.1) * (longest - shortest);
    if (!(least(longest - t, t - shortest) < margin)) {
      *stuck = false;
      return t;
    }
    if (!*stuck && !(longest <= t) && !(t <= shortest)) {
      *stuck = true;
      return t;
    }
    *stuck = false;
    const bool near_longest = absolute(t - longest) < absolute(t - shortest);
    return near_longest ? longest - margin : shortest + margin;
  }

  const Evaluate& evaluate_;
  Tensor direction_;
  LinePoint start_;
  Number longest_;
  std::vector<LinePoint> bracket_;
  int64_t evaluations_ = 0;
  int tries_ = 0;
  bool done_ = false;
};

}  // namespace

double Number::value() const {
  return is_tensor() ? tensor().item().to_double() : std::get<double>(value_);
}

Number operator+(const Number& a, const Number& b) {
  return combine(a, b, [](const auto& x, const auto& y) { return x + y; });
}

Number operator-(const Number& a, const Number& b) {
  return combine(a, b, [](const auto& x, const auto& y) { return x - y; });
}

Number operator*(const Number& a, const Number& b) {
  return combine(a, b, [](const auto& x, const auto& y) { return x * y; });
}

Number operator/(const Number& a, const Number& b) {
  return combine(a, b, [](const auto& x, const auto& y) { return x / y; });
}

bool operator<(const Number& a, const Number& b) {
  return compare(a, b, Less());
}

bool operator<=(const Number& a, const Number& b) {
  return compare(a, b, AtMost());
}

Number absolute(const Number& a) {
  return a.is_tensor() ? Number(abs(a.tensor())) : Number(std::abs(a.value()));
}

LineResult strong_wolfe(const Evaluate& evaluate, const Number& t, const Tensor& direction,
                        LinePoint start) {
  return Search(evaluate, direction, std::move(start)).run(t);
}

}  // namespace rushlight::optim
