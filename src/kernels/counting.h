// How often values occur.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// The greatest of contiguous int64 values read without their sign: above INT64_MAX where one is
// negative. 0 of none.
uint64_t greatest_unsigned(const Tensor& values);

// How often each number from 0 to size - 1 is among `values`: int64. Contiguous int64 values, of
// that range.
Tensor count_values(const Tensor& values, int64_t size);

// For each number from 0 to size - 1 the sum of the weights at which it is among the values, in
// their order. Weights are f32 or f64 and contiguous, as many as values.
Tensor sum_by_value(const Tensor& values, const Tensor& weights, int64_t size);

// How many elements of `self` lie in each of `bins` equal bins from low to high, of which the last
// holds its end too, in the dtype of `self`: one that arithmetic is offered in. Others, NaN too,
// are left out. The bin of x is (x - low) * bins / (high - low), each step rounded to the dtype.
Tensor count_in_bins(const Tensor& self, int64_t bins, double low, double high);

}  // namespace rushlight::kernels
