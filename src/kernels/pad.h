// Tensors whose elements repeat others by position.
#pragma once

#include <rushlight/tensor.h>

#include <cstdint>
#include <vector>

namespace rushlight::kernels {

// Which position of the source each position along one dimension takes. Those in [first, last) are
// neighbours in the source, too.
struct PadAxis {
  std::vector<int64_t> at;
  int64_t first = 0;
  int64_t last = 0;
};

// target[..., i, j] = source[..., a[i], b[j]] for the last dimensions, one axis each, of contiguous
// tensors of one dtype.
void pad_border(const Tensor& target, const Tensor& source, const std::vector<PadAxis>& axes);

}  // namespace rushlight::kernels
