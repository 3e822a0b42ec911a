#include "loop/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "loop/evaluate.h"

namespace rushlight::loop {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kExact = 9007199254740992.0;  // 2^53: integers up to here are doubles

bool is_integer(DType dtype) {
  return is_integral(dtype, false);
}

// Integers that may wrap around may be anything; floats are rounded as their dtype rounds.
Interval settle(double low, double high, bool nan, DType dtype) {
  if (std::isnan(low) || std::isnan(high)) {
    return all_values(dtype);
  }
  if (is_integer(dtype)) {
    const Interval all = all_values(dtype);
    const bool exact = low > -kExact && high < kExact;
    return exact && low >= all.low && high <= all.high ? Interval{low, high} : all;
  }
  if (dtype == DType::Bool) {
    return {low, high};
  }
  return {as_double(normalize_float(low, dtype)), as_double(normalize_float(high, dtype)), nan};
}

Interval truth(bool may_hold, bool may_fail) {
  return {may_fail ? 0.0 : 1.0, may_hold ? 1.0 : 0.0};
}

Interval compare(Op op, const Interval& a, const Interval& b) {
  const bool nan = a.nan || b.nan;
  switch (op) {
    case Op::Eq:
      return truth(a.low <= b.high && b.low <= a.high,
                   nan || !(a.is_point() && b.is_point() && a.low == b.low));
    case Op::Ne:
      return truth(nan || !(a.is_point() && b.is_point() && a.low == b.low),
                   a.low <= b.high && b.low <= a.high);
    case Op::Lt:
      return truth(a.low < b.high, nan || !(a.high < b.low));
    case Op::Le:
      return truth(a.low <= b.high, nan || !(a.high <= b.low));
    case Op::Gt:
      return truth(a.high > b.low, nan || !(a.low > b.high));
    default:
      return truth(a.high >= b.low, nan || !(a.low >= b.high));
  }
}

// Whether arithmetic on these may give NaN: inf - inf, 0 * inf, inf / inf lie inside such bounds.
bool may_be_nan(const Interval& a, const Interval& b) {
  return a.nan || b.nan || std::isinf(a.low) || std::isinf(a.high) || std::isinf(b.low) ||
         std::isinf(b.high);
}

template <typename F>
Interval corners(const Interval& a, const Interval& b, DType dtype, F&& f) {
  const double values[] = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  for (double value : values) {
    if (std::isnan(value)) {
      return all_values(dtype);
    }
  }
  return settle(*std::min_element(values, values + 4), *std::max_element(values, values + 4),
                may_be_nan(a, b), dtype);
}

Interval divide(Op op, const Interval& a, const Interval& b, DType dtype) {
  if (b.low <= 0 && b.high >= 0) {
    return all_values(dtype);
  }
  const bool whole = is_integer(dtype);
  if (op == Op::Div) {
    return corners(a, b, dtype,
                   [&](double x, double y) { return whole ? std::trunc(x / y) : x / y; });
  }
  return whole ? corners(a, b, dtype, [](double x, double y) { return std::floor(x / y); })
               : all_values(dtype);
}

// Of integers by a positive divisor; the sign of the dividend decides that of Rem.
Interval remainder(Op op, const Interval& a, const Interval& b, DType dtype) {
  if (!is_integer(dtype) || !b.is_point() || b.low <= 0) {
    return all_values(dtype);
  }
  const double by = b.low;
  if (std::floor(a.low / by) == std::floor(a.high / by) && (op == Op::Mod || a.low >= 0)) {
    const double base = std::floor(a.low / by) * by;
    return {a.low - base, a.high - base};
  }
  if (op == Op::Mod || a.low >= 0) {
    return {0, std::min(by - 1, a.low >= 0 ? a.high : by - 1)};
  }
  return {-(by - 1), by - 1};
}

Interval bitwise(Op op, const Interval& a, const Interval& b, DType dtype) {
  if (dtype == DType::Bool) {
    if (op == Op::And) {
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    }
    if (op == Op::Or) {
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    return a.is_point() && b.is_point() ? Interval{std::abs(a.low - b.low), std::abs(a.low - b.low)}
                                        : Interval{0, 1};
  }
  if (a.is_point() && b.is_point() && std::abs(a.low) < kExact && std::abs(b.low) < kExact) {
    const auto x = static_cast<int64_t>(a.low);
    const auto y = static_cast<int64_t>(b.low);
    const auto value = static_cast<double>(op == Op::And ? x & y : op == Op::Or ? x | y : x ^ y);
    return settle(value, value, false, dtype);
  }
  if (op == Op::And && a.low >= 0 && b.low >= 0) {
    return {0, std::min(a.high, b.high)};
  }
  return all_values(dtype);
}

Interval extremum(bool most, const Interval& a, const Interval& b, DType dtype) {
  return most ? settle(std::max(a.low, b.low), std::max(a.high, b.high), a.nan || b.nan, dtype)
              : settle(std::min(a.low, b.low), std::min(a.high, b.high), a.nan || b.nan, dtype);
}

Interval binary_bounds(Op op, const Interval& a, const Interval& b, DType dtype) {
  switch (op) {
    case Op::Add:
      return settle(a.low + b.low, a.high + b.high, may_be_nan(a, b), dtype);
    case Op::Sub:
      return settle(a.low - b.high, a.high - b.low, may_be_nan(a, b), dtype);
    case Op::Mul:
      return corners(a, b, dtype, [](double x, double y) { return x * y; });
    case Op::Div:
    case Op::FloorDiv:
      return divide(op, a, b, dtype);
    case Op::Rem:
    case Op::Mod:
      return remainder(op, a, b, dtype);
    case Op::Max:
    case Op::Min:
      return extremum(op == Op::Max, a, b, dtype);
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return bitwise(op, a, b, dtype);
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
      return compare(op, a, b);
    default:
      return all_values(dtype);
  }
}

Interval converted(const Interval& a, const Node& node, DType from) {
  if (node.dtype == DType::Bool) {
    const bool never = a.low == 0 && a.high == 0 && !a.nan;
    return truth(!never, (a.low <= 0 && a.high >= 0) || never);
  }
  if (node.buffer != node.dtype) {  // rounded through a smaller float
    return {as_double(convert(std::bit_cast<uint64_t>(a.low), from, node.buffer)),
            as_double(convert(std::bit_cast<uint64_t>(a.high), from, node.buffer)), a.nan};
  }
  if (is_floating(from) && is_integer(node.dtype)) {
    return a.nan ? all_values(node.dtype)
                 : settle(std::trunc(a.low), std::trunc(a.high), false, node.dtype);
  }
  return settle(a.low, a.high, a.nan, node.dtype);
}

Interval unary_bounds(const Node& node, const Interval& a, DType from) {
  switch (node.op) {
    case Op::Cast:
      return converted(a, node, from);
    case Op::Neg:
      return settle(-a.high, -a.low, a.nan, node.dtype);
    case Op::Abs: {
      const double most = std::max(std::abs(a.low), std::abs(a.high));
      const double least =
          a.low <= 0 && a.high >= 0 ? 0 : std::min(std::abs(a.low), std::abs(a.high));
      return settle(least, most, a.nan, node.dtype);
    }
    case Op::Floor:
      return settle(std::floor(a.low), std::floor(a.high), a.nan, node.dtype);
    case Op::Ceil:
      return settle(std::ceil(a.low), std::ceil(a.high), a.nan, node.dtype);
    case Op::Trunc:
      return settle(std::trunc(a.low), std::trunc(a.high), a.nan, node.dtype);
    case Op::Not:
      return node.dtype == DType::Bool ? Interval{1 - a.high, 1 - a.low} : all_values(node.dtype);
    case Op::IsNan:
      return truth(a.nan, !a.nan || a.low <= a.high);
    default:
      return all_values(node.dtype);
  }
}

Interval chosen(const Interval& condition, const Interval& a, const Interval& b) {
  if (condition.is_point()) {
    return condition.low != 0 ? a : b;
  }
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.nan || b.nan};
}

Interval constant_bounds(const Node& node) {
  if (is_floating(node.dtype)) {
    const double value = node.constant();
    return std::isnan(value) ? Interval{-kInfinity, kInfinity, true} : Interval{value, value};
  }
  const auto value = static_cast<double>(static_cast<int64_t>(node.bits));
  return std::abs(value) < kExact ? Interval{value, value} : all_values(node.dtype);
}

}  // namespace

