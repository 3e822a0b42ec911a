#include <cstdint>

#include "kernels/convolution_engine.h"
#include "runtime/cpu.h"

#define RUSHLIGHT_LEVEL base

// clang-format off: the order matters
#include "kernels/simd_base.h"
#include "kernels/convolution_tile.h"
// clang-format on

namespace rushlight {
namespace base {

const ConvolutionEngine<float> convolution_f32 = kConvolution<F32>;
const ConvolutionEngine<double> convolution_f64 = kConvolution<F64>;

}  // namespace base

template <>
const ConvolutionEngine<float>& convolution_engine<float>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v4) {
    return v4::convolution_f32;
  }
  if (cpu_level() >= CpuLevel::v3) {
    return v3::convolution_f32;
  }
#endif
  return base::convolution_f32;
}

template <>
const ConvolutionEngine<double>& convolution_engine<double>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v4) {
    return v4::convolution_f64;
  }
  if (cpu_level() >= CpuLevel::v3) {
    return v3::convolution_f64;
  }
#endif
  return base::convolution_f64;
}

}  // namespace rushlight
