// Convolutions, transposed ones, and their gradients.
#include "ops/convolution.h"

#include <rushlight/generated/functions.h>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "tensor/geometry.h"

namespace rushlight {

namespace detail {
template <>
struct Unbox<std::vector<bool>> {
  static const std::vector<bool>& get(const Value* v) { return v->bools(); }
};
}  // namespace detail

namespace {

std::array<int64_t, 5> strides_of(const Tensor& x) {
  std::array<int64_t, 5> made{};
  made[0] = x.strides()[0];
  made[1] = x.strides()[1];
  const auto dims = static_cast<size_t>(x.dim()) - 2;
  for (size_t i = 0; i < dims; ++i) {
    made[i + 5 - dims] = x.strides()[i + 2];
  }
  return made;
}

ImagesRef images(const Tensor& x) {
  return {x.data(), strides_of(x)};
}

MutableImagesRef target(const Tensor& x) {
  return {x.data(), strides_of(x)};
}

Tensor make_images(IntArrayRef sizes, MemoryFormat format, const Tensor& like) {
  if (format == MemoryFormat::Contiguous) {
    return make_tensor(sizes, like.dtype(), like.device());
  }
  return make_strided(sizes, strides_for(sizes, format, "convolution"), like.dtype(),
                      like.device());
}

Tensor convolution_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                          bool transposed, IntArrayRef output_padding, int64_t groups) {
  const ConvolutionSettings settings =
      convolution_settings(weight, stride, padding, dilation, transposed, output_padding, groups);
  const IntList sizes = convolution_sizes(input, weight, bias, settings);
  const Tensor out = make_images(sizes, convolution_format(input, weight), input);
  if (out.is_meta() || out.numel() == 0) {
    return out;
  }
  const Convolution problem = convolution_problem(input.sizes(), weight, sizes, settings);
  const Tensor dense = bias.defined() ? contiguous(bias) : bias;
  const void* added = dense.defined() ? dense.data() : nullptr;
  if (transposed) {
    convolve_transposed(problem, images(input), images(weight), added, target(out));
  } else {
    convolve(problem, images(input), images(weight), added, target(out));
  }
  return out;
}

// Undefined where the gradient is not asked for.
std::tuple<Tensor, Tensor, Tensor> backward_kernel(const Tensor& grad_output, const Tensor& input,
                                                   const Tensor& weight,
                                                   std::optional<IntArrayRef> bias_sizes,
                                                   IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool transposed,
                                                   IntArrayRef output_padding, int64_t groups,
                                                   const std::vector<bool>& output_mask) {
  const ConvolutionSettings settings =
      convolution_settings(weight, stride, padding, dilation, transposed, output_padding, groups);
  const IntList sizes = convolution_sizes(input, weight, Tensor(), settings);
  if (!(grad_output.sizes() == sizes)) {
    fail(ErrorKind::Runtime, "convolution_backward", "expected grad_output of shape ", sizes,
         ", got ", grad_output.sizes());
  }
  if (grad_output.dtype() != weight.dtype()) {
    fail(ErrorKind::Runtime, "convolution_backward", "expected grad_output of ", weight.dtype(),
         ", got ", grad_output.dtype());
  }
  const MemoryFormat format = convolution_format(input, weight);
  const Convolution problem = convolution_problem(input.sizes(), weight, sizes, settings);
  const bool runs = !input.is_meta() && grad_output.numel() != 0 && input.numel() != 0;
  Tensor input_grad;
  Tensor weight_grad;
  Tensor bias_grad;
  if (output_mask[0]) {
    input_grad = make_images(input.sizes(), format, input);
    if (!runs) {
      zero_(input_grad);
    } else if (transposed) {
      convolve(problem, images(grad_output), images(weight), nullptr, target(input_grad));
    } else {
      convolve_transposed(problem, images(grad_output), images(weight), nullptr,
                          target(input_grad));
    }
  }
  if (output_mask[1]) {
    weight_grad = make_images(weight.sizes(), format, weight);
    if (!runs) {
      zero_(weight_grad);
    } else if (transposed) {
      convolve_for_weight(problem, images(grad_output), images(input), target(weight_grad));
    } else {
      convolve_for_weight(problem, images(input), images(grad_output), target(weight_grad));
    }
  }
  if (output_mask[2]) {
    IntList dims{0};
    for (int64_t d = 2; d < grad_output.dim(); ++d) {
      dims.push_back(d);
    }
    bias_grad = sum(grad_output, dims, false, std::nullopt);
    if (bias_sizes && !(bias_grad.sizes() == *bias_sizes)) {
      fail(ErrorKind::Runtime, "convolution_backward", "expected a bias of shape ",
           bias_grad.sizes(), ", got ", *bias_sizes);
    }
  }
  return {input_grad, weight_grad, bias_grad};
}

// The settings of a call, which start at argument `first`.
template <typename F>
auto with_settings(Gradient& g, int first, F&& call) {
  return call(g.ints(first), g.ints(first + 1), g.ints(first + 2), g.flag(first + 3),
              g.ints(first + 4), g.integer(first + 5));
}

struct Wanted {
  bool input;
  bool weight;
  bool bias;
  bool any() const { return input || weight || bias; }
};

std::tuple<Tensor, Tensor, Tensor> backward_of(Gradient& g, int first, const Tensor& grad,
                                               const Tensor& input, const Tensor& weight,
                                               const Wanted& wanted) {
  return with_settings(g, first,
                       [&](IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                           bool transposed, IntArrayRef output_padding, int64_t groups) {
                         const std::vector<bool> mask{wanted.input, wanted.weight, wanted.bias};
                         return convolution_backward(grad, input, weight, {}, stride, padding,
                                                     dilation, transposed, output_padding, groups,
                                                     mask);
                       });
}

void convolution_gradient(Gradient& g) {
  const Wanted wanted{g.needs(0), g.needs(1), !g.is_none(2) && g.needs(2)};
  if (!wanted.any()) {
    return;
  }
  auto [input, weight, bias] = backward_of(g, 3, g.grad(), g.tensor(0), g.tensor(1), wanted);
  g.set(0, input);
  g.set(1, weight);
  g.set(2, bias);
}

// All gradients are bilinear in the gradient of the output and one of the operands.
void convolution_backward_gradient(Gradient& g) {
  const Tensor grad = g.tensor(0);
  const Tensor input = g.tensor(1);
  const Tensor weight = g.tensor(2);
  constexpr int kSettings = 4;
  if (g.needs(0)) {
    Tensor total;
    const auto convolve_with = [&](const Tensor& x, const Tensor& w) {
      Tensor part = with_settings(g, kSettings,
                                  [&](IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                      bool transposed, IntArrayRef output_padding, int64_t groups) {
                                    return convolution(x, w, {}, stride, padding, dilation,
                                                       transposed, output_padding, groups);
                                  });
      total = total.defined() ? add(total, part) : part;
    };
    if (g.has_grad(0)) {
      convolve_with(g.grad(0), weight);
    }
    if (g.has_grad(1)) {
      convolve_with(input, g.grad(1));
    }
    if (g.has_grad(2)) {
      IntList shape(static_cast<size_t>(grad.dim()), 1);
      shape[1] = g.grad(2).numel();
      const Tensor part = expand(reshape(g.grad(2), shape), grad.sizes());
      total = total.defined() ? add(total, part) : part;
    }
    g.set(0, total);
  }
  if (g.needs(1) && g.has_grad(1)) {
    g.set(1, std::get<0>(backward_of(g, kSettings, grad, input, g.grad(1), {true, false, false})));
  }
  if (g.needs(2) && g.has_grad(0)) {
    g.set(2, std::get<1>(backward_of(g, kSettings, grad, g.grad(0), weight, {false, true, false})));
  }
}

// Every gradient is a product of `grad`, so that there are four of parts, as of any complex
// product.
std::tuple<Tensor, Tensor, Tensor> complex_backward(const Tensor& grad, const Tensor& input,
                                                    const Tensor& weight,
                                                    std::optional<IntArrayRef> bias_sizes,
                                                    IntArrayRef stride, IntArrayRef padding,
                                                    IntArrayRef dilation, bool transposed,
                                                    IntArrayRef output_padding, int64_t groups,
                                                    const std::vector<bool>& mask) {
  const auto parts = [&](const Tensor& g, bool imaginary) {
    const auto part = [&](const Tensor& x) { return contiguous(imaginary ? imag(x) : real(x)); };
    return convolution_backward(contiguous(g), part(input), part(weight), bias_sizes, stride,
                                padding, dilation, transposed, output_padding, groups, mask);
  };
  const auto of_real = parts(real(grad), false);
  const auto of_imag = parts(imag(grad), false);
  const auto crossed = parts(real(grad), true);
  const auto turned = parts(imag(grad), true);
  const auto joined = [](const Tensor& rr, const Tensor& ii, const Tensor& ri, const Tensor& ir) {
    return rr.defined() ? complex(sub(rr, ii), add(ri, ir)) : rr;
  };
  const Tensor& bias = std::get<2>(of_real);
  return {
      joined(std::get<0>(of_real), std::get<0>(turned), std::get<0>(crossed), std::get<0>(of_imag)),
      joined(std::get<1>(of_real), std::get<1>(turned), std::get<1>(crossed), std::get<1>(of_imag)),
      bias.defined() ? complex(bias, std::get<2>(of_imag)) : bias};
}

// Puts a batch of one around an image without one, and takes it away again.
template <typename F>
Tensor batched(std::string_view op, int64_t dims, const Tensor& input, F&& run) {
  if (input.dim() != dims + 1 && input.dim() != dims + 2) {
    fail(ErrorKind::Runtime, op, "Expected ", dims + 1, "D (unbatched) or ", dims + 2,
         "D (batched) input to ", op, ", but got input of size: ", input.sizes());
  }
  return input.dim() == dims + 1 ? squeeze(run(unsqueeze(input, 0)), 0) : run(input);
}

template <int kDims>
constexpr std::string_view kPlainName = kDims == 1   ? "conv1d"
                                        : kDims == 2 ? "conv2d"
                                                     : "conv3d";
template <int kDims>
constexpr std::string_view kTransposedName = kDims == 1   ? "conv_transpose1d"
                                             : kDims == 2 ? "conv_transpose2d"
                                                          : "conv_transpose3d";

template <int kDims>
Tensor conv_of(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
               IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return batched(kPlainName<kDims>, kDims, input, [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, false, IntList{0}, groups);
  });
}

