// Compiled kernels by definition: the pack, then memory, then disk, then the compiler.
#pragma once

#include "loop/kernel.h"

namespace rushlight {

// The function of a kernel; compiled at most once a process. Safe from many threads.
loop::KernelFunction get_kernel(const loop::Kernel& kernel);

}  // namespace rushlight
