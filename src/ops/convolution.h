// What convolutions are asked for, and whether it can be done.
#pragma once

#include <rushlight/shape.h>
#include <rushlight/tensor.h>

#include "kernels/convolution.h"

namespace rushlight {

// The settings of a call, each list as long as there are spatial dimensions.
struct ConvolutionSettings {
  IntList stride;
  IntList padding;
  IntList dilation;
  bool transposed;
  IntList output_padding;
  int64_t groups;
};

// Lists of one number repeated for each spatial dimension of the weight. Error(Runtime) where a
// list has another length, or a number is out of its range.
ConvolutionSettings convolution_settings(const Tensor& weight, IntArrayRef stride,
                                         IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                         IntArrayRef output_padding, int64_t groups);

// The shape of the result. Error(Runtime) where shapes or dtypes do not fit, Error(NotImplemented)
// where there is no arithmetic for the dtype.
IntList convolution_sizes(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const ConvolutionSettings& settings);

// How the result and the gradients lie in memory: with the channels last where the input or the
// weight does.
MemoryFormat convolution_format(const Tensor& input, const Tensor& weight);

// For the kernels, which see a transposed convolution as the one whose gradient it is.
Convolution convolution_problem(IntArrayRef input, const Tensor& weight, IntArrayRef output,
                                const ConvolutionSettings& settings);

}  // namespace rushlight
