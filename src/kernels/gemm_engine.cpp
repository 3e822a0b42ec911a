#include "kernels/gemm_engine.h"

#include "runtime/cpu.h"

namespace rushlight {

template <>
const GemmEngine<float>& gemm_engine<float>() {
  static const GemmEngine<float> engine = [] {
#if defined(__x86_64__)
    if (cpu_level() >= CpuLevel::v4) {
      return v4::engine_f32();
    }
    if (cpu_level() >= CpuLevel::v3) {
      return v3::engine_f32;
    }
#endif
    return base::engine_f32;
  }();
  return engine;
}

template <>
const GemmEngine<double>& gemm_engine<double>() {
  static const GemmEngine<double> engine = [] {
#if defined(__x86_64__)
    if (cpu_level() >= CpuLevel::v4) {
      return v4::engine_f64();
    }
    if (cpu_level() >= CpuLevel::v3) {
      return v3::engine_f64;
    }
#endif
    return base::engine_f64;
  }();
  return engine;
}

}  // namespace rushlight
