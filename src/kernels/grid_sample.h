// Sampling planes at the coordinates of a grid, and its gradients to the second order.
//
// A sample is a weighted sum of a few elements of the plane, its corners, whose places and weights
// are products of those along each dimension and the same for all channels. The gradient by the
// grid has the weights' slopes in place of the weights. Tables of both are made for a block of
// samples, and serve all channels.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::kernels {

enum class Interpolation : int8_t { Linear, Nearest, Cubic };
enum class Border : int8_t { Zeros, Clamp, Reflect };

struct GridSampling {
  Interpolation interpolation;
  Border border;
  bool align;  // -1 and 1 are the centres of the corner elements, not their outer edges
  // The dtype that the grid had: places are rounded to it at each step, as PyTorch computes them,
  // for it is that which decides where a sample of a half type lies.
  DType places = DType::Float32;
};

// All tensors are f32, or all f64, and row-major: planes (N, C, [D,] H, W), the grid
// (N, [D',] H', W', 2 or 3) with x first, samples (N, C, [D',] H', W'). Error(Runtime) where a
// plane has 2^31 elements or more.
void grid_sample(const Tensor& samples, const Tensor& planes, const Tensor& grid,
                 const GridSampling& sampling);

// `by_planes` and `by_grid` may be undefined: not wanted.
void grid_sample_gradient(const Tensor& by_planes, const Tensor& by_grid, const Tensor& grad,
                          const Tensor& planes, const Tensor& grid, const GridSampling& sampling);

// The gradients of that, given those of its results, `of_planes` and `of_grid`, which may be
// undefined: zero. All results are wanted.
struct GridSecond {
  Tensor by_grad;
  Tensor by_planes;
  Tensor by_grid;
};
void grid_sample_second(const GridSecond& made, const Tensor& of_planes, const Tensor& of_grid,
                        const Tensor& grad, const Tensor& planes, const Tensor& grid,
                        const GridSampling& sampling);

}  // namespace rushlight::kernels