// As much padding as keeps the size: where that is odd, the input gets one more at its end.
Tensor conv_same(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                 IntArrayRef dilation, int64_t groups) {
  const ConvolutionSettings settings =
      convolution_settings(weight, stride, {0}, dilation, false, {0}, groups);
  if (input.dim() != weight.dim()) {
    convolution_sizes(input, weight, bias, settings);  // says so
  }
  IntList padding;
  IntList extra;
  bool even = true;
  for (size_t d = 0; d < settings.stride.size(); ++d) {
    if (settings.stride[d] != 1) {
      fail(ErrorKind::Runtime, "convolution",
           "padding='same' is not supported for strided convolutions, got stride=", stride);
    }
    const int64_t total = settings.dilation[d] * (weight.sizes()[d + 2] - 1);
    padding.push_back(total / 2);
    extra.insert(0, total % 2);
    extra.insert(0, 0);
    even = even && total % 2 == 0;
  }
  const Tensor padded = even ? input : constant_pad_nd(input, extra, Scalar(0));
  return convolution(padded, weight, bias, stride, padding, dilation, false, IntList{0}, groups);
}

Tensor conv_by_mode(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                    int64_t groups) {
  if (padding == "same") {
    return conv_same(input, weight, bias, stride, dilation, groups);
  }
  if (padding != "valid") {
    fail(ErrorKind::Runtime, "convolution", "Invalid padding string: '", padding,
         "', expected 'valid' or 'same'");
  }
  return convolution(input, weight, bias, stride, IntList{0}, dilation, false, IntList{0}, groups);
}

