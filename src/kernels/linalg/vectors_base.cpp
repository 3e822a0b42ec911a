#include <cstdint>

#include "kernels/linalg/vectors.h"

#define RUSHLIGHT_LEVEL base

// clang-format off: the order matters
#include "kernels/simd_base.h"
#include "kernels/linalg/vectors_code.h"
// clang-format on
