// Pooling: maxima and sums over windows of the last one to three dimensions of a tensor.
//
// Tensors are dense, (batch, channels, depth, height, width), row-major or with the channels last;
// fewer dimensions have leading ones of size 1. Results do not depend on the number of threads.
// Halves are added up in f32, other numbers in their own dtype.
//
// Written by hand because a loop kernel has neither windows that end at the border, nor the place
// of a maximum as a result, nor lines along channels for the one layout and along width for the
// other.
#pragma once

#include <rushlight/tensor.h>

#include <algorithm>

namespace rushlight::kernels {

// The windows along one dimension. Regular ones begin `stride` apart, `pad` before the input, and
// see `kernel` positions, `dilation` apart. Adaptive ones share the input evenly: window i is
// [floor(i size / count), ceil((i + 1) size / count)).
struct WindowAxis {
  int64_t size = 1;   // of the input
  int64_t count = 1;  // of the windows
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  int64_t dilation = 1;
  bool adaptive = false;

  static WindowAxis adapted(int64_t size, int64_t count);

  // The positions of window i that lie inside the input: begin, begin + dilation, ... < end.
  int64_t begin(int64_t i) const {
    if (adaptive) {
      return i * size / count;
    }
    const int64_t at = i * stride - pad;
    return at >= 0 ? at : at + (dilation - 1 - at) / dilation * dilation;
  }
  int64_t end(int64_t i) const {
    if (adaptive) {
      return ((i + 1) * size + count - 1) / count;
    }
    return std::min(i * stride - pad + (kernel - 1) * dilation + 1, size);
  }
  int64_t inside(int64_t i) const {
    return std::max<int64_t>((end(i) - begin(i) + dilation - 1) / dilation, 0);
  }
  // Positions of window i that lie in the input or its padding.
  int64_t padded(int64_t i) const {
    const int64_t at = i * stride - pad;
    return adaptive ? inside(i) : std::min(at + kernel, size + pad) - at;
  }
  // The windows whose position number `tap` lies inside the input: [first, last).
  int64_t first(int64_t tap) const {
    const int64_t before = pad - tap * dilation;
    return before <= 0 ? 0 : (before + stride - 1) / stride;
  }
  int64_t last(int64_t tap) const {
    const int64_t room = size - 1 + pad - tap * dilation;
    return room < 0 ? 0 : std::min(room / stride + 1, count);
  }
};

struct WindowSpace {
  int64_t batch = 1;
  int64_t channels = 1;
  WindowAxis axis[3];  // depth, height, width
  bool channels_last = false;

  int64_t in_plane() const { return axis[0].size * axis[1].size * axis[2].size; }
  int64_t out_plane() const { return axis[0].count * axis[1].count * axis[2].count; }
  int64_t planes() const { return batch * channels; }
};

// Maxima, and with `indices` (int64; may be undefined) where in the plane of the input they are.
// NaN is greater than all; of equal numbers the first counts, of NaNs the last.
void max_pool(const Tensor& values, const Tensor& indices, const Tensor& input,
              const WindowSpace& space);

// Adds each element of `grad` to where its maximum was, in the order of the windows: at `indices`,
// or, where those are undefined, at the places found again in `input`. Indices outside the plane
// get nothing. Writes all of `made`.
void max_pool_gradient(const Tensor& made, const Tensor& grad, const Tensor& indices,
                       const Tensor& input, const WindowSpace& space);

// By what a sum is divided: the positions inside the input, those in its padding as well, or a
// number.
struct Divisor {
  bool padding = true;
  int64_t fixed = 0;  // 0: none
};

void average_pool(const Tensor& made, const Tensor& input, const WindowSpace& space,
                  Divisor divisor);
void average_pool_gradient(const Tensor& made, const Tensor& grad, const WindowSpace& space,
                           Divisor divisor);

}  // namespace rushlight::kernels
