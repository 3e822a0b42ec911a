// Average pooling: regular and adaptive windows.
#include <rushlight/generated/functions.h>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/pooling.h"

namespace rushlight {
namespace {

using pooling::Windows;

kernels::Divisor divisor_of(std::string_view op, bool padding, std::optional<int64_t> fixed) {
  if (fixed && *fixed == 0) {
    fail(ErrorKind::Runtime, "", op, ": divisor must be not zero");
  }
  return {padding, fixed.value_or(0)};
}

IntArrayRef no_dilation() {
  static constexpr int64_t kOne = 1;
  return kOne;
}

MemoryFormat layout(const Tensor& self, int dims) {
  return dims == 2 ? pooling::layout_of(self) : MemoryFormat::Contiguous;
}

template <int dims>
Tensor means(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
             bool ceil_mode, bool count_padding, std::optional<int64_t> fixed) {
  constexpr const char* kOp = dims == 2 ? "avg_pool2d" : "avg_pool3d";
  const kernels::Divisor divisor = divisor_of(kOp, count_padding, fixed);
  kernels::WindowSpace space = pooling::regular_space(
      {kOp, dims, kernel, stride, padding, no_dilation(), ceil_mode}, self.sizes());
  if (self.dtype() != DType::Int64) {
    pooling::expect_float(kOp, self);
  }
  const MemoryFormat format = layout(self, dims);
  space.channels_last = pooling::is_channels_last(format);
  const Tensor made = pooling::make_in(pooling::result_sizes(space, dims, self.sizes()), format,
                                       self.dtype(), self.device());
  if (!made.is_meta()) {
    kernels::average_pool(made, pooling::dense_in(self, format), space, divisor);
  }
  return made;
}

Tensor spread(const Tensor& grad, IntArrayRef sizes, kernels::WindowSpace space, int dims,
              kernels::Divisor divisor) {
  const MemoryFormat format = layout(grad, dims);
  space.channels_last = pooling::is_channels_last(format);
  const Tensor made = pooling::make_in(sizes, format, grad.dtype(), grad.device());
  if (!made.is_meta()) {
    kernels::average_pool_gradient(made, pooling::dense_in(grad, format), space, divisor);
  }
  return made;
}

Tensor means_back(const Tensor& grad, IntArrayRef sizes, IntArrayRef kernel, IntArrayRef stride,
                  IntArrayRef padding, bool ceil_mode, bool count_padding,
                  std::optional<int64_t> fixed) {
  const auto dims = static_cast<int>(kernel.size());
  const kernels::WindowSpace space = pooling::regular_space(
      {"avg_pool_backward", dims, kernel, stride, padding, no_dilation(), ceil_mode}, sizes);
  pooling::check_gradient("avg_pool_backward", grad, pooling::result_sizes(space, dims, sizes),
                          grad.dtype());
  return spread(grad, sizes, space, dims, divisor_of("avg_pool_backward", count_padding, fixed));
}

std::optional<int64_t> fixed_of(const Gradient& g, int argument) {
  return g.is_none(argument) ? std::nullopt : std::optional<int64_t>(g.integer(argument));
}

template <int dims>
void means_gradient(Gradient& g) {
  g.set(0, _avg_pool_backward(g.grad(), g.sizes(0), pooling::one_each(g.ints(1), dims), g.ints(2),
                              g.ints(3), g.flag(4), g.flag(5), fixed_of(g, 6)));
}

template <int dims>
Tensor adaptive(const Tensor& self, IntArrayRef output) {
  constexpr const char* kOp = dims == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";
  kernels::WindowSpace space = pooling::adaptive_space(kOp, dims, self.sizes(), output);
  pooling::expect_float(kOp, self);
  const MemoryFormat format = layout(self, dims);
  space.channels_last = pooling::is_channels_last(format);
  const Tensor made = pooling::make_in(pooling::result_sizes(space, dims, self.sizes()), format,
                                       self.dtype(), self.device());
  if (!made.is_meta()) {
    kernels::average_pool(made, pooling::dense_in(self, format), space, {false, 0});
  }
  return made;
}

Tensor adaptive_back(const Tensor& grad, IntArrayRef sizes, int64_t dims) {
  pooling::check_dims("adaptive_avg_pool_backward", dims);
  const auto count = static_cast<int>(dims);
  if (grad.dim() < dims) {
    fail(ErrorKind::Runtime, "adaptive_avg_pool_backward", "expected grad_output of at least ",
         dims, " dimensions, got ", grad.sizes());
  }
  const IntList output(grad.sizes().last(static_cast<size_t>(dims)));
  const kernels::WindowSpace space =
      pooling::adaptive_space("adaptive_avg_pool_backward", count, sizes, output);
  pooling::check_gradient("adaptive_avg_pool_backward", grad,
                          pooling::result_sizes(space, count, sizes), grad.dtype());
  return spread(grad, sizes, space, count, {false, 0});
}

// One region for the whole plane is a mean, which other operators fuse with.
template <int dims>
Tensor adaptive_or_mean(const Tensor& self, IntArrayRef output) {
  constexpr const char* kOp = dims == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";
  if (static_cast<int>(output.size()) != dims) {
    fail(ErrorKind::Runtime, "", kOp, ": output_size must be ", dims, ", but got ", output);
  }
  const bool single = std::all_of(output.begin(), output.end(), [](int64_t n) { return n == 1; });
  if (single && (self.dim() == dims + 1 || self.dim() == dims + 2)) {
    return dims == 2 ? mean(self, IntList{-1, -2}, true) : mean(self, IntList{-1, -2, -3}, true);
  }
  return dims == 2 ? _adaptive_avg_pool2d(self, output) : _adaptive_avg_pool3d(self, output);
}

void check_line(std::string_view op, const Tensor& self) {
  if (self.dim() != 2 && self.dim() != 3) {
    fail(ErrorKind::Runtime, "", op, "() Expected 2D or 3D tensor, but got ", self.sizes());
  }
}

int64_t single(std::string_view op, std::string_view what, IntArrayRef given) {
  if (given.size() != 1) {
    fail(ErrorKind::Runtime, "", op, "() '", what, "' should contain one int, but got ", given);
  }
  return given[0];
}

Tensor line_means(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                  bool ceil_mode, bool count_padding) {
  constexpr std::string_view kOp = "avg_pool1d";
  check_line(kOp, self);
  const int64_t size = single(kOp, "kernel_size", kernel);
  const int64_t step = stride.empty() ? size : single(kOp, "stride", stride);
  return squeeze(avg_pool2d(unsqueeze(self, -2), {1, size}, {1, step},
                            {0, single(kOp, "padding", padding)}, ceil_mode, count_padding),
                 -2);
}

Tensor line_adaptive(const Tensor& self, IntArrayRef output) {
  constexpr std::string_view kOp = "adaptive_avg_pool1d";
  check_line(kOp, self);
  return squeeze(adaptive_avg_pool2d(unsqueeze(self, -2), {1, single(kOp, "output_size", output)}),
                 -2);
}

void adaptive_gradient(Gradient& g, int64_t dims) {
  g.set(0, _adaptive_avg_pool_backward(g.grad(), g.sizes(0), dims));
}

}  // namespace

RUSHLIGHT_OPERATORS(pooling_average) {
  op("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
     "bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
     kFunction)
      .doc("The means over windows of (N, C, L) or (C, L).")
      .composition(line_means);
  op("avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
     "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     kNN | kOut)
      .doc("The means over windows of (N, C, H, W) or (C, H, W).")
      .kernel(means<2>)
      .gradient("", means_gradient<2>)
      .node("AvgPool2DBackward0");
  op("avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
     "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     kNN | kOut)
      .doc("The means over windows of (N, C, D, H, W) or (C, D, H, W).")
      .kernel(means<3>)
      .gradient("", means_gradient<3>)
      .node("AvgPool3DBackward0");
  op("_avg_pool_backward(Tensor grad_output, SymInt[] input_sizes, int[] kernel_size, "
     "int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) "
     "-> Tensor",
     kInternal)
      .doc("The gradient of avg_pool2d and avg_pool3d, one number a dimension in `kernel_size`.")
      .kernel(means_back)
      .gradient("",
                [](Gradient& g) {
                  const bool flat = g.ints(2).size() == 2;
                  g.set(0, flat ? avg_pool2d(g.grad(), g.ints(2), g.ints(3), g.ints(4), g.flag(5),
                                             g.flag(6), fixed_of(g, 7))
                                : avg_pool3d(g.grad(), g.ints(2), g.ints(3), g.ints(4), g.flag(5),
                                             g.flag(6), fixed_of(g, 7)));
                })
      .node([](const Invocation& inv) {
        return inv.arguments[2].ints().size() == 2 ? "AvgPool2DBackwardBackward0"
                                                   : "AvgPool3DBackwardBackward0";
      });
  op("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", kFunction)
      .doc("The means of `output_size` stretches of (N, C, L) or (C, L).")
      .composition(line_adaptive);
  op("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", kNN | kOut)
      .doc("The means of a grid of regions of (N, C, H, W) or (C, H, W).")
      .composition(adaptive_or_mean<2>);
  op("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", kNN | kOut)
      .doc("The means of a grid of regions of (N, C, D, H, W) or (C, D, H, W).")
      .composition(adaptive_or_mean<3>);
  op("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", kFunction)
      .doc("adaptive_avg_pool2d for any output size.")
      .kernel(adaptive<2>)
      .gradient("", [](Gradient& g) { adaptive_gradient(g, 2); })
      .node("AdaptiveAvgPool2DBackward0");
  op("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", kFunction)
      .doc("adaptive_avg_pool3d for any output size.")
      .kernel(adaptive<3>)
      .gradient("", [](Gradient& g) { adaptive_gradient(g, 3); })
      .node("AdaptiveAvgPool3DBackward0");
  op("_adaptive_avg_pool_backward(Tensor grad_output, SymInt[] input_sizes, int dims) -> Tensor",
     kInternal)
      .doc("The gradient of _adaptive_avg_pool2d and _adaptive_avg_pool3d.")
      .kernel(adaptive_back)
      .gradient("",
                [](Gradient& g) {
                  const int64_t dims = g.integer(2);
                  const IntList output(g.sizes(0).last(static_cast<size_t>(dims)));
                  g.set(0, dims == 2 ? _adaptive_avg_pool2d(g.grad(), output)
                                     : _adaptive_avg_pool3d(g.grad(), output));
                })
      .node([](const Invocation& inv) {
        return inv.arguments[2].to_int() == 2 ? "AdaptiveAvgPool2DBackwardBackward0"
                                              : "AdaptiveAvgPool3DBackwardBackward0";
      });
}

}  // namespace rushlight
