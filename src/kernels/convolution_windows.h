// A convolution as sums over windows that lie at fixed distances in prepared images.
//
// Each channel of an image is laid out as planes: its border of zeros is written out, and where a
// kernel moves by more than one, every step-th element goes to a plane of its own. Whatever a tap
// of the kernel sees then lies at a fixed distance from the position, and neighbours are adjacent.
#pragma once

#include <vector>

#include "kernels/convolution.h"
#include "kernels/gemm_engine.h"
#include "kernels/scratch.h"

namespace rushlight::convolutions {

// Results with the same taps: element g of `size` is element first + g * step of all.
struct Grid {
  Extent first;
  Extent step;
  Extent size;
  std::vector<int64_t> taps;     // which they see, ascending, as indices into the kernel
  std::vector<int64_t> offsets;  // where in the planes of a channel, for the position at 0
  bool whole() const { return step == Extent{1, 1, 1}; }
};

struct Windows {
  Extent source;
  Extent step;                                 // of the source, between neighbours in a plane
  std::array<std::vector<int64_t>, 3> starts;  // where planes start in the source, by dimension
  Extent size;                                 // of a plane
  std::vector<Grid> grids;                     // results that see nothing are in none
  bool complete;                               // whether all results are in one
  Extent apart{1, 1, 1};                       // neighbours of a grid in a plane: only for pixels

  int64_t plane() const { return count(size); }
  int64_t planes() const {
    return static_cast<int64_t>(starts[0].size() * starts[1].size() * starts[2].size());
  }
  int64_t channel() const { return planes() * plane(); }
  // Distance in a plane of two positions of a grid.
  int64_t at(const Extent& g) const { return (g[0] * size[1] + g[1]) * size[2] + g[2]; }
  // Whether borders take too much memory to be written out.
  bool wasteful() const;
};

// Of the output over the input, and of the input over the output.
Windows windows_of(const Convolution& problem);
Windows transposed_windows_of(const Convolution& problem);
// Of the output over the input, in one plane where neighbours lie steps apart.
Windows unsplit_windows_of(const Convolution& problem);

// Images that are laid out so.
template <typename T>
struct Planes {
  const T* data;
  int64_t image;  // distances
  int64_t channel;
  int64_t readable;  // elements from `data` on
};

// Prepares all channels of images [first, first + images), or borrows them where they lie so
// already. Elements of f16 and bf16 become f32.
template <typename T>
Planes<T> prepare(const Windows& windows, DType dtype, const ImagesRef& source, int64_t first,
                  int64_t images, int64_t channels, Scratch& scratch);

// The same without borrowing: kPlaneSlack elements may be read beyond.
template <typename T>
Planes<T> copy_planes(const Windows& windows, DType dtype, const ImagesRef& source, int64_t first,
                      int64_t images, int64_t channels, Scratch& scratch);

// One image's channel into `out`, which holds channel() elements.
template <typename T>
void prepare_channel(const Windows& windows, DType dtype, const ImagesRef& source, int64_t image,
                     int64_t channel, T* out);

// Images that are prepared together: enough for all threads, few enough for the caches.
int64_t images_together(int64_t images, int64_t elements);

// The product of a matrix for each group with windows of `in` channels: results `out` channels.
// `weight` gives (row, channel, tap) of a group at these distances.
struct Factors {
  const void* data;
  int64_t group;
  int64_t row;
  int64_t channel;
  std::array<int64_t, 3> tap;
};

struct WindowProduct {
  DType dtype;
  int64_t batch;
  int64_t groups;
  int64_t in;
  int64_t out;
  Extent kernel;
  Extent result_size;
  const Windows& windows;
  ImagesRef source;
  Factors weight;
  const void* bias;
  MutableImagesRef result;
};

template <typename T>
void multiply_windows(const WindowProduct& product);

// The same where a group has at most kFlatRows results: they are summed straight from the planes.
template <typename T>
void sum_windows(const WindowProduct& product);

template <typename T>
void multiply_for_weight(const Convolution& problem, const Windows& windows, const ImagesRef& input,
                         const ImagesRef& output, const MutableImagesRef& weight);

// The same for groups of one input channel.
template <typename T>
void sum_for_weight(const Convolution& problem, const Windows& windows, const ImagesRef& input,
                    const ImagesRef& output, const MutableImagesRef& weight);

// The same two for groups of one channel and one result, whose channels are taken side by side.
template <typename T>
void sum_windows_by_lanes(const WindowProduct& product);
template <typename T>
void sum_for_weight_by_lanes(const Convolution& problem, const Windows& windows,
                             const ImagesRef& input, const ImagesRef& output,
                             const MutableImagesRef& weight);

// Elements [first, last) of a plane's row along dimension d that lie inside the source.
struct Inside {
  int64_t first;
  int64_t last;
};
// Of each start of planes, by dimension.
using Borders = std::array<std::vector<Inside>, 3>;
Borders borders_of(const Windows& windows);

// Rows of the planes of an image: those of all planes along the width together.
int64_t plane_rows(const Windows& windows);
// Row `row` of planes whose channels lie side by side, `pitch` elements from one position to the
// next: channels [first, first + channels) of the image at `out`, zeros behind them.
template <typename T>
void prepare_pixels(const Windows& windows, const Borders& borders, DType dtype,
                    const ImagesRef& source, int64_t image, int64_t first, int64_t channels,
                    int64_t pitch, int64_t row, T* out);

// The product with windows whose channels lie side by side, so that nothing else is copied: each
// sum has the bits of `multiply_windows`.
template <typename T>
void multiply_pixels(const WindowProduct& product);

// The matrix (out, in * taps) of a group and a grid, dense.
template <typename T>
void gather_factors(const WindowProduct& product, const Grid& grid, int64_t group, T* out);

// Where rows (channel, tap) of a grid lie.
std::vector<int64_t> window_rows(const Grid& grid, int64_t channels, int64_t distance);

}  // namespace rushlight::convolutions
