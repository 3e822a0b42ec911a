// The statistics that batch normalisation normalises by.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// (C) each, of (N, C, ...); halves in float.
struct BatchStatistics {
  Tensor variance;
  Tensor mean;
};
BatchStatistics batch_statistics(const Tensor& input);

}  // namespace rushlight
