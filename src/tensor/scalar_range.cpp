#include "tensor/scalar_range.h"

#include <rushlight/error.h>

#include <cmath>
#include <limits>

namespace rushlight {
namespace {

// Compared as integers: a double cannot tell 2^63 - 1 from 2^63.
bool integer_fits(const Scalar& value, DType dtype) {
  const int bits = static_cast<int>(element_size(dtype)) * 8;
  if (bits == 64) {
    return !is_signed(dtype) || value.kind() != Scalar::Kind::UInt;
  }
  const int64_t number = value.to_int();
  const int64_t high = int64_t{1} << (is_signed(dtype) ? bits - 1 : bits);
  return value.kind() != Scalar::Kind::UInt && number < high &&
         (is_signed(dtype) ? number >= -high : number > -high);
}

bool real_fits(double number, DType dtype) {
  const int bits = static_cast<int>(element_size(dtype)) * 8;
  const double high = std::ldexp(1.0, is_signed(dtype) ? bits - 1 : bits);
  return number >= (is_signed(dtype) ? -high : 0) &&
         (bits == 64 ? number < high : number <= high - 1);
}

// How PyTorch's messages name the element type.
std::string type_name(DType dtype) {
  if (dtype == DType::Float32) {
    return "float";
  }
  if (!is_integral(dtype, false)) {
    return "double";
  }
  return dtype == DType::Int32
             ? std::string("int")
             : cat(is_signed(dtype) ? "int" : "uint", element_size(dtype) * 8, "_t");
}

}  // namespace

void check_fits(const Scalar& value, DType dtype) {
  bool fits = !value.is_complex() || value.to_complex().imag() == 0 || is_complex(dtype) ||
              dtype == DType::Bool;
  if (is_integral(dtype, false) && !value.is_boolean()) {
    fits = fits && (value.is_integral(false) ? integer_fits(value, dtype)
                                             : real_fits(value.to_double(), dtype));
  } else if (dtype == DType::Float32 && value.is_floating_point()) {
    const double number = std::fabs(value.to_double());
    fits = fits && !(number > std::numeric_limits<float>::max() && std::isfinite(number));
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "", "value cannot be converted to type ", type_name(dtype),
         " without overflow");
  }
}

}  // namespace rushlight
