// Normalisations of rows: reductions fused with what follows, one pass over cached rows.
//
// Each has a fused kernel for its gradient. Where a gradient is itself to be differentiated, the
// rule is written in public operators instead.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/dtype_checks.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/normalization_channels.h"
#include "ops/rows.h"
#include "ops/wide_gradient.h"

namespace rushlight {

using loop::Combine;
using loop::Expr;

namespace {

// Whether the gradient that is being computed will be differentiated.
bool differentiating() {
  return thread_state.grad_mode;
}

// Variance about the mean, in a second pass over the cached row.
void layer_norm_row(Rows& r) {
  Expr x = r.in(0);
  Expr mean = r.sum(x) / r.count();
  Expr gap = x - mean;
  Expr rstd = loop::rsqrt(r.sum(gap * gap) / r.count() + r.scalar(3));
  Expr y = gap * rstd;
  y = r.has(1) ? y * r.in(1) : y;
  y = r.has(2) ? y + r.in(2) : y;
  r.store(0, y);
  r.store(1, mean);
  r.store(2, rstd);
}

void layer_norm_backward_row(Rows& r) {
  Expr grad = r.in(1);
  grad = r.has(4) ? grad * r.in(4) : grad;
  Expr rstd = r.in(3);
  Expr normal = (r.in(0) - r.in(2)) * rstd;
  Expr mean_grad = r.sum(grad) / r.count();
  Expr mean_product = r.sum(grad * normal) / r.count();
  r.store(0, rstd * (grad - mean_grad - normal * mean_product));
}

void layer_norm_parameters_row(Rows& r) {
  Expr grad = r.in(1);
  r.store(0, r.sum(grad * ((r.in(0) - r.in(2)) * r.in(3))));
  r.store(1, r.sum(grad));
}

IntList leading_dims(int64_t rank) {
  IntList dims;
  for (int64_t i = 0; i + 1 < rank; ++i) {
    dims.push_back(i);
  }
  return dims;
}

// The gradient in public operators, for double backward.
void layer_norm_gradient_open(Gradient& g, const Tensor& grad) {
  Tensor x = g.tensor(0);
  Tensor weight = g.tensor(1);
  Tensor mean_of = mean(x, {-1}, true, std::nullopt);
  Tensor gap = sub(x, mean_of);
  Tensor rstd = rsqrt(add(mean(mul(gap, gap), {-1}, true, std::nullopt), g.scalar(3)));
  Tensor normal = mul(gap, rstd);
  if (g.needs(0)) {
    Tensor scaled = weight.defined() ? mul(grad, weight) : grad;
    Tensor mean_grad = mean(scaled, {-1}, true, std::nullopt);
    Tensor mean_product = mean(mul(scaled, normal), {-1}, true, std::nullopt);
    g.set(0, mul(rstd, sub(sub(scaled, mean_grad), mul(normal, mean_product))));
  }
  if (weight.defined() && g.needs(1)) {
    g.set(1, mul(grad, normal));
  }
  if (!g.is_none(2) && g.needs(2)) {
    g.set(2, grad);
  }
}

void layer_norm_gradient(Gradient& g) {
  Tensor grad = g.grad();
  if (!grad.defined()) {
    return;
  }
  if (differentiating()) {
    layer_norm_gradient_open(g, grad);
    return;
  }
  Tensor x = g.tensor(0);
  Tensor mean_of = g.result(1);
  Tensor rstd = g.result(2);
  if (g.needs(0)) {
    g.set(0, _layer_norm_backward(x, grad, mean_of, rstd, g.tensor(1), -1));
  }
  bool wants_weight = !g.is_none(1) && g.needs(1);
  bool wants_bias = !g.is_none(2) && g.needs(2);
  if (wants_weight || wants_bias) {
    Tensor rows = x.dim() == 1 ? unsqueeze(x, 0) : x;
    Tensor rows_grad = x.dim() == 1 ? unsqueeze(grad, 0) : grad;
    auto [weight_grad, bias_grad] =
        _layer_norm_parameters_backward(rows, rows_grad, mean_of, rstd, leading_dims(rows.dim()));
    if (wants_weight) {
      g.set(1, weight_grad);
    }
    if (wants_bias) {
      g.set(2, bias_grad);
    }
  }
}

void rms_norm_row(Rows& r) {
  Expr x = r.in(0);
  Expr scale = loop::rsqrt(r.sum(x * x) / r.count() + r.scalar(2));
  Expr y = x * scale;
  r.store(0, r.has(1) ? y * r.in(1) : y);
  r.store(1, scale);
}

void rms_norm_gradient(Gradient& g) {
  Tensor grad = g.grad();
  if (!grad.defined()) {
    return;
  }
  Tensor x = g.tensor(0);
  Tensor weight = g.tensor(1);
  if (differentiating()) {
    Tensor scale = rsqrt(add(mean(mul(x, x), {-1}, true, std::nullopt), g.scalar(2)));
    Tensor normal = mul(x, scale);
    Tensor scaled = weight.defined() ? mul(grad, weight) : grad;
    Tensor mean_product = mean(mul(scaled, normal), {-1}, true, std::nullopt);
    g.set(0, mul(scale, sub(scaled, mul(normal, mean_product))));
    if (weight.defined() && g.needs(1)) {
      g.set(1, mul(grad, normal));
    }
    return;
  }
  Tensor scale = g.result(1);
  if (g.needs(0)) {
    g.set(0, _rms_norm_backward(x, grad, scale, weight, -1));
  }
  if (weight.defined() && g.needs(1)) {
    Tensor rows = x.dim() == 1 ? unsqueeze(x, 0) : x;
    Tensor rows_grad = x.dim() == 1 ? unsqueeze(grad, 0) : grad;
    g.set(1, _rms_norm_weight_backward(rows, rows_grad, scale, leading_dims(rows.dim())));
  }
}

void check_normalized(std::string_view op, const Tensor& input, IntArrayRef shape,
                      const Tensor& weight, const Tensor& bias) {
  if (shape.empty()) {
    fail(ErrorKind::Runtime, op,
         "Expected normalized_shape to be at least 1-dimensional, i.e., "
         "containing at least one element, but got normalized_shape = ",
         shape);
  }
  for (auto [name, parameter] : {std::pair{"weight", &weight}, std::pair{"bias", &bias}}) {
    if (parameter->defined() && !(parameter->sizes() == shape)) {
      fail(ErrorKind::Runtime, op, "Expected ", name,
           " to be of same shape as normalized_shape, "
           "but got ",
           name, " of shape ", parameter->sizes(), " and normalized_shape = ", shape);
    }
  }
  IntArrayRef sizes = input.sizes();
  bool fits = sizes.size() >= shape.size() &&
              IntArrayRef(sizes.data() + (sizes.size() - shape.size()), shape.size()) == shape;
  if (!fits) {
    if (op == "rms_norm" && sizes.size() < shape.size()) {
      fail(ErrorKind::Value, op, "Input tensor must have at least ", shape.size() + 0,
           " dimensions, but got ", sizes.size() + 0);
    }
    fail(ErrorKind::Runtime, op, "Given normalized_shape=", shape, ", expected input with shape ",
         "[*, ", cat(shape).substr(1), ", but got input of size", sizes);
  }
}

// The normalised dimensions as one; `restore` undoes it.
Tensor flatten_last(const Tensor& x, size_t count) {
  if (count == 1) {
    return x;
  }
  IntList shape(x.sizes());
  int64_t last = 1;
  for (size_t i = 0; i < count; ++i) {
    last *= shape.back();
    shape.pop_back();
  }
  shape.push_back(last);
  return reshape(x, shape);
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_of(const Tensor& input, IntArrayRef shape,
                                                        const Tensor& weight, const Tensor& bias,
                                                        double eps) {
  check_normalized("layer_norm", input, shape, weight, bias);
  size_t count = shape.size();
  Tensor flat = flatten_last(input, count);
  auto [out, mean_of, rstd] =
      _layer_norm(flat, weight.defined() ? flatten_last(weight, count) : weight,
                  bias.defined() ? flatten_last(bias, count) : bias, eps, -1, true);
  IntList kept(input.sizes());
  for (size_t i = 0; i < count; ++i) {
    kept[kept.size() - 1 - i] = 1;
  }
  // The statistics are kept for the gradient of the first result, and have none of their own. Those
  // of half types stay wide only beside wide parameters.
  const DType dtype = weight.defined() ? weight.dtype() : input.dtype();
  const auto kept_statistic = [&](const Tensor& x) { return to(reshape(detach(x), kept), dtype); };
  return {count == 1 ? out : reshape(out, input.sizes()), kept_statistic(mean_of),
          kept_statistic(rstd)};
}

Tensor layer_norm_of(const Tensor& input, IntArrayRef shape, const Tensor& weight,
                     const Tensor& bias, double eps, bool) {
  check_normalized("layer_norm", input, shape, weight, bias);
  check_parameter_dtype("layer_norm", input.dtype(), weight);
  check_parameter_dtype("layer_norm", input.dtype(), bias);
  size_t count = shape.size();
  auto [out, mean_of, rstd] = _layer_norm(
      flatten_last(input, count), weight.defined() ? flatten_last(weight, count) : weight,
      bias.defined() ? flatten_last(bias, count) : bias, eps, -1, true);
  return count == 1 ? out : reshape(out, input.sizes());
}

Tensor layer_norm_seen(const Tensor& input, IntArrayRef shape, const Tensor& weight,
                       const Tensor& bias, double eps, bool) {
  check_parameter_dtype("layer_norm", input.dtype(), weight);
  check_parameter_dtype("layer_norm", input.dtype(), bias);
  return std::get<0>(native_layer_norm(input, shape, weight, bias, eps));
}

// The squares are x^2, not |x|^2, as PyTorch has them: a function that is holomorphic in x.
Tensor complex_rms_norm(const Tensor& input, IntArrayRef shape, const Tensor& weight, double eps) {
  IntList dims;
  for (int64_t d = -static_cast<int64_t>(shape.size()); d < 0; ++d) {
    dims.push_back(d);
  }
  const Tensor squares = mean(square(input), dims, true, std::nullopt);
  const Tensor normal = mul(input, rsqrt(add(squares, Scalar(eps))));
  return weight.defined() ? mul(normal, weight) : normal;
}

Tensor rms_norm_of(const Tensor& input, IntArrayRef shape, const Tensor& weight,
                   std::optional<double> eps) {
  check_normalized("rms_norm", input, shape, weight, Tensor());
  size_t count = shape.size();
  // Of the dtype that is computed in: halves have float's.
  const bool wide = input.dtype() == DType::Float64 || input.dtype() == DType::Complex128;
  double epsilon = eps.value_or(wide ? 2.220446049250313e-16 : 1.1920928955078125e-07);
  if (input.is_complex()) {
    return complex_rms_norm(input, shape, weight, epsilon);
  }
  auto [out, scale] =
      _rms_norm(flatten_last(input, count), weight.defined() ? flatten_last(weight, count) : weight,
                epsilon, -1, true);
  return count == 1 ? out : reshape(out, input.sizes());
}

// (N, C, ...) normalised over groups of channels, then scaled a channel.
Tensor group_norm_of(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                     double eps, bool) {
  if (input.dim() < 2) {
    fail(ErrorKind::Runtime, "group_norm",
         "Expected at least 2 dimensions for input tensor but "
         "received ",
         input.dim());
  }
  int64_t channels = input.sizes()[1];
  if (groups <= 0 || channels % groups != 0) {
    fail(ErrorKind::Runtime, "group_norm",
         "Expected number of channels in input to be divisible by "
         "num_groups, but got input of shape ",
         input.sizes(), " and num_groups=", groups);
  }
  for (auto [name, parameter] : {std::pair{"weight", &weight}, std::pair{"bias", &bias}}) {
    if (parameter->defined() && !(parameter->dim() == 1 && parameter->numel() == channels)) {
      fail(ErrorKind::Runtime, "group_norm", "Expected ", name,
           " to be a vector of size equal to "
           "the number of channels in input, but got ",
           name, " of shape ", parameter->sizes(), " and input of shape ", input.sizes());
    }
    check_parameter_dtype("group_norm", input.dtype(), *parameter);
  }
  if (normalizes_channels(input) && input.numel() > input.sizes()[0] * channels) {
    return normalize_channels(input, weight, bias, groups, eps).out;
  }
  int64_t group_size = input.numel() == 0 ? 0 : input.numel() / (input.sizes()[0] * groups);
  Tensor rows = reshape(input, {input.sizes()[0], groups, group_size});
  auto [normal, mean_of, rstd] = _layer_norm(rows, Tensor(), Tensor(), eps, -1, true);
  Tensor out = reshape(normal, input.sizes());
  IntList shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = channels;
  out = weight.defined() ? mul(out, reshape(weight, shape)) : out;
  out = bias.defined() ? add(out, reshape(bias, shape)) : out;
  return to(out, input.dtype());
}

}  // namespace

RUSHLIGHT_OPERATORS(normalization) {
  auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };
  const RowResult full{RowShape::Full, RowType::Same};
  const RowResult reduced{RowShape::Reduced, RowType::Compute};
  const RowResult reduced_same{RowShape::Reduced, RowType::Same};

