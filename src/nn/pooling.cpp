#include <rushlight/generated/functions.h>
#include <rushlight/nn/pooling.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

template <size_t D, typename T>
std::string text(const ExpandingArray<D, T>& values) {
  std::string made = "(";
  for (size_t i = 0; i < D; ++i) {
    made += i == 0 ? "" : ", ";
    if constexpr (std::is_same_v<T, int64_t>) {
      made += std::to_string(values[i]);
    } else {
      made += values[i] ? std::to_string(*values[i]) : "None";
    }
  }
  made += D == 1 ? ",)" : ")";
  return made;
}

// A stride that was not given is the kernel's size.
template <typename Options>
auto stride_of(const Options& options) {
  return options.stride().value_or(options.kernel_size());
}

template <size_t D>
std::vector<int64_t> resolved(const OutputSize<D>& size, const Tensor& input) {
  if (input.dim() <= static_cast<int64_t>(D)) {
    fail(ErrorKind::Value, "", "Input dimension should be at least ", static_cast<int64_t>(D + 1),
         ", got ", input.dim());
  }
  std::vector<int64_t> made;
  for (size_t i = 0; i < D; ++i) {
    made.push_back(size[i].value_or(input.size(static_cast<int64_t>(i) - static_cast<int64_t>(D))));
  }
  return made;
}

// x, or its absolute value, to the power of p, averaged: the p-norm from that mean.
Tensor norm_of_mean(const Tensor& mean, int64_t count, double p) {
  return pow(mul(mul(sign(mean), relu(abs(mean))), Scalar(count)), Scalar(1.0 / p));
}

}  // namespace

template <size_t D>
MaxPoolImplNd<D>::MaxPoolImplNd(const MaxPoolOptions<D>& given)
    : TensorModule(D == 1   ? "MaxPool1d"
                   : D == 2 ? "MaxPool2d"
                            : "MaxPool3d"),
      options(given) {}

template <size_t D>
Tensor MaxPoolImplNd<D>::forward(const Tensor& input) {
  const auto run = [&](auto function) {
    return function(input, options.kernel_size(), stride_of(options), options.padding(),
                    options.dilation(), options.ceil_mode());
  };
  if constexpr (D == 1) {
    return run(max_pool1d);
  } else if constexpr (D == 2) {
    return run(max_pool2d);
  } else {
    return run(max_pool3d);
  }
}

template <size_t D>
std::tuple<Tensor, Tensor> MaxPoolImplNd<D>::forward_with_indices(const Tensor& input) {
  const auto run = [&](auto function) {
    return function(input, options.kernel_size(), stride_of(options), options.padding(),
                    options.dilation(), options.ceil_mode());
  };
  if constexpr (D == 1) {
    return run(max_pool1d_with_indices);
  } else if constexpr (D == 2) {
    return run(max_pool2d_with_indices);
  } else {
    return run(max_pool3d_with_indices);
  }
}

template <size_t D>
std::string MaxPoolImplNd<D>::extra_repr() const {
  return cat("kernel_size=", text(options.kernel_size()), ", stride=", text(stride_of(options)),
             ", padding=", text(options.padding()), ", dilation=", text(options.dilation()),
             ", ceil_mode=", python_text(options.ceil_mode()));
}

AvgPool1dImpl::AvgPool1dImpl(const AvgPool1dOptions& given)
    : TensorModule("AvgPool1d"), options(given) {}

Tensor AvgPool1dImpl::forward(const Tensor& input) {
  return avg_pool1d(input, options.kernel_size(), stride_of(options), options.padding(),
                    options.ceil_mode(), options.count_include_pad());
}

std::string AvgPool1dImpl::extra_repr() const {
  return cat("kernel_size=", text(options.kernel_size()), ", stride=", text(stride_of(options)),
             ", padding=", text(options.padding()));
}

template <size_t D>
AvgPoolImplNd<D>::AvgPoolImplNd(const AvgPoolOptions<D>& given)
    : TensorModule(D == 2 ? "AvgPool2d" : "AvgPool3d"), options(given) {}

template <size_t D>
Tensor AvgPoolImplNd<D>::forward(const Tensor& input) {
  const auto run = [&](auto function) {
    return function(input, options.kernel_size(), stride_of(options), options.padding(),
                    options.ceil_mode(), options.count_include_pad(), options.divisor_override());
  };
  if constexpr (D == 2) {
    return run(avg_pool2d);
  } else {
    return run(avg_pool3d);
  }
}

