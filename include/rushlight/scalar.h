// A number from outside: Python's bool, int, float and complex, and C++'s.
#pragma once

#include <rushlight/dtype.h>

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>

namespace rushlight {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };  // UInt: above the int64 range

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool value) : kind_(Kind::Bool), integer_(value) {}
  template <std::signed_integral T>
  Scalar(T value) : kind_(Kind::Int), integer_(value) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T value)
      : kind_(static_cast<uint64_t>(value) >> 63 ? Kind::UInt : Kind::Int),
        integer_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Scalar(T value) : kind_(Kind::Float), real_(value) {}
  Scalar(std::complex<double> value)
      : kind_(Kind::Complex), real_(value.real()), imaginary_(value.imag()) {}
  Scalar(std::complex<float> value) : Scalar(std::complex<double>(value)) {}

  Kind kind() const { return kind_; }
  bool is_boolean() const { return kind_ == Kind::Bool; }
  bool is_integral(bool include_bool) const {
    return kind_ == Kind::Int || kind_ == Kind::UInt || (include_bool && is_boolean());
  }
  bool is_floating_point() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }

  double to_double() const {
    return kind_ == Kind::Float || kind_ == Kind::Complex ? real_
           : kind_ == Kind::UInt ? static_cast<double>(static_cast<uint64_t>(integer_))
                                 : static_cast<double>(integer_);
  }
  // Floats truncate; values outside int64 saturate.
  int64_t to_int() const;
  bool to_bool() const {
    return kind_ == Kind::Float     ? real_ != 0
           : kind_ == Kind::Complex ? real_ != 0 || imaginary_ != 0
                                    : integer_ != 0;
  }
  std::complex<double> to_complex() const { return {to_double(), imaginary_}; }

  // What PyTorch gives a 0-dim tensor made of it: bool, int64, the default dtype, complex of it.
  DType dtype() const;

  // The bits that a kernel gets for a scalar of this dtype: integers sign-extended, f32 in the low
  // word, f64 whole. Half types count as f32. See KernelArgs.
  uint64_t kernel_bits(DType dtype) const;

  std::string to_string() const;
  bool operator==(const Scalar& other) const;

 private:
  Kind kind_;
  union {
    int64_t integer_;
    double real_;
  };
  double imaginary_ = 0;
};

}  // namespace rushlight