Interval all_values(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return {0, 1};
    case DType::UInt8:
      return {0, 255};
    case DType::Int8:
      return {-128, 127};
    case DType::UInt16:
      return {0, 65535};
    case DType::Int16:
      return {-32768, 32767};
    case DType::UInt32:
      return {0, 4294967295.0};
    case DType::Int32:
      return {-2147483648.0, 2147483647.0};
    case DType::UInt64:
      return {0, 18446744073709551616.0};
    case DType::Int64:
      return {-9223372036854775808.0, 9223372036854775808.0};
    default:
      return {-kInfinity, kInfinity, true};
  }
}

Bounds::Bounds(std::span<const Expr> roots) : order_(post_order(roots)) {
  values_.resize(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) {
    places_[order_[i].node] = i;
    std::vector<size_t> places;
    for (Expr input : order_[i]->inputs) {
      places.push_back(places_.at(input.node));
    }
    inputs_.push_back(std::move(places));
  }
}

void Bounds::evaluate(const Leaf& leaf) {
  std::vector<Interval> given;
  for (size_t i = 0; i < order_.size(); ++i) {
    const Node& node = *order_[i].node;
    const std::vector<size_t>& in = inputs_[i];
    switch (node.op) {
      case Op::Const:
        values_[i] = constant_bounds(node);
        continue;
      case Op::Scalar:
      case Op::Index:
      case Op::Extent:
      case Op::Load:
        given.clear();
        for (size_t place : in) {
          given.push_back(values_[place]);
        }
        values_[i] = leaf(node, given.data());
        continue;
      case Op::Select:
        values_[i] = chosen(values_[in[0]], values_[in[1]], values_[in[2]]);
        continue;
      default:
        break;
    }
    if (info(node.op).arity == Arity::Unary && node.op != Op::Reduce && node.op != Op::Scan) {
      values_[i] = unary_bounds(node, values_[in[0]], node.inputs[0].dtype());
    } else if (info(node.op).arity == Arity::Binary) {
      values_[i] = binary_bounds(node.op, values_[in[0]], values_[in[1]], node.dtype);
    } else {
      values_[i] = all_values(node.dtype);
    }
  }
}

}  // namespace rushlight::loop
