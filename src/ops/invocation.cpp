#include "ops/invocation.h"

#include <array>
#include <bit>

#include "kernels/copy.h"
#include "ops/complex_parts.h"
#include "ops/elementwise.h"
#include "ops/operator.h"

namespace rushlight {

thread_local ThreadState thread_state;

namespace {

std::array<DoorFunction, kDoorCount>& doors() {
  static std::array<DoorFunction, kDoorCount> functions{};
  return functions;
}

void enter(Invocation& inv, uint32_t open) {
  while (open != 0) {
    int door = std::countr_zero(open);
    open &= open - 1;
    if (DoorFunction function = doors()[static_cast<size_t>(door)]) {
      function(inv);
      return;
    }
  }
  run_body(inv);
}

// Python numbers in tensor slots become 0-dim tensors that are weak in type promotion.
void wrap_numbers(Invocation& inv) {
  const std::vector<Argument>& arguments = inv.op->schema.arguments;
  for (int i = 0; i < inv.argument_count; ++i) {
    Value& value = inv.arguments[i];
    if (value.is_number() && arguments[static_cast<size_t>(i)].type == SchemaType::Tensor) {
      Scalar number = value.to_scalar();
      Tensor wrapped = make_scalar_tensor(number, number.dtype());
      wrapped.impl()->set(TensorImpl::kWrappedNumber, true);
      value = Value(std::move(wrapped));
    }
  }
}

// Ranges fill an out= tensor of as many elements, whatever its shape.
bool fills_any_shape(const Invocation& inv, const Tensor& target, const Tensor& value) {
  return inv.op->family == "factory_range" && value.dim() == 1 && value.numel() == target.numel() &&
         value.dtype() == target.dtype();
}

void write_back(const Invocation& inv, const Value* fresh) {
  for (int i = 0; i < inv.result_count; ++i) {
    if (!inv.results[i].is_tensor() || !fresh[i].is_tensor()) {
      continue;
    }
    const Tensor& target = inv.results[i].tensor();
    const Tensor& value = fresh[i].tensor();
    if (target.is_same(value)) {
      continue;
    }
    if (inv.form == Form::Out && fills_any_shape(inv, target, value)) {
      assign(target, make_view(value, target.sizes(), contiguous_strides(target.sizes()), 0));
      continue;
    }
    check_output(*inv.op, inv.form, target, value.sizes(), value.dtype(), value.device());
    if (target.is_complex()) {
      kernels::copy(target, value);
    } else {
      assign(target, value);
    }
  }
}

// What a factory writes into out= has its dtype; another one that was asked for is an error.
void follow_output_options(const Invocation& inv) {
  const Schema& schema = inv.op->schema;
  const int dtype = schema.find("dtype");
  if (dtype < 0 || schema.find("layout") != dtype + 1) {
    return;
  }
  const Tensor& out = inv.results[0].tensor();
  Value& wanted = inv.arguments[dtype];
  if (!wanted.is_none() && wanted.dtype() != out.dtype()) {
    fail(ErrorKind::Runtime, inv.op->name(), "dtype ", scalar_type_name(wanted.dtype()),
         " does not match dtype of out parameter (", scalar_type_name(out.dtype()), ")");
  }
  wanted = Value(out.dtype());
  inv.arguments[dtype + 2] = Value(out.device());
}

// Kernels compute real numbers: what goes to a complex out= is copied there. Compositions that
// write their results have a say in their dtype first.
bool needs_complex_copy(const Invocation& inv) {
  const bool draws = inv.op->family == "random";  // both parts are drawn
  if (inv.form != Form::Out || inv.op->kind == Kind::Composition || draws) {
    return false;
  }
  bool complex_result = false;
  bool complex_argument = false;
  for_each_tensor(inv.results, inv.result_count, [&](const Tensor& tensor) {
    complex_result = complex_result || tensor.is_complex();
  });
  for_each_tensor(inv.arguments, inv.argument_count, [&](const Tensor& tensor) {
    complex_argument = complex_argument || tensor.is_complex();
  });
  return complex_result && !complex_argument;
}

void bump_versions(const Invocation& inv) {
  for (int i = 0; i < inv.result_count; ++i) {
    if (inv.results[i].is_tensor()) {
      inv.results[i].tensor().bump_version();
    }
  }
}

// Views are tracked, and writes checked, whether or not anything requires grad.
bool concerns_autograd(const Invocation& inv) {
  return inv.form != Form::Functional || inv.op->kind == Kind::View || any_requires_grad(inv);
}

}  // namespace

void install_door(Door door, DoorFunction function) {
  doors()[static_cast<size_t>(std::countr_zero(static_cast<uint32_t>(door)))] = function;
}

void pass(Invocation& inv, Door door) {
  uint32_t later = ~((static_cast<uint32_t>(door) << 1) - 1);
  uint32_t open = thread_state.doors & later;
  if (open == kAutogradDoor && !concerns_autograd(inv)) {
    open = 0;
  }
  enter(inv, open);
}

void invoke(Invocation& inv) {
  uint32_t open = thread_state.doors;
  if (open == kAutogradDoor && !concerns_autograd(inv)) {
    run_body(inv);
    return;
  }
  enter(inv, open);
}

bool any_requires_grad(const Invocation& inv) {
  bool found = false;
  for_each_tensor(inv.arguments, inv.argument_count,
                  [&](const Tensor& tensor) { found = found || tensor.requires_grad(); });
  return found || (inv.form == Form::Out && [&] {
           bool out = false;
           for_each_tensor(inv.results, inv.result_count,
                           [&](const Tensor& tensor) { out = out || tensor.requires_grad(); });
           return out;
         }());
}

void run_body(Invocation& inv) {
  const bool other = inv.op->complex_body != nullptr && concerns_complex(inv);
  const Body& body = other ? *inv.op->complex_body : *inv.op->body;
  if (inv.op->check != nullptr) {
    inv.op->check(inv);
  }
  if (!body.takes_numbers()) {
    wrap_numbers(inv);
  }
  if (inv.form == Form::Out && !inv.op->differentiable) {
    follow_output_options(inv);
  }
  const bool by_parts = inv.op->splits_complex() && concerns_complex(inv);
  if (inv.form == Form::Functional) {
    by_parts ? run_by_parts(inv) : body.run(*inv.op, inv);
    return;
  }
  if (body.writes_outputs() && !by_parts && !needs_complex_copy(inv)) {
    body.run(*inv.op, inv);
  } else {
    std::array<Value, 8> fresh;
    Invocation plain = inv;
    plain.form = Form::Functional;
    plain.results = fresh.data();
    by_parts ? run_by_parts(plain) : body.run(*inv.op, plain);
    write_back(inv, fresh.data());
  }
  bump_versions(inv);
}

// A call's list is its own temporary, so bodies may replace its values (wrap_numbers).
static Value* writable(std::initializer_list<Value> list) {
  return const_cast<Value*>(list.begin());
}

Tensor call(const Operator& op, std::initializer_list<Value> list) {
  Value result;
  Invocation inv{&op, Form::Functional, static_cast<uint8_t>(list.size()),
                 1,   writable(list),   &result};
  invoke(inv);
  return result.take_tensor();
}

void call_many(const Operator& op, std::initializer_list<Value> list, Value* results, int count) {
  Invocation inv{&op,
                 Form::Functional,
                 static_cast<uint8_t>(list.size()),
                 static_cast<uint8_t>(count),
                 writable(list),
                 results};
  invoke(inv);
}

void call_inplace(const Operator& op, std::initializer_list<Value> list) {
  Value result(list.begin()[op.inplace_argument].tensor());
  Invocation inv{&op, Form::Inplace, static_cast<uint8_t>(list.size()), 1, writable(list), &result};
  invoke(inv);
}

void call_out(const Operator& op, std::initializer_list<Value> list,
              std::initializer_list<Tensor> outputs) {
  std::array<Value, 8> results;
  size_t count = 0;
  for (const Tensor& output : outputs) {
    results[count++] = Value(output);
  }
  Invocation inv{&op,
                 Form::Out,
                 static_cast<uint8_t>(list.size()),
                 static_cast<uint8_t>(count),
                 writable(list),
                 results.data()};
  invoke(inv);
}

namespace detail {

TensorOptions unbox_options(const Value* values) {
  TensorOptions options;
  if (!values[0].is_none()) {
    options.dtype_ = values[0].dtype();
  }
  if (!values[1].is_none()) {
    options.layout_ = values[1].layout();
    if (*options.layout_ != LayoutKind::Strided) {
      fail(ErrorKind::NotImplemented, "", "expected layout torch.strided: no other is offered");
    }
  }
  if (!values[2].is_none()) {
    options.device_ = values[2].device();
  }
  if (!values[3].is_none() && values[3].to_bool()) {
    fail(ErrorKind::Runtime, "",
         "Cannot access accelerator device when none is available: "
         "pin_memory=True needs one");
  }
  return options;
}

}  // namespace detail
}  // namespace rushlight
