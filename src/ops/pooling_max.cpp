// Maximum pooling: regular and adaptive windows.
#include <rushlight/generated/functions.h>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/pooling.h"

namespace rushlight {
namespace {

using pooling::Windows;

void expect_ordered(std::string_view op, const Tensor& self) {
  const DType dtype = self.dtype();
  const bool integer = dtype == DType::UInt8 || dtype == DType::Int8 || dtype == DType::Int16 ||
                       dtype == DType::Int32 || dtype == DType::Int64;
  if (!integer) {
    pooling::expect_float(op, self);
  }
}

struct MaxResult {
  Tensor values;
  Tensor indices;  // undefined where they are not wanted
};

MaxResult pool(const Tensor& self, kernels::WindowSpace space, int dims, MemoryFormat format,
               bool places) {
  space.channels_last = pooling::is_channels_last(format);
  const IntList sizes = pooling::result_sizes(space, dims, self.sizes());
  MaxResult made{pooling::make_in(sizes, format, self.dtype(), self.device()), {}};
  if (places) {
    made.indices = pooling::make_in(sizes, format, DType::Int64, self.device());
  }
  if (!self.is_meta()) {
    kernels::max_pool(made.values, made.indices, pooling::dense_in(self, format), space);
  }
  return made;
}

MaxResult regular(const Tensor& self, const Windows& windows, bool places) {
  const kernels::WindowSpace space = pooling::regular_space(windows, self.sizes());
  expect_ordered(windows.op, self);
  const MemoryFormat format =
      self.dim() == windows.dims + 2 ? pooling::layout_of(self) : MemoryFormat::Contiguous;
  return pool(self, space, windows.dims, format, places);
}

template <int dims>
constexpr const char* kName = dims == 1   ? "max_pool1d"
                              : dims == 2 ? "max_pool2d"
                                          : "max_pool3d";

template <int dims>
Tensor maxima(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
              IntArrayRef dilation, bool ceil_mode) {
  const Windows windows{kName<dims>, dims, kernel, stride, padding, dilation, ceil_mode};
  return regular(self, windows, false).values;
}

template <int dims>
std::tuple<Tensor, Tensor> maxima_and_places(const Tensor& self, IntArrayRef kernel,
                                             IntArrayRef stride, IntArrayRef padding,
                                             IntArrayRef dilation, bool ceil_mode) {
  const Windows windows{kName<dims>, dims, kernel, stride, padding, dilation, ceil_mode};
  const MaxResult made = regular(self, windows, true);
  return {made.values, made.indices};
}

// The gradient without kept places: they are found again.
Tensor maxima_back(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const auto dims = static_cast<int>(kernel.size());
  const Windows windows{"max_pool_backward", dims, kernel, stride, padding, dilation, ceil_mode};
  kernels::WindowSpace space = pooling::regular_space(windows, self.sizes());
  pooling::check_gradient("max_pool_backward", grad,
                          pooling::result_sizes(space, dims, self.sizes()), self.dtype());
  const MemoryFormat format =
      self.dim() == dims + 2 ? pooling::layout_of(self) : MemoryFormat::Contiguous;
  space.channels_last = pooling::is_channels_last(format);
  const Tensor made = pooling::make_in(self.sizes(), format, self.dtype(), self.device());
  if (!made.is_meta()) {
    kernels::max_pool_gradient(made, pooling::dense_in(grad, format), {},
                               pooling::dense_in(self, format), space);
  }
  return made;
}

// Planes of zeros of shape `sizes` can take the elements of `grad` at `indices`.
void check_scatter(const Tensor& grad, const Tensor& indices, IntArrayRef sizes, int64_t dims) {
  pooling::check_dims("max_pool_backward", dims);
  if (indices.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "max_pool_backward", "expected indices of dtype int64, got ",
         indices.dtype());
  }
  const auto rank = static_cast<int64_t>(sizes.size());
  bool fits = (rank == dims + 1 || rank == dims + 2) && grad.dim() == rank;
  for (int64_t d = 0; fits && d < rank - dims; ++d) {
    fits = grad.size(d) == sizes[static_cast<size_t>(d)];
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "max_pool_backward", "expected grad_output of ", dims + 1, " or ",
         dims + 2, " dimensions with the batch and channels of the input, which has shape ", sizes,
         ", but got ", grad.sizes());
  }
}

