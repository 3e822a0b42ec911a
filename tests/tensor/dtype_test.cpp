#include <gtest/gtest.h>
#include <rushlight/dtype.h>
#include <rushlight/error.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace rushlight {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

DType dtype(int i) {
  return static_cast<DType>(i);
}

std::string error_text(DType a, DType b) {
  try {
    promote(a, b);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Runtime);
    return error.what();
  }
  return "no error";
}

TEST(DType, PromotionIsALattice) {
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(promote(dtype(i), dtype(i)), dtype(i));
    for (int j = 0; j < kDTypeCount; ++j) {
      if (error_text(dtype(i), dtype(j)) != "no error") {
        EXPECT_NE(error_text(dtype(j), dtype(i)), "no error");
        continue;
      }
      DType both = promote(dtype(i), dtype(j));
      EXPECT_EQ(promote(dtype(j), dtype(i)), both);
      EXPECT_EQ(promote(both, dtype(i)), both);
    }
  }
}

TEST(DType, Promotion) {
  EXPECT_EQ(promote(DType::UInt8, DType::Int8), DType::Int16);
  EXPECT_EQ(promote(DType::UInt8, DType::Int64), DType::Int64);
  EXPECT_EQ(promote(DType::Bool, DType::UInt8), DType::UInt8);
  EXPECT_EQ(promote(DType::Int64, DType::Float16), DType::Float16);
  EXPECT_EQ(promote(DType::UInt64, DType::BFloat16), DType::BFloat16);
  EXPECT_EQ(promote(DType::Float16, DType::BFloat16), DType::Float32);
  EXPECT_EQ(promote(DType::Float16, DType::Complex64), DType::Complex64);
  EXPECT_EQ(promote(DType::Float64, DType::Complex64), DType::Complex128);
}

TEST(DType, PromotionErrors) {
  EXPECT_EQ(error_text(DType::Float8E4M3FN, DType::Float32),
            "Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and "
            "Float");
  EXPECT_EQ(error_text(DType::UInt16, DType::Int32),
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            "UInt16 and Int");
  EXPECT_NE(error_text(DType::UInt32, DType::Complex64), "no error");
}

TEST(DType, CanCast) {
  EXPECT_TRUE(can_cast(DType::Float64, DType::Float16));
  EXPECT_TRUE(can_cast(DType::Int64, DType::UInt8));
  EXPECT_TRUE(can_cast(DType::Bool, DType::Complex64));
  EXPECT_FALSE(can_cast(DType::Float32, DType::Int64));
  EXPECT_FALSE(can_cast(DType::Complex64, DType::Float64));
  EXPECT_FALSE(can_cast(DType::UInt8, DType::Bool));
}

TEST(DType, Names) {
  DType found;
  for (int i = 0; i < kDTypeCount; ++i) {
    ASSERT_TRUE(parse_dtype(dtype_name(dtype(i)), &found));
    EXPECT_EQ(found, dtype(i));
  }
  ASSERT_TRUE(parse_dtype("cdouble", &found));
  EXPECT_EQ(found, DType::Complex128);
  EXPECT_FALSE(parse_dtype("", &found));
  EXPECT_FALSE(parse_dtype("float33", &found));
}

TEST(DType, Default) {
  EXPECT_EQ(default_dtype(), DType::Float32);
  set_default_dtype(DType::Float64);
  EXPECT_EQ(default_dtype(), DType::Float64);
  set_default_dtype(DType::Float32);
  EXPECT_THROW(set_default_dtype(DType::Int32), Error);
  EXPECT_THROW(set_default_dtype(DType::Float8E5M2), Error);
}

TEST(DType, HalvesSurviveARoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    float half = to_float(Half{bits});
    float bfloat = to_float(BFloat16{bits});
    if (!std::isnan(half)) {
      ASSERT_EQ(to_half(half).bits, bits);
    }
    if (!std::isnan(bfloat)) {
      ASSERT_EQ(to_bfloat16(bfloat).bits, bits);
    }
  }
}

TEST(DType, Float8SurvivesARoundTrip) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint8_t bits = static_cast<uint8_t>(i);
#define RUSHLIGHT_CHECK(type, convert)                        \
  if (const float x = to_float(type{bits}); !std::isnan(x)) { \
    ASSERT_EQ(convert(x).bits, bits);                         \
  }
    RUSHLIGHT_FLOAT8(RUSHLIGHT_CHECK)
#undef RUSHLIGHT_CHECK
  }
}

