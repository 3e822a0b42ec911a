// Compiled kernels on disk: one file a kernel, written whole or not at all, checked when read.
#pragma once

#include <rushlight/error.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plugin.h"

namespace rushlight {

// Names the sources of the code generator that this library was built with.
const char* kernel_code_identity();

// False where there is no such file or it is not exactly what was written.
bool read_kernel_file(codegen::Level level, uint64_t key, std::string* object);

// By writing another file and renaming it; where that fails the cache just stays without it.
void write_kernel_file(codegen::Level level, uint64_t key, const std::string& object);

// The objects that this process has read or written, as bytes that another process of this build
// can load, on another machine too; `names` names them.
RUSHLIGHT_API std::string save_kernel_artifacts(std::vector<std::string>* names);
// Makes the objects in `bytes` known to read_kernel_file, and writes their files; `names` names
// them. Those of another build are left out. False, and nothing is done, where the bytes are not
// exactly what save_kernel_artifacts gave.
RUSHLIGHT_API bool load_kernel_artifacts(std::string_view bytes, std::vector<std::string>* names);

}  // namespace rushlight
