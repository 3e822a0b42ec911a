#include <rushlight/dtype.h>
#include <rushlight/error.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "tensor/pending.h"

namespace rushlight {
namespace {

std::atomic<DType> g_default_dtype{DType::Float32};

constexpr std::string_view kScalarTypeNames[] = {"Bool",
                                                 "Byte",
                                                 "Char",
                                                 "UInt16",
                                                 "Short",
                                                 "UInt32",
                                                 "Int",
                                                 "UInt64",
                                                 "Long",
                                                 "Float8_e4m3fn",
                                                 "Float8_e5m2",
                                                 "Float8_e4m3fnuz",
                                                 "Float8_e5m2fnuz",
                                                 "Float8_e8m0fnu",
                                                 "Half",
                                                 "BFloat16",
                                                 "Float",
                                                 "Double",
                                                 "ComplexFloat",
                                                 "ComplexDouble"};
static_assert(std::size(kScalarTypeNames) == kDTypeCount);

bool is_wide_unsigned(DType dtype) {
  return dtype == DType::UInt16 || dtype == DType::UInt32 || dtype == DType::UInt64;
}

[[noreturn]] void no_promotion(const char* types, DType a, DType b) {
  fail(ErrorKind::Runtime, "", "Promotion for ", types, " is not supported, attempted to promote ",
       scalar_type_name(a), " and ", scalar_type_name(b));
}

DType promote_floating(DType a, DType b) {
  bool two_halves = a != b && is_reduced_floating(a) && is_reduced_floating(b);
  return two_halves ? DType::Float32 : std::max(a, b);
}

DType promote_complex(DType a, DType b) {
  bool wide = real_dtype(a) == DType::Float64 || real_dtype(b) == DType::Float64;
  return wide ? DType::Complex128 : DType::Complex64;
}

DType promote_integral(DType a, DType b) {
  if (a == DType::Bool || b == DType::Bool) {
    return std::max(a, b);
  }
  if (a == DType::UInt8 || b == DType::UInt8) {
    return std::max({a, b, DType::Int16});
  }
  return std::max(a, b);
}

uint32_t to_bits(float value) {
  return std::bit_cast<uint32_t>(value);
}

// A small binary float with a sign, `E` exponent bits and `M` mantissa bits.
template <int E, int M, int B = (1 << (E - 1)) - 1>
struct SmallFloat {
  static constexpr int kBias = B;
  static constexpr uint32_t kExponentMask = (1u << E) - 1;

  static float decode(uint32_t bits, bool has_infinity) {
    uint32_t sign = (bits >> (E + M)) << 31;
    uint32_t exponent = (bits >> M) & kExponentMask;
    uint32_t mantissa = bits & ((1u << M) - 1);
    if (exponent == kExponentMask && has_infinity) {
      return std::bit_cast<float>(sign | 0x7f800000u | mantissa << (23 - M));
    }
    if (exponent == 0) {
      constexpr uint32_t kUnit = static_cast<uint32_t>(127 + 1 - kBias - M) << 23;
      float magnitude = static_cast<float>(mantissa) * std::bit_cast<float>(kUnit);
      return std::bit_cast<float>(sign | to_bits(magnitude));
    }
    return std::bit_cast<float>(sign | (exponent + 127 - kBias) << 23 | mantissa << (23 - M));
  }

  // Magnitude bits of a finite value, rounded to nearest even; may carry beyond the largest finite
  // one, which the caller turns into infinity or NaN.
  static uint32_t encode_magnitude(uint32_t magnitude) {
    constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(127 + 1 - kBias) << 23;
    if (magnitude < kSmallestNormal) {
      // Adding 2^n whose unit in the last place is our smallest subnormal makes the sum round
      // there.
      constexpr uint32_t kAnchor = static_cast<uint32_t>(127 + 1 - kBias - M + 23) << 23;
      float anchored = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAnchor);
      return to_bits(anchored) - kAnchor;
    }
    uint32_t odd = (magnitude >> (23 - M)) & 1;
    uint32_t rounded = magnitude + ((1u << (22 - M)) - 1) + odd;
    return (rounded >> (23 - M)) - (static_cast<uint32_t>(127 - kBias) << M);
  }
};

using HalfFormat = SmallFloat<5, 10>;
using E4M3 = SmallFloat<4, 3>;
using E5M2 = SmallFloat<5, 2>;
using E4M3Unsigned = SmallFloat<4, 3, 8>;
using E5M2Unsigned = SmallFloat<5, 2, 16>;

constexpr uint8_t kUnsignedNan = 0x80;

template <typename Format>
float decode_unsigned_zero(uint8_t bits) {
  return bits == kUnsignedNan ? std::bit_cast<float>(0x7fc00000u) : Format::decode(bits, false);
}

// What rounds beyond the largest finite number is NaN, like infinity.
template <typename Format>
uint8_t encode_unsigned_zero(float value) {
  const uint32_t bits = to_bits(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  constexpr uint32_t kTooLarge = 0x48000000u;  // 2^17
  const uint32_t code = magnitude >= kTooLarge ? kUnsignedNan : Format::encode_magnitude(magnitude);
  if (code == 0 || code >= kUnsignedNan) {
    return static_cast<uint8_t>(code == 0 ? 0 : kUnsignedNan);
  }
  return static_cast<uint8_t>(bits >> 31 << 7 | code);
}

}  // namespace

std::string_view scalar_type_name(DType dtype) {
  return kScalarTypeNames[static_cast<int>(dtype)];
}

DType promote(DType a, DType b) {
  if (a == b) {
    return a;
  }
  if (is_float8(a) || is_float8(b)) {
    no_promotion("Float8 Types", a, b);
  }
  bool floating = is_floating(a) || is_floating(b);
  if (is_complex(a) || is_complex(b)) {
    if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
      no_promotion("uint16, uint32, uint64 types", a, b);
    }
    return promote_complex(a, b);
  }
  if (floating) {
    return is_floating(a) && is_floating(b) ? promote_floating(a, b) : is_floating(a) ? a : b;
  }
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    no_promotion("uint16, uint32, uint64 types", a, b);
  }
  return promote_integral(a, b);
}

