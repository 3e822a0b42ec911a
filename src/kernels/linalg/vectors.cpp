#include "kernels/linalg/vectors.h"

#include "runtime/cpu.h"

namespace rushlight::kernels {

template <>
const VectorOps<float>& vector_ops<float>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return v3::vectors_f32;
  }
#endif
  return base::vectors_f32;
}

template <>
const VectorOps<double>& vector_ops<double>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return v3::vectors_f64;
  }
#endif
  return base::vectors_f64;
}

}  // namespace rushlight::kernels
