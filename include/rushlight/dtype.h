// Element types. One table drives the enum, sizes, names, promotion and printing.
//
// Half types (f16, bf16) are storage types: arithmetic on them is done in f32 and rounded once, to
// nearest even, when the result is stored. Float8 types are for storage, copies, casts.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rushlight {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Float8E4M3FN {
  uint8_t bits;
};
struct Float8E5M2 {
  uint8_t bits;
};
// Finite and unsigned zero: 0x80 is NaN, there is neither infinity nor -0.
struct Float8E4M3FNUZ {
  uint8_t bits;
};
struct Float8E5M2FNUZ {
  uint8_t bits;
};
// A power of two, 2^(bits - 127); 0xff is NaN. Signs are dropped.
struct Float8E8M0FNU {
  uint8_t bits;
};

// X(enumerator, C++ type, PyTorch name, other PyTorch name or "", short name in IR text, category)
#define RUSHLIGHT_DTYPES(X)                                                     \
  X(Bool, bool, "bool", "", "b8", Bool)                                         \
  X(UInt8, uint8_t, "uint8", "", "u8", Unsigned)                                \
  X(Int8, int8_t, "int8", "", "i8", Signed)                                     \
  X(UInt16, uint16_t, "uint16", "", "u16", Unsigned)                            \
  X(Int16, int16_t, "int16", "short", "i16", Signed)                            \
  X(UInt32, uint32_t, "uint32", "", "u32", Unsigned)                            \
  X(Int32, int32_t, "int32", "int", "i32", Signed)                              \
  X(UInt64, uint64_t, "uint64", "", "u64", Unsigned)                            \
  X(Int64, int64_t, "int64", "long", "i64", Signed)                             \
  X(Float8E4M3FN, Float8E4M3FN, "float8_e4m3fn", "", "f8e4m3fn", Float)         \
  X(Float8E5M2, Float8E5M2, "float8_e5m2", "", "f8e5m2", Float)                 \
  X(Float8E4M3FNUZ, Float8E4M3FNUZ, "float8_e4m3fnuz", "", "f8e4m3fnuz", Float) \
  X(Float8E5M2FNUZ, Float8E5M2FNUZ, "float8_e5m2fnuz", "", "f8e5m2fnuz", Float) \
  X(Float8E8M0FNU, Float8E8M0FNU, "float8_e8m0fnu", "", "f8e8m0fnu", Float)     \
  X(Float16, Half, "float16", "half", "f16", Float)                             \
  X(BFloat16, BFloat16, "bfloat16", "", "bf16", Float)                          \
  X(Float32, float, "float32", "float", "f32", Float)                           \
  X(Float64, double, "float64", "double", "f64", Float)                         \
  X(Complex64, std::complex<float>, "complex64", "cfloat", "c64", Complex)      \
  X(Complex128, std::complex<double>, "complex128", "cdouble", "c128", Complex)

enum class DType : uint8_t {
#define RUSHLIGHT_ENUM(name, type, text, alias, ir, category) name,
  RUSHLIGHT_DTYPES(RUSHLIGHT_ENUM)
#undef RUSHLIGHT_ENUM
};

#define RUSHLIGHT_COUNT(name, type, text, alias, ir, category) +1
inline constexpr int kDTypeCount = 0 RUSHLIGHT_DTYPES(RUSHLIGHT_COUNT);
#undef RUSHLIGHT_COUNT

enum class DTypeCategory : uint8_t { Bool, Unsigned, Signed, Float, Complex };

struct DTypeInfo {
  std::string_view name;     // "float32"
  std::string_view alias;    // "float", or empty
  std::string_view ir_name;  // "f32"
  uint8_t size;              // bytes an element
  DTypeCategory category;
};

inline constexpr DTypeInfo kDTypeTable[] = {
#define RUSHLIGHT_ROW(name, type, text, alias, ir, category) \
  {text, alias, ir, sizeof(type), DTypeCategory::category},
    RUSHLIGHT_DTYPES(RUSHLIGHT_ROW)
#undef RUSHLIGHT_ROW
};