template <int kDims>
Tensor conv_mode_of(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    IntArrayRef stride, std::string_view padding, IntArrayRef dilation,
                    int64_t groups) {
  return batched(kPlainName<kDims>, kDims, input, [&](const Tensor& x) {
    return conv_by_mode(x, weight, bias, stride, padding, dilation, groups);
  });
}

template <int kDims>
Tensor conv_transpose_of(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding,
                         int64_t groups, IntArrayRef dilation) {
  return batched(kTransposedName<kDims>, kDims, input, [&](const Tensor& x) {
    return convolution(x, weight, bias, stride, padding, dilation, true, output_padding, groups);
  });
}

// (T, B, C) with a kernel (taps, C, outputs).
Tensor conv_tbc_of(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  if (self.dim() != 3 || weight.dim() != 3 || bias.dim() != 1) {
    fail(ErrorKind::Runtime, "conv_tbc",
         "Input must have 3 dims: time, batch, in_channel; Weight tensor must have 3 dims: "
         "kernel_width, in_channels, out_channels; Bias must be 1-D; got ",
         self.sizes(), ", ", weight.sizes(), " and ", bias.sizes());
  }
  if (self.sizes()[2] != weight.sizes()[1]) {
    fail(ErrorKind::Runtime, "conv_tbc",
         "Input dim 2 (input channels) is not == dim 1 in the weight tensor: ", self.sizes(),
         " and ", weight.sizes());
  }
  if (weight.sizes()[2] != bias.sizes()[0]) {
    fail(ErrorKind::Runtime, "conv_tbc",
         "Bias size must equal dim 2 in the weight tensor (output channels): ", bias.sizes(),
         " and ", weight.sizes());
  }
  const Tensor made = convolution(permute(self, {1, 2, 0}), permute(weight, {2, 1, 0}), bias, {1},
                                  {pad}, {1}, false, {0}, 1);
  return contiguous(permute(made, {2, 0, 1}));
}

