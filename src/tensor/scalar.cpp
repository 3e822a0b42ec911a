#include <rushlight/scalar.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace rushlight {
namespace {

int64_t saturating_int(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(value > -kLimit)) {
    return std::numeric_limits<int64_t>::min();
  }
  if (value >= kLimit) {
    return std::numeric_limits<int64_t>::max();
  }
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t Scalar::to_int() const {
  return kind_ == Kind::Float || kind_ == Kind::Complex ? saturating_int(real_) : integer_;
}

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::Bool:
      return DType::Bool;
    case Kind::Int:
      return DType::Int64;
    case Kind::UInt:
      return DType::UInt64;
    case Kind::Float:
      return default_dtype();
    case Kind::Complex:
      return default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
  }
  __builtin_unreachable();
}

uint64_t Scalar::kernel_bits(DType dtype) const {
  DType compute = compute_dtype(dtype);
  if (compute == DType::Float32) {
    return std::bit_cast<uint32_t>(static_cast<float>(to_double()));
  }
  if (compute == DType::Float64) {
    return std::bit_cast<uint64_t>(to_double());
  }
  if (dtype == DType::Bool) {
    return to_bool() ? 1 : 0;
  }
  auto bits = static_cast<uint64_t>(to_int());
  // Narrow types wrap, then sign-extend, so that equal values have equal bits.
  int unused = 64 - 8 * static_cast<int>(element_size(dtype));
  if (unused == 0) {
    return bits;
  }
  return is_signed(dtype) ? static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused)
                          : bits << unused >> unused;
}

std::string Scalar::to_string() const {
  switch (kind_) {
    case Kind::Bool:
      return integer_ ? "True" : "False";
    case Kind::Int:
      return std::to_string(integer_);
    case Kind::UInt:
      return std::to_string(static_cast<uint64_t>(integer_));
    case Kind::Float: {
      char text[40];
      std::snprintf(text, sizeof(text), "%.17g", real_);
      return text;
    }
    case Kind::Complex: {
      char text[80];
      std::snprintf(text, sizeof(text), "(%.17g%+.17gj)", real_, imaginary_);
      return text;
    }
  }
  __builtin_unreachable();
}

bool Scalar::operator==(const Scalar& other) const {
  if (is_integral(true) && other.is_integral(true)) {
    return integer_ == other.integer_ && (kind_ == Kind::UInt) == (other.kind_ == Kind::UInt);
  }
  return to_complex() == other.to_complex();
}

}  // namespace rushlight
