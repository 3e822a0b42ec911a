#include "kernels/attention_engine.h"

#include "runtime/cpu.h"

namespace rushlight {

// Tiles of v4 use these functions of v3: a width for wider vectors is one for narrower ones too.
template <>
const AttentionEngine<float>& attention_engine<float>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return v3::attention_f32;
  }
#endif
  return base::attention_f32;
}

template <>
const AttentionEngine<double>& attention_engine<double>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return v3::attention_f64;
  }
#endif
  return base::attention_f64;
}

}  // namespace rushlight
