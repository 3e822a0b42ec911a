// Numbers rounded to those that a few bits hold, and kept as floats: for training with quantisation
// in view.
#include <rushlight/generated/functions.h>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
using loop::Expr;

namespace {

void check_range(std::string_view op, int64_t low, int64_t high) {
  if (low > high) {
    fail(ErrorKind::Runtime, op, "`quant_min` should be less than or equal to `quant_max`, got ",
         low, " and ", high);
  }
}

void check_zero_point(std::string_view op, int64_t zero_point, int64_t low, int64_t high) {
  if (zero_point < low || zero_point > high) {
    fail(ErrorKind::Runtime, op, "`zero_point` must be between `quant_min` and `quant_max`, got ",
         zero_point, " outside [", low, ", ", high, "]");
  }
}

void check_input(const Tensor& self) {
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) {
    fail(ErrorKind::NotImplemented, "", "\"fake_quantize\" not implemented for '",
         scalar_type_name(self.dtype()), "': expected a floating-point tensor");
  }
}

Tensor quantized(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t low,
                 int64_t high) {
  const Tensor made = _fake_quantize(to(self, compute_dtype(self.dtype())), scale, zero_point,
                                     Scalar(low), Scalar(high));
  return to(made, self.dtype());
}

Tensor by_numbers(const Tensor& self, double scale, int64_t zero_point, int64_t low, int64_t high) {
  constexpr std::string_view kName = "fake_quantize_per_tensor_affine";
  check_range(kName, low, high);
  check_zero_point(kName, zero_point, low, high);
  check_input(self);
  const TensorOptions options = TensorOptions(DType::Float32).device(self.device());
  return quantized(self, full({}, Scalar(scale), options), full({}, Scalar(zero_point), options),
                   low, high);
}

Tensor by_tensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t low,
                  int64_t high) {
  check_range("fake_quantize_per_tensor_affine", low, high);
  check_input(self);
  for (const Tensor& given : {scale, zero_point}) {
    if (given.numel() != 1) {
      fail(ErrorKind::Runtime, "fake_quantize_per_tensor_affine",
           "expected scale and zero_point of one element, got shape ", given.sizes());
    }
  }
  return quantized(self, reshape(scale, {}), reshape(zero_point, {}), low, high);
}

Tensor by_channel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                  int64_t low, int64_t high) {
  constexpr std::string_view kName = "fake_quantize_per_channel_affine";
  check_range(kName, low, high);
  if (scale.dtype() != DType::Float32 && scale.dtype() != DType::BFloat16) {
    fail(ErrorKind::Runtime, kName, "Scale must be Float or BFloat16, found ",
         scalar_type_name(scale.dtype()));
  }
  const DType points = zero_point.dtype();
  if (points != DType::Int32 && points != DType::Float32 && points != DType::Float16) {
    fail(ErrorKind::Runtime, kName, "Zero-point must be Int32, Float or Half, found ",
         scalar_type_name(points));
  }
  if (scale.dim() != 1 || zero_point.dim() != 1 || scale.numel() != zero_point.numel()) {
    fail(ErrorKind::Runtime, kName, "scale and zero-point need to have the same dimensions, one ",
         "of as many elements, got shapes ", scale.sizes(), " and ", zero_point.sizes());
  }
  const int64_t dim = wrap_dim(axis, self.dim(), kName);
  if (scale.numel() != self.size(dim)) {
    fail(ErrorKind::Runtime, kName, "dimensions of scale and zero-point are not consistent with ",
         "input tensor: ", scale.numel(), " channels for dimension ", dim, " of size ",
         self.size(dim));
  }
  check_input(self);
  if (!zero_point.is_meta() && zero_point.numel() != 0) {
    check_zero_point(kName, min(zero_point).item().to_int(), low, high);
    check_zero_point(kName, max(zero_point).item().to_int(), low, high);
  }
  IntList shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(dim)] = scale.numel();
  return quantized(self, reshape(to(scale, DType::Float32), shape), reshape(zero_point, shape), low,
                   high);
}

// As it is for what was rounded, nothing for what was cut off.
void straight_through(Gradient& g) {
  const Tensor steps = add(mul(g.tensor(0), reciprocal(g.tensor(1))), g.tensor(2));
  const Tensor whole = round(steps);
  const Tensor kept = logical_and(ge(whole, g.scalar(3)), le(whole, g.scalar(4)));
  g.set(0, mul(g.grad(), kept));
}

}  // namespace

RUSHLIGHT_OPERATORS(fake_quantize) {
  op("_fake_quantize(Tensor self, Tensor scale, Tensor zero_point, Scalar quant_min, "
     "Scalar quant_max) -> Tensor",
     kInternal)
      .doc("self / scale + zero_point, rounded to even, cut to the range, and taken back.")
      .elementwise(Rule::Float,
                   [](Elementwise& e) {
                     const Expr scale = e.in(1);
                     const Expr zero_point = e.in(2);
                     const Expr low = e.scalar(3);
                     const Expr high = e.scalar(4);
                     const Expr whole = loop::round(zero_point + e.in(0) * (1.0 / scale));
                     const Expr above =
                         loop::where(whole >= low, whole, low);  // NaN, too, becomes the least
                     return (loop::where(above <= high, above, high) - zero_point) * scale;
                   })
      .gradient("self scale zero_point", straight_through);
  op("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, "
     "int quant_max) -> Tensor",
     kFunction)
      .doc(
          "The nearest of (n - zero_point) * scale, n from quant_min to quant_max. The gradient "
          "passes through what lies within them.")
      .composition(by_numbers)
      .node("FakeQuantizePerTensorAffineCachemaskBackward0");
  op("fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, "
     "Tensor zero_point, int quant_min, int quant_max) -> Tensor",
     kFunction)
      .doc("The same with scale and zero point in tensors of one element.")
      .composition(by_tensors)
      .node("FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0");
  op("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
     "int quant_min, int quant_max) -> Tensor",
     kFunction)
      .doc("The same with a scale and a zero point for each index of dimension `axis`.")
      .composition(by_channel)
      .node("FakeQuantizePerChannelAffineCachemaskBackward0");
}

}  // namespace rushlight
