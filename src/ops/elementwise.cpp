#include "ops/elementwise.h"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#include "ops/derivative.h"
#include "ops/device_check.h"
#include "ops/iteration.h"
#include "ops/promotion.h"
#include "ops/signature.h"
#include "runtime/kernel_cache.h"
#include "tensor/geometry.h"
#include "tensor/scalar_range.h"

namespace rushlight {
namespace {

// What tensor slot, number or attribute each argument of an element-wise schema is.
struct Roles {
  std::vector<int> tensors;
  std::vector<int> conditions;  // of those, the ones that are bool and do not promote
  std::vector<int> promoting_scalars;
  std::vector<int> attributes;        // bool, int, str, dtype: part of the signature
  std::vector<int> optional_scalars;  // their presence is part of the signature
  std::vector<int> scalars;           // all numbers: whether they are complex is part of it, too
  int wide;                           // the attribute that says so; -1: none

  explicit Roles(const Schema& schema) : wide(schema.find(kWide)) {
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const Argument& argument = schema.arguments[i];
      int at = static_cast<int>(i);
      if (argument.type == SchemaType::Tensor) {
        tensors.push_back(at);
        if (argument.name == "condition" || argument.name == "mask") {
          conditions.push_back(at);
        }
      } else if (argument.type == SchemaType::Scalar || argument.type == SchemaType::Float) {
        const std::string& name = argument.name;
        scalars.push_back(at);
        if (argument.type == SchemaType::Scalar &&
            (name == "self" || name == "other" || name == "exponent" || name == "min" ||
             name == "max")) {
          promoting_scalars.push_back(at);
        }
        if (argument.optional) {
          optional_scalars.push_back(at);
        }
      } else {
        attributes.push_back(at);
      }
    }
  }
  bool is_condition(int argument) const {
    for (int condition : conditions) {
      if (condition == argument) {
        return true;
      }
    }
    return false;
  }
};

struct CompiledKernel {
  Signature signature;
  loop::KernelFunction function;
  std::vector<ScalarSource> scalars;
  double cost;
  CompiledKernel* next;
};

class ElementwiseBody final : public Body {
 public:
  ElementwiseBody(const Schema& schema, Rule rule, ElementwiseFunction function)
      : roles_(schema), rule_(rule), function_(std::move(function)) {}

  bool writes_outputs() const override { return true; }
  bool takes_numbers() const override { return true; }

  void run(const Operator& op, Invocation& inv) const override;

  void check_dtypes(const Operator& op, const Invocation& inv) const;
  ElementwiseTyping typing(const Operator& op, const Invocation& inv) const;
  loop::Expr expression(const Operator& op, const Invocation& inv, const ElementwiseTyping& typing,
                        ElementwiseOperands& operands) const {
    return build_expression(op, inv, rule_, roles_.conditions, function_, typing, operands);
  }

 private:
  DType promoted(const Operator& op, const Invocation& inv) const;
  bool run_fast(const Operator& op, Invocation& inv) const;
  IntList output_shape(const Operator& op, const Invocation& inv) const;
  Signature signature(const Invocation& inv, const KernelForm& form) const;
  const CompiledKernel& kernel(const Operator& op, const Invocation& inv,
                               const KernelForm& form) const;
  void launch(const Operator& op, const Invocation& inv, const Tensor& out, DType compute) const;

