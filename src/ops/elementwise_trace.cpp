#include "ops/elementwise_trace.h"

#include <optional>

#include "ops/elementwise_expression.h"
#include "ops/operator.h"

namespace rushlight {

using loop::Expr;

namespace {

thread_local ElementTrace* open_trace = nullptr;

Expr as(Expr x, DType dtype) {
  return x.dtype() == dtype ? x : loop::cast(x, dtype);
}

Expr constant_of(const Scalar& number, DType dtype) {
  DType compute = compute_dtype(dtype);
  Expr made =
      is_floating(compute)
          ? loop::constant(number.to_double(), compute)
          : loop::constant_int(number.is_floating_point() ? static_cast<int64_t>(number.to_double())
                                                          : number.to_int(),
                               compute);
  return convert_traced(made, dtype);
}

// One number would stand for those of all elements.
void refuse_random(const Operator& op) {
  for (const Argument& argument : op.schema.arguments) {
    if (argument.type == SchemaType::Generator) {
      fail(ErrorKind::Runtime, "", op.name(),
           " draws random numbers, and a traced function is called once for all elements: index a "
           "tensor of random numbers that was made before");
    }
  }
}

// The operands of a call whose tensors stand for expressions.
class TracedOperands final : public ElementwiseOperands {
 public:
  TracedOperands(ElementTrace& trace, const Invocation& inv) : trace_(trace), inv_(inv) {}
  Expr load(int argument) override { return trace_.value(inv_.arguments[argument].tensor()).expr; }
  Expr number(int argument, DType dtype) override {
    return constant_of(inv_.arguments[argument].to_scalar(), dtype);
  }

