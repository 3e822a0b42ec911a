#include "ops/complex_parts.h"

#include <array>

#include "kernels/copy.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

DType complex_of(DType real) {
  return real == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

Tensor part(const Tensor& tensor, int64_t offset) {
  IntList strides;
  for (int64_t stride : tensor.strides()) {
    strides.push_back(2 * stride);
  }
  return make_view(tensor, tensor.sizes(), strides, 2 * tensor.storage_offset() + offset,
                   real_dtype(tensor.dtype()));
}

// The argument of a call for one part: complex tensors give that part.
Value part_of(const Value& value, bool imaginary) {
  const auto of = [&](const Tensor& tensor) {
    return !tensor.defined() || !tensor.is_complex() ? tensor
           : imaginary                               ? imag_part(tensor)
                                                     : real_part(tensor);
  };
  if (value.is_tensor()) {
    return Value(of(value.tensor()));
  }
  if (value.tag() == Value::Tag::Tensors) {
    TensorList parts;
    for (const Tensor& tensor : value.tensors()) {
      parts.push_back(of(tensor));
    }
    return Value(std::move(parts));
  }
  if (value.tag() == Value::Tag::DType) {
    return Value(real_dtype(value.dtype()));
  }
  return value;
}

// The argument that asks for a dtype; -1 where none does.
int asked_dtype(const Invocation& inv) {
  const int at = inv.op->schema.find("dtype");
  return at >= 0 && !inv.arguments[at].is_none() ? at : -1;
}

void run_part(const Invocation& inv, const std::vector<Value>& arguments, bool imaginary,
              Value* results) {
  std::vector<Value> parts;
  for (const Value& argument : arguments) {
    parts.push_back(part_of(argument, imaginary));
  }
  Invocation call = inv;
  call.form = Form::Functional;
  call.arguments = parts.data();
  call.results = results;
  inv.op->body->run(*inv.op, call);
}

// The product of one part of the first tensor and one of the second. What is added to it (a bias)
// comes along once for each part of the result.
Tensor product_of_parts(const Invocation& inv, bool first, bool second) {
  std::vector<Value> parts;
  for (int i = 0; i < inv.argument_count; ++i) {
    const Value& argument = inv.arguments[i];
    if (!argument.is_tensor()) {
      parts.push_back(argument);
    } else if (i < 2) {
      const Value part = part_of(argument, i == 0 ? first : second);
      parts.push_back(Value(kernels::as_contiguous(part.tensor())));
    } else {
      parts.push_back(first ? Value() : part_of(argument, second));
    }
  }
  Value result;
  Invocation call = inv;
  call.form = Form::Functional;
  call.arguments = parts.data();
  call.results = &result;
  inv.op->body->run(*inv.op, call);
  return result.take_tensor();
}

Tensor combined(const Tensor& a, const Tensor& b, bool negated) {
  static const Operator& add = find_operator("add.Tensor");
  Value arguments[] = {Value::borrow(a), Value::borrow(b), Value(negated ? -1 : 1)};
  Value result;
  Invocation inv{&add, Form::Functional, 3, 1, arguments, &result};
  add.body->run(add, inv);
  return result.take_tensor();
}

void run_product(Invocation& inv) {
  bool mixed = false;
  for_each_tensor(inv.arguments, inv.argument_count, [&](const Tensor& tensor) {
    mixed = mixed || tensor.dtype() != inv.arguments[0].tensor().dtype();
  });
  if (mixed) {
    inv.op->body->run(*inv.op, inv);  // which refuses it in its own words
    return;
  }
  const Tensor real =
      combined(product_of_parts(inv, false, false), product_of_parts(inv, true, true), true);
  const Tensor imag =
      combined(product_of_parts(inv, false, true), product_of_parts(inv, true, false), false);
  inv.results[0] = Value(join_parts(real, imag));
}

}  // namespace

Tensor real_part(const Tensor& tensor) {
  return part(tensor, 0);
}

Tensor imag_part(const Tensor& tensor) {
  return part(tensor, 1);
}

Tensor join_parts(const Tensor& real, const Tensor& imag) {
  const Tensor made = make_tensor(real.sizes(), complex_of(real.dtype()), real.device());
  if (!made.is_meta()) {
    kernels::copy(real_part(made), real);
    kernels::copy(imag_part(made), imag);
  }
  return made;
}

bool concerns_complex(const Invocation& inv) {
  bool found = false;
  for_each_tensor(inv.arguments, inv.argument_count,
                  [&](const Tensor& tensor) { found = found || tensor.is_complex(); });
  const int asked = asked_dtype(inv);
  return found || (asked >= 0 && is_complex(inv.arguments[asked].dtype()));
}

void run_by_parts(Invocation& inv) {
  if (inv.op->complex == ComplexRule::Product) {
    run_product(inv);
    return;
  }
  std::vector<Value> arguments(inv.arguments, inv.arguments + inv.argument_count);
  const int asked = asked_dtype(inv);
  if (asked >= 0) {
    const DType wanted = arguments[static_cast<size_t>(asked)].dtype();
    for (Value& argument : arguments) {
      if (argument.is_tensor()) {
        argument = Value(kernels::as_dtype(argument.tensor(), wanted));
      }
    }
    if (!is_complex(wanted)) {
      run_part(inv, arguments, false, inv.results);
      return;
    }
  }
  std::array<Value, 8> real;
  std::array<Value, 8> imag;
  run_part(inv, arguments, false, real.data());
  run_part(inv, arguments, true, imag.data());
  for (int i = 0; i < inv.result_count; ++i) {
    const bool pair = real[static_cast<size_t>(i)].is_tensor() &&
                      real[static_cast<size_t>(i)].tensor().is_floating_point();
    inv.results[i] = pair ? Value(join_parts(real[static_cast<size_t>(i)].tensor(),
                                             imag[static_cast<size_t>(i)].tensor()))
                          : real[static_cast<size_t>(i)];
  }
}

}  // namespace rushlight