  Roles roles_;
  Rule rule_;
  ElementwiseFunction function_;
  mutable std::atomic<CompiledKernel*> kernels_{nullptr};
  mutable std::mutex mutex_;
};

DType result_dtype(const Operator& op, Rule rule, DType promoted) {
  return rule == Rule::Compare || rule == Rule::Logical ? DType::Bool
         : op.real_result                               ? real_dtype(promoted)
                                                        : promoted;
}

// What is real of complex numbers goes to any real numbers that it can be cast to, and to complex
// ones of the same precision.
bool is_real_part_for(const Operator& op, DType compute, DType target) {
  return op.real_result && is_complex(compute) &&
         (is_complex(target) ? target == compute : can_cast(real_dtype(compute), target));
}

bool is_complex_number(const Value& value) {
  return value.tag() == Value::Tag::Complex;
}

// Numbers that do not take part in promotion must be real where all else is.
void check_numbers(const Operator& op, const Invocation& inv, const std::vector<int>& scalars,
                   DType compute) {
  for (int argument : scalars) {
    if (is_complex_number(inv.arguments[argument]) && !is_complex(compute)) {
      fail(ErrorKind::Runtime, "", "For non-complex input tensors, argument ",
           op.schema.arguments[static_cast<size_t>(argument)].name,
           " must not be a complex number.");
    }
  }
}

DType ElementwiseBody::promoted(const Operator& op, const Invocation& inv) const {
  Promotion promotion;
  for (int argument : roles_.tensors) {
    if (!roles_.is_condition(argument)) {
      promotion.add(inv.arguments[argument]);
    }
  }
  for (int argument : roles_.promoting_scalars) {
    promotion.add(inv.arguments[argument]);
  }
  DType dtype = promotion.empty() ? DType::Bool : promotion.result();
  if (rule_ == Rule::Float && is_integral(dtype, true)) {
    dtype = default_dtype();
  }
  return roles_.wide >= 0 && inv.arguments[roles_.wide].to_bool() ? compute_dtype(dtype) : dtype;
}

[[noreturn]] void refuse_complex(const Operator& op, DType dtype) {
  fail(ErrorKind::NotImplemented, "", "\"", op.name(), "\" not implemented for '",
       scalar_type_name(dtype), "'");
}

void ElementwiseBody::check_dtypes(const Operator& op, const Invocation& inv) const {
  if (op.check != nullptr) {
    op.check(inv);
  }
  for (int argument : roles_.tensors) {
    const Value& value = inv.arguments[argument];
    const std::string& name = op.schema.arguments[static_cast<size_t>(argument)].name;
    if (value.is_tensor() && is_complex(value.impl()->dtype) && op.complex == ComplexRule::None) {
      refuse_complex(op, value.impl()->dtype);
    }
    if (value.is_tensor() && roles_.is_condition(argument) && value.impl()->dtype != DType::Bool &&
        value.impl()->dtype != DType::UInt8) {
      fail(ErrorKind::Runtime, op.name(), "expected ", name, " to be a boolean tensor, but got a ",
           "tensor with dtype ", value.impl()->dtype);
    }
  }
}

ElementwiseTyping ElementwiseBody::typing(const Operator& op, const Invocation& inv) const {
  DType compute = promoted(op, inv);
  return {compute, result_dtype(op, rule_, compute)};
}

IntList ElementwiseBody::output_shape(const Operator& op, const Invocation& inv) const {
  IntList shape;
  bool first = true;
  for (int argument : roles_.tensors) {
    const TensorImpl* impl = inv.arguments[argument].impl();
    if (impl == nullptr) {
      continue;
    }
    if (first) {
      shape = impl->sizes;
      first = false;
    } else if (!(shape == impl->sizes)) {
      shape = broadcast_shapes(shape, impl->sizes, "");
    }
  }
  return shape;
}

Signature ElementwiseBody::signature(const Invocation& inv, const KernelForm& form) const {
  Signature made;
  made.add(form);
  for (int argument : roles_.tensors) {
    const Value& value = inv.arguments[argument];
    unsigned kind = value.is_tensor()          ? 1 + static_cast<unsigned>(value.impl()->dtype)
                    : value.is_none()          ? 0
                    : is_complex_number(value) ? 30
                                               : 31;
    made.add(kind, 5);
  }
  if (is_complex(form.compute)) {
    for (int argument : roles_.scalars) {
      made.add(is_complex_number(inv.arguments[argument]) ? 1 : 0, 1);
    }
  }
  for (int argument : roles_.optional_scalars) {
    made.add(inv.arguments[argument].is_none() ? 0 : 1, 1);
  }
  for (int argument : roles_.attributes) {
    made.add_value(inv.arguments[argument]);
  }
  return made;
}

const CompiledKernel& ElementwiseBody::kernel(const Operator& op, const Invocation& inv,
                                              const KernelForm& form) const {
  Signature wanted = signature(inv, form);
  for (CompiledKernel* at = kernels_.load(std::memory_order_acquire); at != nullptr;
       at = at->next) {
    if (at->signature == wanted) {
      return *at;
    }
  }
  // Kernels are built outside the lock of others: the cache below has its own.
  auto made = std::make_unique<CompiledKernel>();
  made->signature = wanted;
  ElementwiseKernel built =
      build_elementwise(op, inv, form, rule_, roles_.tensors, roles_.conditions, function_);
  made->function = get_kernel(built.kernel);
  made->scalars = std::move(built.scalars);
  made->cost = built.cost;
  std::lock_guard<std::mutex> lock(mutex_);
  made->next = kernels_.load(std::memory_order_relaxed);
  kernels_.store(made.get(), std::memory_order_release);
  return *made.release();  // lives as long as the table
}

// The numbers of a call without elements, which no kernel sees: as fill_scalars refuses them.
void check_unused_numbers(const Invocation& inv, const std::vector<int>& scalars, DType compute) {
  for (int argument : scalars) {
    const Value& value = inv.arguments[argument];
    if (value.is_number() && !value.to_scalar().is_complex() &&
        inv.op->schema.arguments[static_cast<size_t>(argument)].type == SchemaType::Scalar) {
      check_fits(value.to_scalar(), compute_dtype(compute));
    }
  }
}

void fill_scalars(const CompiledKernel& kernel, const Invocation& inv, uint64_t* bits) {
  for (size_t i = 0; i < kernel.scalars.size(); ++i) {
    const ScalarSource& source = kernel.scalars[i];
    const Scalar value = inv.arguments[source.argument].to_scalar();
    // Numbers in the place of tensors wrap instead, as tensors do.
    if (!value.is_complex() &&
        inv.op->schema.arguments[static_cast<size_t>(source.argument)].type == SchemaType::Scalar) {
      check_fits(value, source.dtype);
    }
    bits[i] =
        (source.imaginary ? Scalar(value.to_complex().imag()) : value).kernel_bits(source.dtype);
  }
}

void ElementwiseBody::launch(const Operator& op, const Invocation& inv, const Tensor& out,
                             DType compute) const {
  Iteration space(out.sizes());
  space.add_parts(*out.impl());
  std::array<Tensor, kMaxOperands> copies;
  for (int argument : roles_.tensors) {
    if (inv.arguments[argument].is_tensor()) {
      const Tensor& input = inv.arguments[argument].tensor();
      if (must_copy_before_write(out, input)) {
        Tensor& copy = copies[static_cast<size_t>(space.operand_count)];
        copy = make_tensor(input.sizes(), input.dtype());
        assign(copy, input);
        space.add_parts(*copy.impl());
      } else {
        space.add_parts(*input.impl());
      }
    }
  }
  space.fold();
  KernelForm form{compute, out.dtype(), space.flat(), space.operand_count, {}};
  for (int k = 0; k < space.operand_count; ++k) {
    form.layouts[k] = space.layout(k, space.rank - 1);
  }
  const CompiledKernel& compiled = kernel(op, inv, form);
  uint64_t scalars[16];
  fill_scalars(compiled, inv, scalars);
  run_iteration(space, compiled.function, scalars, compiled.cost);
}

// Same-shape contiguous tensors and numbers of small size: no iteration space, no heap but for the
// result.
bool ElementwiseBody::run_fast(const Operator& op, Invocation& inv) const {
  if (inv.form != Form::Functional || !roles_.conditions.empty()) {
    return false;
  }
  const TensorImpl* first = nullptr;
  void* buffers[kMaxOperands];
  int count = 1;
  for (int argument : roles_.tensors) {
    const Value& value = inv.arguments[argument];
    const TensorImpl* impl = value.impl();
    if (impl == nullptr) {
      continue;
    }
    if (!impl->has(TensorImpl::kContiguous) || impl->device.is_meta() ||
        impl->has(TensorImpl::kWrappedNumber) || is_complex(impl->dtype)) {
      return false;
    }
    if (first == nullptr) {
      first = impl;
    } else if (!(first->sizes == impl->sizes)) {
      return false;
    }
    buffers[count++] = storage_data(impl->storage) + impl->offset * element_size(impl->dtype);
  }
  if (first == nullptr || first->numel == 0 || first->numel > 8192) {
    return false;
  }
  DType compute = promoted(op, inv);
  if (is_complex(compute)) {
    return false;
  }
  check_numbers(op, inv, roles_.scalars, compute);
  DType out_dtype = result_dtype(op, rule_, compute);
  KernelForm form{compute, out_dtype, true, count, {}};
  for (int k = 0; k < count; ++k) {
    form.layouts[k] = loop::Layout::Unit;
  }
  const CompiledKernel& compiled = kernel(op, inv, form);
  Tensor out = make_tensor(first->sizes, out_dtype);
  buffers[0] = out.data();
  static constexpr int64_t kOne[] = {1, 1};
  const int64_t* strides[kMaxOperands];
  for (int k = 0; k < count; ++k) {
    strides[k] = kOne;
  }
  uint64_t scalars[16];
  fill_scalars(compiled, inv, scalars);
  int64_t extent = first->numel;
  loop::KernelArgs args{buffers, strides, &extent, scalars};
  compiled.function(&args, 0, extent);
  inv.results[0] = Value(std::move(out));
  return true;
}

void ElementwiseBody::run(const Operator& op, Invocation& inv) const {
  if (run_fast(op, inv)) {
    return;
  }
  check_dtypes(op, inv);
  DType compute = promoted(op, inv);
  if (is_complex(compute) && op.complex == ComplexRule::None) {
    refuse_complex(op, compute);
  }
  check_numbers(op, inv, roles_.scalars, compute);
  DType out_dtype = result_dtype(op, rule_, compute);
  IntList shape = output_shape(op, inv);
  const Device device = common_device(inv);
  if (inv.results[0].is_none()) {
    inv.results[0] = Value(make_like_operands(inv, roles_.tensors, shape, out_dtype, device));
  } else {
    const Tensor& target = inv.results[0].tensor();
    const bool converted = is_real_part_for(op, compute, target.dtype());
    check_output(op, inv.form, target, shape, converted ? target.dtype() : out_dtype, device);
    for (int argument : roles_.tensors) {
      if (inv.arguments[argument].is_tensor()) {
        check_no_partial_overlap(target, inv.arguments[argument].tensor(), op.name());
      }
    }
  }
  const Tensor& out = inv.results[0].tensor();
  if (out.numel() == 0) {
    check_unused_numbers(inv, roles_.scalars, compute);
  } else if (!out.is_meta()) {
    launch(op, inv, out, compute);
  }
}

}  // namespace

