#include <rushlight/generated/functions.h>
#include <rushlight/nn/convolution.h>
#include <rushlight/nn/init.h>

#include <cmath>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

IntArrayRef list(const std::vector<int64_t>& values) {
  return {values.data(), values.size()};
}

bool all_are(const std::vector<int64_t>& values, int64_t value) {
  for (int64_t item : values) {
    if (item != value) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<int64_t> Spread::over(int dims, const char* layer, const char* option) const {
  if (values_.size() == 1) {
    return std::vector<int64_t>(static_cast<size_t>(dims), values_[0]);
  }
  if (values_.size() != static_cast<size_t>(dims)) {
    fail(ErrorKind::Value, layer, "expected ", option, " of ", dims, " values, got ",
         static_cast<int64_t>(values_.size()));
  }
  return values_;
}

std::vector<int64_t> ConvolutionImpl::spread(const Spread& given, const char* option) const {
  return given.over(dims_, name().c_str(), option);
}

ConvolutionImpl::ConvolutionImpl(const char* name, const Settings& settings)
    : TensorModule(name),
      dims_(settings.dims),
      transposed_(settings.transposed),
      in_channels_(settings.in_channels),
      out_channels_(settings.out_channels),
      groups_(settings.groups),
      kernel_size_(spread(settings.kernel_size, "kernel_size")),
      stride_(spread(settings.stride, "stride")),
      padding_(spread(settings.padding.sizes(), "padding")),
      padding_text_(settings.padding.mode()),
      dilation_(spread(settings.dilation, "dilation")),
      output_padding_(spread(settings.output_padding, "output_padding")),
      padding_mode_(settings.padding_mode) {
  const auto refuse = [&](auto... words) { fail(ErrorKind::Value, name, words...); };
  if (groups_ <= 0) {
    refuse("groups must be a positive integer, got ", groups_);
  }
  if (in_channels_ % groups_ != 0) {
    refuse("in_channels must be divisible by groups, got ", in_channels_, " and ", groups_);
  }
  if (out_channels_ % groups_ != 0) {
    refuse("out_channels must be divisible by groups, got ", out_channels_, " and ", groups_);
  }
  if (padding_text_ != "" && padding_text_ != "same" && padding_text_ != "valid") {
    refuse("Invalid padding string '", padding_text_.c_str(), "', should be same or valid");
  }
  if (padding_text_ == "same" && !all_are(stride_, 1)) {
    refuse("padding='same' is not supported for strided convolutions");
  }
  const bool bordered =
      padding_mode_ == "reflect" || padding_mode_ == "replicate" || padding_mode_ == "circular";
  if (padding_mode_ != "zeros" && (transposed_ || !bordered)) {
    refuse("padding_mode '", padding_mode_.c_str(), "' is not supported");
  }
  IntList shape{transposed_ ? in_channels_ : out_channels_,
                (transposed_ ? out_channels_ : in_channels_) / groups_};
  for (int64_t size : kernel_size_) {
    shape.push_back(size);
  }
  weight = register_parameter("weight", empty(shape));
  bias = register_parameter("bias", settings.bias ? empty({out_channels_}) : Tensor());
  reset_parameters();
}

void ConvolutionImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (bias.defined()) {
    int64_t fan_in = weight.size(1);
    for (int64_t size : kernel_size_) {
      fan_in *= size;
    }
    if (fan_in != 0) {
      const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
      init::uniform_(bias, -bound, bound);
    }
  }
}

Tensor ConvolutionImpl::forward(const Tensor& input) {
  if (transposed_) {
    return transpose_of(input, output_padding_);
  }
  const bool unbatched = input.dim() == dims_ + 1;
  Tensor x = unbatched ? unsqueeze(input, 0) : input;
  std::vector<int64_t> padding = padding_;
  if (padding_text_ == "same" || padding_mode_ != "zeros") {
    IntList borders;
    for (size_t d = kernel_size_.size(); d-- > 0;) {
      const int64_t total = dilation_[d] * (kernel_size_[d] - 1);
      borders.push_back(padding_text_ == "same" ? total / 2 : padding[d]);
      borders.push_back(padding_text_ == "same" ? total - total / 2 : padding[d]);
    }
    padding.assign(kernel_size_.size(), 0);
    if (padding_mode_ == "zeros") {
      x = constant_pad_nd(x, borders, Scalar(0));
    } else {
      x = pad(x, borders, padding_mode_);
    }
  }
  const Tensor made = convolution(x, weight, bias, list(stride_), list(padding), list(dilation_),
                                  false, IntList{0}, groups_);
  return unbatched ? squeeze(made, 0) : made;
}

Tensor ConvolutionImpl::transpose_of(const Tensor& input,
                                     const std::vector<int64_t>& output_padding) {
  const bool unbatched = input.dim() == dims_ + 1;
  const Tensor made =
      convolution(unbatched ? unsqueeze(input, 0) : input, weight, bias, list(stride_),
                  list(padding_), list(dilation_), true, list(output_padding), groups_);
  return unbatched ? squeeze(made, 0) : made;
}

std::vector<int64_t> ConvolutionImpl::padding_for(const Tensor& input,
                                                  std::vector<int64_t> output_size) const {
  const auto dims = static_cast<size_t>(dims_);
  const size_t leading = input.dim() == dims_ + 2 ? 2 : 1;
  if (output_size.size() == leading + dims) {
    output_size.erase(output_size.begin(), output_size.begin() + static_cast<int64_t>(leading));
  }
  if (output_size.size() != dims) {
    fail(ErrorKind::Value, name(), "for ", input.dim(), "D input, output_size must have ", dims_,
         " or ", dims_ + static_cast<int>(leading), " elements (got ",
         static_cast<int64_t>(output_size.size()), ")");
  }
  std::vector<int64_t> made;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t least = (input.size(static_cast<int64_t>(d + leading)) - 1) * stride_[d] -
                          2 * padding_[d] + dilation_[d] * (kernel_size_[d] - 1) + 1;
    made.push_back(output_size[d] - least);
    if (made[d] < 0 || made[d] >= stride_[d]) {
      fail(ErrorKind::Value, name(), "requested an output size of ", output_size[d],
           ", but valid sizes range from ", least, " to ", least + stride_[d] - 1);
    }
  }
  return made;
}