const char* conv_node(const Invocation& inv) {
  return inv.arguments[0].tensor().dim() == inv.arguments[1].tensor().dim() ? nullptr
                                                                            : "SqueezeBackward1";
}

}  // namespace

RUSHLIGHT_OPERATORS(convolution) {
  op("convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
     "dilation, "
     "bool transposed, int[] output_padding, int groups) -> Tensor",
     kFunction | kOut)
      .complex(ComplexRule::Product)
      .doc(
          "Convolution of (N, C, ...) with 1 to 3 spatial dimensions, or, transposed, the one "
          "whose gradient it is.")
      .kernel(convolution_kernel)
      .gradient("input weight", convolution_gradient);
  op("mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, "
     "SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor",
     kFunction)
      .doc("convolution, under the name of a kernel of PyTorch's.")
      .composition([](const Tensor& self, const Tensor& weight, const Tensor& bias,
                      IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation,
                      int64_t groups) -> Tensor {
        const IntList no_padding(padding.size(), 0);
        return convolution(self, weight, bias, stride, padding, dilation, false, no_padding,
                           groups);
      });
  op("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? "
     "bias_sizes, int[] stride, int[] padding, int[] dilation, "
     "bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, "
     "Tensor)",
     kInternal)
      .complex()
      .doc("The gradients of input, weight and bias, those that the mask asks for.")
      .kernel(backward_kernel)
      .complex_body(complex_backward)
      .gradient("grad_output input weight", convolution_backward_gradient);
  op("_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
     "dilation, "
     "bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, bool "
     "cudnn_enabled, bool allow_tf32) -> Tensor",
     kFunction)
      .doc("convolution, with choices that make no difference here.")
      .composition([](const Tensor& input, const Tensor& weight, const Tensor& bias,
                      IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                      bool transposed, IntArrayRef output_padding, int64_t groups, bool, bool, bool,
                      bool) -> Tensor {
        return convolution(input, weight, bias, stride, padding, dilation, transposed,
                           output_padding, groups);
      })
      .node("ConvolutionBackward1");
  op("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, "
     "int[] dilation, int groups) -> Tensor",
     kFunction)
      .doc("convolution with the padding 'same' or 'valid'.")
      .composition(conv_by_mode);
  op("conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
     "int[1] dilation=1, int groups=1) -> Tensor",
     kFunction)
      .doc("Convolution of (N, C, L) or (C, L).")
      .composition(conv_of<1>)
      .node(conv_node);
  op("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
     "str padding=\"valid\", int[1] dilation=1, int groups=1) -> Tensor",
     kFunction)
      .doc("The same with the padding 'same' or 'valid'.")
      .composition(conv_mode_of<1>)
      .node(conv_node);
  op("conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
     "int[2] dilation=1, int groups=1) -> Tensor",
     kFunction)
      .doc("Convolution of (N, C, H, W) or (C, H, W).")
      .composition(conv_of<2>)
      .node(conv_node);
  op("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
     "str padding=\"valid\", int[2] dilation=1, int groups=1) -> Tensor",
     kFunction)
      .doc("The same with the padding 'same' or 'valid'.")
      .composition(conv_mode_of<2>)
      .node(conv_node);
  op("conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
     "int[3] dilation=1, int groups=1) -> Tensor",
     kFunction)
      .doc("Convolution of (N, C, D, H, W) or (C, D, H, W).")
      .composition(conv_of<3>)
      .node(conv_node);
  op("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
     "str padding=\"valid\", int[3] dilation=1, int groups=1) -> Tensor",
     kFunction)
      .doc("The same with the padding 'same' or 'valid'.")
      .composition(conv_mode_of<3>)
      .node(conv_node);
  op("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
     "int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
     kFunction)
      .doc("The transpose of conv1d; the weight is (C, outputs / groups, K).")
      .composition(conv_transpose_of<1>)
      .node(conv_node);
  op("conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
     "int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
     kFunction)
      .doc("The transpose of conv2d; the weight is (C, outputs / groups, KH, KW).")
      .composition(conv_transpose_of<2>)
      .node(conv_node);
  op("conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
     "int[3] padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
     kFunction)
      .doc("The transpose of conv3d; the weight is (C, outputs / groups, KD, KH, KW).")
      .composition(conv_transpose_of<3>)
      .node(conv_node);
  op("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Convolution along the first dimension of (T, B, C), with a weight (K, C, outputs).")
      .composition(conv_tbc_of)
      .node("ConvTbcBackward0");
}

}  // namespace rushlight
