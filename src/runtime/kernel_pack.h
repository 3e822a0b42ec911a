// Kernels compiled when the library is built. tools/packer.cpp writes, for each level, code and a
// table sorted by key; libraries linked without them find nothing here.
#pragma once

#include <cstdint>

#include "codegen/plugin.h"

namespace rushlight {

struct PackEntry {
  uint64_t key;
  int64_t offset;  // of the function from the entry's table
};

struct Pack {
  uint64_t count;
  PackEntry entries[1];  // `count` of them
};

// Null where the pack does not hold the kernel.
loop::KernelFunction find_in_pack(codegen::Level level, uint64_t key);

// How many kernels the pack holds for a level.
uint64_t pack_size(codegen::Level level);

}  // namespace rushlight
