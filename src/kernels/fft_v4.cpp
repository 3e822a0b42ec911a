#if defined(__x86_64__)

#include <immintrin.h>
#include <rushlight/dtype.h>

#include <cstdint>

#include "kernels/fft_engine.h"

// In force to the end of the file, since templates take the target of their instantiation. Nothing
// of the standard library is instantiated below.
#pragma GCC target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")
#define RUSHLIGHT_LEVEL v4

// clang-format off: the order matters
#include "kernels/simd_v4.h"
#include "kernels/fft_butterfly.h"
#include "kernels/fft_lanes.h"
// clang-format on

#endif
