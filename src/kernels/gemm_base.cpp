#include <cstdint>
#include <initializer_list>

#include "kernels/gemm_engine.h"

#define RUSHLIGHT_LEVEL base

// clang-format off: the order matters
#include "kernels/simd_base.h"
#include "kernels/gemm_tile.h"
#include "kernels/gemm_pack.h"
#include "kernels/simd_math.h"
#include "kernels/gemm_rows.h"
// clang-format on

namespace rushlight::base {

const GemmEngine<float> engine_f32 = kEngineF32;
const GemmEngine<double> engine_f64 = kEngineF64;

}  // namespace rushlight::base
