// The inner loops of windows, compiled for several levels: lines of elements a stride apart.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

namespace rushlight {

template <typename T>
struct WindowLines {
  // best[i] = max(best[i], in[i * stride]), NaN first; where it changes, where[i] = base + i *
  // step.
  void (*max_at)(T* best, int32_t* where, const T* in, int64_t stride, int64_t count, int32_t base,
                 int32_t step);
  void (*max)(T* best, const T* in, int64_t stride, int64_t count);
  // sum[i] += in[i * stride].
  void (*add)(T* sum, const T* in, int64_t stride, int64_t count);
  // sum[i * stride] += in[i].
  void (*spread)(T* sum, int64_t stride, const T* in, int64_t count);
  // sum[i] += in[i] * factor.
  void (*add_scaled)(T* sum, const T* in, T factor, int64_t count);
  // sum[i] += the elements i of the rows index[0 .. rows) of a table of `width` columns, in order;
  // those equal to `skipped` are left out. `ahead` indices may be read: rows to fetch early.
  void (*add_rows)(T* sum, const T* table, int64_t width, const int64_t* index, int64_t rows,
                   int64_t skipped, int64_t ahead);
};

// Sums over corners (grid_sample.h): out[p] (+)= sum over k of weight[k * step + p] *
// in[offset[k * step + p]], in the order of k; nothing where the offset is negative.
template <typename T>
struct GridLines {
  void (*sample)(T* out, const T* in, const int32_t* offset, const T* weight, int64_t step,
                 int corners, int64_t count, bool add);
};

// Conversions of half types.
template <typename T>
struct HalfLines {
  void (*widen)(float* out, const T* in, int64_t count);
  void (*narrow)(T* out, const float* in, int64_t count);
};

namespace base {
extern const GridLines<float> grid_f32;
extern const GridLines<double> grid_f64;
extern const WindowLines<float> window_f32;
extern const WindowLines<double> window_f64;
extern const HalfLines<Half> lines_f16;
extern const HalfLines<BFloat16> lines_bf16;
}  // namespace base
namespace v3 {
extern const GridLines<float> grid_f32;
extern const GridLines<double> grid_f64;
extern const WindowLines<float> window_f32;
extern const WindowLines<double> window_f64;
extern const HalfLines<Half> lines_f16;
extern const HalfLines<BFloat16> lines_bf16;
}  // namespace v3

template <typename T>
const WindowLines<T>& window_lines();  // f32, f64, integers
template <typename T>
const HalfLines<T>& half_lines();  // Half, BFloat16
template <typename T>
const GridLines<T>& grid_lines();  // f32, f64

}  // namespace rushlight
