// Resizing the spatial dimensions of (N, C, ...) tensors. One dimension at a time: the weights of
// all these methods are products of weights along each.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "ops/operator.h"

namespace rushlight {
namespace {

enum class Method : uint8_t { Nearest, NearestExact, Linear, Cubic };

// The sizes after resizing, and by how much a step in the result is one in the input.
struct Resize {
  IntList sizes;
  std::vector<std::optional<double>> factors;
};

Resize resize_to(std::string_view op, const Tensor& self, int dims,
                 std::optional<IntArrayRef> output_size,
                 std::vector<std::optional<double>> factors) {
  if (self.dim() != dims + 2) {
    fail(ErrorKind::Runtime, "", "It is expected input_size equals to ", dims + 2,
         ", but got size ", self.dim());
  }
  factors.resize(static_cast<size_t>(dims));
  Resize made{{}, std::move(factors)};
  if (output_size && static_cast<int>(output_size->size()) != dims) {
    fail(ErrorKind::Runtime, "", "It is expected output_size equals to ", dims, ", but got size ",
         static_cast<int64_t>(output_size->size()));
  }
  for (int i = 0; i < dims; ++i) {
    const int64_t size = self.size(i + 2);
    const std::optional<double> factor = made.factors[static_cast<size_t>(i)];
    const int64_t wanted =
        output_size ? (*output_size)[static_cast<size_t>(i)]
                    : static_cast<int64_t>(static_cast<double>(size) * factor.value_or(1.0));
    if (size <= 0 || wanted <= 0) {
      fail(ErrorKind::Runtime, "",
           "Input and output sizes should be greater than 0, but got input ", self.sizes(),
           " and output size ", wanted, " in ", op);
    }
    made.sizes.push_back(wanted);
  }
  if (self.size(1) == 0) {
    fail(ErrorKind::Runtime, "", "Non-empty ", dims + 2,
         "D data tensor expected but got a tensor with sizes ", self.sizes());
  }
  return made;
}

// The input's positions for one dimension of the result.
struct Axis {
  int64_t size;
  int64_t wanted;
  std::optional<double> factor;
  bool align;
  bool wide;  // elements of double precision

  // In the precision T of the elements, so that both round alike.
  template <typename T>
  T step() const {
    if (align) {
      return wanted > 1 ? static_cast<T>(size - 1) / static_cast<T>(wanted - 1) : T{0};
    }
    return factor && *factor > 0 ? static_cast<T>(1.0 / *factor)
                                 : static_cast<T>(size) / static_cast<T>(wanted);
  }
  template <typename T>
  T position_of(int64_t i, bool clip) const {
    if (align) {
      return step<T>() * static_cast<T>(i);
    }
    const T at = step<T>() * (static_cast<T>(i) + T{0.5}) - T{0.5};
    return clip ? std::max(at, T{0}) : at;
  }
  double position(int64_t i, bool clip) const {
    return wide ? position_of<double>(i, clip) : static_cast<double>(position_of<float>(i, clip));
  }
};

Tensor indices(int64_t count, Device device, const std::vector<int64_t>& at) {
  const Tensor made = make_tensor({count}, DType::Int64);
  std::copy(at.begin(), at.end(), static_cast<int64_t*>(made.data()));
  return device.is_meta() ? to(made, TensorOptions(device)) : made;
}

Tensor nearest_along(const Tensor& x, int64_t dim, const Axis& axis, bool exact) {
  std::vector<int64_t> at;
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const float middle = static_cast<float>(i) + (exact ? 0.5F : 0.0F);
    at.push_back(
        std::min(static_cast<int64_t>(std::floor(middle * axis.step<float>())), axis.size - 1));
  }
  return index_select(x, dim, indices(axis.wanted, x.device(), at));
}

// The sum of shifted selections, each weighted along the dimension.
Tensor weighted_along(const Tensor& x, int64_t dim, const Axis& axis,
                      const std::vector<std::vector<int64_t>>& at,
                      const std::vector<std::vector<double>>& weights) {
  IntList shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(dim)] = axis.wanted;
  Tensor total;
  for (size_t k = 0; k < at.size(); ++k) {
    Tensor weight = make_tensor({axis.wanted}, DType::Float64);
    std::copy(weights[k].begin(), weights[k].end(), static_cast<double*>(weight.data()));
    weight = reshape(to(weight, x.options()), shape);
    const Tensor part = mul(index_select(x, dim, indices(axis.wanted, x.device(), at[k])), weight);
    total = total.defined() ? add(total, part) : part;
  }
  return total;
}

Tensor linear_along(const Tensor& x, int64_t dim, const Axis& axis) {
  std::vector<std::vector<int64_t>> at(2);
  std::vector<std::vector<double>> weights(2);
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const double where = axis.position(i, true);
    const int64_t low = std::min(static_cast<int64_t>(where), axis.size - 1);
    const double share = std::clamp(where - static_cast<double>(low), 0.0, 1.0);
    at[0].push_back(low);
    at[1].push_back(std::min(low + 1, axis.size - 1));
    weights[0].push_back(1 - share);
    weights[1].push_back(share);
  }
  return weighted_along(x, dim, axis, at, weights);
}

