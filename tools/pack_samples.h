// The kernels that belong in the pack.
#pragma once

#include <vector>

#include "loop/kernel.h"

namespace rushlight {

// Calls every operator of the table on small tensors of common dtypes and layouts, forward and
// backward, by the interpreter, runs the sample programs, and returns the kernels that this asked
// for.
std::vector<loop::Kernel> sample_kernels();

// Runs small compiled models, forward and backward.
void run_sample_programs();

}  // namespace rushlight
