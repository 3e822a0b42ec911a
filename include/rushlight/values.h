// Tensors of values that stand in the program: tensor({1, 2}), tensor({{1.5}, {2.5}}),
// tensor(true). Whole numbers give int64, floating ones the default dtype, truth values bool,
// unless the options name a dtype.
#pragma once

#include <rushlight/generated/functions.h>

#include <initializer_list>
#include <type_traits>
#include <vector>

namespace rushlight {
namespace detail {

template <typename T>
concept Number = std::is_arithmetic_v<T>;

template <Number T>
DType dtype_of_values(const TensorOptions& options) {
  if (options.dtype_) {
    return *options.dtype_;
  }
  return std::is_same_v<T, bool>       ? DType::Bool
         : std::is_floating_point_v<T> ? default_dtype()
                                       : DType::Int64;
}

// `values` in row-major order; Error(Value) where their number is not that of the sizes.
RUSHLIGHT_API Tensor tensor_of_values(const std::vector<Scalar>& values, IntArrayRef sizes,
                                      DType dtype, const TensorOptions& options);

template <Number T>
void append_values(std::vector<Scalar>& into, std::initializer_list<T> row) {
  for (T value : row) {
    into.emplace_back(value);
  }
}

}  // namespace detail

template <detail::Number T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return detail::tensor_of_values({Scalar(value)}, {}, detail::dtype_of_values<T>(options),
                                  options);
}

template <detail::Number T>
Tensor tensor(std::initializer_list<T> row, const TensorOptions& options = {}) {
  std::vector<Scalar> values;
  detail::append_values(values, row);
  return detail::tensor_of_values(values, {static_cast<int64_t>(row.size())},
                                  detail::dtype_of_values<T>(options), options);
}

// Error(Value) where rows differ in length.
template <detail::Number T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
              const TensorOptions& options = {}) {
  std::vector<Scalar> values;
  for (const std::initializer_list<T>& row : rows) {
    detail::append_values(values, row);
  }
  const size_t width = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const std::initializer_list<T>& row : rows) {
    if (row.size() != width) {
      fail(ErrorKind::Value, "tensor", "expected rows of ", width, " values, got one of ",
           row.size());
    }
  }
  return detail::tensor_of_values(values,
                                  {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)},
                                  detail::dtype_of_values<T>(options), options);
}

template <detail::Number T>
Tensor tensor(const std::vector<T>& row, const TensorOptions& options = {}) {
  std::vector<Scalar> values;
  for (T value : row) {
    values.emplace_back(value);
  }
  return detail::tensor_of_values(values, {static_cast<int64_t>(row.size())},
                                  detail::dtype_of_values<T>(options), options);
}

}  // namespace rushlight
