// Bodies of views and of operators that write their first argument.
#pragma once

#include <memory>
#include <utility>

#include "ops/operator.h"

namespace rushlight {

// A body with a function of its own for the in-place form. Out= forms do not exist.
class TwoFormBody : public Body {
 public:
  TwoFormBody(BoxedFunction functional, BoxedFunction inplace)
      : functional_(std::move(functional)), inplace_(std::move(inplace)) {}
  void run(const Operator& op, Invocation& inv) const override {
    (inv.form == Form::Inplace ? inplace_ : functional_)(inv);
  }
  bool writes_outputs() const override { return true; }

 private:
  BoxedFunction functional_;
  BoxedFunction inplace_;
};

// Makes `target` show the same memory as `shown`: what the in-place forms of views do.
void take_geometry(const Tensor& target, const Tensor& shown);

// A view whose in-place form changes sizes and strides of the argument itself.
template <typename F>
Entry reshaping_view(Entry entry, F function) {
  const BoxedFunction view = box(function);
  entry.body(Kind::View, std::make_unique<TwoFormBody>(view, [view](Invocation& inv) {
               Value shown;
               Invocation inner = inv;
               inner.form = Form::Functional;
               inner.results = &shown;
               view(inner);
               take_geometry(inv.arguments[0].tensor(), shown.tensor());
             }));
  return entry;
}

// A composition that has another composition as its in-place form.
template <typename F, typename G>
Entry two_form_composition(Entry entry, F function, G inplace) {
  entry.body(Kind::Composition, std::make_unique<TwoFormBody>(box(function), box(inplace)));
  return entry;
}

}  // namespace rushlight
