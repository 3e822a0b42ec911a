#pragma once

#include <cstdint>

#include "runtime/function_ref.h"

namespace rushlight {

// Number of threads that `parallel_for` may use, the caller included. It starts as
// RUSHLIGHT_NUM_THREADS, else OMP_NUM_THREADS, else `available_cores()`.
int num_threads();

// Sets that number for the whole process. Numbers below 1 throw RuntimeError. Results of operators
// never depend on it.
void set_num_threads(int count);

// min(cgroup CPU quota, scheduler affinity, cores), at least 1. Read once.
int available_cores();

// True while the calling thread runs a piece of a `parallel_for` that was split.
bool in_parallel();

using RangeBody = FunctionRef<void(int64_t, int64_t)>;

// Calls `body(first, last)` on disjoint pieces that cover [begin, end), on several threads when the
// range holds more than `grain` items. Each piece starts at begin plus a multiple of `grain`.
// Nested calls run inline, as do calls made while another thread's loop occupies the pool. The
// number of pieces is not fixed, so a body must compute the same values however it is cut.
// Returns when all pieces are done. If pieces throw, the others still run, then the exception of
// the piece with the lowest start is rethrown.
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeBody body);

}  // namespace rushlight
