// What the core knows of the code generator: a table of functions, found by dlopen.
//
// The plug-in links LLVM statically with hidden symbols and uses nothing of the core but the
// definitions of loop/node.h and loop/kernel.h, so both sides must come from one build: `identity`
// is checked. No exception crosses the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "loop/kernel.h"

namespace rushlight::codegen {

enum class Level : uint8_t { X86V3 = 0, X86V4 = 1, AArch64 = 2 };
inline constexpr int kLevelCount = 3;
inline constexpr const char* kLevelNames[kLevelCount] = {"x86-64-v3", "x86-64-v4", "aarch64"};

// Takes the bytes of a relocatable object, or of an error message.
using Sink = void (*)(void* context, const char* bytes, size_t size);

struct Plugin {
  // Names the generator's sources: both sides must agree, and cached objects are keyed by it.
  const char* identity;
  // Emits `kernel` as the function `symbol` in an ELF object and hands it to `object`. On failure
  // returns false and hands a message to `error`. Safe to call from many threads.
  bool (*compile)(const loop::Kernel& kernel, const char* symbol, Level level, void* context,
                  Sink object, Sink error);
  // The same, as LLVM assembly text: for people and tests.
  bool (*print_ir)(const loop::Kernel& kernel, const char* symbol, Level level, void* context,
                   Sink text, Sink error);
};

inline constexpr const char* kPluginEntry = "rushlight_codegen_plugin";
using PluginEntry = const Plugin* (*)();

}  // namespace rushlight::codegen
