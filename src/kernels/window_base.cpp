#include <rushlight/dtype.h>

#include <cstdint>
#include <type_traits>

#include "kernels/element_type.h"
#include "kernels/window_engine.h"
#include "runtime/cpu.h"

#define RUSHLIGHT_LEVEL base

#include "kernels/window_lines.h"

namespace rushlight {
namespace base {
namespace {

template <typename T>
void widen_line(float* out, const T* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = kernels::load_value(in[i]);
  }
}

template <typename T>
void narrow_line(T* out, const float* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = kernels::store_value<T>(in[i]);
  }
}

template <typename T>
void sample_line(T* out, const T* in, const int32_t* offset, const T* weight, int64_t step,
                 int corners, int64_t count, bool add) {
  sample_singly(out, in, offset, weight, step, corners, 0, count, add);
}

}  // namespace

const GridLines<float> grid_f32{sample_line<float>};
const GridLines<double> grid_f64{sample_line<double>};
const WindowLines<float> window_f32 = kWindowLines<float>;
const WindowLines<double> window_f64 = kWindowLines<double>;
const HalfLines<Half> lines_f16{widen_line<Half>, narrow_line<Half>};
const HalfLines<BFloat16> lines_bf16{widen_line<BFloat16>, narrow_line<BFloat16>};

}  // namespace base

// Of the instances at each level, the one for this machine.
#if defined(__x86_64__)
#define RUSHLIGHT_CHOOSE(name) (cpu_level() >= CpuLevel::v3 ? v3::name : base::name)
#else
#define RUSHLIGHT_CHOOSE(name) base::name
#endif

template <typename T>
const WindowLines<T>& window_lines() {
  static constexpr WindowLines<T> kLines = base::kWindowLines<T>;
  return kLines;
}
template const WindowLines<uint8_t>& window_lines();
template const WindowLines<int8_t>& window_lines();
template const WindowLines<int16_t>& window_lines();
template const WindowLines<int32_t>& window_lines();
template const WindowLines<int64_t>& window_lines();

template <>
const WindowLines<float>& window_lines() {
  return RUSHLIGHT_CHOOSE(window_f32);
}
template <>
const WindowLines<double>& window_lines() {
  return RUSHLIGHT_CHOOSE(window_f64);
}
template <>
const GridLines<float>& grid_lines() {
  return RUSHLIGHT_CHOOSE(grid_f32);
}
template <>
const GridLines<double>& grid_lines() {
  return RUSHLIGHT_CHOOSE(grid_f64);
}
template <>
const HalfLines<Half>& half_lines() {
  return RUSHLIGHT_CHOOSE(lines_f16);
}
template <>
const HalfLines<BFloat16>& half_lines() {
  return RUSHLIGHT_CHOOSE(lines_bf16);
}

}  // namespace rushlight
