// Sampling at the coordinates of a grid, and grids of affine maps.
#include "kernels/grid_sample.h"

#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/pooling.h"

namespace rushlight {
namespace {

using kernels::GridSampling;

GridSampling sampling_of(int64_t mode, int64_t border, bool align, DType places) {
  if (mode < 0 || mode > 2 || border < 0 || border > 2) {
    fail(ErrorKind::Runtime, "", "grid_sampler(): expected interpolation_mode and padding_mode ",
         "from 0 to 2, but got ", mode, " and ", border);
  }
  return {static_cast<kernels::Interpolation>(mode), static_cast<kernels::Border>(border), align,
          places};
}

void check_sampled(const Tensor& input, const Tensor& grid, int64_t mode) {
  constexpr const char* kOp = "grid_sampler(): ";
  if (input.dtype() != grid.dtype()) {
    fail(ErrorKind::Runtime, "", kOp,
         "expected input and grid to have same dtype, but input has torch.", input.dtype(),
         " and grid has torch.", grid.dtype());
  }
  if ((input.dim() != 4 && input.dim() != 5) || input.dim() != grid.dim()) {
    fail(ErrorKind::Runtime, "", kOp,
         "expected 4D or 5D input and grid with same number of dimensions, but got input with "
         "sizes ",
         input.sizes(), " and grid with sizes ", grid.sizes());
  }
  if (input.size(0) != grid.size(0)) {
    fail(ErrorKind::Runtime, "", kOp,
         "expected grid and input to have same batch size, but got input with sizes ",
         input.sizes(), " and grid with sizes ", grid.sizes());
  }
  if (grid.size(-1) != input.dim() - 2) {
    fail(ErrorKind::Runtime, "", kOp, "expected grid to have size ", input.dim() - 2,
         " in last dimension, but got grid with sizes ", grid.sizes());
  }
  for (int64_t d = 2; d < input.dim(); ++d) {
    if (input.size(d) == 0) {
      fail(ErrorKind::Runtime, "", kOp,
           "expected input to have non-empty spatial dimensions, but input has sizes ",
           input.sizes(), " with dimension ", d, " being empty");
    }
  }
  if (input.dim() == 5 && mode == 2) {
    fail(ErrorKind::Runtime, "", kOp, "bicubic interpolation only supports 4D input");
  }
}

void check_dims(const char* op, const Tensor& input, int64_t dims) {
  if (input.dim() != dims + 2) {
    fail(ErrorKind::Runtime, "", op, "(): expected ", dims + 2, "D input, but got sizes ",
         input.sizes());
  }
}

// Dense, in f32 or f64.
Tensor computed(const Tensor& tensor) {
  return tensor.defined()
             ? kernels::as_contiguous(kernels::as_dtype(tensor, compute_dtype(tensor.dtype())))
             : tensor;
}

Tensor make_computed(IntArrayRef sizes, const Tensor& model) {
  return make_tensor(sizes, compute_dtype(model.dtype()), model.device());
}

Tensor sampled(const char* op, const Tensor& input, const Tensor& grid, int64_t mode,
               int64_t border, bool align) {
  check_sampled(input, grid, mode);
  pooling::expect_float(op, input);
  const GridSampling sampling = sampling_of(mode, border, align, grid.dtype());
  IntList sizes(grid.sizes());
  sizes.resize(sizes.size() - 1);
  IntList made_sizes{input.size(0), input.size(1)};
  for (size_t d = 1; d < sizes.size(); ++d) {
    made_sizes.push_back(sizes[d]);
  }
  if (input.is_meta() || grid.is_meta()) {
    return make_tensor(made_sizes, input.dtype(), input.is_meta() ? input.device() : grid.device());
  }
  const Tensor made = make_computed(made_sizes, input);
  if (made.numel() != 0) {
    kernels::grid_sample(made, computed(input), computed(grid), sampling);
  }
  return kernels::as_dtype(made, input.dtype());
}

template <int dims>
Tensor sample(const Tensor& input, const Tensor& grid, int64_t mode, int64_t border, bool align) {
  constexpr const char* kOp = dims == 2 ? "grid_sampler_2d" : "grid_sampler_3d";
  check_dims(kOp, input, dims);
  return sampled(kOp, input, grid, mode, border, align);
}

std::tuple<Tensor, Tensor> sample_back(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                       int64_t mode, int64_t border, bool align, bool want_input,
                                       bool want_grid) {
  check_sampled(input, grid, mode);
  const GridSampling sampling = sampling_of(mode, border, align, grid.dtype());
  if (input.is_meta()) {
    return {make_tensor(want_input ? input.sizes() : IntArrayRef(), input.dtype(), input.device()),
            make_tensor(want_grid ? grid.sizes() : IntArrayRef(), grid.dtype(), grid.device())};
  }
  Tensor by_input = want_input ? make_computed(input.sizes(), input) : Tensor();
  Tensor by_grid = want_grid ? make_computed(grid.sizes(), grid) : Tensor();
  if (grad.numel() == 0) {
    for (const Tensor& made : {by_input, by_grid}) {
      if (made.defined() && made.numel() != 0) {
        kernels::zero(made);
      }
    }
  } else {
    kernels::grid_sample_gradient(by_input, by_grid, computed(grad), computed(input),
                                  computed(grid), sampling);
  }
  // A result that nobody wants is a number: results are defined.
  const auto finished = [&](const Tensor& made) {
    return made.defined() ? kernels::as_dtype(made, input.dtype())
                          : kernels::make_zeros({}, input.dtype());
  };
  return {finished(by_input), finished(by_grid)};
}

std::tuple<Tensor, Tensor, Tensor> sample_second(const Tensor& of_input, const Tensor& of_grid,
                                                 const Tensor& grad, const Tensor& input,
                                                 const Tensor& grid, int64_t mode, int64_t border,
                                                 bool align) {
  check_sampled(input, grid, mode);
  const GridSampling sampling = sampling_of(mode, border, align, grid.dtype());
  if (input.is_meta()) {
    return {make_tensor(grad.sizes(), grad.dtype(), grad.device()),
            make_tensor(input.sizes(), input.dtype(), input.device()),
            make_tensor(grid.sizes(), grid.dtype(), grid.device())};
  }
  const kernels::GridSecond made{make_computed(grad.sizes(), grad),
                                 make_computed(input.sizes(), input),
                                 make_computed(grid.sizes(), grid)};
  if (grad.numel() == 0) {
    kernels::zero(made.by_planes);
    kernels::zero(made.by_grid);
  } else {
    kernels::grid_sample_second(made, computed(of_input), computed(of_grid), computed(grad),
                                computed(input), computed(grid), sampling);
  }
  const DType dtype = input.dtype();
  return {kernels::as_dtype(made.by_grad, dtype), kernels::as_dtype(made.by_planes, dtype),
          kernels::as_dtype(made.by_grid, dtype)};
}

void sample_gradient(Gradient& g) {
  const auto [by_input, by_grid] =
      _grid_sampler_backward(g.grad(), g.tensor(0), g.tensor(1), g.integer(2), g.integer(3),
                             g.flag(4), g.needs(0), g.needs(1));
  if (g.needs(0)) {
    g.set(0, by_input);
  }
  if (g.needs(1)) {
    g.set(1, by_grid);
  }
}

void second_gradient(Gradient& g) {
  const Tensor of_input = g.flag(6) && g.has_grad(0) ? g.grad(0) : Tensor();
  const Tensor of_grid = g.flag(7) && g.has_grad(1) ? g.grad(1) : Tensor();
  const auto [by_grad, by_input, by_grid] =
      _grid_sampler_second(of_input, of_grid, g.tensor(0), g.tensor(1), g.tensor(2), g.integer(3),
                           g.integer(4), g.flag(5));
  g.set(0, by_grad);
  g.set(1, by_input);
  g.set(2, by_grid);
}

// Coordinates of `count` elements from -1 to 1, by their centres or from the outer edges.
Tensor coordinates(int64_t count, bool align, const Tensor& model) {
  if (count <= 1) {
    return zeros({1}, model.options());
  }
  const Tensor line = linspace(Scalar(-1), Scalar(1), count, model.options());
  return align ? line
               : div(mul(line, Scalar(static_cast<double>(count - 1))),
                     Scalar(static_cast<double>(count)));
}

Tensor affine(const Tensor& theta, IntArrayRef size, bool align) {
  const size_t dims = size.size() - std::min<size_t>(size.size(), 2);
  if (dims != 2 && dims != 3) {
    fail(ErrorKind::Runtime, "",
         "affine_grid_generator: AffineGridGenerator needs 4d (spatial) or "
         "5d (volumetric) inputs, but got size ",
         size);
  }
  const auto n = static_cast<int64_t>(dims);
  if (theta.dim() != 3 || theta.size(0) != size[0] || theta.size(1) != n ||
      theta.size(2) != n + 1) {
    fail(ErrorKind::Runtime, "", "affine_grid_generator: Expected a batch of ", n,
         "D affine matrices of shape ", IntList{size[0], n, n + 1}, " for size ", size, ". Got ",
         theta.sizes());
  }
  const IntList plane(size.last(dims));
  TensorList parts;
  for (size_t d = dims; d-- > 0;) {  // x first
    IntList shape(dims, 1);
    shape[d] = plane[d];
    parts.push_back(expand(reshape(coordinates(plane[d], align, theta), shape), plane));
  }
  parts.push_back(ones(plane, theta.options()));
  const Tensor points = reshape(stack(parts, -1), {1, -1, n + 1});
  IntList sizes{size[0]};
  for (int64_t extent : plane) {
    sizes.push_back(extent);
  }
  sizes.push_back(n);
  return reshape(bmm(expand(points, {size[0], points.size(1), n + 1}), transpose(theta, 1, 2)),
                 sizes);
}

}  // namespace

RUSHLIGHT_OPERATORS(grid_sample) {
  op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
     "bool align_corners) -> Tensor",
     kFunction)
      .doc("Samples planes at coordinates in [-1, 1]; modes: 0 linear, 1 nearest, 2 cubic.")
      .composition(
          [](const Tensor& input, const Tensor& grid, int64_t mode, int64_t border, bool align) {
            check_sampled(input, grid, mode);
            return input.dim() == 4 ? grid_sampler_2d(input, grid, mode, border, align)
                                    : grid_sampler_3d(input, grid, mode, border, align);
          });
  op("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
     "bool align_corners) -> Tensor",
     kFunction)
      .doc("Samples (N, C, H, W) at the coordinates `grid` (N, h, w, 2).")
      .kernel(sample<2>)
      .gradient("input grid", sample_gradient)
      .node("GridSampler2DBackward0");
  op("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
     "bool align_corners) -> Tensor",
     kFunction)
      .doc("Samples (N, C, D, H, W) at the coordinates `grid` (N, d, h, w, 3).")
      .kernel(sample<3>)
      .gradient("input grid", sample_gradient)
      .node("GridSampler3DBackward0");
  op("_grid_sampler_backward(Tensor grad_output, Tensor input, Tensor grid, "
     "int interpolation_mode, int padding_mode, bool align_corners, bool want_input, "
     "bool want_grid) -> (Tensor, Tensor)",
     kInternal)
      .doc("The gradients of grid_sampler_2d and grid_sampler_3d; what is not wanted is 0.")
      .kernel(sample_back)
      .gradient("grad_output input grid", second_gradient)
      .node([](const Invocation& inv) {
        return inv.arguments[1].tensor().dim() == 4 ? "GridSampler2DBackwardBackward0"
                                                    : "GridSampler3DBackwardBackward0";
      });
  op("_grid_sampler_second(Tensor? of_input, Tensor? of_grid, Tensor grad_output, Tensor input, "
     "Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
     "-> (Tensor, Tensor, Tensor)",
     kInternal)
      .doc("The gradients of _grid_sampler_backward.")
      .kernel(sample_second)
      .gradient("", [](Gradient&) {
        fail(ErrorKind::NotImplemented, "grid_sampler",
             "the third derivative of grid_sampler is not implemented");
      });
  op("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", kFunction)
      .doc("The sampling grid of affine maps (N, 2, 3) for an output (N, C, H, W), or in 3-D.")
      .composition(affine)
      .node("AffineGridGeneratorBackward0");
}

}  // namespace rushlight
