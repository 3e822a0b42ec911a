#pragma once

#include "ops/iteration.h"

namespace rushlight::kernels {

// Copies operand 1 to operand 0 of a folded space where their contiguous dimensions differ: in
// tiles, so that both sides move whole cache lines. False, and nothing done, where the space is of
// another kind or too small to gain.
bool copy_transposed(const Iteration& space);

}  // namespace rushlight::kernels