// Keys' cubic convolution with a = -3/4.
double cubic_weight(double distance) {
  constexpr double kA = -0.75;
  const double d = std::fabs(distance);
  return d <= 1 ? ((kA + 2) * d - (kA + 3)) * d * d + 1
                : ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
}

Tensor cubic_along(const Tensor& x, int64_t dim, const Axis& axis) {
  std::vector<std::vector<int64_t>> at(4);
  std::vector<std::vector<double>> weights(4);
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const double where = axis.position(i, false);
    const double low = std::floor(where);
    for (int k = 0; k < 4; ++k) {
      const int64_t tap = static_cast<int64_t>(low) + k - 1;
      at[static_cast<size_t>(k)].push_back(std::clamp<int64_t>(tap, 0, axis.size - 1));
      weights[static_cast<size_t>(k)].push_back(cubic_weight(where - low - (k - 1)));
    }
  }
  return weighted_along(x, dim, axis, at, weights);
}

Tensor resample(std::string_view op, const Tensor& self, const Resize& resize, Method method,
                bool align) {
  const bool smooth = method == Method::Linear || method == Method::Cubic;
  if (smooth && !self.is_floating_point() && self.dtype() != DType::UInt8) {
    fail(ErrorKind::NotImplemented, "", "\"", op, "\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  const bool narrow_type = smooth && compute_dtype(self.dtype()) != self.dtype();
  Tensor x = smooth && self.dtype() == DType::UInt8 ? to(self, DType::Float32)
             : narrow_type                          ? to(self, compute_dtype(self.dtype()))
                                                    : self;
  for (size_t i = 0; i < resize.sizes.size(); ++i) {
    const auto dim = static_cast<int64_t>(i) + 2;
    const Axis axis{self.size(dim), resize.sizes[i], resize.factors[i], align,
                    self.dtype() == DType::Float64};
    x = method == Method::Linear  ? linear_along(x, dim, axis)
        : method == Method::Cubic ? cubic_along(x, dim, axis)
                                  : nearest_along(x, dim, axis, method == Method::NearestExact);
  }
  if (self.dtype() == DType::UInt8 && smooth) {
    x = clamp(floor(add(x, Scalar(0.5))), Scalar(0), Scalar(255));
  }
  return x.dtype() == self.dtype() ? x : to(x, self.dtype());
}

std::vector<std::optional<double>> factors_of(const std::optional<std::vector<double>>& given) {
  return given ? std::vector<std::optional<double>>(given->begin(), given->end())
               : std::vector<std::optional<double>>();
}

// The form with lists, as nn.functional.interpolate calls it.
template <Method method, int dims>
Tensor resize_lists(const Tensor& self, std::optional<IntArrayRef> output_size,
                    const std::optional<std::vector<double>>& factors) {
  return resample("upsample_nearest", self,
                  resize_to("upsample_nearest", self, dims, output_size, factors_of(factors)),
                  method, false);
}

template <Method method, int dims>
Tensor smooth_lists(const Tensor& self, std::optional<IntArrayRef> output_size, bool align,
                    const std::optional<std::vector<double>>& factors) {
  return resample("upsample_linear", self,
                  resize_to("upsample_linear", self, dims, output_size, factors_of(factors)),
                  method, align);
}

}  // namespace

RUSHLIGHT_OPERATORS(interpolate) {
  op("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     kNN)
      .doc("Resizes to the nearest elements.")
      .composition(resize_lists<Method::Nearest, 1>)
      .node("UpsampleNearest1DBackward0");
  op("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     kNN)
      .doc("Resizes to the nearest elements.")
      .composition(resize_lists<Method::Nearest, 2>)
      .node("UpsampleNearest2DBackward0");
  op("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     kNN)
      .doc("Resizes to the nearest elements.")
      .composition(resize_lists<Method::Nearest, 3>)
      .node("UpsampleNearest3DBackward0");
  op("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     kNN)
      .doc("Resizes to the nearest elements.")
      .composition(resize_lists<Method::NearestExact, 1>)
      .node("UpsampleNearestExact1DBackward0");
  op("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     kNN)
      .doc("Resizes to the nearest elements.")
      .composition(resize_lists<Method::NearestExact, 2>)
      .node("UpsampleNearestExact2DBackward0");
  op("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     kNN)
      .doc("Resizes to the nearest elements.")
      .composition(resize_lists<Method::NearestExact, 3>)
      .node("UpsampleNearestExact3DBackward0");
  op("upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     kNN)
      .doc("Resizes by interpolation.")
      .composition(smooth_lists<Method::Linear, 1>)
      .node("UpsampleLinear1DBackward0");
  op("upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     kNN)
      .doc("Resizes by interpolation.")
      .composition(smooth_lists<Method::Linear, 2>)
      .node("UpsampleBilinear2DBackward0");
  op("upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     kNN)
      .doc("Resizes by interpolation.")
      .composition(smooth_lists<Method::Linear, 3>)
      .node("UpsampleTrilinear3DBackward0");
  op("upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     kNN)
      .doc("Resizes by interpolation.")
      .composition(smooth_lists<Method::Cubic, 2>)
      .node("UpsampleBicubic2DBackward0");
}

}  // namespace rushlight
