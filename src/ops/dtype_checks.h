// What operators demand of the dtypes of their tensors: for Entry::check, before anything runs.
#pragma once

#include "ops/operator.h"

namespace rushlight {

// At least one tensor is floating or complex.
void expect_floating(const Invocation& inv);
// Not all tensors are bool.
void expect_not_bool(const Invocation& inv);
// All tensors that must be given have one dtype.
void expect_one_dtype(const Invocation& inv);
void expect_one_floating_dtype(const Invocation& inv);
// All tensors have one dtype, save for a weight without dimensions, which promotes as it may.
void expect_lerp_dtypes(const Invocation& inv);
// The `dtype` of a norm: as real as the input, and no narrower.
void check_norm_dtype(std::string_view op, DType input, std::optional<DType> wanted);
// Of normalisations: parameters have the input's dtype, or float32 beside halves.
void check_parameter_dtype(std::string_view op, DType input, const Tensor& parameter);
// Of a - b: neither is bool.
void refuse_bool_difference(const Invocation& inv);
// Of addcdiv: the divided ones are not both integers.
void refuse_integer_division(const Invocation& inv);

}  // namespace rushlight
