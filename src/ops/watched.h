// Whether calls are written down or answered for.
#pragma once

#include "ops/invocation.h"

namespace rushlight {

// In capture, and where dispatch modes or classes see calls: a composition that reads a number
// would make a constant of it there, so it computes with the tensor.
inline bool is_watched() {
  return thread_state.capture != 0 || (thread_state.doors & kDispatchDoor) != 0;
}

}  // namespace rushlight
