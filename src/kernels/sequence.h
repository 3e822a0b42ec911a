// Evenly spaced numbers, by compiled kernels. Targets are contiguous and real; those of the meta
// device stay as they are.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

// target[i] = first + i * step, computed in int64 (wrapping around) or in double precision, then
// converted.
void fill_range(const Tensor& target, int64_t first, int64_t step);
void fill_range(const Tensor& target, double first, double step);

// From `first` to `last`, both included, counted from the nearer end, so that both come out
// exactly: in single precision where that is what the dtype computes in, else in double.
void fill_steps(const Tensor& target, double first, double last);

}  // namespace rushlight::kernels
