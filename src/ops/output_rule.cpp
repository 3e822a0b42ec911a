#include "ops/output_rule.h"

#include "kernels/copy.h"
#include "ops/elementwise.h"

namespace rushlight {
namespace {

class Ruled final : public Body {
 public:
  Ruled(BoxedFunction function, OutputRule rule) : function_(std::move(function)), rule_(rule) {}
  bool writes_outputs() const override { return true; }
  void run(const Operator& op, Invocation& inv) const override {
    if (inv.form == Form::Functional) {
      function_(inv);
      return;
    }
    Value fresh;
    Invocation plain = inv;
    plain.form = Form::Functional;
    plain.results = &fresh;
    function_(plain);
    const Tensor& made = fresh.tensor();
    rule_(inv, made);
    const Tensor& target = inv.results[0].tensor();
    check_output(op, inv.form, target, made.sizes(), made.dtype(), made.device());
    kernels::copy(target, made);
  }

 private:
  BoxedFunction function_;
  OutputRule rule_;
};

}  // namespace

std::unique_ptr<Body> ruled_body(BoxedFunction function, OutputRule rule) {
  return std::make_unique<Ruled>(std::move(function), rule);
}

}  // namespace rushlight
