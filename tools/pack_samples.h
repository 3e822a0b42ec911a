// The kernels that belong in the pack.
#pragma once

#include <vector>

#include "loop/kernel.h"

namespace rushlight {

// Calls every operator of the table on small tensors of common dtypes and layouts, forward and
// backward, by the interpreter, and returns the kernels that this asked for.
std::vector<loop::Kernel> sample_kernels();

}  // namespace rushlight
