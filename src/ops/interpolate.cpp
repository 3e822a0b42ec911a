// Resizing the spatial dimensions of (N, C, ...) tensors. One dimension at a time: the weights of
// all these methods are products of weights along each.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/resample.h"
#include "ops/gradient.h"
#include "ops/interpolate_taps.h"
#include "ops/operator.h"
#include "ops/pooling.h"

namespace rushlight {
namespace {

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
  IntList whole{self.size(0), self.size(1)};
  for (int64_t size : made.sizes) {
    whole.push_back(size);
  }
  checked_multiply(checked_numel(whole, op), self.element_size(), op);
  return made;
}

Tensor indices(int64_t count, Device device, const std::vector<int64_t>& at) {
  const Tensor made = make_tensor({count}, DType::Int64);
  std::copy(at.begin(), at.end(), static_cast<int64_t*>(made.data()));
  return device.is_meta() ? to(made, TensorOptions(device)) : made;
}

Tensor nearest_along(const Tensor& x, int64_t dim, const Axis& axis, bool exact) {
  std::vector<int64_t> at;
  at.reserve(static_cast<size_t>(axis.wanted));
  for (int64_t i = 0; i < axis.wanted; ++i) {
    const float middle = static_cast<float>(i) + (exact ? 0.5F : 0.0F);
    at.push_back(
        std::min(static_cast<int64_t>(std::floor(middle * axis.step<float>())), axis.size - 1));
  }
  return index_select(x, dim, indices(axis.wanted, x.device(), at));
}

// One number for each index of a dimension, beside a tensor of this rank.
Tensor beside(const Tensor& x, int64_t dim, const std::vector<double>& numbers, DType dtype) {
  IntList shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(dim)] = static_cast<int64_t>(numbers.size());
  Tensor made = make_tensor({static_cast<int64_t>(numbers.size())}, DType::Float64);
  std::copy(numbers.begin(), numbers.end(), static_cast<double*>(made.data()));
  return reshape(to(made, TensorOptions(dtype).device(x.device())), shape);
}

// All taps as one tensor, (taps, wanted).
Tensor indices_of(const Taps& taps, Device device) {
  const auto rows = static_cast<int64_t>(taps.at.size());
  std::vector<int64_t> all;
  for (const auto& row : taps.at) {
    all.insert(all.end(), row.begin(), row.end());
  }
  return reshape(indices(static_cast<int64_t>(all.size()), device, all), {rows, -1});
}

Tensor weights_of(const Taps& taps, DType dtype, Device device) {
  const auto rows = static_cast<int64_t>(taps.weights.size());
  std::vector<double> all;
  for (const auto& row : taps.weights) {
    all.insert(all.end(), row.begin(), row.end());
  }
  const Tensor made = make_tensor({rows, static_cast<int64_t>(all.size()) / rows}, DType::Float64);
  std::copy(all.begin(), all.end(), static_cast<double*>(made.data()));
  return to(made, TensorOptions(dtype).device(device));
}

// `index` and `weight` are (taps, wanted), as above; float32 or float64.
Tensor weighted_select(const Tensor& self, int64_t given, const Tensor& index,
                       const Tensor& weight) {
  constexpr std::string_view kName = "_weighted_select";
  const int64_t dim = wrap_dim(given, self.dim(), kName);
  if (self.dim() == 0 || (self.dtype() != DType::Float32 && self.dtype() != DType::Float64) ||
      weight.dtype() != self.dtype()) {
    fail(ErrorKind::Runtime, kName,
         "expected self of 1 or more dimensions and weight of its dtype, "
         "float32 or float64, got ",
         self.sizes(), " of ", self.dtype(), " and ", weight.dtype());
  }
  if (index.dtype() != DType::Int64 || index.dim() != 2 || index.size(0) == 0 ||
      index.sizes() != weight.sizes()) {
    fail(ErrorKind::Runtime, kName,
         "expected index and weight of one shape (taps, wanted) and int64 "
         "indices, got ",
         index.sizes(), " of ", index.dtype(), " and ", weight.sizes());
  }
  IntList sizes(self.sizes());
  sizes[static_cast<size_t>(dim)] = index.size(1);
  Tensor made = make_tensor(sizes, self.dtype(), self.device());
  if (made.is_meta() || made.numel() == 0) {
    return made;
  }
  const Tensor from = kernels::as_contiguous(self);
  const Tensor places = kernels::as_contiguous(index);
  const Tensor shares = kernels::as_contiguous(weight);
  const auto* at = static_cast<const int64_t*>(places.data());
  for (int64_t i = 0; i < places.numel(); ++i) {
    if (at[i] < 0 || at[i] >= self.size(dim)) {
      fail(ErrorKind::Index, kName, "index ", at[i], " is out of bounds for dimension ", dim,
           " with size ", self.size(dim));
    }
  }
  kernels::Resample form{1, self.size(dim), index.size(1), 1, index.size(0)};
  for (int64_t d = 0; d < self.dim(); ++d) {
    (d < dim ? form.outer : form.inner) *= d == dim ? 1 : self.size(d);
  }
  if (self.dtype() == DType::Float32) {
    kernels::resample(static_cast<float*>(made.data()), static_cast<const float*>(from.data()),
                      form, at, static_cast<const float*>(shares.data()));
  } else {
    kernels::resample(static_cast<double*>(made.data()), static_cast<const double*>(from.data()),
                      form, at, static_cast<const double*>(shares.data()));
  }
  return made;
}

