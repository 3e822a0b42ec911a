#include "ops/written.h"

#include <array>

#include "kernels/copy.h"
#include "ops/elementwise.h"
#include "tensor/geometry.h"

namespace rushlight {

void prepare_written(Invocation& inv, Overlap overlap, Fresh fresh) {
  const Tensor& self = inv.arguments[0].tensor();
  if (inv.form == Form::Functional) {
    Tensor made = fresh == Fresh::RowMajor
                      ? make_tensor(self.sizes(), self.dtype(), self.device())
                      : make_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()),
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
  if (overlap == Overlap::Refuse) {
    check_no_internal_overlap(target, inv.op->name());
  }
}

namespace {

void check_given(const Invocation& inv) {
  const std::string& name = inv.op->name();
  for_each_tensor(inv.results, inv.result_count, [&](const Tensor& out) {
    check_no_internal_overlap(out, name);
    for_each_tensor(inv.arguments, inv.argument_count,
                    [&](const Tensor& argument) { check_no_overlap(out, argument, name); });
  });
}

void check_cast(const Invocation& inv, const Tensor& out, DType made) {
  if (inv.op->casts_out && !can_cast(made, out.dtype())) {
    fail(ErrorKind::Type, "", "torch.", inv.op->name(), "(): input types can't be cast to the ",
         "desired output type ", scalar_type_name(out.dtype()));
  }
}

}  // namespace

BoxedFunction strict_outputs(BoxedFunction function) {
  return [function = std::move(function)](Invocation& inv) {
    if (inv.form != Form::Out) {
      function(inv);
      return;
    }
    check_given(inv);
    std::array<Value, 4> fresh;
    Invocation plain = inv;
    plain.form = Form::Functional;
    plain.results = fresh.data();
    function(plain);
    for (int i = 0; i < inv.result_count; ++i) {
      const Tensor& out = inv.results[i].tensor();
      const Tensor& made = fresh[static_cast<size_t>(i)].tensor();
      check_cast(inv, out, made.dtype());
      check_output(*inv.op, inv.form, out, made.sizes(), made.dtype(), made.device());
    }
    check_given(inv);  // what grew may reach into an argument
    for (int i = 0; i < inv.result_count; ++i) {
      kernels::copy(inv.results[i].tensor(), fresh[static_cast<size_t>(i)].tensor());
    }
  };
}

std::unique_ptr<Body> strict_body(BoxedFunction function) {
  class Strict final : public Body {
   public:
    explicit Strict(BoxedFunction function) : function_(std::move(function)) {}
    void run(const Operator&, Invocation& inv) const override { function_(inv); }
    bool writes_outputs() const override { return true; }

   private:
    BoxedFunction function_;
  };
  return std::make_unique<Strict>(strict_outputs(std::move(function)));
}

}  // namespace rushlight
