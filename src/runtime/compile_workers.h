// Compiling kernels in other processes: an option, for programs that want the code generator's
// memory and its faults outside of their own process.
//
// RUSHLIGHT_COMPILE_WORKERS=N, or set_compile_workers, asks for N processes. They start when the
// first kernel has to be compiled, run the program rushlight-compile that lies beside the library
// (RUSHLIGHT_WORKER names another), and end with this process. Each compiles one kernel at a time
// for whichever thread asks; what they make goes through this process into the disk cache that
// all processes share. Where a worker dies, gives nonsense or takes longer than
// RUSHLIGHT_WORKER_TIMEOUT seconds (60), the kernel is compiled in this process, with a warning;
// after three such workers no more are started.
#pragma once

#include <rushlight/error.h>

#include <cstdint>
#include <string>

#include "codegen/plugin.h"
#include "loop/kernel.h"

namespace rushlight {

// 0: none. Error(Value) for a negative number or one above 256.
RUSHLIGHT_API void set_compile_workers(int64_t count);
RUSHLIGHT_API int64_t compile_workers();

struct CompileWorkerStats {
  int64_t started = 0;
  int64_t compiled = 0;  // kernels
  int64_t lost = 0;
};
RUSHLIGHT_API CompileWorkerStats compile_worker_stats();

// Has a worker compile the kernel; waits for a free one. False where there are none, or it failed
// in any way: the caller compiles, and meets the kernel's own fault if it has one.
bool compile_elsewhere(const loop::Kernel& kernel, uint64_t key, codegen::Level level,
                       std::string* object);

// The worker's life: compiles what comes over the socket until it closes.
RUSHLIGHT_API void serve_compilations(int socket);

}  // namespace rushlight
