#if defined(__x86_64__)

#include <immintrin.h>
#include <rushlight/dtype.h>

#include <cstdint>

#include "kernels/fft_engine.h"

// In force to the end of the file, since templates take the target of their instantiation. Nothing
// of the standard library is instantiated below.
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#define RUSHLIGHT_LEVEL v3

// clang-format off: the order matters
#include "kernels/simd_v3.h"
#include "kernels/fft_butterfly.h"
#include "kernels/fft_lanes.h"
// clang-format on

#endif
