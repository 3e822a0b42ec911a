// Ordering rows of any dtype through unsigned keys.
//
// A key orders as its element does: -0 equals +0, and every NaN is one key above all numbers. Equal
// keys keep their order, so all results are those of a stable sort and depend on no thread count.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>

namespace rushlight::kernels {

// For each row of `rows` (2-dim, contiguous): the positions of its elements in ascending or
// descending order, into `order` (int64, contiguous, same shape). Descending puts NaN first.
void sort_rows(const Tensor& rows, const Tensor& order, bool descending, std::string_view op);

// The first `count` positions of that order; `order` has `count` columns.
void partial_sort_rows(const Tensor& rows, const Tensor& order, bool descending,
                       std::string_view op);

// The position of the element of rank `rank` (0: smallest) of one row; of equal elements, the one
// that a stable sort puts there. `ignore_nan`: ranks among the numbers only, halved: see median.
enum class Median : uint8_t { No, Propagate, Ignore };
void select_rows(const Tensor& rows, const Tensor& positions, int64_t rank, Median median,
                 std::string_view op);

// The position of the last occurrence of each row's most frequent element (the smallest of these).
void mode_rows(const Tensor& rows, const Tensor& positions, std::string_view op);

}  // namespace rushlight::kernels