template <size_t D>
std::string AvgPoolImplNd<D>::extra_repr() const {
  return cat("kernel_size=", text(options.kernel_size()), ", stride=", text(stride_of(options)),
             ", padding=", text(options.padding()));
}

template <size_t D>
AdaptiveAvgPoolImplNd<D>::AdaptiveAvgPoolImplNd(const AdaptiveAvgPoolOptions<D>& given)
    : TensorModule(D == 1   ? "AdaptiveAvgPool1d"
                   : D == 2 ? "AdaptiveAvgPool2d"
                            : "AdaptiveAvgPool3d"),
      options(given) {}

template <size_t D>
Tensor AdaptiveAvgPoolImplNd<D>::forward(const Tensor& input) {
  const std::vector<int64_t> size = resolved<D>(options.output_size(), input);
  if constexpr (D == 1) {
    return adaptive_avg_pool1d(input, size);
  } else if constexpr (D == 2) {
    return adaptive_avg_pool2d(input, size);
  } else {
    return adaptive_avg_pool3d(input, size);
  }
}

template <size_t D>
std::string AdaptiveAvgPoolImplNd<D>::extra_repr() const {
  return cat("output_size=", text(options.output_size()));
}

template <size_t D>
AdaptiveMaxPoolImplNd<D>::AdaptiveMaxPoolImplNd(const AdaptiveMaxPoolOptions<D>& given)
    : TensorModule(D == 1   ? "AdaptiveMaxPool1d"
                   : D == 2 ? "AdaptiveMaxPool2d"
                            : "AdaptiveMaxPool3d"),
      options(given) {}

template <size_t D>
Tensor AdaptiveMaxPoolImplNd<D>::forward(const Tensor& input) {
  return std::get<0>(forward_with_indices(input));
}

template <size_t D>
std::tuple<Tensor, Tensor> AdaptiveMaxPoolImplNd<D>::forward_with_indices(const Tensor& input) {
  const std::vector<int64_t> size = resolved<D>(options.output_size(), input);
  if constexpr (D == 1) {
    return adaptive_max_pool1d(input, size);
  } else if constexpr (D == 2) {
    return adaptive_max_pool2d(input, size);
  } else {
    return adaptive_max_pool3d(input, size);
  }
}

template <size_t D>
std::string AdaptiveMaxPoolImplNd<D>::extra_repr() const {
  return cat("output_size=", text(options.output_size()));
}

template <size_t D>
LPPoolImplNd<D>::LPPoolImplNd(const LPPoolOptions<D>& given)
    : TensorModule(D == 1   ? "LPPool1d"
                   : D == 2 ? "LPPool2d"
                            : "LPPool3d"),
      options(given) {}

template <size_t D>
Tensor LPPoolImplNd<D>::forward(const Tensor& input) {
  const Tensor powers = pow(input, Scalar(options.norm_type()));
  const auto& kernel = options.kernel_size();
  int64_t count = 1;
  for (int64_t size : kernel) {
    count *= size;
  }
  Tensor mean;
  if constexpr (D == 1) {
    mean = avg_pool1d(powers, kernel, stride_of(options), 0, options.ceil_mode());
  } else if constexpr (D == 2) {
    mean = avg_pool2d(powers, kernel, stride_of(options), 0, options.ceil_mode());
  } else {
    mean = avg_pool3d(powers, kernel, stride_of(options), 0, options.ceil_mode());
  }
  return norm_of_mean(mean, count, options.norm_type());
}

template <size_t D>
std::string LPPoolImplNd<D>::extra_repr() const {
  return cat("norm_type=", python_text(options.norm_type()),
             ", kernel_size=", text(options.kernel_size()),
             ", stride=", options.stride() ? text(*options.stride()) : std::string("None"),
             ", ceil_mode=", python_text(options.ceil_mode()));
}

template <size_t D>
FractionalMaxPoolImplNd<D>::FractionalMaxPoolImplNd(const FractionalMaxPoolOptions<D>& given)
    : TensorModule(D == 2 ? "FractionalMaxPool2d" : "FractionalMaxPool3d"), options(given) {
  if (options.output_size().has_value() == options.output_ratio().has_value()) {
    fail(ErrorKind::Value, name(), "requires either an output_size or an output_ratio, not both");
  }
  for (size_t i = 0; options.output_ratio() && i < D; ++i) {
    const double ratio = (*options.output_ratio())[i];
    if (!(ratio > 0 && ratio < 1)) {
      fail(ErrorKind::Value, name(), "output_ratio must be between 0 and 1 (got ", ratio, ")");
    }
  }
}