 private:
  ElementTrace& trace_;
  const Invocation& inv_;
};

}  // namespace

Expr convert_traced(Expr expr, DType dtype) {
  DType compute = compute_dtype(dtype);
  Expr made = as(expr, compute);
  return compute == dtype ? made : loop::cast(made, dtype);
}

void trace_door(Invocation& inv) {
  if (open_trace == nullptr || !open_trace->handles(inv)) {
    pass(inv, kOverrideDoor);
  }
}

namespace {
const bool installed = (install_door(kOverrideDoor, trace_door), true);
}  // namespace

ElementTrace::ElementTrace(int first_buffer)
    : first_buffer_(first_buffer),
      outer_(open_trace),
      doors_(std::make_unique<DoorGuard>(kOverrideDoor, kAutocastDoor | kProfileDoor |
                                                            kTransformDoor | kDispatchDoor |
                                                            kCaptureDoor)) {
  static_cast<void>(installed);
  open_trace = this;
}

ElementTrace::~ElementTrace() {
  open_trace = outer_;
}

Tensor ElementTrace::symbol(Expr expr, DType dtype) {
  Tensor made = make_tensor({}, dtype, Device(DeviceType::Meta));
  symbols_[made.impl()] = {expr, {}, {}, made};
  return made;
}

const ElementTrace::Symbol* ElementTrace::find(const Tensor& tensor) const {
  auto found = symbols_.find(tensor.impl());
  return found == symbols_.end() ? nullptr : &found->second;
}

bool ElementTrace::is_symbol(const Tensor& tensor) const {
  return find(tensor) != nullptr;
}

int ElementTrace::capture(const Tensor& tensor) {
  for (size_t i = 0; i < captures_.size(); ++i) {
    if (captures_[i].is_same(tensor)) {
      return first_buffer_ + static_cast<int>(i);
    }
  }
  if (tensor.is_meta()) {
    fail(ErrorKind::Runtime, "", "captured a tensor on device meta, which holds no values");
  }
  if (is_complex(tensor.dtype())) {
    fail(ErrorKind::NotImplemented, "", "captured a tensor of dtype ", tensor.dtype(),
         ": complex numbers cannot be traced");
  }
  captures_.push_back(tensor);
  return first_buffer_ + static_cast<int>(captures_.size()) - 1;
}

TracedValue ElementTrace::value(const Tensor& tensor) {
  if (const Symbol* found = find(tensor)) {
    if (found->base.defined()) {
      fail(ErrorKind::Runtime, "", "a captured tensor of shape ", found->base.sizes(),
           " is indexed in only some of its dimensions, which leaves a tensor of shape ",
           tensor.sizes(), ": only single elements can be computed with");
    }
    return {found->expr, tensor.dtype()};
  }
  if (tensor.dim() != 0) {
    fail(ErrorKind::Runtime, "", "computes with a captured tensor of shape ", tensor.sizes(),
         " as a whole: index it, so that a single element is taken");
  }
  return {loop::load(capture(tensor), tensor.dtype(), {}), tensor.dtype()};
}

void ElementTrace::write(Invocation& inv, const TracedValue& made) {
  if (inv.form == Form::Functional) {
    inv.results[0] = Value(symbol(made.expr, made.dtype));
    return;
  }
  const Tensor& target = inv.results[0].tensor();
  auto found = symbols_.find(target.impl());
  if (found == symbols_.end() || found->second.base.defined()) {
    fail(ErrorKind::Runtime, "", inv.op->name(),
         " writes to a captured tensor: traced functions must not change what they capture");
  }
  found->second.expr = convert_traced(made.expr, target.dtype());
}

// A tensor as a base with none, or some, of its dimensions indexed.
ElementTrace::Symbol ElementTrace::as_indexed(const Tensor& tensor) {
  if (const Symbol* found = find(tensor)) {
    return *found;
  }
  Symbol made;
  made.base = tensor;
  made.indices.resize(static_cast<size_t>(tensor.dim()));
  return made;
}

Tensor ElementTrace::finish_index(Symbol indexed) {
  IntList rest;
  for (size_t d = 0; d < indexed.indices.size(); ++d) {
    if (!indexed.indices[d]) {
      rest.push_back(indexed.base.sizes()[d]);
    }
  }
  DType dtype = indexed.base.dtype();
  if (rest.empty()) {
    return symbol(loop::load(capture(indexed.base), dtype, std::move(indexed.indices)), dtype);
  }
  Tensor made = make_tensor(rest, dtype, Device(DeviceType::Meta));
  indexed.handle = made;
  symbols_[made.impl()] = std::move(indexed);
  return made;
}

// index(captured, [symbols]) and select(partly indexed, dim, number).
bool ElementTrace::index(Invocation& inv) {
  const std::string& name = inv.op->name();
  const Tensor& self = inv.arguments[0].tensor();
  if (name == "select" && is_symbol(self)) {
    Symbol made = as_indexed(self);
    int64_t dim = inv.arguments[1].to_int();
    dim = dim < 0 ? dim + self.dim() : dim;
    for (size_t d = 0; d < made.indices.size(); ++d) {
      if (!made.indices[d] && dim-- == 0) {
        int64_t at = inv.arguments[2].to_int();
        made.indices[d] = loop::constant_int(at < 0 ? at + made.base.sizes()[d] : at, DType::Int64);
      }
    }
    inv.results[0] = Value(finish_index(std::move(made)));
    return true;
  }
  if (name != "index") {
    return false;
  }
  if (is_symbol(self) && !find(self)->base.defined()) {
    fail(ErrorKind::Index, "", "indexes a traced value, which has no dimensions");
  }
  Symbol made = as_indexed(self);
  const TensorList& list = inv.arguments[1].tensors();
  size_t next = 0;
  for (size_t d = 0; d < made.indices.size() && next < list.size(); ++d) {
    if (made.indices[d]) {
      continue;
    }
    const Tensor& item = list[next++];
    if (!item.defined()) {
      continue;
    }
    TracedValue at = value(item);
    if (!is_integral(at.dtype, false)) {
      fail(ErrorKind::Index, "", "indexes a captured tensor by a traced value of dtype ", at.dtype,
           ": indices must be integers");
    }
    made.indices[d] = as(at.expr, DType::Int64);
  }
  inv.results[0] = Value(finish_index(std::move(made)));
  return true;
}

// Copies and conversions of a symbol, and constants of its kind.
bool ElementTrace::element_like(Invocation& inv) {
  const std::string& name = inv.op->name();
  const Tensor& self = inv.arguments[0].tensor();
  const std::vector<Argument>& declared = inv.op->schema.arguments;
  auto named = [&](std::string_view wanted) -> const Value* {
    for (size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].name == wanted) {
        return &inv.arguments[i];
      }
    }
    return nullptr;
  };
  const Value* dtype_value = named("dtype");
  DType dtype =
      dtype_value != nullptr && !dtype_value->is_none() ? dtype_value->dtype() : self.dtype();
  std::optional<Scalar> number;
  if (name == "zeros_like" || name == "new_zeros") {
    number = Scalar(0);
  } else if (name == "ones_like" || name == "new_ones") {
    number = Scalar(1);
  } else if (name == "full_like" || name == "new_full") {
    number = named("fill_value")->to_scalar();
  }
  const Value* size = named("size");
  if (number && (size == nullptr || size->ints().empty()) && self.dim() == 0) {
    inv.results[0] = Value(symbol(constant_of(*number, dtype), dtype));
    return true;
  }
  bool same = name == "clone" || name == "detach" || name == "alias" || name == "contiguous" ||
              name == "_to_copy";
  if (!same || self.dim() != 0) {
    return false;
  }
  inv.results[0] = Value(symbol(convert_traced(value(self).expr, dtype), dtype));
  return true;
}

