#include <rushlight/error.h>

#include <string>

#include "ops/convolution.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

constexpr std::string_view kOp = "convolution";

IntList one_each(std::string_view name, IntArrayRef given, size_t dims) {
  if (given.size() == dims) {
    return IntList(given);
  }
  if (given.size() != 1) {
    fail(ErrorKind::Runtime, kOp, "expected ", name, " to be a single integer value or a list of ",
         static_cast<int64_t>(dims), " values to match the convolution dimensions, but got ", name,
         "=", given);
  }
  return IntList(dims, given[0]);
}

bool any_below(const IntList& list, int64_t least) {
  for (int64_t item : list) {
    if (item < least) {
      return true;
    }
  }
  return false;
}

std::string by_cross(const IntList& list) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) {
    text += i == 0 ? "" : " x ";
    text += std::to_string(list[i]);
  }
  return text;
}

int64_t times(int64_t a, int64_t b) {
  return checked_multiply(a, b, kOp);
}

int64_t plus(int64_t a, int64_t b) {
  return checked_add(a, b, kOp);
}

void check_dtypes(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvolutionSettings& settings) {
  const DType dtype = input.dtype();
  if (weight.dtype() != dtype) {
    fail(ErrorKind::Runtime, kOp, "Input type (", dtype, ") and weight type (", weight.dtype(),
         ") should be the same: expected scalar type ", scalar_type_name(dtype), " but found ",
         scalar_type_name(weight.dtype()));
  }
  if (bias.defined() && bias.dtype() != dtype) {
    fail(ErrorKind::Runtime, kOp, "Input type (", dtype, ") and bias type (", bias.dtype(),
         ") should be the same");
  }
  bool offered = is_floating(dtype) && !is_float8(dtype);
  offered = offered || dtype == DType::Int64;
  const bool plain = !settings.transposed && !any_below(settings.stride, 1);
  bool dilated = false;
  for (int64_t step : settings.dilation) {
    dilated = dilated || step != 1;
  }
  const bool narrow = dtype == DType::Int32 || dtype == DType::Int16 || dtype == DType::Int8 ||
                      dtype == DType::UInt8;
  if (!offered && !(narrow && plain && !dilated)) {
    fail(ErrorKind::NotImplemented, kOp, "\"",
         settings.transposed ? "conv_transpose"
         : dilated           ? "dilated convolution"
                             : "convolution",
         "\" not implemented for '", scalar_type_name(dtype), "'");
  }
}

// Groups, channels and the bias.
void check_channels(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    const ConvolutionSettings& settings) {
  const int64_t groups = settings.groups;
  const IntArrayRef shape = weight.sizes();
  if (shape[0] < groups) {
    fail(ErrorKind::Runtime, kOp, "Given groups=", groups, ", expected weight to be at least ",
         groups, " at dimension 0, but got weight of size ", shape, " instead");
  }
  if (shape[0] % groups != 0) {
    fail(ErrorKind::Runtime, kOp, "Given groups=", groups, ", expected weight to be divisible by ",
         groups, " at dimension 0, but got weight of size [", shape, "] instead");
  }
  const int64_t wanted = settings.transposed ? shape[0] : times(shape[1], groups);
  if (input.sizes()[1] != wanted) {
    fail(ErrorKind::Runtime, kOp, "Given ",
         settings.transposed ? std::string("transposed=1") : "groups=" + std::to_string(groups),
         ", weight of size ", shape, ", expected input", input.sizes(), " to have ", wanted,
         " channels, but got ", input.sizes()[1], " channels instead");
  }
  const int64_t made = settings.transposed ? times(shape[1], groups) : shape[0];
  if (bias.defined() && (bias.dim() != 1 || bias.numel() != made)) {
    fail(ErrorKind::Runtime, kOp, "Given ", settings.transposed ? "transposed=1, " : "",
         "weight of size ", shape, ", expected bias to be 1-dimensional with ", made,
         " elements, but got bias of size ", bias.sizes(), " instead");
  }
}

IntList plain_sizes(const Tensor& input, const Tensor& weight,
                    const ConvolutionSettings& settings) {
  IntList made{input.sizes()[0], input.sizes()[1] == 0 ? 0 : weight.sizes()[0]};
  IntList padded;
  IntList spans;
  bool fits = true;
  for (size_t d = 0; d < settings.stride.size(); ++d) {
    const int64_t taps = weight.sizes()[d + 2];
    padded.push_back(plus(input.sizes()[d + 2], times(2, settings.padding[d])));
    spans.push_back(plus(times(settings.dilation[d], taps - 1), 1));
    fits = fits && padded[d] >= spans[d];
  }
  if (!fits) {
    fail(ErrorKind::Runtime, kOp, "Calculated padded input size per channel: (", by_cross(padded),
         "). Kernel size: (", by_cross(spans),
         "). Kernel size can't be greater than actual input size");
  }
  for (size_t d = 0; d < settings.stride.size(); ++d) {
    made.push_back((padded[d] - spans[d]) / settings.stride[d] + 1);
  }
  return made;
}