// Each tap gives its elements back, in the order of the taps.
void weighted_select_gradient(Gradient& g) {
  const auto rank = static_cast<int64_t>(g.sizes(0).size());
  const int64_t dim = wrap_dim(g.integer(1), rank, "_weighted_select");
  const Tensor index = g.tensor(2);
  const Tensor weight = g.tensor(3);
  IntList beside(g.sizes(0).size(), 1);
  beside[static_cast<size_t>(dim)] = index.size(1);
  Tensor grad = zeros(g.sizes(0), g.grad().options());
  for (int64_t k = 0; k < index.size(0); ++k) {
    const Tensor part = mul(g.grad(), reshape(select(weight, 0, k), beside));
    grad = index_add(grad, dim, select(index, 0, k), part);
  }
  g.set(0, grad);
}

// The same of bytes, in integers: weights are rounded to as many binary places as 16 bits allow,
// and the sum to the next byte.
Tensor bytes_along(const Tensor& x, int64_t dim, const Taps& taps) {
  const int places = fixed_point_places(taps);
  const double unit = std::ldexp(1.0, places);
  Tensor total =
      full({}, Scalar(int64_t{1} << (places - 1)), TensorOptions(DType::Int32).device(x.device()));
  for (size_t k = 0; k < taps.at.size(); ++k) {
    const auto count = static_cast<int64_t>(taps.at[k].size());
    std::vector<double> rounded;
    for (double weight : taps.weights[k]) {
      rounded.push_back(std::trunc(weight * unit + (weight < 0 ? -0.5 : 0.5)));
    }
    const Tensor part =
        to(index_select(x, dim, indices(count, x.device(), taps.at[k])), DType::Int32);
    total = add(total, mul(part, beside(x, dim, rounded, DType::Int32)));
  }
  const Tensor shifted = bitwise_right_shift(total, Scalar(places));
  return to(clamp(shifted, Scalar(0), Scalar(255)), DType::UInt8);
}

Tensor resample(std::string_view op, const Tensor& self, const Resize& resize, Method method,
                bool align) {
  const bool smooth = method != Method::Nearest && method != Method::NearestExact;
  const bool bytes = smooth && self.dtype() == DType::UInt8;
  if (smooth && !self.is_floating_point() && !bytes) {
    fail(ErrorKind::NotImplemented, "", "\"", op, "\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  Tensor x = smooth ? to(self, compute_dtype(self.dtype())) : self;
  // Channels that lie side by side stay so, and are resized together.
  const bool last = pooling::is_channels_last(pooling::layout_of(x));
  x = last ? movedim(x, {1}, {-1}) : x;
  for (size_t i = 0; i < resize.sizes.size(); ++i) {
    // Bytes are rounded after each dimension, the last one first.
    const size_t at = bytes ? resize.sizes.size() - 1 - i : i;
    const auto dim = static_cast<int64_t>(at) + (last ? 1 : 2);
    const Axis axis{x.size(dim), resize.sizes[at], resize.factors[at], align,
                    bytes || self.dtype() == DType::Float64};
    if (!smooth) {
      x = nearest_along(x, dim, axis, method == Method::NearestExact);
      continue;
    }
    const Taps taps = taps_of(method, axis);
    x = bytes ? bytes_along(x, dim, merged(taps))
              : _weighted_select(x, dim, indices_of(taps, x.device()),
                                 weights_of(taps, x.dtype(), x.device()));
  }
  x = last ? movedim(x, {-1}, {1}) : x;
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

template <Method method>
Tensor smooth_pair(const Tensor& self, IntArrayRef output_size, bool align,
                   std::optional<double> scale_rows, std::optional<double> scale_columns) {
  return resample("upsample_linear", self,
                  resize_to("upsample_linear", self, 2, output_size, {scale_rows, scale_columns}),
                  method, align);
}

}  // namespace

RUSHLIGHT_OPERATORS(interpolate) {
  op("_weighted_select(Tensor self, int dim, Tensor index, Tensor weight) -> Tensor", kInternal)
      .doc("The sum over k of weight[k] times the slices of one dimension at index[k].")
      .kernel(weighted_select)
      .gradient("index weight", weighted_select_gradient);
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
  op("_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     kNN)
      .doc("Resizes by interpolation over as many elements as a step spans.")
      .composition(smooth_lists<Method::WideLinear, 2>)
      .node("UpsampleBilinear2DAaBackward0");
  op("_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, "
     "float? scales_h=None, float? scales_w=None) -> Tensor",
     kNN)
      .doc("Resizes by interpolation over as many elements as a step spans.")
      .composition(smooth_pair<Method::WideLinear>)
      .node("UpsampleBilinear2DAaBackward0");
  op("_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     kNN)
      .doc("Resizes by cubic interpolation over as many elements as a step spans.")
      .composition(smooth_lists<Method::WideCubic, 2>)
      .node("UpsampleBicubic2DAaBackward0");
  op("_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, "
     "float? scales_h=None, float? scales_w=None) -> Tensor",
     kNN)
      .doc("Resizes by cubic interpolation over as many elements as a step spans.")
      .composition(smooth_pair<Method::WideCubic>)
      .node("UpsampleBicubic2DAaBackward0");
}

}  // namespace rushlight
