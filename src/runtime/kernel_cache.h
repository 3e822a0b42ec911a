// From a kernel to a function that runs it.
//
// Looked for in turn: in memory, in the kernel pack that is linked in, on disk, and last in the
// code generator, a plug-in that is opened when the first kernel has to be compiled. Compiled
// objects are kept on disk in RUSHLIGHT_CACHE_DIR, else XDG_CACHE_HOME/rushlight, else
// ~/.cache/rushlight; a file that is damaged is ignored and written anew, and where no file can be
// written objects live in memory only. RUSHLIGHT_CACHE_DIR set to nothing switches the disk cache
// off.
//
// RUSHLIGHT_INTERPRET=1 runs every kernel by the interpreter: slow, for finding faults.
// RUSHLIGHT_LOG=kernels prints a line for every kernel compiled or read.
// RUSHLIGHT_PLUGIN names the plug-in's file; by default it lies beside the library.
#pragma once

#include <rushlight/error.h>

#include <cstdint>
#include <string>
#include <vector>

#include "loop/kernel.h"

namespace rushlight {

// The function for `kernel` on this machine's `cpu_level()`. The fast path is a hash look-up; call
// sites keep the result. Safe to call from many threads: a kernel is compiled once. Throws
// RuntimeError where the code generator is missing or cannot lower the kernel.
RUSHLIGHT_API loop::KernelFunction get_kernel(const loop::Kernel& kernel);

// While set, each kernel that get_kernel meets for the first time is appended to `into` as well.
RUSHLIGHT_API void record_kernels(std::vector<loop::Kernel>* into);

struct KernelCacheStats {
  int64_t compiled = 0;
  int64_t disk_hits = 0;
  int64_t pack_hits = 0;
};
RUSHLIGHT_API KernelCacheStats kernel_cache_stats();

// The kernel as LLVM assembly text for the level called `level` ("x86-64-v3", "x86-64-v4",
// "aarch64"), or as an ELF object for it. They open the plug-in. ValueError for another name.
RUSHLIGHT_API std::string kernel_assembly(const loop::Kernel& kernel, const std::string& level);
RUSHLIGHT_API std::string kernel_object(const loop::Kernel& kernel, const std::string& level);

// Milliseconds that opening the plug-in took; opens it if need be.
RUSHLIGHT_API double open_codegen_plugin();

}  // namespace rushlight
