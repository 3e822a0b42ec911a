// Normalisation of (N, C, ...) by statistics of channels, or of groups of channels of a sample.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// The statistics by which it was normalised, in what halves are computed in: (C), or (N, groups)
// where there are groups.
struct ChannelsNormalized {
  Tensor out;
  Tensor mean;
  Tensor variance;  // by n
};

// What it takes: a floating tensor with elements, of at least two dimensions, neither seen by
// transforms nor by dispatch modes, which know the operators that it is a composition of.
bool normalizes_channels(const Tensor& input);

// Over the batch where `groups` is 0. `weight` and `bias` have an element a channel, or are
// undefined. Differentiable by input, weight and bias.
ChannelsNormalized normalize_channels(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                      int64_t groups, double eps);

// The same by a given mean and variance, (C) each, which no gradient passes through.
Tensor normalize_channels_by(const Tensor& input, const Tensor& mean, const Tensor& variance,
                             const Tensor& weight, const Tensor& bias, double eps);

}  // namespace rushlight