// Planes of zeros of shape `sizes` to which elements are added at `indices`.
Tensor scatter_planes(const Tensor& grad, const Tensor& indices, IntArrayRef sizes, int64_t dims,
                      std::string_view) {
  if (!(grad.sizes() == indices.sizes())) {
    fail(ErrorKind::Runtime, "max_pool_backward", "expected grad_output to have the shape ",
         indices.sizes(), " of indices, but got ", grad.sizes());
  }
  check_scatter(grad, indices, sizes, dims);
  const MemoryFormat format =
      grad.dim() == dims + 2 ? pooling::layout_of(indices) : MemoryFormat::Contiguous;
  kernels::WindowSpace space = pooling::plane_space(static_cast<int>(dims), sizes, grad.sizes());
  space.channels_last = pooling::is_channels_last(format);
  const Tensor made = pooling::make_in(sizes, format, grad.dtype(), grad.device());
  if (!made.is_meta()) {
    kernels::max_pool_gradient(made, pooling::dense_in(grad, format),
                               pooling::dense_in(indices, format), {}, space);
  }
  return made;
}

// The node of a gradient, by the operator that it is of.
const char* scattered_node(const Invocation& inv) {
  static constexpr std::pair<std::string_view, const char*> kNodes[] = {
      {"max2", "MaxPool2DWithIndicesBackwardBackward0"},
      {"max3", "MaxPool3DWithIndicesBackwardBackward0"},
      {"adaptive2", "AdaptiveMaxPool2DBackwardBackward0"},
      {"adaptive3", "AdaptiveMaxPool3DBackwardBackward0"},
      {"fractional2", "FractionalMaxPool2DBackwardBackward0"},
      {"fractional3", "FractionalMaxPool3DBackwardBackward0"},
  };
  for (const auto& [of, node] : kNodes) {
    if (inv.arguments[4].text() == of) {
      return node;
    }
  }
  return nullptr;
}

template <int dims>
void maxima_gradient(Gradient& g) {
  g.set(0, _max_pool_backward(g.grad(), g.tensor(0), pooling::one_each(g.ints(1), dims), g.ints(2),
                              g.ints(3), g.ints(4), g.flag(5)));
}

template <int dims>
void places_gradient(Gradient& g) {
  if (g.has_grad(0)) {
    g.set(0, _scatter_planes(g.grad(), g.result(1), g.sizes(0), dims, dims == 2 ? "max2" : "max3"));
  }
}

template <int dims>
void adaptive_gradient(Gradient& g) {
  if (g.has_grad(0)) {
    g.set(0, _scatter_planes(g.grad(), g.result(1), g.sizes(0), dims,
                             dims == 2 ? "adaptive2" : "adaptive3"));
  }
}

template <int dims>
std::tuple<Tensor, Tensor> adaptive(const Tensor& self, IntArrayRef output) {
  constexpr const char* kOp = dims == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d";
  const kernels::WindowSpace space = pooling::adaptive_space(kOp, dims, self.sizes(), output);
  pooling::expect_float(kOp, self);
  const MemoryFormat format = dims == 2 ? pooling::layout_of(self) : MemoryFormat::Contiguous;
  const MaxResult made = pool(self, space, dims, format, true);
  return {made.values, made.indices};
}

// A line is a plane of one row.
void check_line(std::string_view op, const Tensor& self) {
  const int64_t rank = self.dim();
  if ((rank != 2 && rank != 3) || self.size(-1) == 0 || self.size(-2) == 0) {
    fail(ErrorKind::Runtime, "", op,
         "() Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
         "got: ",
         self.sizes());
  }
}

