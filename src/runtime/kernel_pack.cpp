#include "runtime/kernel_pack.h"

#include <algorithm>

extern "C" {
__attribute__((weak, visibility("hidden"))) extern const rushlight::Pack rushlight_pack_v3;
__attribute__((weak, visibility("hidden"))) extern const rushlight::Pack rushlight_pack_v4;
}

namespace rushlight {
namespace {

const Pack* pack_of(codegen::Level level) {
  switch (level) {
    case codegen::Level::X86V3:
      return &rushlight_pack_v3;
    case codegen::Level::X86V4:
      return &rushlight_pack_v4;
    default:
      return nullptr;
  }
}

}  // namespace

loop::KernelFunction find_in_pack(codegen::Level level, uint64_t key) {
  const Pack* pack = pack_of(level);
  if (!pack) {
    return nullptr;
  }
  const PackEntry* first = pack->entries;
  const PackEntry* last = first + pack->count;
  const PackEntry* found = std::lower_bound(
      first, last, key, [](const PackEntry& entry, uint64_t wanted) { return entry.key < wanted; });
  if (found == last || found->key != key) {
    return nullptr;
  }
  return reinterpret_cast<loop::KernelFunction>(reinterpret_cast<intptr_t>(pack) + found->offset);
}

uint64_t pack_size(codegen::Level level) {
  const Pack* pack = pack_of(level);
  return pack ? pack->count : 0;
}

}  // namespace rushlight
