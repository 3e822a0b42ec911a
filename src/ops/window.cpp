// Windows of signal processing.
#include <rushlight/generated/functions.h>

#include <numbers>

#include "ops/operator.h"

namespace rushlight {
namespace {

using std::numbers::pi;

// The positions 0, 1, ... of a window of this many points, computed by `shape` from them and their
// number; a periodic window is a symmetric one without its last point.
template <typename F>
Tensor window(std::string_view op, int64_t length, bool periodic, const TensorOptions& options,
              F&& shape) {
  const DType dtype = options.dtype_.value_or(default_dtype());
  if (!is_floating(dtype)) {
    fail(ErrorKind::Runtime, "", op, " expects floating point dtypes, got: ", dtype);
  }
  if (length < 0) {
    fail(ErrorKind::Runtime, "", op,
         " requires non-negative window_length, got window_length=", length);
  }
  if (length <= 1) {
    return ones({length}, options);
  }
  const int64_t points = periodic ? length + 1 : length;
  const Tensor made = shape(arange(Scalar(points), options.dtype(dtype)), points);
  return periodic ? narrow(made, 0, 0, points - 1) : made;
}

Tensor hamming(std::string_view op, int64_t length, bool periodic, double alpha, double beta,
               const TensorOptions& options) {
  return window(op, length, periodic, options, [=](const Tensor& at, int64_t points) {
    const Tensor wave = cos(mul(at, Scalar(2 * pi / static_cast<double>(points - 1))));
    return add(mul(wave, Scalar(-beta)), Scalar(alpha));
  });
}

Tensor hann(int64_t length, bool periodic, const TensorOptions& options) {
  return hamming("hann_window", length, periodic, 0.5, 0.5, options);
}

Tensor blackman(int64_t length, bool periodic, const TensorOptions& options) {
  return window("blackman_window", length, periodic, options, [](const Tensor& at, int64_t points) {
    const Tensor angle = mul(at, Scalar(pi / static_cast<double>(points - 1)));
    const Tensor fast = mul(cos(mul(angle, Scalar(4))), Scalar(0.08));
    return add(sub(fast, mul(cos(mul(angle, Scalar(2))), Scalar(0.5))), Scalar(0.42));
  });
}

Tensor bartlett(int64_t length, bool periodic, const TensorOptions& options) {
  return window("bartlett_window", length, periodic, options, [](const Tensor& at, int64_t points) {
    const Tensor rise = mul(at, Scalar(2.0 / static_cast<double>(points - 1)));
    const Tensor fall = add(mul(rise, Scalar(-1)), Scalar(2));
    return where(le(at, Scalar((points - 1) / 2)), rise, fall);
  });
}

Tensor kaiser(int64_t length, bool periodic, double beta, const TensorOptions& options) {
  return window("kaiser_window", length, periodic, options, [=](const Tensor& at, int64_t points) {
    const DType dtype = at.dtype();
    const Tensor x =
        sub(mul(to(at, DType::Float64), Scalar(2.0 / static_cast<double>(points - 1))), Scalar(1));
    const Tensor bend =
        i0(mul(sqrt(clamp_min(rsub(mul(x, x), Scalar(1)), Scalar(0))), Scalar(beta)));
    return to(div(bend, i0(full({}, Scalar(beta), x.options()))), dtype);
  });
}

}  // namespace

RUSHLIGHT_OPERATORS(window) {
  op("hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("(1 - cos(2 pi n / N)) / 2 for n = 0 ... N - 1.")
      .composition([](int64_t length, const TensorOptions& options) -> Tensor {
        return hann(length, true, options);
      });
  op("hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same; not periodic: with N - 1 in place of N.")
      .composition(hann);
  op("hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("alpha - beta cos(2 pi n / N), with 0.54 and 0.46.")
      .composition([](int64_t length, const TensorOptions& options) -> Tensor {
        return hamming("hamming_window", length, true, 0.54, 0.46, options);
      });
  op("hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same; not periodic: with N - 1 in place of N.")
      .composition([](int64_t length, bool periodic, const TensorOptions& options) -> Tensor {
        return hamming("hamming_window", length, periodic, 0.54, 0.46, options);
      });
  op("hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, "
     "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor",
     kFunction | kOut)
      .doc("The same with another alpha.")
      .composition(
          [](int64_t length, bool periodic, double alpha, const TensorOptions& options) -> Tensor {
            return hamming("hamming_window", length, periodic, alpha, 0.46, options);
          });
  op("hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, "
     "float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same with another alpha and beta.")
      .composition([](int64_t length, bool periodic, double alpha, double beta,
                      const TensorOptions& options) -> Tensor {
        return hamming("hamming_window", length, periodic, alpha, beta, options);
      });
  op("blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("0.42 - cos(2 pi n / N) / 2 + 0.08 cos(4 pi n / N).")
      .composition([](int64_t length, const TensorOptions& options) -> Tensor {
        return blackman(length, true, options);
      });
  op("blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same; not periodic: with N - 1 in place of N.")
      .composition(blackman);
  op("bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("A triangle from 0 to 1 and back.")
      .composition([](int64_t length, const TensorOptions& options) -> Tensor {
        return bartlett(length, true, options);
      });
  op("bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same; not periodic: with N - 1 in place of N.")
      .composition(bartlett);
  op("kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1, with beta = 12.")
      .composition([](int64_t length, const TensorOptions& options) -> Tensor {
        return kaiser(length, true, 12.0, options);
      });
  op("kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same; not periodic: with N - 1 in place of N.")
      .composition([](int64_t length, bool periodic, const TensorOptions& options) -> Tensor {
        return kaiser(length, periodic, 12.0, options);
      });
  op("kaiser_window.beta(int window_length, bool periodic, float beta, *, "
     "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor",
     kFunction | kOut)
      .doc("The same with another beta.")
      .composition(kaiser);
}

}  // namespace rushlight