std::string ConvolutionImpl::extra_repr() const {
  std::string text =
      cat(in_channels_, ", ", out_channels_, ", kernel_size=", python_text(kernel_size_),
          ", stride=", python_text(stride_));
  if (!padding_text_.empty()) {
    text += cat(", padding=", padding_text_.c_str());
  } else if (!all_are(padding_, 0)) {
    text += cat(", padding=", python_text(padding_));
  }
  if (!all_are(dilation_, 1)) {
    text += cat(", dilation=", python_text(dilation_));
  }
  if (!all_are(output_padding_, 0)) {
    text += cat(", output_padding=", python_text(output_padding_));
  }
  if (groups_ != 1) {
    text += cat(", groups=", groups_);
  }
  text += bias.defined() ? "" : ", bias=False";
  if (padding_mode_ != "zeros") {
    text += cat(", padding_mode=", padding_mode_.c_str());
  }
  return text;
}

#define RUSHLIGHT_PLAIN(Name, kDims)                                                              \
  Name##Impl::Name##Impl(const Name##Options& given)                                              \
      : ConvolutionImpl(                                                                          \
            #Name, {kDims, false, given.in_channels(), given.out_channels(), given.kernel_size(), \
                    given.stride(), given.padding(), given.dilation(), 0, given.groups(),         \
                    given.bias(), given.padding_mode()}),                                         \
        options(given) {}
#define RUSHLIGHT_TRANSPOSED(Name, kDims)                                                        \
  Name##Impl::Name##Impl(const Name##Options& given)                                             \
      : ConvolutionImpl(                                                                         \
            #Name, {kDims, true, given.in_channels(), given.out_channels(), given.kernel_size(), \
                    given.stride(), given.padding(), given.dilation(), given.output_padding(),   \
                    given.groups(), given.bias(), given.padding_mode()}),                        \
        options(given) {}
RUSHLIGHT_PLAIN(Conv1d, 1)
RUSHLIGHT_PLAIN(Conv2d, 2)
RUSHLIGHT_PLAIN(Conv3d, 3)
RUSHLIGHT_TRANSPOSED(ConvTranspose1d, 1)
RUSHLIGHT_TRANSPOSED(ConvTranspose2d, 2)
RUSHLIGHT_TRANSPOSED(ConvTranspose3d, 3)
#undef RUSHLIGHT_PLAIN
#undef RUSHLIGHT_TRANSPOSED

}  // namespace rushlight::nn
