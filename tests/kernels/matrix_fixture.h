// Matrices with any dtype and layout, and the slow, obvious product that tests compare with.
#pragma once

#include <rushlight/dtype.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/gemm.h"

namespace rushlight::testing {

enum class Layout : uint8_t { rows, columns, padded_rows, padded_columns, spread, reversed };
inline constexpr Layout kLayouts[] = {Layout::rows,           Layout::columns, Layout::padded_rows,
                                      Layout::padded_columns, Layout::spread,  Layout::reversed};

inline double read_element(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::Float64:
      return static_cast<const double*>(data)[index];
    case DType::Float32:
      return static_cast<const float*>(data)[index];
    case DType::Float16:
      return to_float(static_cast<const Half*>(data)[index]);
    case DType::BFloat16:
      return to_float(static_cast<const BFloat16*>(data)[index]);
    case DType::Int64:
      return static_cast<double>(static_cast<const int64_t*>(data)[index]);
    case DType::Int32:
      return static_cast<const int32_t*>(data)[index];
    case DType::Int16:
      return static_cast<const int16_t*>(data)[index];
    case DType::Int8:
      return static_cast<const int8_t*>(data)[index];
    default:
      return static_cast<const uint8_t*>(data)[index];
  }
}

inline void write_element(DType dtype, void* data, int64_t index, double value) {
  switch (dtype) {
    case DType::Float64:
      static_cast<double*>(data)[index] = value;
      return;
    case DType::Float32:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      return;
    case DType::Float16:
      static_cast<Half*>(data)[index] = to_half(static_cast<float>(value));
      return;
    case DType::BFloat16:
      static_cast<BFloat16*>(data)[index] = to_bfloat16(static_cast<float>(value));
      return;
    case DType::Int64:
      static_cast<int64_t*>(data)[index] = static_cast<int64_t>(value);
      return;
    case DType::Int32:
      static_cast<int32_t*>(data)[index] = static_cast<int32_t>(value);
      return;
    case DType::Int16:
      static_cast<int16_t*>(data)[index] = static_cast<int16_t>(value);
      return;
    case DType::Int8:
      static_cast<int8_t*>(data)[index] = static_cast<int8_t>(value);
      return;
    default:
      static_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(value);
  }
}

// A matrix that owns its memory. What lies between its elements holds a mark, checked by `intact`.
class Matrix {
 public:
  Matrix(DType dtype, int64_t rows, int64_t cols, Layout layout = Layout::rows)
      : dtype_(dtype), rows_(rows), cols_(cols) {
    const int64_t tall = std::max<int64_t>(rows, 1);
    const int64_t wide = std::max<int64_t>(cols, 1);
    switch (layout) {
      case Layout::rows:
        set_strides(wide, 1, 0);
        break;
      case Layout::columns:
        set_strides(1, tall, 0);
        break;
      case Layout::padded_rows:
        set_strides(wide + 5, 1, 3);
        break;
      case Layout::padded_columns:
        set_strides(1, tall + 3, 1);
        break;
      case Layout::spread:
        set_strides(3 * wide + 2, 3, 2);
        break;
      case Layout::reversed:
        set_strides(-wide, -1, tall * wide - 1);
        break;
    }
    const int64_t far = std::abs(row_stride_) * tall + std::abs(col_stride_) * wide + 8;
    bytes_.assign(static_cast<size_t>(far * element_size(dtype)), kMark);
  }

  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  double at(int64_t i, int64_t j) const { return read_element(dtype_, bytes_.data(), index(i, j)); }
  void set(int64_t i, int64_t j, double value) {
    write_element(dtype_, bytes_.data(), index(i, j), value);
  }

  void fill(std::mt19937& generator) {
    std::uniform_real_distribution<double> real(-1, 1);
    std::uniform_int_distribution<int> whole(-100, 100);
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < cols_; ++j) {
        set(i, j, is_floating(dtype_) ? real(generator) : whole(generator));
      }
    }
  }

  MatrixRef ref() const { return {start(), dtype_, row_stride_, col_stride_}; }
  MutableMatrixRef out() { return {const_cast<void*>(start()), dtype_, row_stride_, col_stride_}; }

  // Whether no byte outside the elements was written.
  bool intact() const {
    std::vector<unsigned char> left = bytes_;
    const auto size = static_cast<size_t>(element_size(dtype_));
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < cols_; ++j) {
        std::memset(left.data() + static_cast<size_t>(index(i, j)) * size, kMark, size);
      }
    }
    for (const unsigned char byte : left) {
      if (byte != kMark) {
        return false;
      }
    }
    return true;
  }

  bool same_bits(const Matrix& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr unsigned char kMark = 0x5a;

  void set_strides(int64_t row_stride, int64_t col_stride, int64_t start) {
    row_stride_ = row_stride;
    col_stride_ = col_stride;
    start_ = start;
  }
  int64_t index(int64_t i, int64_t j) const { return start_ + i * row_stride_ + j * col_stride_; }
  const void* start() const { return bytes_.data() + start_ * element_size(dtype_); }

  DType dtype_;
  int64_t rows_;
  int64_t cols_;
  int64_t row_stride_ = 0;
  int64_t col_stride_ = 0;
  int64_t start_ = 0;
  std::vector<unsigned char> bytes_;
};

// The largest difference to allow between a product and its reference in f64.
inline double tolerance(DType dtype, int64_t k) {
  const double terms = std::sqrt(static_cast<double>(k) + 1) * 4;
  switch (dtype) {
    case DType::Float64:
      return 1e-15 * terms;
    case DType::Float16:
      return 1e-3 * terms;
    case DType::BFloat16:
      return 8e-3 * terms;
    default:
      return 1e-6 * terms;
  }
}

// Sets the precision of f32 products for a scope.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(MatmulPrecision precision) : before_(f32_matmul_precision()) {
    set_f32_matmul_precision(precision);
  }
  ~PrecisionGuard() { set_f32_matmul_precision(before_); }

 private:
  MatmulPrecision before_;
};

}  // namespace rushlight::testing