  rows(op("_layer_norm(Tensor self, Tensor? weight, Tensor? bias, float eps, int dim, "
          "bool keepdim) -> (Tensor, Tensor, Tensor)",
          kInternal)
           .doc("Normalises rows to mean 0 and variance 1, then scales and shifts."),
       {{full, reduced, reduced}, layer_norm_row})
      .gradient("self weight result1 result2", wide_second_order(layer_norm_gradient));
  rows(op("_layer_norm_backward(Tensor self, Tensor grad, Tensor mean, Tensor rstd, "
          "Tensor? weight, int dim) -> Tensor",
          kInternal)
           .doc("Gradient of layer_norm by its input."),
       {{full}, layer_norm_backward_row})
      .not_differentiable();
  rows(op("_layer_norm_parameters_backward(Tensor self, Tensor grad, Tensor mean, Tensor rstd, "
          "int[] dim) -> (Tensor, Tensor)",
          kInternal)
           .doc("Gradients of layer_norm by weight and bias."),
       {{reduced_same, reduced_same}, layer_norm_parameters_row})
      .not_differentiable();
  op("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc("layer_norm with the means and reciprocal deviations of the rows.")
      .composition(native_layer_norm_of)
      .node("NativeLayerNormBackward0");
  op("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
     kFunction)
      .doc("Normalises the last dimensions to mean 0 and variance 1, then scales and shifts.")
      .composition(layer_norm_of)
      .seen_as(layer_norm_seen)
      .node("NativeLayerNormBackward0")
      .check(expect_floating);
  rows(op("_rms_norm(Tensor self, Tensor? weight, float eps, int dim, bool keepdim) "
          "-> (Tensor, Tensor)",
          kInternal)
           .doc("Divides rows by their root mean square, then scales."),
       {{full, reduced}, rms_norm_row})
      .gradient("self weight result1", wide_second_order(rms_norm_gradient));
  rows(op("_rms_norm_backward(Tensor self, Tensor grad, Tensor scale, Tensor? weight, int dim) "
          "-> Tensor",
          kInternal)
           .doc("Gradient of rms_norm by its input."),
       {{full},
        [](Rows& r) {
          Expr scale = r.in(2);
          Expr grad = r.has(3) ? r.in(1) * r.in(3) : r.in(1);
          Expr normal = r.in(0) * scale;
          Expr product = r.sum(grad * normal) / r.count();
          r.store(0, scale * (grad - normal * product));
        }})
      .not_differentiable();
  rows(op("_rms_norm_weight_backward(Tensor self, Tensor grad, Tensor scale, int[] dim) -> Tensor",
          kInternal)
           .doc("Gradient of rms_norm by its weight."),
       {{reduced_same}, [](Rows& r) { r.store(0, r.sum(r.in(1) * (r.in(0) * r.in(2)))); }})
      .not_differentiable();
  op("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) "
     "-> Tensor",
     kFunction)
      .doc("Divides the last dimensions by their root mean square, then scales.")
      .composition(rms_norm_of)
      .node("MulBackward0")
      .check([](const Invocation& inv) {
        const DType dtype = inv.arguments[0].impl()->dtype;
        if (!is_floating(dtype) && !is_complex(dtype)) {
          fail(ErrorKind::NotImplemented, "", "\"rms_norm\" not implemented for '",
               scalar_type_name(dtype), "': expected a floating-point input");
        }
      });
  op("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
     kFunction)
      .doc("Normalises groups of channels of (N, C, ...), then scales and shifts each channel.")
      .composition(group_norm_of)
      .node("NativeGroupNormBackward0")
      .check(expect_floating);
}

}  // namespace rushlight
