#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>

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

Tensor constant_(Tensor tensor, const Scalar& value) {
  NoGradGuard no_grad;
  fill_(tensor, value);
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
  double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return init::uniform_(std::move(tensor), -bound, bound);
}

Tensor kaiming_normal_(Tensor tensor, double a, std::string_view mode,
                       std::string_view nonlinearity) {
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
  if (nonlinearity == "linear" || nonlinearity == "sigmoid" ||
      nonlinearity.substr(0, 4) == "conv") {
    return 1;
  }
  fail(ErrorKind::Value, "init", "Unsupported nonlinearity ", nonlinearity);
}

}  // namespace rushlight::nn::init