bool can_cast(DType from, DType to) {
  auto rank = [](DType dtype) {
    switch (info(dtype).category) {
      case DTypeCategory::Bool:
        return 0;
      case DTypeCategory::Unsigned:
      case DTypeCategory::Signed:
        return 1;
      case DTypeCategory::Float:
        return 2;
      case DTypeCategory::Complex:
        return 3;
    }
    return 3;
  };
  return rank(from) <= rank(to);
}

bool parse_dtype(std::string_view name, DType* dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DTypeInfo& row = kDTypeTable[i];
    if (name == row.name || (!row.alias.empty() && name == row.alias)) {
      *dtype = static_cast<DType>(i);
      return true;
    }
  }
  return false;
}

DType default_dtype() {
  return g_default_dtype.load(std::memory_order_relaxed);
}

void set_default_dtype(DType dtype) {
  if (!is_floating(dtype) || is_float8(dtype)) {
    fail(ErrorKind::Type, "", "only floating-point types are supported as the default type, got ",
         dtype);
  }
  if (dtype != default_dtype()) {
    settle_captured("the default dtype");
  }
  g_default_dtype.store(dtype, std::memory_order_relaxed);
}

float to_float(Half value) {
  return HalfFormat::decode(value.bits, true);
}

float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

float to_float(Float8E4M3FN value) {
  if ((value.bits & 0x7f) == 0x7f) {
    return std::bit_cast<float>((value.bits & 0x80u) << 24 | 0x7fc00000u);
  }
  return E4M3::decode(value.bits, false);
}

float to_float(Float8E5M2 value) {
  return E5M2::decode(value.bits, true);
}

float to_float(Float8E4M3FNUZ value) {
  return decode_unsigned_zero<E4M3Unsigned>(value.bits);
}

float to_float(Float8E5M2FNUZ value) {
  return decode_unsigned_zero<E5M2Unsigned>(value.bits);
}

float to_float(Float8E8M0FNU value) {
  if (value.bits == 0xff) {
    return std::bit_cast<float>(0x7fc00000u);
  }
  // 2^-127 is subnormal in f32.
  return std::bit_cast<float>(value.bits == 0 ? 0x400000u
                                              : static_cast<uint32_t>(value.bits) << 23);
}

Half to_half(float value) {
  uint32_t bits = to_bits(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536
    result = 0x7c00u;
  } else {
    result = HalfFormat::encode_magnitude(magnitude);
  }
  return {static_cast<uint16_t>(bits >> 31 << 15 | result)};
}

BFloat16 to_bfloat16(float value) {
  uint32_t bits = to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}

Float8E4M3FN to_float8_e4m3fn(float value) {
  uint32_t bits = to_bits(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  // Saturates at 448: there is no infinity. 464 and above would round to 480, which is NaN's place.
  uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7fu;
  } else if (magnitude >= 0x43e80000u) {  // 464
    result = 0x7eu;
  } else {
    result = E4M3::encode_magnitude(magnitude);
  }
  return {static_cast<uint8_t>(bits >> 31 << 7 | result)};
}

Float8E5M2 to_float8_e5m2(float value) {
  uint32_t bits = to_bits(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7fu;
  } else if (magnitude >= 0x47800000u) {  // 65536
    result = 0x7cu;
  } else {
    result = E5M2::encode_magnitude(magnitude);
  }
  return {static_cast<uint8_t>(bits >> 31 << 7 | result)};
}

Float8E4M3FNUZ to_float8_e4m3fnuz(float value) {
  return {encode_unsigned_zero<E4M3Unsigned>(value)};
}

Float8E5M2FNUZ to_float8_e5m2fnuz(float value) {
  return {encode_unsigned_zero<E5M2Unsigned>(value)};
}

// Halves are rounded up.
Float8E8M0FNU to_float8_e8m0fnu(float value) {
  const uint32_t magnitude = to_bits(value) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {
    return {0xff};
  }
  if (magnitude < 0x800000u) {  // below 2^-126, where the code 0 stands for 2^-127
    return {static_cast<uint8_t>(magnitude > 0x400000u)};
  }
  return {static_cast<uint8_t>((magnitude + 0x400000u) >> 23)};
}

}  // namespace rushlight
