// Rules that run on the result as it was: a write to it before backward is then refused, as PyTorch
// refuses it, even where the rule here computes from the arguments alone.
#pragma once

#include <algorithm>
#include <utility>

#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {

// In Operator::reads: the gradient of this argument reads the result. Where some do, the result is
// kept for those alone.
inline constexpr uint64_t kReadsResult = uint64_t{1} << 63;

inline bool reads_result(uint64_t mask) {
  return (mask & kReadsResult) != 0;
}

// Ends an entry, after its gradient. `reader`: the only argument whose gradient reads the result;
// -1 for all of them.
inline void keep_result(Entry entry, int reader = -1) {
  Operator& op = entry.entry();
  op.saved_results |= 1;
  if (reader >= 0) {
    if (op.reads.empty()) {
      op.reads.assign(op.schema.arguments.size(), op.saved_arguments);
    }
    op.reads[static_cast<size_t>(reader)] |= kReadsResult;
  }
  op.gradient = [rule = std::move(op.gradient), reader](Gradient& g) {
    if (reader < 0 || g.needs(reader)) {
      static_cast<void>(g.result());  // its version is checked here
    }
    rule(g);
  };
}

}  // namespace rushlight
