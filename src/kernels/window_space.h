// What the kernels of windows share: lines converted to what is computed in, and ranges of work.
#pragma once

#include "kernels/element_type.h"
#include "kernels/scratch.h"
#include "kernels/window.h"
#include "kernels/window_engine.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {

// A line of stored elements as numbers: the memory itself where it holds those.
template <typename T>
const Compute<T>* read_line(const T* in, int64_t count, [[maybe_unused]] Compute<T>* spare) {
  if constexpr (is_small_float<T>) {
    half_lines<T>().widen(spare, in, count);
    return spare;
  } else {
    return in;
  }
}

template <typename T>
void write_line(T* out, const Compute<T>* values, int64_t count) {
  if constexpr (is_small_float<T>) {
    half_lines<T>().narrow(out, values, count);
  } else {
    std::copy_n(values, count, out);
  }
}

// Calls function(position in the plane) for each position of the input that the window (d, h, w)
// sees, in row-major order.
template <typename F>
void for_positions(const WindowSpace& space, int64_t d, int64_t h, int64_t w, F&& function) {
  const auto& [depth, height, width] = space.axis;
  for (int64_t z = depth.begin(d); z < depth.end(d); z += depth.dilation) {
    for (int64_t y = height.begin(h); y < height.end(h); y += height.dilation) {
      for (int64_t x = width.begin(w); x < width.end(w); x += width.dilation) {
        function((z * height.size + y) * width.size + x);
      }
    }
  }
}

// The same for the rows of the plane that windows (d, h, ...) see: function(first position).
template <typename F>
void for_rows(const WindowSpace& space, int64_t d, int64_t h, F&& function) {
  const auto& [depth, height, width] = space.axis;
  for (int64_t z = depth.begin(d); z < depth.end(d); z += depth.dilation) {
    for (int64_t y = height.begin(h); y < height.end(h); y += height.dilation) {
      function((z * height.size + y) * width.size);
    }
  }
}

// Calls body(plane or image, d, h) for each row of the result, in parallel; `make` gives each
// thread's piece of work its scratch, the body's first argument.
template <typename Make, typename Body>
void for_output_rows(const WindowSpace& space, int64_t images, int64_t cost, Make&& make,
                     Body&& body) {
  const int64_t high = space.axis[1].count;
  const int64_t rows = space.axis[0].count * high;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(cost, 1));
  parallel_for(0, images * rows, grain, [&](int64_t begin, int64_t end) {
    auto scratch = make();
    for (int64_t i = begin; i < end; ++i) {
      body(scratch, i / rows, i % rows / high, i % high);
    }
  });
}

// Gradients with the channels last are made for blocks of this many channels.
inline constexpr int64_t kChannelBlock = 64;

// Sums for some channels of an image with the channels last, zero at first: the result itself where
// it holds what is computed in, else `spare` of channel_sums_size() elements.
template <typename T>
class ChannelSums {
 public:
  using C = Compute<T>;
  ChannelSums(T* made, int64_t channels, int64_t size, int64_t count, C* spare)
      : made_(made), channels_(channels), size_(size), count_(count) {
    if constexpr (is_small_float<T>) {
      data_ = spare;
      pitch_ = kChannelBlock;
    } else {
      data_ = made;
      pitch_ = channels;
    }
    for (int64_t i = 0; i < size; ++i) {
      std::fill_n(data_ + i * pitch_, count, C{0});
    }
  }
  C* data() const { return data_; }
  int64_t pitch() const { return pitch_; }  // from one position to the next
  void finish() const {
    if constexpr (is_small_float<T>) {
      for (int64_t i = 0; i < size_; ++i) {
        write_line(made_ + i * channels_, data_ + i * pitch_, count_);
      }
    }
  }

 private:
  T* made_;
  int64_t channels_;
  int64_t size_;
  int64_t count_;
  C* data_;
  int64_t pitch_;
};
template <typename T>
constexpr int64_t channel_sums_size(int64_t size) {
  return is_small_float<T> ? size * kChannelBlock : 0;
}

// Calls body(scratch, image, first channel, channels) in parallel.
template <typename Make, typename Body>
void for_channel_blocks(const WindowSpace& space, Make&& make, Body&& body) {
  const int64_t blocks = (space.channels + kChannelBlock - 1) / kChannelBlock;
  parallel_for(0, space.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    auto scratch = make();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * kChannelBlock;
      body(scratch, i / blocks, first, std::min(kChannelBlock, space.channels - first));
    }
  });
}

}  // namespace rushlight::kernels
