#include <cstdint>
#include <initializer_list>

#include "kernels/lstm_engine.h"

#define RUSHLIGHT_LEVEL base

// clang-format off: the order matters
#include "kernels/simd_base.h"
#include "kernels/simd_math.h"
#include "kernels/lstm_rows.h"
// clang-format on
