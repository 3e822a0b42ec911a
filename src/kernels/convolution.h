// Convolutions over up to three spatial dimensions, and their gradients.
//
// Results have the same bits for any number of threads. f16 and bf16 are accumulated in f32 and
// rounded once; integers wrap around. Operands are borrowed and must not overlap results.
#pragma once

#include <rushlight/dtype.h>

#include <array>
#include <cstdint>

namespace rushlight {

// Sizes or steps along depth, height and width; those that a problem lacks come first and are 1.
using Extent = std::array<int64_t, 3>;

inline int64_t count(const Extent& extent) {
  return extent[0] * extent[1] * extent[2];
}

// A convolution of an input (batch, groups * in_channels, input...) with a weight
// (groups * out_channels, in_channels, kernel...) to an output (batch, groups * out_channels,
// output...): element o of the output sees elements o * stride - padding + t * dilation of the
// input, which is zero outside of its bounds.
struct Convolution {
  DType dtype;
  int64_t batch;
  int64_t groups;
  int64_t in_channels;   // of a group
  int64_t out_channels;  // of a group
  Extent input;
  Extent kernel;
  Extent output;
  Extent stride;
  Extent padding;
  Extent dilation;
};

// A tensor of five dimensions with any strides, in elements.
struct ImagesRef {
  const void* data;
  std::array<int64_t, 5> strides;
};
struct MutableImagesRef {
  void* data;
  std::array<int64_t, 5> strides;
};

// Each element is a sum over channels and taps in their order. `bias`: one for each channel of the
// result, dense, or null.
void convolve(const Convolution& problem, const ImagesRef& input, const ImagesRef& weight,
              const void* bias, const MutableImagesRef& output);

// The gradient of the input, from that of the output; plus a bias for each of its channels, so that
// it serves as the transposed convolution.
void convolve_transposed(const Convolution& problem, const ImagesRef& output,
                         const ImagesRef& weight, const void* bias, const MutableImagesRef& input);

// The gradient of the weight.
void convolve_for_weight(const Convolution& problem, const ImagesRef& input,
                         const ImagesRef& output, const MutableImagesRef& weight);

// The same by plain loops, for all dtypes but bool and complex: the reference of the above, and
// what they do where rows of zeros would take more memory than the input.
namespace direct {
void convolve(const Convolution& problem, const ImagesRef& input, const ImagesRef& weight,
              const void* bias, const MutableImagesRef& output);
void convolve_transposed(const Convolution& problem, const ImagesRef& output,
                         const ImagesRef& weight, const void* bias, const MutableImagesRef& input);
void convolve_for_weight(const Convolution& problem, const ImagesRef& input,
                         const ImagesRef& output, const MutableImagesRef& weight);
}  // namespace direct

}  // namespace rushlight
