// Dropout and its relatives.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/random_fill.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", p);
    fail(ErrorKind::Runtime, "", "dropout probability has to be between 0 and 1, but got ", text);
  }
}

// 1 / keep in the dtype's arithmetic, so that results have PyTorch's bits.
double scale_of(DType dtype, double keep) {
  return compute_dtype(dtype) == DType::Float32 ? 1.0f / static_cast<float>(keep) : 1.0 / keep;
}

void check_dropped_dtype(DType dtype) {
  if (!is_floating(dtype) && !is_complex(dtype)) {
    fail(ErrorKind::Runtime, "", "result type Float can't be cast to the desired output type ",
         scalar_type_name(dtype));
  }
}

// What the input is multiplied by: 1 / keep, or 0 with probability p; by feature, one number for
// each (N, C).
Tensor noise_kernel(const Tensor& input, double keep, double on, bool features) {
  IntList sizes(input.sizes());
  if (features && input.dim() < 2) {
    fail(ErrorKind::Runtime, "", "Feature dropout requires at least 2 dimensions in the input");
  }
  if (features) {
    sizes = IntList(input.sizes().size(), 1);
    sizes[0] = input.sizes()[0];
    sizes[1] = input.sizes()[1];
  }
  // Drawn in the order that the input has in memory.
  const Tensor noise = features ? make_tensor(sizes, input.dtype(), input.device())
                                : make_strided(sizes, preserved_strides(sizes, input.strides()),
                                               input.dtype(), input.device());
  if (!noise.is_meta()) {
    fill_bernoulli(noise, keep, on, std::nullopt);
  }
  return noise;
}

// An operator of its own, for capture has to keep the order in which numbers are drawn.
Tensor make_noise(const Tensor& input, double keep, double on, bool features) {
  static const Operator& op = find_operator("_dropout_noise");
  DoorGuard capture_alone(0, ~uint32_t{kCaptureDoor});
  return call(op, {Value::borrow(input), keep, on, features});
}

// Factor and, for alpha dropout, the term that keeps mean and variance of self-normalising units.
struct Noise {
  Tensor factor;
  Tensor term;
};

Noise draw_noise(const Tensor& input, double p, bool features, bool alpha) {
  check_dropped_dtype(input.dtype());
  const double keep = 1 - p;
  if (!alpha) {
    return {make_noise(input, keep, scale_of(input.dtype(), keep), features), {}};
  }
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * keep);
  const Tensor noise = make_noise(input, keep, 1, features);
  DoorGuard capture_alone(0, ~uint32_t{kCaptureDoor});
  const Tensor term = add(mul(sub(noise, Scalar(1)), Scalar(kAlpha * a)), Scalar(kAlpha * a * p));
  return {mul(noise, Scalar(a)), term};
}

template <bool kFeatures, bool kAlphaForm>
Tensor dropped(const Tensor& input, double p, bool train) {
  check_probability(p);
  if (p == 0 || !train || input.numel() == 0) {
    return input;
  }
  if (p == 1) {
    return mul(input, make_scalar_tensor(Scalar(0), input.dtype()));
  }
  const Noise noise = draw_noise(input, p, kFeatures, kAlphaForm);
  const Tensor result = mul(input, noise.factor);
  return noise.term.defined() ? add(result, noise.term) : result;
}

template <bool kFeatures, bool kAlphaForm>
Tensor dropped_in_place(const Tensor& self, double p, bool train) {
  check_probability(p);
  if (p == 0 || !train || self.numel() == 0) {
    return self;
  }
  if (p == 1) {
    mul_(self, make_scalar_tensor(Scalar(0), self.dtype()));
    return self;
  }
  const Noise noise = draw_noise(self, p, kFeatures, kAlphaForm);
  mul_(self, noise.factor);
  if (noise.term.defined()) {
    add_(self, noise.term);
  }
  return self;
}

std::tuple<Tensor, Tensor> native_dropout_kernel(const Tensor& input, double p,
                                                 std::optional<bool> train) {
  const Tensor mask = make_strided(input.sizes(), preserved_strides(input.sizes(), input.strides()),
                                   DType::Bool, input.device());
  if (input.numel() == 0) {
    return {input, mask};
  }
  DoorGuard closed(0, ~uint32_t{0});
  if (!train.value_or(true)) {
    fill_bernoulli(mask, 1, 1, std::nullopt);
    return {mul(input, Scalar(1)), mask};
  }
  const double keep = 1 - p;
  fill_bernoulli(mask, keep, 1, std::nullopt);
  check_dropped_dtype(input.dtype());
  return {mul(mul(input, mask), Scalar(keep == 0 ? 0.0 : 1 / keep)), mask};
}

}  // namespace

RUSHLIGHT_OPERATORS(dropout) {
  op("_dropout_noise(Tensor input, float keep, float on, bool features) -> Tensor", kInternal)
      .doc("What dropout multiplies by: `on`, or 0 but with probability `keep`.")
      .kernel(noise_kernel)
      .not_differentiable();
  op("dropout(Tensor input, float p, bool train) -> Tensor", kFunction)
      .doc("Zeroes elements with probability p and divides the others by 1 - p.")
      .composition(dropped<false, false>);
  op("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", kFunction)
      .doc("Dropout in place.")
      .composition(dropped_in_place<false, false>);
  op("feature_dropout(Tensor input, float p, bool train) -> Tensor", kFunction)
      .doc("Dropout of whole channels of an input (N, C, ...).")
      .composition(dropped<true, false>);
  op("feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", kFunction)
      .doc("Dropout of whole channels in place.")
      .composition(dropped_in_place<true, false>);
  op("alpha_dropout(Tensor input, float p, bool train) -> Tensor", kFunction)
      .doc("Dropout that keeps mean and variance of inputs with mean 0 and variance 1.")
      .composition(dropped<false, true>);
  op("alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", kFunction)
      .doc("Alpha dropout in place.")
      .composition(dropped_in_place<false, true>);
  op("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", kFunction)
      .doc("Alpha dropout of whole channels of an input (N, C, ...).")
      .composition(dropped<true, true>);
  op("feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", kFunction)
      .doc("Alpha dropout of whole channels in place.")
      .composition(dropped_in_place<true, true>);
  op("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", kFunction)
      .doc("Dropout, and the mask of the elements that were kept.")
      .kernel(native_dropout_kernel)
      .gradient("result1", [](Gradient& g) {
        const double p = g.real(1);
        const bool train = g.is_none(2) || g.flag(2);
        const double scale = !train ? 1.0 : p == 1 ? 0.0 : 1 / (1 - p);
        g.set(0, mul(mul(g.grad(), g.result(1)), Scalar(scale)));
      });
  op("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", kInternal)
      .doc("The gradient of native_dropout: grad_output where the mask kept it, times `scale`.")
      .composition([](const Tensor& grad, const Tensor& mask, double scale) -> Tensor {
        return mul(mul(grad, mask), Scalar(scale));
      })
      .node("NativeDropoutBackwardBackward0");
}

}  // namespace rushlight
