// Autocast: operators that gain from a lower precision get their arguments in it, those that need
// the range of f32 get them in f32.
//
// The state is the thread's. Only the forms that give fresh results are concerned; what in-place
// and out= forms write has its dtype already. Conversions are operators, so gradients pass through
// them. f32 leaves that require grad (weights) are converted once: the copies are kept until the
// outermost region ends.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::autograd {

struct AutocastState {
  bool enabled = false;
  bool caches = true;
  DType dtype = DType::BFloat16;
  int nesting = 0;
};

const AutocastState& autocast_state();
void set_autocast_enabled(bool enabled);
void set_autocast_dtype(DType dtype);
void set_autocast_caches(bool caches);
// Regions are counted, so that the outermost one clears the copies. Both return the new count.
int enter_autocast();
int leave_autocast();
void clear_autocast_cache();

}  // namespace rushlight::autograd
