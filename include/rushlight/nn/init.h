// Initial values: fill a tensor in place, outside autograd, with Python's random streams.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>

namespace rushlight::nn::init {

Tensor uniform_(Tensor tensor, double a = 0, double b = 1);
Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
// Normal with values outside [a, b] drawn again.
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
Tensor constant_(Tensor tensor, const Scalar& val);
Tensor zeros_(Tensor tensor);
Tensor ones_(Tensor tensor);
Tensor eye_(Tensor tensor);  // the identity matrix
// A convolution weight that hands as many channels on as it can.
Tensor dirac_(Tensor tensor, int64_t groups = 1);
Tensor xavier_uniform_(Tensor tensor, double gain = 1);
Tensor xavier_normal_(Tensor tensor, double gain = 1);
// mode "fan_in" or "fan_out"; nonlinearity as of calculate_gain, a the slope of "leaky_relu".
Tensor kaiming_uniform_(Tensor tensor, double a = 0, std::string_view mode = "fan_in",
                        std::string_view nonlinearity = "leaky_relu");
Tensor kaiming_normal_(Tensor tensor, double a = 0, std::string_view mode = "fan_in",
                       std::string_view nonlinearity = "leaky_relu");
double calculate_gain(std::string_view nonlinearity, double param = 0.01);

}  // namespace rushlight::nn::init
