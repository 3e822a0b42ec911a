#include "ops/written.h"

#include "kernels/copy.h"
#include "ops/elementwise.h"
#include "tensor/geometry.h"

namespace rushlight {

void prepare_written(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  if (inv.form == Form::Functional) {
    Tensor made = make_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()),
                               self.dtype(), self.device());
    kernels::copy(made, self);
    inv.results[0] = Value(std::move(made));
    return;
  }
  const Tensor& target = inv.results[0].tensor();
  if (inv.form == Form::Out) {
    check_output(*inv.op, inv.form, target, self.sizes(), self.dtype(), self.device());
    if (target.dtype() != self.dtype()) {
      fail(ErrorKind::Runtime, inv.op->name(), "Expected out tensor to have dtype ", self.dtype(),
           ", but got ", target.dtype(), " instead");
    }
    if (!target.is_same(self)) {
      kernels::copy(target, self);
    }
  }
  check_no_internal_overlap(target, inv.op->name());
}

}  // namespace rushlight
