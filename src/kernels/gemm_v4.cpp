#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "kernels/gemm_engine.h"

// In force to the end of the file, since templates take the target of their instantiation. Nothing
// of the standard library is instantiated below.
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")
#define RUSHLIGHT_LEVEL v4

// clang-format off: the order matters
#include "kernels/simd_v4.h"
#include "kernels/gemm_tile.h"
#include "kernels/gemm_pack.h"
// clang-format on

namespace rushlight::v4 {

// 14 x 2 sums, 2 vectors of B and a broadcast of A fill the 32 registers.
template <typename V>
GemmEngine<typename V::T> with_wide_tiles(GemmEngine<typename V::T> engine,
                                          decltype(engine.pack) pack) {
  constexpr int kRows = 14;
  engine.rows = kRows;
  engine.cols = 2 * V::kWidth;
  engine.vector = V::kWidth;
  engine.block = block<V, kRows>;
  engine.strip = strip<V, kRows>;
  engine.pack = pack;
  return engine;
}

GemmEngine<float> engine_f32() {
  return with_wide_tiles<F32>(v3::engine_f32, pack_f32);
}
GemmEngine<double> engine_f64() {
  return with_wide_tiles<F64>(v3::engine_f64, pack_f64);
}

}  // namespace rushlight::v4

#endif
