// Maximum pooling over windows at random places, and the inverse of maximum pooling.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/pool_fractional.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/pooling.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

using kernels::WindowSpace;

void check_list(std::string_view op, std::string_view name, IntArrayRef given, int dims) {
  if (given.size() != 1 && static_cast<int>(given.size()) != dims) {
    fail(ErrorKind::Runtime, "", op, ": ", name, " must either be a single Int or tuple of ", dims,
         " Ints, but got ", given);
  }
}

WindowSpace fractional_space(std::string_view op, const Tensor& self, IntArrayRef kernel,
                             IntArrayRef output, int dims) {
  check_list(op, "kernel_size", kernel, dims);
  check_list(op, "output_size", output, dims);
  const int64_t rank = self.dim();
  if (rank != dims + 1 && rank != dims + 2) {
    fail(ErrorKind::Runtime, "", op, "(): Expected ", dims + 1, "D or ", dims + 2,
         "D tensor, but got: ", self.sizes());
  }
  for (int64_t d = rank == dims + 2 ? 1 : 0; d < rank; ++d) {
    if (self.size(d) == 0) {
      fail(ErrorKind::Runtime, "", op,
           "(): Expected input to have non-zero size for non-batch dimensions, but got ",
           self.sizes(), " with dimension ", d, " being empty.");
    }
  }
  const IntList kernels = pooling::one_each(kernel, dims);
  const IntList counts = pooling::one_each(output, dims);
  WindowSpace space = pooling::plane_space(dims, self.sizes(), counts);
  for (int i = 0; i < dims; ++i) {
    kernels::WindowAxis& axis = space.axis[3 - dims + i];
    axis.kernel = kernels[static_cast<size_t>(i)];
    if (axis.kernel <= 0 || axis.count <= 0) {
      fail(ErrorKind::Runtime, "", op, ": kernel_size and output_size must be greater than zero, ",
           "but got ", kernels, " and ", counts);
    }
    if (checked_add(axis.count, axis.kernel - 1, op) > axis.size) {
      fail(ErrorKind::Runtime, "", op, "(): pool size ", axis.kernel,
           " too large relative to input size ", axis.size, " along dimension ", rank - dims + i);
    }
  }
  return space;
}

void check_samples(std::string_view op, const Tensor& self, const Tensor& samples,
                   const WindowSpace& space, int64_t dims) {
  if (samples.dtype() != self.dtype()) {
    fail(ErrorKind::Runtime, "", op, ": Expect _random_samples to have the same dtype as input, ",
         self.dtype(), ", but got ", samples.dtype());
  }
  const IntList wanted{space.batch, space.channels, dims};
  const bool fits = samples.dim() == 3 && samples.size(0) >= wanted[0] &&
                    samples.size(1) == wanted[1] && samples.size(2) == wanted[2];
  if (!fits) {
    fail(ErrorKind::Runtime, "", op, ": Expect _random_samples of size ", wanted, ", but got ",
         samples.sizes());
  }
}

template <int dims>
std::tuple<Tensor, Tensor> fractional(const Tensor& self, IntArrayRef kernel, IntArrayRef output,
                                      const Tensor& samples) {
  constexpr const char* kOp = dims == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  const WindowSpace space = fractional_space(kOp, self, kernel, output, dims);
  check_samples(kOp, self, samples, space, dims);
  pooling::expect_float(kOp, self);
  const IntList sizes = pooling::result_sizes(space, dims, self.sizes());
  const Tensor values = make_tensor(sizes, self.dtype(), self.device());
  const Tensor indices = make_tensor(sizes, DType::Int64, self.device());
  if (!values.is_meta() && values.numel() != 0) {
    kernels::fractional_max_pool(values, indices, kernels::as_contiguous(self), space, dims,
                                 kernels::as_contiguous(samples));
  }
  return {values, indices};
}

template <int dims>
void fractional_gradient(Gradient& g) {
  if (g.has_grad(0)) {
    g.set(0, _scatter_planes(g.grad(), g.result(1), g.sizes(0), dims,
                             dims == 2 ? "fractional2" : "fractional3"));
  }
}