IntList with_row(std::string_view op, std::string_view what, IntArrayRef given, int64_t row) {
  if (given.size() != 1) {
    fail(ErrorKind::Runtime, "", op, "() ", what, " must be an int or a list of 1 int, but got ",
         given);
  }
  return {row, given[0]};
}

struct RowWindows {
  IntList kernel, stride, padding, dilation;
};

RowWindows row_windows(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation) {
  constexpr std::string_view kOp = "max_pool1d";
  return {with_row(kOp, "kernel_size", kernel, 1),
          with_row(kOp, "stride", stride.empty() ? kernel : stride, 1),
          with_row(kOp, "padding", padding, 0), with_row(kOp, "dilation", dilation, 1)};
}

Tensor line_maxima(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                   IntArrayRef dilation, bool ceil_mode) {
  check_line("max_pool1d", self);
  pooling::expect_float("max_pool1d", self);
  const RowWindows w = row_windows(kernel, stride, padding, dilation);
  return squeeze(
      max_pool2d(unsqueeze(self, -2), w.kernel, w.stride, w.padding, w.dilation, ceil_mode), -2);
}

std::tuple<Tensor, Tensor> line_maxima_and_places(const Tensor& self, IntArrayRef kernel,
                                                  IntArrayRef stride, IntArrayRef padding,
                                                  IntArrayRef dilation, bool ceil_mode) {
  check_line("max_pool1d", self);
  pooling::expect_float("max_pool1d", self);
  const RowWindows w = row_windows(kernel, stride, padding, dilation);
  const auto [values, indices] = max_pool2d_with_indices(unsqueeze(self, -2), w.kernel, w.stride,
                                                         w.padding, w.dilation, ceil_mode);
  return {squeeze(values, -2), squeeze(indices, -2)};
}

std::tuple<Tensor, Tensor> line_adaptive(const Tensor& self, IntArrayRef output) {
  check_line("adaptive_max_pool1d", self);
  if (output.size() != 1) {
    fail(ErrorKind::Runtime, "",
         "adaptive_max_pool1d: 'output_size' should contain one int, but got ", output);
  }
  const auto [values, indices] = adaptive_max_pool2d(unsqueeze(self, -2), {1, output[0]});
  return {squeeze(values, -2), squeeze(indices, -2)};
}

template <int dims>
Tensor named_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef, IntArrayRef,
                      IntArrayRef, bool, const Tensor& indices) {
  return scatter_planes(grad, indices, self.sizes(), dims, "");
}

template <int dims>
void named_backward_gradient(Gradient& g) {
  g.set(0, pooling::picked(g.grad(), g.tensor(7), dims));
  if (g.needs(1)) {
    g.set(1, zeros(g.sizes(1), g.grad().options()));
  }
}

}  // namespace

Tensor pooling::picked(const Tensor& planes, const Tensor& indices, int64_t dims) {
  if (indices.numel() == 0) {
    return zeros(indices.sizes(), planes.options());
  }
  return reshape(gather(flatten(planes, -dims), -1, flatten(indices, -dims)), indices.sizes());
}

