// Builds the loop IR kernel of an element-wise operator for one signature, and checks operands.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "loop/complex.h"
#include "ops/elementwise_expression.h"
#include "ops/iteration.h"
#include "ops/signature.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

using loop::Expr;

// The operands of one call, as loads of buffers and run-time scalars of a kernel.
class Builder final : public ElementwiseOperands {
 public:
  Builder(const Operator& op, const Invocation& inv, const KernelForm& form,
          const std::vector<int>& tensors)
      : inv_(inv), form_(form) {
    kernel_.name = op.schema.full_name();
    kernel_.axes.assign(form.flat ? 1 : 2, loop::AxisKind::Parallel);
    add_buffer(form.out);
    buffer_of_.assign(op.schema.arguments.size(), -1);
    for (int argument : tensors) {
      if (inv.arguments[argument].is_tensor()) {
        buffer_of_[static_cast<size_t>(argument)] = static_cast<int>(kernel_.buffers.size());
        add_buffer(inv.arguments[argument].impl()->dtype);
      }
    }
  }

  Expr load(int argument) override {
    int buffer = buffer_of_[static_cast<size_t>(argument)];
    return loop::load(buffer, kernel_.buffers[static_cast<size_t>(buffer)].dtype, indices());
  }

  Expr number(int argument, DType dtype) override {
    if (!is_complex(dtype)) {
      return number(argument, dtype, false);
    }
    const DType part = real_dtype(dtype);
    const bool complex = inv_.arguments[argument].to_scalar().is_complex();
    return loop::complex(number(argument, part, false),
                         complex ? number(argument, part, true) : loop::constant(0, part));
  }

  ElementwiseKernel finish(Expr value) {
    kernel_.stores.push_back({0, indices(), value});
    loop::Kernel kernel = loop::simplify(loop::lower_complex(kernel_));
    double cost = 0;
    for (const loop::Store& store : kernel.stores) {
      cost += element_cost(store.value);
    }
    return {std::move(kernel), scalars_, cost};
  }

 private:
  void add_buffer(DType dtype) {
    loop::Layout inner = form_.layouts[kernel_.buffers.size()];
    if (form_.flat) {
      kernel_.buffers.push_back({dtype, {inner}});
    } else {
      kernel_.buffers.push_back({dtype, {loop::Layout::Any, inner}});
    }
  }
  std::vector<Expr> indices() const {
    if (form_.flat) {
      return {loop::index(0)};
    }
    return {loop::index(0), loop::index(1)};
  }

  Expr number(int argument, DType dtype, bool imaginary) {
    size_t at = 0;
    while (at < scalars_.size() &&
           !(scalars_[at].argument == argument && scalars_[at].dtype == dtype &&
             scalars_[at].imaginary == imaginary)) {
      ++at;
    }
    if (at == scalars_.size()) {
      scalars_.push_back({argument, dtype, imaginary});
      kernel_.scalars.push_back(dtype);
    }
    return loop::scalar(static_cast<int>(at), dtype);
  }

  const Invocation& inv_;
  const KernelForm& form_;
  loop::Kernel kernel_;
  std::vector<int> buffer_of_;
  std::vector<ScalarSource> scalars_;
};

struct Range {
  const char* begin;
  const char* end;
};

Range bytes_of(const Tensor& tensor) {
  int64_t low = 0;
  int64_t high = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    int64_t reach = (tensor.sizes()[i] - 1) * tensor.strides()[i];
    (reach < 0 ? low : high) += reach;
  }
  const char* base = static_cast<const char*>(tensor.data());
  return {base + low * tensor.element_size(), base + (high + 1) * tensor.element_size()};
}

bool same_view(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.element_size() == b.element_size();
}

}  // namespace

void Signature::add(const KernelForm& form) {
  add(static_cast<unsigned>(form.compute), 5);
  add(static_cast<unsigned>(form.out), 5);
  add(form.flat ? 1 : 0, 1);
  for (int k = 0; k < form.operand_count; ++k) {
    add(static_cast<unsigned>(form.layouts[k]), 2);
  }
}

void Signature::add_value(const Value& value) {
  size_t hash = static_cast<size_t>(value.tag());
  switch (value.tag()) {
    case Value::Tag::String:
      hash = hash * 31 + std::hash<std::string_view>()(value.text());
      break;
    case Value::Tag::DType:
      hash = hash * 31 + static_cast<size_t>(value.dtype());
      break;
    case Value::Tag::None:
      break;
    default:
      hash = hash * 31 + static_cast<size_t>(value.to_int());
  }
  add(static_cast<unsigned>((hash ^ (hash >> 32)) & 0x7fffffff), 31);
}

