#include "loop/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "loop/evaluate.h"
#include "loop/kernel.h"

namespace rushlight::loop {
namespace {

// Expressions over scalars s0 (f32), s1, s2 (i32), s3 (i64), s4 (u8) and s5 (bool).
constexpr DType kLeaves[] = {DType::Float32, DType::Int32, DType::Int32,
                             DType::Int64,   DType::UInt8, DType::Bool};

class RandomExpr {
 public:
  explicit RandomExpr(uint64_t seed) : random_(seed) {}

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Expr expr(DType dtype, int depth) {
    if (depth == 0 || pick(0, 6) == 0) {
      return leaf(dtype);
    }
    switch (pick(0, 5)) {
      case 0:
        return select(expr(DType::Bool, depth - 1), expr(dtype, depth - 1), expr(dtype, depth - 1));
      case 1:
        return cast(expr(kLeaves[pick(0, 5)], depth - 1), dtype);
      case 2:
        return unary_of(dtype, depth);
      default:
        return binary_of(dtype, depth);
    }
  }

 private:
  Expr leaf(DType dtype) {
    if (pick(0, 2) == 0) {
      return dtype == DType::Float32 ? constant(static_cast<double>(pick(-9, 9)) / 2, dtype)
                                     : constant_int(pick(-5, 20), dtype);
    }
    const int64_t slot = pick(0, 5);
    const Expr made = scalar(static_cast<int>(slot), kLeaves[slot]);
    return made.dtype() == dtype ? made : cast(made, dtype);
  }

  Expr unary_of(DType dtype, int depth) {
    if (dtype == DType::Bool) {
      return pick(0, 1) == 0 ? unary(Op::Not, expr(dtype, depth - 1))
                             : unary(Op::IsNan, expr(DType::Float32, depth - 1));
    }
    constexpr Op kFloat[] = {Op::Neg,   Op::Abs,   Op::Floor, Op::Ceil,
                             Op::Trunc, Op::Round, Op::Exp,   Op::Sqrt};
    constexpr Op kInteger[] = {Op::Neg, Op::Abs, Op::Not};
    const Op op = dtype == DType::Float32 ? kFloat[pick(0, 7)] : kInteger[pick(0, 2)];
    return unary(op, expr(dtype, depth - 1));
  }

  Expr binary_of(DType dtype, int depth) {
    if (dtype == DType::Bool) {
      constexpr Op kCompare[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge};
      constexpr Op kLogic[] = {Op::And, Op::Or, Op::Xor};
      if (pick(0, 1) == 0) {
        return binary(kLogic[pick(0, 2)], expr(dtype, depth - 1), expr(dtype, depth - 1));
      }
      const DType other = kLeaves[pick(0, 4)];
      return binary(kCompare[pick(0, 5)], expr(other, depth - 1), expr(other, depth - 1));
    }
    constexpr Op kBoth[] = {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::FloorDiv,
                            Op::Rem, Op::Mod, Op::Max, Op::Min};
    constexpr Op kBits[] = {Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr};
    const bool bits = dtype != DType::Float32 && pick(0, 3) == 0;
    const Op op = bits ? kBits[pick(0, 4)] : kBoth[pick(0, 8)];
    return binary(op, expr(dtype, depth - 1), expr(dtype, depth - 1));
  }

  std::mt19937_64 random_;
};

double number(Value value, DType dtype) {
  return is_floating(dtype)       ? as_double(value)
         : dtype == DType::UInt64 ? static_cast<double>(value)
                                  : static_cast<double>(static_cast<int64_t>(value));
}

TEST(Interval, HoldsEveryValue) {
  RandomExpr random(7);
  for (int round = 0; round < 4000; ++round) {
    const DType dtype = kLeaves[random.pick(0, 5)];
    const Expr root = random.expr(dtype, 5);
    Interval leaves[6];
    for (int i = 0; i < 6; ++i) {
      const bool truth = kLeaves[i] == DType::Bool;
      const int64_t low =
          random.pick(kLeaves[i] == DType::UInt8 || truth ? 0 : -40, truth ? 1 : 90);
      leaves[i] = {static_cast<double>(low),
                   static_cast<double>(random.pick(low, truth ? 1 : 100))};
    }
    Bounds bounds({&root, 1});
    bounds.evaluate([&](const Node& leaf, const Interval*) { return leaves[leaf.slot]; });
    for (int sample = 0; sample < 12; ++sample) {
      Value scalars[6];
      for (int i = 0; i < 6; ++i) {
        const int64_t whole =
            random.pick(static_cast<int64_t>(leaves[i].low), static_cast<int64_t>(leaves[i].high));
        scalars[i] = kLeaves[i] == DType::Float32
                         ? normalize_float(static_cast<double>(whole), kLeaves[i])
                         : normalize_int(whole, kLeaves[i]);
      }
      std::unordered_map<const Node*, Value> values;
      for (Expr expr : post_order({&root, 1})) {
        std::vector<Value> inputs;
        for (Expr input : expr->inputs) {
          inputs.push_back(values.at(input.node));
        }
        values[expr.node] = expr->op == Op::Scalar  ? scalars[expr->slot]
                            : expr->op == Op::Const ? expr->bits
                                                    : evaluate(*expr.node, inputs.data());
        const double value = number(values[expr.node], expr.dtype());
        const Interval& found = bounds.of(expr);
        const bool holds =
            std::isnan(value) ? found.nan : found.low <= value && value <= found.high;
        ASSERT_TRUE(holds) << print(expr) << " is " << value << ", bounds " << found.low << " to "
                           << found.high;
      }
    }
  }
}

Interval bound(std::string_view text, std::initializer_list<Interval> leaves) {
  const Expr root = parse_expr(text);
  Bounds bounds({&root, 1});
  bounds.evaluate([&](const Node& leaf, const Interval*) { return leaves.begin()[leaf.slot]; });
  return bounds.of(root);
}

TEST(Interval, DecidesMasks) {
  const Interval low{0, 127};
  const Interval high{128, 255};
  EXPECT_EQ(bound("ge(s0:i32, s1:i32)", {high, low}).low, 1);
  EXPECT_EQ(bound("ge(s0:i32, s1:i32)", {low, high}).high, 0);
  EXPECT_FALSE(bound("ge(s0:i32, s1:i32)", {low, low}).is_point());
  EXPECT_EQ(bound("le(sub(s0:i32, s1:i32), 300:i32)", {high, low}).low, 1);
  EXPECT_EQ(bound("eq(floordiv(s0:i32, 128:i32), floordiv(s1:i32, 128:i32))", {high, low}).high, 0);
  EXPECT_EQ(bound("eq(floordiv(s0:i32, 128:i32), floordiv(s1:i32, 128:i32))", {low, low}).low, 1);
}

TEST(Interval, KeepsWhatMayWrapOpen) {
  const Interval found = bound("mul(s0:i32, s0:i32)", {{0, 100000}});
  EXPECT_EQ(found.low, -2147483648.0);
  EXPECT_EQ(found.high, 2147483647.0);
  EXPECT_TRUE(bound("add(s0:f32, s0:f32)", {{0, 1, true}}).nan);
}

}  // namespace
}  // namespace rushlight::loop
