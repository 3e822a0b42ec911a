// Compiled kernels on disk: one file a kernel, written whole or not at all, checked when read.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/plugin.h"

namespace rushlight {

// Names the sources of the code generator that this library was built with.
const char* kernel_code_identity();

// False where there is no such file or it is not exactly what was written.
bool read_kernel_file(codegen::Level level, uint64_t key, std::string* object);

// By writing another file and renaming it; where that fails the cache just stays without it.
void write_kernel_file(codegen::Level level, uint64_t key, const std::string& object);

}  // namespace rushlight
