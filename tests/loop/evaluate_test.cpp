#include "loop/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "loop/kernel.h"
#include "loop/special.h"

namespace rushlight::loop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double real(Op op, DType dtype, double a, double b) {
  return as_double(
      evaluate_binary(op, dtype, normalize_float(a, dtype), normalize_float(b, dtype)));
}

int64_t integer(Op op, DType dtype, int64_t a, int64_t b) {
  return static_cast<int64_t>(
      evaluate_binary(op, dtype, normalize_int(a, dtype), normalize_int(b, dtype)));
}

TEST(Evaluate, IntegerDivision) {
  struct Row {
    int64_t a, b, div, floordiv, rem, mod;
  };
  for (Row r : {Row{7, 2, 3, 3, 1, 1}, Row{-7, 2, -3, -4, -1, 1}, Row{7, -2, -3, -4, 1, -1},
                Row{-7, -2, 3, 3, -1, -1}, Row{6, -3, -2, -2, 0, 0}, Row{5, 0, 0, 0, 0, 0}}) {
    for (DType dtype : {DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
      EXPECT_EQ(integer(Op::Div, dtype, r.a, r.b), r.div);
      EXPECT_EQ(integer(Op::FloorDiv, dtype, r.a, r.b), r.floordiv);
      EXPECT_EQ(integer(Op::Rem, dtype, r.a, r.b), r.rem);
      EXPECT_EQ(integer(Op::Mod, dtype, r.a, r.b), r.mod);
    }
  }
  EXPECT_EQ(integer(Op::Div, DType::Int64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(integer(Op::Rem, DType::Int64, INT64_MIN, -1), 0);
  EXPECT_EQ(integer(Op::Div, DType::Int8, -128, -1), -128);
  EXPECT_EQ(integer(Op::Div, DType::UInt64, -1, 2), INT64_MAX);
  EXPECT_EQ(integer(Op::Mod, DType::UInt8, 250, 7), 5);
}

TEST(Evaluate, IntegersWrap) {
  EXPECT_EQ(integer(Op::Add, DType::Int8, 127, 1), -128);
  EXPECT_EQ(integer(Op::Sub, DType::UInt16, 0, 1), 65535);
  EXPECT_EQ(integer(Op::Mul, DType::Int32, 65536, 65536), 0);
  EXPECT_EQ(integer(Op::Max, DType::UInt64, -1, 1), -1);
  EXPECT_EQ(integer(Op::Lt, DType::UInt64, 1, -1), 1);
  EXPECT_EQ(integer(Op::Lt, DType::Int64, 1, -1), 0);
}

TEST(Evaluate, Shifts) {
  EXPECT_EQ(integer(Op::Shl, DType::Int8, 1, 7), -128);
  EXPECT_EQ(integer(Op::Shl, DType::Int8, 1, 8), 0);
  EXPECT_EQ(integer(Op::Shl, DType::Int32, 1, -1), 0);
  EXPECT_EQ(integer(Op::Shr, DType::Int8, -128, 3), -16);
  EXPECT_EQ(integer(Op::Shr, DType::Int8, -128, 100), -1);
  EXPECT_EQ(integer(Op::Shr, DType::UInt8, 128, 3), 16);
  EXPECT_EQ(integer(Op::Shr, DType::UInt8, 128, 8), 0);
}

TEST(Evaluate, IntegerPower) {
  EXPECT_EQ(integer(Op::Pow, DType::Int64, 3, 5), 243);
  EXPECT_EQ(integer(Op::Pow, DType::Int64, 0, 0), 1);
  EXPECT_EQ(integer(Op::Pow, DType::Int32, -1, -3), -1);
  EXPECT_EQ(integer(Op::Pow, DType::Int32, -1, -2), 1);
  EXPECT_EQ(integer(Op::Pow, DType::Int32, 1, -9), 1);
  EXPECT_EQ(integer(Op::Pow, DType::Int32, 5, -1), 0);
  EXPECT_EQ(integer(Op::Pow, DType::UInt8, 2, 9), 0);
  EXPECT_EQ(integer(Op::Pow, DType::UInt64, 1, -1), 1);
}

TEST(Evaluate, FloatDivision) {
  for (DType dtype : {DType::Float32, DType::Float64}) {
    EXPECT_EQ(real(Op::FloorDiv, dtype, -7, 2), -4);
    EXPECT_EQ(real(Op::FloorDiv, dtype, 7, -2), -4);
    EXPECT_EQ(real(Op::Mod, dtype, -7, 2), 1);
    EXPECT_EQ(real(Op::Rem, dtype, -7, 2), -1);
    EXPECT_EQ(real(Op::FloorDiv, dtype, 1, 0), kInf);
    EXPECT_TRUE(std::isnan(real(Op::FloorDiv, dtype, 0, 0)));
    EXPECT_TRUE(std::isnan(real(Op::Mod, dtype, 1, 0)));
    EXPECT_TRUE(std::signbit(real(Op::FloorDiv, dtype, -0.0, 2)));
    EXPECT_EQ(real(Op::FloorDiv, dtype, -1, kInf), -1);
    EXPECT_EQ(real(Op::FloorDiv, dtype, 1, -kInf), -1);
  }
  EXPECT_EQ(real(Op::FloorDiv, DType::Float64, 1, 0.1), 9);
}

TEST(Evaluate, MaxAndMin) {
  EXPECT_TRUE(std::isnan(real(Op::Max, DType::Float32, kNan, 1)));
  EXPECT_TRUE(std::isnan(real(Op::Min, DType::Float32, 1, kNan)));
  EXPECT_EQ(real(Op::FMax, DType::Float32, kNan, 1), 1);
  EXPECT_EQ(real(Op::FMin, DType::Float32, 1, kNan), 1);
  EXPECT_TRUE(std::signbit(real(Op::Max, DType::Float64, 0.0, -0.0)));
  EXPECT_FALSE(std::signbit(real(Op::Max, DType::Float64, -0.0, 0.0)));
  EXPECT_FALSE(std::signbit(real(Op::Min, DType::Float64, -0.0, 0.0)));
}

TEST(Evaluate, Conversions) {
  auto from_float = [](double x, DType to) {
    return static_cast<int64_t>(convert(normalize_float(x, DType::Float64), DType::Float64, to));
  };
  EXPECT_EQ(from_float(-1.9, DType::Int32), -1);
  EXPECT_EQ(from_float(-1, DType::UInt8), 255);
  EXPECT_EQ(from_float(300, DType::UInt8), 44);
  EXPECT_EQ(from_float(0.5, DType::Bool), 1);
  EXPECT_EQ(from_float(kNan, DType::Bool), 1);
  EXPECT_EQ(static_cast<uint64_t>(from_float(1.2e19, DType::UInt64)), 12000000000000000000ull);
  // 2^24 + 1 and 2^60 + 2^36 + 1: f32 straight, not by way of f64.
  Value big = (1ull << 60) + (1ull << 36) + 1;
  EXPECT_EQ(as_double(convert(big, DType::Int64, DType::Float32)),
            static_cast<double>(static_cast<float>(static_cast<int64_t>(big))));
  EXPECT_EQ(as_double(convert(~0ull, DType::UInt64, DType::Float64)), 18446744073709551616.0);
  EXPECT_EQ(
      as_double(convert(normalize_float(70000, DType::Float32), DType::Float32, DType::Float16)),
      kInf);
  EXPECT_EQ(
      as_double(convert(normalize_float(1e9, DType::Float32), DType::Float32, DType::Float8E4M3FN)),
      448);
  EXPECT_EQ(as_double(convert(2049, DType::Int32, DType::Float16)), 2048);
}

TEST(Evaluate, Identities) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DType dtype = static_cast<DType>(i);
    if (!is_value_dtype(dtype)) {
      continue;
    }
    for (Combine combine :
         {Combine::Sum, Combine::Prod, Combine::Max, Combine::Min, Combine::Or, Combine::And}) {
      bool logical = combine == Combine::Or || combine == Combine::And;
      bool arithmetic = combine == Combine::Sum || combine == Combine::Prod;
      if ((logical && is_floating(dtype)) || (arithmetic && dtype == DType::Bool)) {
        continue;
      }
      for (int64_t x : {0, 1, -1, 77, -128}) {
        Value value = is_floating(dtype) ? normalize_float(static_cast<double>(x), dtype)
                                         : normalize_int(x, dtype);
        EXPECT_EQ(combine_values(combine, dtype, identity(combine, dtype), value), value);
      }
    }
  }
}

// Reference values: mpmath, with 30 digits.
TEST(Evaluate, Digamma) {
  struct Row {
    double x, y;
  };
  for (Row r : {Row{1, -0.57721566490153286}, Row{0.5, -1.9635100260214235},
                Row{10, 2.2517525890667211}, Row{100.25, 4.6026712432747126},
                Row{-0.5, 0.036489973978576520}, Row{-7.25, 5.1899772149562879},
                Row{1e-3, -1000.5755719318103}, Row{1e10, 23.025850929890456}}) {
    EXPECT_NEAR(digamma_f64(r.x), r.y, 2e-14 * std::max(1.0, std::fabs(r.y))) << r.x;
  }
  EXPECT_EQ(digamma_f64(0.0), -kInf);
  EXPECT_EQ(digamma_f64(-0.0), kInf);
  EXPECT_TRUE(std::isnan(digamma_f64(-3)));
  EXPECT_TRUE(std::isnan(digamma_f64(kNan)));
  // Recurrence and reflection, everywhere.
  for (double x = -9.87; x < 20; x += 0.0931) {
    double tolerance = 1e-13 * (1 + std::fabs(digamma_f64(x)) + std::fabs(1 / x));
    EXPECT_NEAR(digamma_f64(x + 1), digamma_f64(x) + 1 / x, tolerance) << x;
  }
}

TEST(Evaluate, Erfinv) {
  EXPECT_EQ(erfinv_f64(0.0), 0.0);
  EXPECT_TRUE(std::signbit(erfinv_f64(-0.0)));
  EXPECT_EQ(erfinv_f64(1), kInf);
  EXPECT_EQ(erfinv_f64(-1), -kInf);
  EXPECT_TRUE(std::isnan(erfinv_f64(1.0000001)));
  EXPECT_NEAR(erfinv_f64(0.5), 0.47693627620446987, 2e-16);
  EXPECT_NEAR(erfinv_f64(1 - 1e-15), 5.6754, 1e-3);
  for (double x = 1e-9; x < 1; x += 0.00137) {
    double y = erfinv_f64(x);
    EXPECT_NEAR(std::erf(y), x, 1e-15) << x;
    EXPECT_EQ(erfinv_f64(-x), -y);
  }
  for (double tail = 0.3; tail > 1e-16; tail *= 0.7) {
    double x = 1 - tail;
    double y = erfinv_f64(x);
    EXPECT_NEAR(std::erfc(y) / (1 - x), 1, 2e-14) << x;
  }
}

TEST(Evaluate, MemoryRoundTrip) {
  for (int i = 0; i < 256; ++i) {
    unsigned char byte = static_cast<unsigned char>(i);
    for (DType dtype : {DType::UInt8, DType::Int8, DType::Float8E4M3FN, DType::Float8E5M2,
                        DType::Float8E4M3FNUZ, DType::Float8E5M2FNUZ, DType::Float8E8M0FNU}) {
      unsigned char back = 0;
      Value value = read_memory(&byte, dtype);
      if (is_floating(dtype) && std::isnan(as_double(value))) {
        continue;
      }
      write_memory(&back, dtype, value);
      EXPECT_EQ(back, byte);
    }
    EXPECT_EQ(read_memory(&byte, DType::Bool), i != 0);
  }
}

}  // namespace
}  // namespace rushlight::loop
