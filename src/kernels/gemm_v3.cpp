#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>
#include <initializer_list>

#include "kernels/gemm_engine.h"

// In force to the end of the file, since templates take the target of their instantiation. Nothing
// of the standard library is instantiated below.
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define RUSHLIGHT_LEVEL v3

// clang-format off: the order matters
#include "kernels/simd_v3.h"
#include "kernels/gemm_tile.h"
#include "kernels/gemm_pack.h"
#include "kernels/simd_math.h"
#include "kernels/gemm_rows.h"
// clang-format on

namespace rushlight::v3 {

const GemmEngine<float> engine_f32 = kEngineF32;
const GemmEngine<double> engine_f64 = kEngineF64;

}  // namespace rushlight::v3

#endif