ElementwiseKernel build_elementwise(const Operator& op, const Invocation& inv,
                                    const KernelForm& form, Rule rule,
                                    const std::vector<int>& tensors,
                                    const std::vector<int>& conditions,
                                    const ElementwiseFunction& function) {
  Builder builder(op, inv, form, tensors);
  return builder.finish(
      build_expression(op, inv, rule, conditions, function, {form.compute, form.out}, builder));
}

namespace {

// The tensor's strides where it repeats to `shape`.
IntList spread_strides(const TensorImpl& tensor, IntArrayRef shape) {
  IntList strides(shape.size(), 0);
  const size_t lead = shape.size() - tensor.sizes.size();
  for (size_t i = lead; i < shape.size(); ++i) {
    const bool repeats = tensor.sizes[i - lead] != shape[i];
    strides[i] = repeats ? 0 : tensor.strides[i - lead];
  }
  return strides;
}

}  // namespace

Tensor make_like_operands(const Invocation& inv, const std::vector<int>& tensors, IntArrayRef shape,
                          DType dtype, Device device) {
  bool row_major = true;
  for (int argument : tensors) {
    const TensorImpl* impl = inv.arguments[argument].impl();
    if (impl == nullptr) {
      continue;
    }
    if (!impl->has(TensorImpl::kContiguous)) {
      row_major = false;
      break;
    }
    if (IntArrayRef(impl->sizes) == shape) {
      break;  // it tells all dimensions apart
    }
  }
  if (row_major) {
    return make_tensor(shape, dtype, device);
  }
  std::vector<IntList> operands;
  bool same = true;
  for (int argument : tensors) {
    if (const TensorImpl* impl = inv.arguments[argument].impl(); impl != nullptr) {
      operands.push_back(spread_strides(*impl, shape));
      same = same && IntArrayRef(impl->sizes) == shape && operands[0] == operands.back();
    }
  }
  return make_strided(shape,
                      same ? preserved_strides(shape, operands[0]) : joint_strides(shape, operands),
                      dtype, device);
}

bool must_copy_before_write(const Tensor& out, const Tensor& input) {
  if (out.storage() != input.storage() || input.numel() == 0 || same_view(out, input)) {
    return false;
  }
  Range a = bytes_of(out);
  Range b = bytes_of(input);
  return a.begin < b.end && b.begin < a.end;
}

void check_output(const Operator& op, Form form, const Tensor& target, IntArrayRef sizes,
                  DType dtype, Device device) {
  if (!(target.device() == device)) {
    fail(ErrorKind::Runtime, op.name(), "Expected out tensor to be on device ", device.to_string(),
         ", but got it on ", target.device().to_string());
  }
  // What reduces to a truth value may be kept in bytes, and that of bytes in truth values.
  const auto is_truth = [](DType t) { return t == DType::Bool || t == DType::UInt8; };
  bool bytes = op.kind == Kind::Reduction && op.casts_out == false && !op.differentiable &&
               is_truth(dtype) && is_truth(target.dtype());
  if (form == Form::Out && !op.casts_out && target.dtype() != dtype && !bytes) {
    fail(ErrorKind::Runtime, op.name(), "Expected out tensor to have dtype ",
         scalar_type_name(dtype), ", but got ", scalar_type_name(target.dtype()), " instead");
  }
  if (!bytes && !can_cast(dtype, target.dtype())) {
    fail(ErrorKind::Runtime, op.name(), "result type ", scalar_type_name(dtype),
         " can't be cast to the desired output type ", scalar_type_name(target.dtype()));
  }
  if (!(target.sizes() == sizes)) {
    if (form == Form::Inplace) {
      fail(ErrorKind::Runtime, op.name(), "output with shape ", target.sizes(),
           " doesn't match the broadcast shape ", sizes);
    }
    if (target.numel() != 0) {
      warn(cat("An output with one or more elements was resized since it had shape ",
               target.sizes(), ", which does not match the required output shape ", sizes, "."));
    }
    resize_in_place(target, sizes);
  }
  for (int64_t i = 0; i < target.dim() && target.numel() != 0; ++i) {
    if (target.strides()[i] == 0 && target.sizes()[i] > 1) {
      fail(ErrorKind::Runtime, op.name(),
           "unsupported operation: more than one element of the written-to tensor refers to a "
           "single memory location. Please clone() the tensor before performing the operation.");
    }
  }
}

}  // namespace rushlight
