#include "kernels/attention_engine.h"

#include "runtime/cpu.h"

namespace rushlight {

template <>
const AttentionEngine<float>& attention_engine<float>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v4) {
    return v4::attention_f32;
  }
  if (cpu_level() >= CpuLevel::v3) {
    return v3::attention_f32;
  }
#endif
  return base::attention_f32;
}

template <>
const AttentionEngine<double>& attention_engine<double>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v4) {
    return v4::attention_f64;
  }
  if (cpu_level() >= CpuLevel::v3) {
    return v3::attention_f64;
  }
#endif
  return base::attention_f64;
}

}  // namespace rushlight