// masked_fill(self, mask, value), which has a kernel of its own.
bool ElementTrace::fill_masked(Invocation& inv) {
  if (inv.op->name() != "masked_fill") {
    return false;
  }
  const TracedValue self = value(inv.arguments[0].tensor());
  const TracedValue mask = value(inv.arguments[1].tensor());
  if (mask.dtype != DType::Bool) {
    fail(ErrorKind::Runtime, inv.op->name(),
         "only supports boolean masks, but got mask with dtype ", mask.dtype);
  }
  const Value& filling = inv.arguments[2];
  Expr filled = filling.is_tensor() ? convert_traced(value(filling.tensor()).expr, self.dtype)
                                    : constant_of(filling.to_scalar(), self.dtype);
  write(inv, {loop::select(mask.expr, filled, self.expr), self.dtype});
  return true;
}

bool ElementTrace::handles(Invocation& inv) {
  refuse_random(*inv.op);
  bool any = false;
  for_each_tensor(inv.arguments, inv.argument_count,
                  [&](const Tensor& tensor) { any = any || is_symbol(tensor); });
  if (!any) {
    return false;
  }
  if (is_elementwise(*inv.op)) {
    check_elementwise(*inv.op, inv);
    const ElementwiseTyping typing = elementwise_typing(*inv.op, inv);
    TracedOperands operands(*this, inv);
    const Expr made = elementwise_expression(*inv.op, inv, typing, operands);
    write(inv, {convert_traced(made, typing.out), typing.out});
    return true;
  }
  if (fill_masked(inv)) {
    return true;
  }
  if (inv.op->kind == Kind::Composition && inv.op->name() != "contiguous") {
    return false;  // what it calls comes here
  }
  const Value* first = inv.arguments;
  if (inv.argument_count > 0 && first->is_tensor() && inv.form == Form::Functional &&
      (index(inv) || (is_symbol(first->tensor()) && element_like(inv)))) {
    return true;
  }
  fail(ErrorKind::NotImplemented, "", inv.op->name(),
       " cannot take part in a traced function: only element-wise operators, and indexing of "
       "captured tensors, can");
}

}  // namespace rushlight
