// The compiler: runs captured segments by plans that fuse their operators.
#pragma once

#include "graph/capture.h"

namespace rushlight::compiler {

// Asked where a plan's kernels cannot be compiled: whether its segment shall run operator by
// operator instead. Null: never.
RUSHLIGHT_API extern bool (*suppress_failure)(const Error& error);

// Runs a segment: finds the plan of its structure, or makes one.
RUSHLIGHT_API void run(graph::Segment& segment);

// Whether a segment of this structure has a plan: `run` will make none.
RUSHLIGHT_API bool is_planned(graph::Segment& segment);

struct Statistics {
  int64_t segments = 0;       // run
  int64_t plans = 0;          // made
  int64_t plan_hits = 0;      // found
  int64_t nodes = 0;          // captured, views aside
  int64_t fused_nodes = 0;    // of those, in kernels of more than one
  int64_t fused_kernels = 0;  // run
  int64_t calls = 0;          // single operators run
  int64_t remade = 0;         // results that were not kept for backward, but made there again
  int64_t remade_bytes = 0;
};
RUSHLIGHT_API Statistics statistics();
// Forgets all plans (not kernels, which have a cache of their own).
RUSHLIGHT_API void reset();

}  // namespace rushlight::compiler
