// What convolutions need from a CPU level beside the matrix engine: one table of functions for each
// compute type.
#pragma once

#include <cstdint>

namespace rushlight {

// Consecutive columns of a panel that are consecutive in the source.
struct WindowRun {
  int64_t at;      // the place of the first of them in the first row packed
  int64_t source;  // where it lies
  int64_t length;
};

// Where the operands of a step of depth lie: of the first pixel, and of the first result.
struct PixelStep {
  int64_t pixel;
  int64_t factor;
};

template <typename T>
struct ConvolutionEngine {
  // Elements of a vector; a panel is two wide.
  int width;

  // out[p * panel + at + j] = base[rows[p] + source + j] for each run. Reads and writes a whole
  // panel from the start of each, so that the last row of a panel must have room behind it.
  void (*pack)(const T* base, const int64_t* rows, int64_t depth, const WindowRun* runs,
               int64_t count, T* out);

  // c[i][j] (+)= sum over o < outer, p < inner of a[rows[i] + o * a_outer + p] * b[o, p][j], for m
  // rows and the first n columns of one panel, whose others are left out by whole vectors. Each sum
  // is one chain in ascending (o, p).
  void (*strip)(int64_t m, int64_t n, int64_t outer, int64_t inner, const T* a, int64_t a_outer,
                const int64_t* rows, const T* b, T* c, bool first);

  // out[r][i] = bias[r] + sum over t of weights[r][t] * base[places[t] + i], in ascending t, for at
  // most kFlatRows rows. Rounds n up to kFlatVectors vectors, in what it reads and writes.
  void (*flat)(int64_t rows, const T* base, const int64_t* places, const T* weights, int64_t taps,
               const T* bias, int64_t n, T* out, int64_t out_stride);

  // sums[t][lane] += base[rows[t] + i] * right[i] for the i < n of each lane.
  void (*dots)(const T* base, const int64_t* rows, int64_t taps, const T* right, int64_t n,
               T* sums);

  // Channels side by side, kConvolutionLanes of them at each position. out[i] = bias + the sum over
  // t of weights[t] * in[i + places[t]], in ascending t, for i < n.
  void (*lane_sums)(int64_t n, const T* in, const int64_t* places, const T* weights, int64_t taps,
                    const T* bias, T* out);
  // sums[t] += the sum over i < n of in[i + places[t]] * right[i], in ascending i.
  void (*lane_dots)(int64_t n, const T* in, const int64_t* places, int64_t taps, const T* right,
                    T* sums);

  // c[i][j] = sum over p < k of a[i * a_row + steps[p].pixel] * b[steps[p].factor + j], for m
  // pixels and the first n columns of one panel, whose others are left out by whole vectors. Each
  // sum is one chain in ascending p; unless `fresh`, it goes on from what c holds.
  void (*pixels)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const PixelStep* steps,
                 const T* b, T* c, bool fresh);
};

inline constexpr int kConvolutionLanes = 16;
inline constexpr int kFlatVectors = 4;
inline constexpr int kFlatRows = 4;
// Elements that may be read beyond a plane.
inline constexpr int64_t kPlaneSlack = 64;

// The table for `cpu_level()`.
template <typename T>
const ConvolutionEngine<T>& convolution_engine();
template <>
const ConvolutionEngine<float>& convolution_engine<float>();
template <>
const ConvolutionEngine<double>& convolution_engine<double>();

namespace base {
extern const ConvolutionEngine<float> convolution_f32;
extern const ConvolutionEngine<double> convolution_f64;
}  // namespace base

#if defined(__x86_64__)
namespace v3 {
extern const ConvolutionEngine<float> convolution_f32;
extern const ConvolutionEngine<double> convolution_f64;
}  // namespace v3
namespace v4 {
extern const ConvolutionEngine<float> convolution_f32;
extern const ConvolutionEngine<double> convolution_f64;
}  // namespace v4
#endif

}  // namespace rushlight
