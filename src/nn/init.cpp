#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>

#include <algorithm>
#include <cmath>

namespace rushlight::nn::init {
namespace {

struct Fans {
  double in;
  double out;
};

Fans fans_of(const Tensor& tensor) {
  if (tensor.dim() < 2) {
    fail(ErrorKind::Value, "init", "Fan in and fan out can not be computed for tensor with fewer ",
         "than 2 dimensions, got shape ", tensor.sizes());
  }
  double field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) {
    field *= static_cast<double>(tensor.sizes()[static_cast<size_t>(d)]);
  }
  return {static_cast<double>(tensor.sizes()[1]) * field,
          static_cast<double>(tensor.sizes()[0]) * field};
}

double kaiming_std(const Tensor& tensor, double a, std::string_view mode,
                   std::string_view nonlinearity) {
  if (mode != "fan_in" && mode != "fan_out") {
    fail(ErrorKind::Value, "init", "Mode ", mode,
         " not supported, please use one of ['fan_in', 'fan_out']");
  }
  Fans fans = fans_of(tensor);
  double fan = mode == "fan_in" ? fans.in : fans.out;
  return calculate_gain(nonlinearity, a) / std::sqrt(fan);
}

// Above this share of normal values within the bounds, redrawing those outside is fast enough.
constexpr double kWorthRedrawing = 0.3;

void redraw_normal(const Tensor& tensor, double mean, double std, double a, double b) {
  rushlight::normal_(tensor, mean, std);
  for (;;) {
    const Tensor outside = logical_or(lt(tensor, Scalar(a)), gt(tensor, Scalar(b)));
    if (!any(outside).item().to_bool()) {
      return;
    }
    const Tensor fresh = empty_like(tensor);
    rushlight::normal_(fresh, mean, std);
    copy_(tensor, where(outside, fresh, tensor));
  }
}

// Uniform values, each accepted with its density relative to the largest within the bounds.
void accept_uniform(const Tensor& tensor, double mean, double std, double a, double b) {
  const double low = (a - mean) / std;
  const double high = (b - mean) / std;
  const double nearest = low <= 0 && high >= 0 ? 0 : std::min(low * low, high * high);
  Tensor waiting = ones_like(tensor, TensorOptions(DType::Bool));
  while (any(waiting).item().to_bool()) {
    const Tensor proposal = empty_like(tensor);
    rushlight::uniform_(proposal, a, b);
    const Tensor chance = empty_like(tensor);
    rushlight::uniform_(chance, 0, 1);
    const Tensor z = div(sub(proposal, Scalar(mean)), Scalar(std));
    const Tensor density = exp(div(rsub(mul(z, z), Scalar(nearest)), Scalar(2)));
    const Tensor accepted = logical_and(waiting, le(chance, density));
    copy_(tensor, where(accepted, proposal, tensor));
    waiting = logical_and(waiting, logical_not(accepted));
  }
}

}  // namespace

Tensor uniform_(Tensor tensor, double a, double b) {
  NoGradGuard no_grad;
  rushlight::uniform_(tensor, a, b);
  return tensor;
}

Tensor normal_(Tensor tensor, double mean, double std) {
  NoGradGuard no_grad;
  rushlight::normal_(tensor, mean, std);
  return tensor;
}

Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  if (mean < a - 2 * std || mean > b + 2 * std) {
    warn(
        "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values "
        "may be incorrect.");
  }
  NoGradGuard no_grad;
  const double scale = std * std::sqrt(2.0);
  const double share = 0.5 * (std::erf((b - mean) / scale) - std::erf((a - mean) / scale));
  if (share > kWorthRedrawing) {
    redraw_normal(tensor, mean, std, a, b);
  } else {
    accept_uniform(tensor, mean, std, a, b);
  }
  return tensor;
}

Tensor eye_(Tensor tensor) {
  if (tensor.dim() != 2) {
    fail(ErrorKind::Value, "init", "Only tensors with 2 dimensions are supported, got shape ",
         tensor.sizes());
  }
  NoGradGuard no_grad;
  copy_(tensor, eye(tensor.sizes()[0], tensor.sizes()[1], TensorOptions(tensor.dtype())));
  return tensor;
}

Tensor dirac_(Tensor tensor, int64_t groups) {
  const IntArrayRef sizes = tensor.sizes();
  if (sizes.size() < 3 || sizes.size() > 5) {
    fail(ErrorKind::Value, "init", "Only tensors with 3, 4, or 5 dimensions are supported, got ",
         "shape ", sizes);
  }
  if (groups < 1 || sizes[0] % groups != 0) {
    fail(ErrorKind::Value, "init", "dim 0 must be divisible by groups, got ", sizes[0], " and ",
         groups);
  }
  NoGradGuard no_grad;
  zero_(tensor);
  const int64_t per_group = sizes[0] / groups;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t channel = 0; channel < std::min(per_group, sizes[1]); ++channel) {
      Tensor at = select(select(tensor, 0, group * per_group + channel), 0, channel);
      for (size_t d = 2; d < sizes.size(); ++d) {
        at = select(at, 0, sizes[d] / 2);
      }
      fill_(at, Scalar(1));
    }
  }
  return tensor;
}

Tensor constant_(Tensor tensor, const Scalar& val) {
  NoGradGuard no_grad;
  fill_(tensor, val);
  return tensor;
}

Tensor zeros_(Tensor tensor) {
  return constant_(std::move(tensor), Scalar(0));
}
Tensor ones_(Tensor tensor) {
  return constant_(std::move(tensor), Scalar(1));
}

Tensor xavier_uniform_(Tensor tensor, double gain) {
  Fans fans = fans_of(tensor);
  double std = gain * std::sqrt(2.0 / (fans.in + fans.out));
  double bound = std::sqrt(3.0) * std;
  return init::uniform_(std::move(tensor), -bound, bound);
}

Tensor xavier_normal_(Tensor tensor, double gain) {
  Fans fans = fans_of(tensor);
  double std = gain * std::sqrt(2.0 / (fans.in + fans.out));
  return init::normal_(std::move(tensor), 0, std);
}

Tensor kaiming_uniform_(Tensor tensor, double a, std::string_view mode,
                        std::string_view nonlinearity) {
  if (tensor.numel() == 0) {
    warn("Initializing zero-element tensors is a no-op");
    return tensor;
  }
  double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return init::uniform_(std::move(tensor), -bound, bound);
}

Tensor kaiming_normal_(Tensor tensor, double a, std::string_view mode,
                       std::string_view nonlinearity) {
  if (tensor.numel() == 0) {
    warn("Initializing zero-element tensors is a no-op");
    return tensor;
  }
  double std = kaiming_std(tensor, a, mode, nonlinearity);
  return init::normal_(std::move(tensor), 0, std);
}

double calculate_gain(std::string_view nonlinearity, double param) {
  if (nonlinearity == "tanh") {
    return 5.0 / 3;
  }
  if (nonlinearity == "relu") {
    return std::sqrt(2.0);
  }
  if (nonlinearity == "leaky_relu") {
    return std::sqrt(2.0 / (1 + param * param));
  }
  if (nonlinearity == "selu") {
    return 3.0 / 4;
  }
  for (const std::string_view plain :
       {"linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d"}) {
    if (nonlinearity == plain) {
      return 1;
    }
  }
  fail(ErrorKind::Value, "init", "Unsupported nonlinearity ", nonlinearity);
}

}  // namespace rushlight::nn::init