Tensor unpool(std::string_view op, const Tensor& self, const Tensor& indices, IntArrayRef output,
              int dims) {
  if (indices.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "", op,
         ": elements in indices should be type int64 but got: ", indices.dtype());
  }
  if (static_cast<int>(output.size()) != dims) {
    fail(ErrorKind::Runtime, "", op, ": There should be exactly ", dims,
         " elements in output_size, but got ", static_cast<int64_t>(output.size()), " elements.");
  }
  if (self.dim() != dims + 1 && self.dim() != dims + 2) {
    fail(ErrorKind::Runtime, "", op, ": Input to max_unpooling should be a ", dims + 1, "d or ",
         dims + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  }
  if (!(self.sizes() == indices.sizes())) {
    fail(ErrorKind::Runtime, "", op,
         ": Expected shape of indices to be same as that of the input tensor (", self.sizes(),
         ") but got indices tensor with shape: ", indices.sizes());
  }
  for (int64_t d = self.dim() == dims + 2 ? 1 : 0; d < self.dim(); ++d) {
    if (self.size(d) == 0) {
      fail(ErrorKind::Runtime, "", op,
           "(): Expected input to have non-zero size for non-batch dimensions, but got ",
           self.sizes(), " with dimension ", d, " being empty.");
    }
  }
  pooling::expect_float(op, self);
  IntList sizes(self.sizes());
  for (int i = 0; i < dims; ++i) {
    const int64_t size = output[static_cast<size_t>(i)];
    if (size < 0) {
      fail(ErrorKind::Runtime, "", op, ": Trying to create tensor with negative dimension ", size,
           ": ", output);
    }
    sizes[sizes.size() - static_cast<size_t>(dims - i)] = size;
  }
  const MemoryFormat format =
      dims == 2 && self.dim() == 4 ? pooling::layout_of(self) : MemoryFormat::Contiguous;
  const Tensor made = pooling::make_in(sizes, format, self.dtype(), self.device());
  if (!made.is_meta() && self.numel() != 0) {
    WindowSpace space = pooling::plane_space(dims, sizes, self.sizes());
    space.channels_last = pooling::is_channels_last(format);
    kernels::max_unpool(made, pooling::dense_in(self, format), pooling::dense_in(indices, format),
                        space);
  }
  return made;
}

Tensor unpool_volumes(const Tensor& self, const Tensor& indices, IntArrayRef output,
                      IntArrayRef stride, IntArrayRef padding) {
  constexpr std::string_view kOp = "max_unpool3d";
  for (const auto& [given, name] : {std::pair(stride, "stride"), std::pair(padding, "padding")}) {
    if (given.size() != 3) {
      fail(ErrorKind::Runtime, "", kOp,
           ": There should be exactly three elements (depth, height, "
           "width) in ",
           name, ", but got: ", static_cast<int64_t>(given.size()), " elements.");
    }
  }
  for (int64_t step : stride) {
    if (step <= 0) {
      fail(ErrorKind::Runtime, "", kOp,
           ": strides should be greater than zero, but got stride: ", stride);
    }
  }
  return unpool(kOp, self, indices, output, 3);
}

template <int dims>
void unpool_gradient(Gradient& g) {
  g.set(0, pooling::picked(g.grad(), g.tensor(1), dims));
}

}  // namespace

RUSHLIGHT_OPERATORS(pooling_unpool) {
  op("fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, "
     "Tensor random_samples) -> (Tensor output, Tensor indices)",
     kNN | kOut)
      .doc("The maxima over windows of (N, C, H, W) at random places, and where they are.")
      .kernel(fractional<2>)
      .gradient("result1", fractional_gradient<2>)
      .node("FractionalMaxPool2DBackward0");
  op("fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, "
     "Tensor random_samples) -> (Tensor output, Tensor indices)",
     kNN | kOut)
      .doc("The maxima over windows of (N, C, D, H, W) at random places, and where they are.")
      .kernel(fractional<3>)
      .gradient("result1", fractional_gradient<3>)
      .node("FractionalMaxPool3DBackward0");
  op("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", kNN | kOut)
      .doc("Puts the maxima of max_pool2d back to where they came from, among zeros.")
      .kernel([](const Tensor& self, const Tensor& indices, IntArrayRef output) {
        return unpool("max_unpool2d", self, indices, output, 2);
      })
      .gradient("indices", unpool_gradient<2>)
      .node("MaxUnpool2DBackward0");
  op("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, "
     "int[3] padding) -> Tensor",
     kNN | kOut)
      .doc("Puts the maxima of max_pool3d back to where they came from, among zeros.")
      .kernel(unpool_volumes)
      .gradient("indices", unpool_gradient<3>)
      .node("MaxUnpool3DBackward0");
}

}  // namespace rushlight
