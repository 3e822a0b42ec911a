#include "ops/dtype_checks.h"

namespace rushlight {
namespace {

// Calls function(argument's number, its dtype) for each tensor argument that was given as one.
template <typename F>
void for_each_dtype(const Invocation& inv, F&& function) {
  for (int i = 0; i < inv.argument_count; ++i) {
    if (const TensorImpl* impl = inv.arguments[i].impl(); impl != nullptr) {
      function(static_cast<size_t>(i), impl->dtype);
    }
  }
}

// "Long": what the operator is not offered for.
[[noreturn]] void fail_dtype(const Invocation& inv, DType dtype, std::string_view expected) {
  std::string_view name = inv.op->name();
  name.remove_prefix(name.find_first_not_of('_'));
  fail(ErrorKind::NotImplemented, "", "\"", name, "_cpu\" not implemented for '",
       scalar_type_name(dtype), "': expected ", expected);
}

bool is_bool(const Value& argument) {
  return argument.is_tensor() ? argument.impl()->dtype == DType::Bool
                              : argument.tag() == Value::Tag::Bool;
}

}  // namespace

void expect_floating(const Invocation& inv) {
  bool found = false;
  DType first = DType::Float32;
  bool any = false;
  for_each_dtype(inv, [&](size_t, DType dtype) {
    found = found || is_floating(dtype) || is_complex(dtype);
    first = any ? first : dtype;
    any = true;
  });
  if (any && !found) {
    fail_dtype(inv, first, "a floating-point tensor");
  }
}

void expect_not_bool(const Invocation& inv) {
  bool all = true;
  bool any = false;
  for_each_dtype(inv, [&](size_t, DType dtype) {
    all = all && dtype == DType::Bool;
    any = true;
  });
  if (any && all) {
    fail_dtype(inv, DType::Bool, "numbers");
  }
}

namespace {

// Leaves out arguments that need not be given, and those that `exempt` names.
template <typename F>
void expect_first_dtype(const Invocation& inv, F&& exempt) {
  const std::vector<Argument>& arguments = inv.op->schema.arguments;
  int first = -1;
  for_each_dtype(inv, [&](size_t i, DType dtype) {
    if (arguments[i].optional || exempt(i)) {
      return;
    }
    if (first < 0) {
      first = static_cast<int>(i);
      return;
    }
    const DType wanted = inv.arguments[first].impl()->dtype;
    if (dtype != wanted) {
      fail(ErrorKind::Runtime, inv.op->name(), "expected dtype ", wanted, " for `",
           arguments[i].name, "`, as `", arguments[static_cast<size_t>(first)].name,
           "` has, but got dtype ", dtype);
    }
  });
}

}  // namespace

void expect_one_dtype(const Invocation& inv) {
  expect_first_dtype(inv, [](size_t) { return false; });
}

void expect_lerp_dtypes(const Invocation& inv) {
  expect_first_dtype(inv, [&](size_t i) { return i == 2 && inv.arguments[2].impl()->rank == 0; });
}

void check_parameter_dtype(std::string_view op, DType input, const Tensor& parameter) {
  const bool wide =
      is_reduced_floating(input) && parameter.defined() && parameter.dtype() == DType::Float32;
  if (!parameter.defined() || parameter.dtype() == input || wide) {
    return;
  }
  const std::string expected = input == DType::Float32
                                   ? "expect parameter to have scalar type of Float"
                                   : "all inputs must share same datatype";
  fail(ErrorKind::Runtime, op, "mixed dtype (CPU): ", expected, ", but got input of ",
       scalar_type_name(input), " and a parameter of ", scalar_type_name(parameter.dtype()));
}

void check_norm_dtype(std::string_view op, DType input, std::optional<DType> wanted) {
  if (!wanted) {
    return;
  }
  if (!is_floating(*wanted) && !is_complex(*wanted)) {
    fail(ErrorKind::Runtime, op, "dtype should be floating point or complex, but got ",
         scalar_type_name(*wanted));
  }
  if (is_complex(input) != is_complex(*wanted)) {
    const std::string_view kind = is_complex(input) ? "complex" : "real";
    fail(ErrorKind::Runtime, op, "dtype should be ", kind, " for ", kind, " inputs, but got ",
         scalar_type_name(*wanted));
  }
  if (promote(input, *wanted) != *wanted) {
    fail(ErrorKind::Runtime, op, "the dtype of the input (", scalar_type_name(input),
         ") should be convertible without narrowing to the specified dtype (",
         scalar_type_name(*wanted), ")");
  }
}

void expect_one_floating_dtype(const Invocation& inv) {
  expect_floating(inv);
  expect_one_dtype(inv);
}

void refuse_bool_difference(const Invocation& inv) {
  const bool first = is_bool(inv.arguments[0]);
  const bool second = is_bool(inv.arguments[1]);
  if (first && second) {
    fail(ErrorKind::Runtime, "",
         "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
         "`logical_xor()` operator instead.");
  }
  if (first || second) {
    fail(ErrorKind::Runtime, "",
         "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
         "invert a mask, use the `~` or `logical_not()` operator instead.");
  }
}

void refuse_integer_division(const Invocation& inv) {
  for (int i : {1, 2}) {
    const TensorImpl* impl = inv.arguments[i].impl();
    if (impl == nullptr || !is_integral(impl->dtype, true)) {
      return;
    }
  }
  fail(ErrorKind::Runtime, "",
       "Integer division with addcdiv is no longer supported, and in a future release addcdiv will "
       "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be "
       "implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for "
       "integer inputs, and as (input + value * tensor1 / tensor2) for float inputs.");
}

}  // namespace rushlight