constexpr const DTypeInfo& info(DType dtype) {
  return kDTypeTable[static_cast<int>(dtype)];
}
constexpr int64_t element_size(DType dtype) {
  return info(dtype).size;
}
constexpr std::string_view dtype_name(DType dtype) {
  return info(dtype).name;
}

constexpr bool is_floating(DType dtype) {
  return info(dtype).category == DTypeCategory::Float;
}
constexpr bool is_complex(DType dtype) {
  return info(dtype).category == DTypeCategory::Complex;
}
constexpr bool is_integral(DType dtype, bool include_bool) {
  DTypeCategory category = info(dtype).category;
  return category == DTypeCategory::Unsigned || category == DTypeCategory::Signed ||
         (include_bool && category == DTypeCategory::Bool);
}
constexpr bool is_signed(DType dtype) {
  return info(dtype).category == DTypeCategory::Signed || is_floating(dtype) || is_complex(dtype);
}
constexpr bool is_float8(DType dtype) {
  return DType::Float8E4M3FN <= dtype && dtype <= DType::Float8E8M0FNU;
}
constexpr bool is_reduced_floating(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

// The type that arithmetic on `dtype` is done in: f32 for half and float8 types, else itself.
constexpr DType compute_dtype(DType dtype) {
  return is_reduced_floating(dtype) || is_float8(dtype) ? DType::Float32 : dtype;
}

// The real type of a complex type's parts; any other type is returned as it is.
constexpr DType real_dtype(DType dtype) {
  return dtype == DType::Complex64    ? DType::Float32
         : dtype == DType::Complex128 ? DType::Float64
                                      : dtype;
}

// PyTorch's name of the scalar type, as its messages have it: "Float", "Long", "ComplexDouble".
std::string_view scalar_type_name(DType dtype);

// The smallest dtype that both can be converted to, by PyTorch's lattice. Throws Error(Runtime)
// where there is none (float8 with another type; unsigned 16..64 with an integer or complex type).
DType promote(DType a, DType b);

// Whether PyTorch's `can_cast(from, to)` holds: never from complex to real, float to integer, or
// anything but bool to bool.
bool can_cast(DType from, DType to);

// The dtype called `name` ("float32", "float", ...); false where there is none.
bool parse_dtype(std::string_view name, DType* dtype);

// What float-valued results of integer inputs have, and factory functions without a dtype.
DType default_dtype();
void set_default_dtype(DType dtype);  // TypeError unless floating

float to_float(Half value);
float to_float(BFloat16 value);
float to_float(Float8E4M3FN value);
float to_float(Float8E5M2 value);
float to_float(Float8E4M3FNUZ value);
float to_float(Float8E5M2FNUZ value);
float to_float(Float8E8M0FNU value);
// Round to nearest, ties to even. NaN keeps its sign and the upper bits of its payload, made quiet;
// as float8 it becomes the type's NaN with all mantissa bits set. Overflow gives infinity;
// in e4m3fn, which has none, it and infinity give the largest finite value, 448.
Half to_half(float value);
BFloat16 to_bfloat16(float value);
Float8E4M3FN to_float8_e4m3fn(float value);
Float8E5M2 to_float8_e5m2(float value);
Float8E4M3FNUZ to_float8_e4m3fnuz(float value);
Float8E5M2FNUZ to_float8_e5m2fnuz(float value);
Float8E8M0FNU to_float8_e8m0fnu(float value);

// X(type and enumerator, conversion from f32)
#define RUSHLIGHT_FLOAT8(X)             \
  X(Float8E4M3FN, to_float8_e4m3fn)     \
  X(Float8E5M2, to_float8_e5m2)         \
  X(Float8E4M3FNUZ, to_float8_e4m3fnuz) \
  X(Float8E5M2FNUZ, to_float8_e5m2fnuz) \
  X(Float8E8M0FNU, to_float8_e8m0fnu)

}  // namespace rushlight