template <size_t D>
Tensor FractionalMaxPoolImplNd<D>::forward(const Tensor& input) {
  return std::get<0>(forward_with_indices(input));
}

template <size_t D>
std::tuple<Tensor, Tensor> FractionalMaxPoolImplNd<D>::forward_with_indices(const Tensor& input) {
  constexpr auto kDims = static_cast<int64_t>(D);
  if (input.dim() <= kDims) {
    fail(ErrorKind::Runtime, name(), "expected ", kDims + 1, "D or ", kDims + 2,
         "D tensor, but got: ", input.sizes());
  }
  std::vector<int64_t> size;
  for (size_t i = 0; i < D; ++i) {
    const auto extent = static_cast<double>(input.size(static_cast<int64_t>(i) - kDims));
    size.push_back(options.output_size()
                       ? (*options.output_size())[i]
                       : static_cast<int64_t>(extent * (*options.output_ratio())[i]));
  }
  const int64_t batch = input.dim() == kDims + 1 ? 1 : input.size(0);
  const Tensor samples = rand({batch, input.size(-kDims - 1), kDims}, input.options());
  if constexpr (D == 2) {
    return fractional_max_pool2d(input, options.kernel_size(), size, samples);
  } else {
    return fractional_max_pool3d(input, options.kernel_size(), size, samples);
  }
}

template <size_t D>
MaxUnpoolImplNd<D>::MaxUnpoolImplNd(const MaxUnpoolOptions<D>& given)
    : Module(D == 1   ? "MaxUnpool1d"
             : D == 2 ? "MaxUnpool2d"
                      : "MaxUnpool3d"),
      options(given) {}

template <size_t D>
Tensor MaxUnpoolImplNd<D>::forward(const Tensor& input, const Tensor& indices,
                                   const std::optional<std::vector<int64_t>>& output_size) {
  constexpr auto kDims = static_cast<int64_t>(D);
  const ExpandingArray<D> stride = stride_of(options);
  std::vector<int64_t> size = output_size.value_or(std::vector<int64_t>());
  if (size.size() == D + 2) {
    size.erase(size.begin(), size.begin() + 2);
  }
  if (output_size && size.size() != D) {
    fail(ErrorKind::Value, name(), "output_size should be a sequence containing ", kDims, " or ",
         kDims + 2, " elements, but it has a length of ",
         static_cast<int64_t>(output_size->size()));
  }
  for (size_t i = 0; i < D; ++i) {
    const int64_t usual = (input.size(static_cast<int64_t>(i) - kDims) - 1) * stride[i] +
                          options.kernel_size()[i] - 2 * options.padding()[i];
    if (!output_size) {
      size.push_back(usual);
    } else if (size[i] <= usual - stride[i] || size[i] >= usual + stride[i]) {
      fail(ErrorKind::Value, name(), "invalid output_size (dim ", static_cast<int64_t>(i),
           " must be between ", usual - stride[i], " and ", usual + stride[i], ")");
    }
  }
  if constexpr (D == 1) {
    return squeeze(max_unpool2d(unsqueeze(input, -1), unsqueeze(indices, -1), {size[0], 1}), -1);
  } else if constexpr (D == 2) {
    return max_unpool2d(input, indices, size);
  } else {
    return max_unpool3d(input, indices, size, stride, options.padding());
  }
}

template <size_t D>
std::string MaxUnpoolImplNd<D>::extra_repr() const {
  return cat("kernel_size=", text(options.kernel_size()), ", stride=", text(stride_of(options)),
             ", padding=", text(options.padding()));
}

template class MaxPoolImplNd<1>;
template class MaxPoolImplNd<2>;
template class MaxPoolImplNd<3>;
template class AvgPoolImplNd<2>;
template class AvgPoolImplNd<3>;
template class AdaptiveAvgPoolImplNd<1>;
template class AdaptiveAvgPoolImplNd<2>;
template class AdaptiveAvgPoolImplNd<3>;
template class AdaptiveMaxPoolImplNd<1>;
template class AdaptiveMaxPoolImplNd<2>;
template class AdaptiveMaxPoolImplNd<3>;
template class LPPoolImplNd<1>;
template class LPPoolImplNd<2>;
template class LPPoolImplNd<3>;
template class FractionalMaxPoolImplNd<2>;
template class FractionalMaxPoolImplNd<3>;
template class MaxUnpoolImplNd<1>;
template class MaxUnpoolImplNd<2>;
template class MaxUnpoolImplNd<3>;

}  // namespace rushlight::nn
