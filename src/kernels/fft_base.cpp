#include <cstdint>

#include "kernels/fft_engine.h"
#include "runtime/cpu.h"

#define RUSHLIGHT_LEVEL base

// clang-format off: the order matters
#include "kernels/simd_base.h"
#include "kernels/fft_butterfly.h"
#include "kernels/fft_lanes.h"
// clang-format on

namespace rushlight {

// Of the instances at each level, the one for this machine.
#if defined(__x86_64__)
#define RUSHLIGHT_CHOOSE(name) \
  (cpu_level() >= CpuLevel::v4 ? v4::name : cpu_level() >= CpuLevel::v3 ? v3::name : base::name)
#else
#define RUSHLIGHT_CHOOSE(name) base::name
#endif

template <>
const FftEngine<float>& fft_engine() {
  return RUSHLIGHT_CHOOSE(fft_f32);
}
template <>
const FftEngine<double>& fft_engine() {
  return RUSHLIGHT_CHOOSE(fft_f64);
}

}  // namespace rushlight
