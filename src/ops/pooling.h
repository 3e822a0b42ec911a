// What the operators of pooling share: their geometry, checked as PyTorch checks it, and how
// tensors lie in memory.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>

#include "kernels/window.h"

namespace rushlight::pooling {

// The parameters of regular windows; lists have one number a dimension, or one for all. An empty
// stride is the kernel's size.
struct Windows {
  std::string_view op;
  int dims;
  IntArrayRef kernel;
  IntArrayRef stride;
  IntArrayRef padding;
  IntArrayRef dilation;
  bool ceil_mode;
};

// Pooling has one to three spatial dimensions.
void check_dims(std::string_view op, int64_t dims);
// A gradient that is wanted for results of these sizes and this dtype.
void check_gradient(std::string_view op, const Tensor& grad, IntArrayRef sizes, DType dtype);

// One number a dimension, of one for all.
IntList one_each(IntArrayRef given, int dims);

// Errors of the parameters alone, then of the tensor's shape and of windows that do not fit.
kernels::WindowSpace regular_space(const Windows& windows, IntArrayRef sizes);
// Windows that share the input evenly among `output`; the empty name of a list is an error.
kernels::WindowSpace adaptive_space(std::string_view op, int dims, IntArrayRef sizes,
                                    IntArrayRef output);
// Planes of two tensors that differ in their last `dims` dimensions alone.
kernels::WindowSpace plane_space(int dims, IntArrayRef in, IntArrayRef out);

// The sizes of `sizes` with the last `dims` replaced by the counts of windows.
IntList result_sizes(const kernels::WindowSpace& space, int dims, IntArrayRef sizes);

// Channels last where the tensor, (N, C, spatial...), is laid out so, else row-major.
MemoryFormat layout_of(const Tensor& tensor);
// The tensor itself where it is dense in that layout, else a copy that is.
Tensor dense_in(const Tensor& tensor, MemoryFormat format);
Tensor make_in(IntArrayRef sizes, MemoryFormat format, DType dtype, Device device);
inline bool is_channels_last(MemoryFormat format) {
  return format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d;
}

// The elements of planes, the last `dims` dimensions, at `indices`: by public operators.
Tensor picked(const Tensor& planes, const Tensor& indices, int64_t dims);

// Error(NotImplemented) unless floating (not of 8 bits).
void expect_float(std::string_view op, const Tensor& tensor);

}  // namespace rushlight::pooling