bool is_elementwise(const Operator& op) {
  return op.kind == Kind::Elementwise;
}

ElementwiseTyping elementwise_typing(const Operator& op, const Invocation& inv) {
  return static_cast<const ElementwiseBody&>(*op.body).typing(op, inv);
}

void check_elementwise(const Operator& op, const Invocation& inv) {
  static_cast<const ElementwiseBody&>(*op.body).check_dtypes(op, inv);
}

loop::Expr elementwise_expression(const Operator& op, const Invocation& inv,
                                  const ElementwiseTyping& typing, ElementwiseOperands& operands) {
  return static_cast<const ElementwiseBody&>(*op.body).expression(op, inv, typing, operands);
}

void define_elementwise(Operator& op, Rule rule, ElementwiseFunction function) {
  op.body = std::make_unique<ElementwiseBody>(op.schema, rule, function);
  int tensors = 0;
  for (const Argument& argument : op.schema.arguments) {
    tensors += argument.type == SchemaType::Tensor ? 1 : 0;
  }
  op.casts_out = tensors > 1 || rule == Rule::Float || rule == Rule::Logical;
  if (rule == Rule::Compare || rule == Rule::Logical) {
    op.differentiable = false;
    return;
  }
  derive_gradient(op, rule, std::move(function));
}

void assign(const Tensor& target, const Tensor& value) {
  static const Operator& op = find_operator("_assign");
  Value argument = Value::borrow(value);
  Value result = Value::borrow(target);
  Invocation inv{&op, Form::Inplace, 1, 1, &argument, &result};
  op.body->run(op, inv);
}

}  // namespace rushlight