RUSHLIGHT_OPERATORS(pooling_max) {
  op("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
     "int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
     kFunction)
      .doc("The maxima over windows of (N, C, L) or (C, L).")
      .composition(line_maxima);
  op("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], "
     "int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
     kFunction)
      .doc("The maxima over windows of (N, C, L) or (C, L), and where they are.")
      .composition(line_maxima_and_places);
  op("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
     "int[2] dilation=1, bool ceil_mode=False) -> Tensor",
     kFunction)
      .doc("The maxima over windows of (N, C, H, W) or (C, H, W).")
      .kernel(maxima<2>)
      .gradient("self", maxima_gradient<2>)
      .node("MaxPool2DWithIndicesBackward0");
  op("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], "
     "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor out, Tensor indices)",
     kNN | kOut)
      .doc("The maxima over windows of (N, C, H, W) or (C, H, W), and where in the plane they are.")
      .kernel(maxima_and_places<2>)
      .gradient("result1", places_gradient<2>)
      .node("MaxPool2DWithIndicesBackward0");
  op("max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
     "int[3] dilation=1, bool ceil_mode=False) -> Tensor",
     kFunction)
      .doc("The maxima over windows of (N, C, D, H, W) or (C, D, H, W).")
      .kernel(maxima<3>)
      .gradient("self", maxima_gradient<3>)
      .node("MaxPool3DWithIndicesBackward0");
  op("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], "
     "int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor out, Tensor indices)",
     kNN | kOut)
      .doc("The maxima over windows of (N, C, D, H, W) or (C, D, H, W), and where they are.")
      .kernel(maxima_and_places<3>)
      .gradient("result1", places_gradient<3>)
      .node("MaxPool3DWithIndicesBackward0");
  op("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", kFunction)
      .doc("The maxima of `output_size` stretches of (N, C, L) or (C, L), and where they are.")
      .composition(line_adaptive);
  op("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor out, Tensor indices)",
     kNN | kOut)
      .doc("The maxima of a grid of regions of (N, C, H, W) or (C, H, W), and where they are.")
      .kernel(adaptive<2>)
      .gradient("result1", adaptive_gradient<2>)
      .node("AdaptiveMaxPool2DBackward0");
  op("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor out, Tensor indices)",
     kNN | kOut)
      .doc(
          "The maxima of a grid of regions of (N, C, D, H, W) or (C, D, H, W), and where they are.")
      .kernel(adaptive<3>)
      .gradient("result1", adaptive_gradient<3>)
      .node("AdaptiveMaxPool3DBackward0");
  op("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
     "int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     kInternal)
      .doc("The gradient of max_pool2d_with_indices.")
      .kernel(named_backward<2>)
      .gradient("indices", named_backward_gradient<2>)
      .node("MaxPool2DWithIndicesBackwardBackward0");
  op("max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
     "int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     kInternal)
      .doc("The gradient of max_pool3d_with_indices.")
      .kernel(named_backward<3>)
      .gradient("indices", named_backward_gradient<3>)
      .node("MaxPool3DWithIndicesBackwardBackward0");
  op("_max_pool_backward(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, "
     "int[] padding, int[] dilation, bool ceil_mode) -> Tensor",
     kInternal)
      .doc("The gradient of max_pool2d and max_pool3d, one number a dimension in `kernel_size`.")
      .kernel(maxima_back)
      .gradient("self",
                [](Gradient& g) {
                  const auto dims = static_cast<int64_t>(g.ints(2).size());
                  const auto both = dims == 2
                                        ? max_pool2d_with_indices(g.tensor(1), g.ints(2), g.ints(3),
                                                                  g.ints(4), g.ints(5), g.flag(6))
                                        : max_pool3d_with_indices(g.tensor(1), g.ints(2), g.ints(3),
                                                                  g.ints(4), g.ints(5), g.flag(6));
                  g.set(0, pooling::picked(g.grad(), std::get<1>(both), dims));
                  if (g.needs(1)) {
                    g.set(1, zeros(g.sizes(1), g.grad().options()));
                  }
                })
      .node([](const Invocation& inv) {
        return inv.arguments[2].ints().size() == 2 ? "MaxPool2DWithIndicesBackwardBackward0"
                                                   : "MaxPool3DWithIndicesBackwardBackward0";
      });
  op("_scatter_planes(Tensor grad_output, Tensor indices, SymInt[] sizes, int dims, str origin) "
     "-> Tensor",
     kInternal)
      .doc("Planes of zeros to which elements are added at `indices`, in their order.")
      .kernel(scatter_planes)
      .gradient("indices",
                [](Gradient& g) { g.set(0, pooling::picked(g.grad(), g.tensor(1), g.integer(3))); })
      .node(scattered_node);
}

}  // namespace rushlight
