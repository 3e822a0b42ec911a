#pragma once

#include <cstdint>
#include <string_view>

namespace rushlight {

// The instruction sets that kernels are written for; each level includes those before it.
//   base   what the compiler's default target has: SSE2 on x86-64, NEON on AArch64
//   v3     x86-64-v3: AVX2, FMA, F16C, BMI2
//   v4     x86-64-v4: AVX-512 F, BW, CD, DQ, VL
//   v4amx  v4 with AVX512-BF16, AVX512-FP16 and AMX (tiles, bf16, int8)
enum class CpuLevel : uint8_t { base, v3, v4, v4amx };

std::string_view cpu_level_name(CpuLevel level);

// The highest level of this machine and its operating system. Cheap after the first call.
CpuLevel detected_cpu_level();

// The level that kernels are chosen for: the detected one, or a lower one named by RUSHLIGHT_CPU.
// Throws ValueError where that names no level, or one that the machine does not have.
CpuLevel cpu_level();

}  // namespace rushlight
