// Operators without a face, for the library's own use.
#include "ops/elementwise.h"

namespace rushlight {

RUSHLIGHT_OPERATORS(internal) {
  op("_assign(Tensor self) -> Tensor", kInternal)
      .doc("The elements themselves; writes them, converted, to a given output of any dtype.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.raw(0); });
}

}  // namespace rushlight