// Rounding by definition: between neighbours, the midpoint goes to the even one.
template <typename Narrow, typename Bits, typename F>
void check_rounding(uint32_t last_finite, F narrow) {
  for (uint32_t i = 0; i < last_finite; ++i) {
    float low = to_float(Narrow{static_cast<Bits>(i)});
    float high = to_float(Narrow{static_cast<Bits>(i + 1)});
    float middle = low + (high - low) / 2;
    uint32_t even = i % 2 ? i + 1 : i;
    ASSERT_EQ(narrow(middle).bits, even) << low;
    ASSERT_EQ(narrow(std::nextafter(middle, 0.0f)).bits, i) << low;
    ASSERT_EQ(narrow(std::nextafter(middle, kInf)).bits, i + 1) << low;
  }
}

TEST(DType, RoundsToNearestEven) {
  check_rounding<Half, uint16_t>(0x7bff, to_half);
  check_rounding<BFloat16, uint16_t>(0x7f7f, to_bfloat16);
  check_rounding<Float8E4M3FN, uint8_t>(0x7e, to_float8_e4m3fn);
  check_rounding<Float8E5M2, uint8_t>(0x7b, to_float8_e5m2);
  check_rounding<Float8E4M3FNUZ, uint8_t>(0x7f, to_float8_e4m3fnuz);
  check_rounding<Float8E5M2FNUZ, uint8_t>(0x7f, to_float8_e5m2fnuz);
}

// PyTorch's values.
TEST(DType, UnsignedZerosAndPowersOfTwo) {
  const auto e4m3 = [](float x) { return static_cast<int>(to_float8_e4m3fnuz(x).bits); };
  const auto e5m2 = [](float x) { return static_cast<int>(to_float8_e5m2fnuz(x).bits); };
  const auto e8m0 = [](float x) { return static_cast<int>(to_float8_e8m0fnu(x).bits); };
  EXPECT_EQ(e4m3(-0.0f), 0);
  EXPECT_EQ(e4m3(-1.5f), 196);
  EXPECT_EQ(e4m3(241), 127);
  EXPECT_EQ(e4m3(250), 128);
  EXPECT_EQ(e5m2(-1.5f), 194);
  EXPECT_EQ(e5m2(57344 * 1.06f), 127);
  EXPECT_EQ(e5m2(57344 * 1.2f), 128);
  for (const float x : {kInf, -kInf, kNan, 1e30f}) {
    EXPECT_EQ(e4m3(x), 128);
    EXPECT_EQ(e5m2(x), 128);
  }
  EXPECT_TRUE(std::isnan(to_float(Float8E4M3FNUZ{128})));
  EXPECT_EQ(e8m0(0), 0);
  EXPECT_EQ(e8m0(0x1p-127f), 0);
  EXPECT_EQ(e8m0(1.5f * 0x1p-126f), 2);
  EXPECT_EQ(e8m0(1.4999999f), 127);
  EXPECT_EQ(e8m0(-1.5f), 128);
  EXPECT_EQ(e8m0(0x1p127f), 254);
  EXPECT_EQ(e8m0(3e38f), 255);
  EXPECT_EQ(e8m0(kNan), 255);
  EXPECT_EQ(to_float(Float8E8M0FNU{0}), 0x1p-127f);
}

TEST(DType, OverflowAndNan) {
  EXPECT_EQ(to_half(65519).bits, 0x7bff);
  EXPECT_EQ(to_half(65520).bits, 0x7c00);
  EXPECT_EQ(to_half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_half(kNan).bits, 0x7e00);
  EXPECT_EQ(to_bfloat16(3.4e38f).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(kNan))));
  float low_payload;
  uint32_t bits = 0x7f800001;
  std::memcpy(&low_payload, &bits, 4);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(low_payload))));
  EXPECT_TRUE(std::isnan(to_float(to_half(low_payload))));
  EXPECT_EQ(to_float(to_float8_e4m3fn(1e9f)), 448);
  EXPECT_EQ(to_float(to_float8_e4m3fn(-kInf)), -448);
  EXPECT_TRUE(std::isnan(to_float(to_float8_e4m3fn(kNan))));
  EXPECT_EQ(to_float(to_float8_e5m2(61440)), kInf);
  EXPECT_EQ(to_float(to_float8_e5m2(61439)), 57344);
  EXPECT_TRUE(std::isnan(to_float(to_float8_e5m2(kNan))));
}

}  // namespace
}  // namespace rushlight