IntList transposed_sizes(const Tensor& input, const Tensor& weight,
                         const ConvolutionSettings& settings) {
  IntList made{input.sizes()[0], times(weight.sizes()[1], settings.groups)};
  IntList given;
  IntList sizes;
  for (size_t d = 0; d < settings.stride.size(); ++d) {
    const int64_t extra = settings.output_padding[d];
    if (extra >= settings.stride[d] && extra >= settings.dilation[d]) {
      fail(ErrorKind::Runtime, kOp,
           "output padding must be smaller than either stride or dilation, but got output_padding=",
           settings.output_padding, ", stride=", settings.stride, ", dilation=", settings.dilation);
    }
    const int64_t size = input.sizes()[d + 2];
    const int64_t span = plus(times(settings.dilation[d], weight.sizes()[d + 2] - 1), 1);
    const int64_t most = plus(plus(times(size - 1, settings.stride[d]), span), extra);
    given.push_back(size);
    sizes.push_back(plus(most, -times(2, settings.padding[d])));
  }
  if (any_below(sizes, 1)) {
    fail(ErrorKind::Runtime, kOp, "Given input size per channel: (", by_cross(given),
         "). Calculated output size per channel: (", by_cross(sizes),
         "). Output size is too small");
  }
  for (int64_t size : sizes) {
    made.push_back(size);
  }
  return made;
}

// Whether memory is ordered by batch, space, channels, to the extent that strides tell.
bool lies_channels_last(const Tensor& x) {
  if (x.dim() < 4 || x.dim() > 5 || x.strides()[1] == 0) {
    return false;
  }
  const IntArrayRef sizes = x.sizes();
  const IntArrayRef strides = x.strides();
  int64_t least = 0;
  const auto follows = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1])) {
      return false;
    }
    least = strides[d] * (sizes[d] > 1 ? sizes[d] : 1);
    return true;
  };
  bool ordered = follows(1);
  for (auto d = static_cast<size_t>(x.dim()) - 1; ordered && d >= 2; --d) {
    ordered = follows(d);
  }
  return ordered && follows(0);
}

Extent extent(const IntList& list, int64_t absent) {
  Extent made{absent, absent, absent};
  for (size_t i = 0; i < list.size(); ++i) {
    made[i + 3 - list.size()] = list[i];
  }
  return made;
}

Extent spatial(IntArrayRef sizes) {
  return extent(IntList(IntArrayRef(sizes.data() + 2, sizes.size() - 2)), 1);
}

}  // namespace

ConvolutionSettings convolution_settings(const Tensor& weight, IntArrayRef stride,
                                         IntArrayRef padding, IntArrayRef dilation, bool transposed,
                                         IntArrayRef output_padding, int64_t groups) {
  if (weight.dim() < 3) {
    fail(ErrorKind::Runtime, kOp, "weight should have at least three dimensions, got ",
         weight.sizes());
  }
  const auto dims = static_cast<size_t>(weight.dim()) - 2;
  ConvolutionSettings made{one_each("stride", stride, dims),
                           one_each("padding", padding, dims),
                           one_each("dilation", dilation, dims),
                           transposed,
                           one_each("output_padding", output_padding, dims),
                           groups};
  if (any_below(made.padding, 0)) {
    fail(ErrorKind::Runtime, kOp, "negative padding is not supported, got ", padding);
  }
  if (any_below(made.output_padding, 0)) {
    fail(ErrorKind::Runtime, kOp, "negative output_padding is not supported, got ", output_padding);
  }
  if (any_below(made.stride, 1)) {
    fail(ErrorKind::Runtime, kOp, "non-positive stride is not supported, got ", stride);
  }
  if (any_below(made.dilation, 1)) {
    fail(ErrorKind::Runtime, kOp, "dilation should be greater than zero, but got ", dilation);
  }
  if (groups <= 0) {
    fail(ErrorKind::Runtime, kOp, "non-positive groups is not supported, got ", groups);
  }
  return made;
}

IntList convolution_sizes(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const ConvolutionSettings& settings) {
  if (input.dim() != weight.dim()) {
    fail(ErrorKind::Runtime, kOp, "Expected ", weight.dim(), "-dimensional input for ",
         weight.dim(), "-dimensional weight ", weight.sizes(), ", but got ", input.dim(),
         "-dimensional input of size ", input.sizes(), " instead");
  }
  if (weight.dim() > 5) {
    fail(ErrorKind::Runtime, kOp, "convolutions have at most 3 spatial dimensions, got ",
         weight.dim() - 2);
  }
  check_channels(input, weight, bias, settings);
  for (size_t d = 2; d < weight.sizes().size(); ++d) {
    if (weight.sizes()[d] == 0) {
      fail(ErrorKind::Runtime, kOp, "kernel size should be greater than zero, but got weight of ",
           weight.sizes());
    }
    if (input.sizes()[d] == 0) {
      fail(ErrorKind::Runtime, kOp,
           "Only zero batch or zero channel inputs are supported, but got input shape: ",
           input.sizes());
    }
  }
  const IntList made = settings.transposed ? transposed_sizes(input, weight, settings)
                                           : plain_sizes(input, weight, settings);
  check_dtypes(input, weight, bias, settings);
  return made;
}

MemoryFormat convolution_format(const Tensor& input, const Tensor& weight) {
  if (!lies_channels_last(input) && !lies_channels_last(weight)) {
    return MemoryFormat::Contiguous;
  }
  return input.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Convolution convolution_problem(IntArrayRef input, const Tensor& weight, IntArrayRef output,
                                const ConvolutionSettings& settings) {
  Convolution made{};
  made.dtype = weight.dtype();
  made.batch = input[0];
  made.groups = settings.groups;
  made.in_channels = weight.sizes()[1];
  made.out_channels = weight.sizes()[0] / settings.groups;
  made.input = spatial(settings.transposed ? output : input);
  made.output = spatial(settings.transposed ? input : output);
  made.kernel = spatial(weight.sizes());
  made.stride = extent(settings.stride, 1);
  made.padding = extent(settings.padding, 0);
  made.dilation = extent(settings.dilation, 1);
  return made;
}

}  // namespace rushlight
