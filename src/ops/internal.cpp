// Operators without a face, for the library's own use.
#include <rushlight/generated/functions.h>

#include "ops/elementwise.h"

namespace rushlight {

RUSHLIGHT_OPERATORS(internal) {
  op("_assign(Tensor self) -> Tensor", kInternal)
      .complex(ComplexRule::Own)
      .doc("The elements themselves; writes them, converted, to a given output of any dtype.")
      .elementwise(Rule::Promote, [](Elementwise& e) { return e.raw(0); });
  op("_check_all(Tensor condition, str caller, str message) -> ()", kInternal)
      .doc("Error(Runtime) with this message unless every element is true; none on meta tensors.")
      .kernel([](const Tensor& condition, std::string_view caller, std::string_view message) {
        if (condition.is_meta() || condition.numel() == 0) {
          return;
        }
        if (!all(condition).item().to_bool()) {
          fail(ErrorKind::Runtime, caller, message);
        }
      })
      .not_differentiable();
}

}  // namespace rushlight
