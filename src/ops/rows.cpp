#include "ops/rows.h"

#include <algorithm>
#include <cstdlib>

#include "ops/device_check.h"
#include "ops/elementwise.h"
#include "ops/rows_body.h"

namespace rushlight {

DType apply_row_type(RowType type, DType input, DType compute, bool named) {
  switch (type) {
    case RowType::Same:
      return input;
    case RowType::Sum:
      return (named ? input == DType::Bool : is_integral(input, true)) ? DType::Int64 : input;
    case RowType::Float:
      return is_integral(input, true) ? default_dtype() : input;
    case RowType::Compute:
      return compute;
    case RowType::Long:
      return DType::Int64;
    case RowType::Bool:
      return input == DType::UInt8 ? DType::UInt8 : DType::Bool;
  }
  __builtin_unreachable();
}

RowRoles::RowRoles(const Schema& schema)
    : dim(schema.find("dim")), keepdim(schema.find("keepdim")), dtype(schema.find("dtype")) {
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    int at = static_cast<int>(i);
    SchemaType type = schema.arguments[i].type;
    if (type == SchemaType::Tensor && !schema.arguments[i].list) {
      tensors.push_back(at);
    } else if (at != dim && at != keepdim && at != dtype) {
      attributes.push_back(at);
    }
  }
}

IntList reduced_sizes(IntArrayRef shape, IntArrayRef axis_dims, bool keepdim) {
  IntList sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool on_axis =
        std::find(axis_dims.begin(), axis_dims.end(), static_cast<int64_t>(i)) != axis_dims.end();
    if (!on_axis) {
      sizes.push_back(shape[i]);
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

// Sums and products are taken in the dtype of out= where no other was asked for.
bool RowsBody::follows_output(const Invocation& inv) const {
  return inv.form == Form::Out && roles_.dtype >= 0 && inv.arguments[roles_.dtype].is_none() &&
         spec_.compute == RowType::Sum;
}

// Whether `dtype` or out= says what is computed in, so that small integers stay as they are.
bool RowsBody::named_dtype(const Invocation& inv) const {
  return follows_output(inv) || (roles_.dtype >= 0 && !inv.arguments[roles_.dtype].is_none());
}

DType RowsBody::input_dtype(const Invocation& inv) const {
  if (roles_.dtype >= 0 && !inv.arguments[roles_.dtype].is_none()) {
    return inv.arguments[roles_.dtype].dtype();
  }
  return follows_output(inv) ? inv.results[0].tensor().dtype()
                             : inv.arguments[roles_.tensors[0]].tensor().dtype();
}

RowPlan RowsBody::plan(const Operator& op, const Invocation& inv) const {
  RowPlan plan;
  const Tensor& first = inv.arguments[roles_.tensors[0]].tensor();
  plan.shape = IntList(first.sizes());
  for (int argument : roles_.tensors) {
    if (inv.arguments[argument].is_tensor()) {
      const Tensor& tensor = inv.arguments[argument].tensor();
      if (tensor.is_complex()) {
        fail(ErrorKind::NotImplemented, "", "\"", op.name(), "\" not implemented for '",
             scalar_type_name(tensor.dtype()), "'");
      }
      if (tensor.sizes() != plan.shape) {
        plan.shape = broadcast_shapes(plan.shape, tensor.sizes(), op.name());
      }
    }
  }
  auto rank = static_cast<int64_t>(plan.shape.size());
  plan.axis_dims =
      roles_.dim < 0 ? reduced_dims(Value(), rank, op.name())
                     : reduced_dims(inv.arguments[roles_.dim], rank, op.name(), spec_.empty_is_all);
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(plan.axis_dims.begin(), plan.axis_dims.end(), i) == plan.axis_dims.end()) {
      plan.outer_dims.push_back(i);
    }
  }
  DType input = input_dtype(inv);
  if (is_complex(input)) {
    fail(ErrorKind::NotImplemented, "", "\"", op.name(), "\" not implemented for '",
         scalar_type_name(input), "'");
  }
  plan.compute = compute_dtype(apply_row_type(spec_.compute, input, input, named_dtype(inv)));
  // Of given results, allocate takes the dtypes instead.
  for (const RowResult& result : spec_.results) {
    plan.dtypes.push_back(named_dtype(inv) && result.type == RowType::Sum
                              ? input
                              : apply_row_type(result.type, input, plan.compute));
  }
  return plan;
}

void RowsBody::run(const Operator& op, Invocation& inv) const {
  common_device(inv);
  RowPlan plan = this->plan(op, inv);
  plan.dtypes.clear();
  allocate(op, inv, plan);
  bool any = false;  // of an empty axis, reduced results have elements where full ones have none
  for (size_t i = 0; i < spec_.results.size(); ++i) {
    const Tensor& out = inv.results[i].tensor();
    any = any || (!out.is_meta() && out.numel() != 0);
  }
  if (any) {
    launch(op, inv, plan);
  }
}

void RowsBody::allocate(const Operator& op, Invocation& inv, RowPlan& plan) const {
  const Tensor& first = inv.arguments[roles_.tensors[0]].tensor();
  bool keepdim = roles_.keepdim >= 0 && inv.arguments[roles_.keepdim].to_bool();
  DType input = input_dtype(inv);
  if (!spec_.allow_empty) {
    const Value& dim = inv.arguments[std::max(roles_.dim, 0)];
    bool unnamed =
        roles_.dim < 0 || dim.is_none() || (dim.tag() == Value::Tag::Ints && dim.ints().empty());
    if (unnamed && first.numel() == 0) {
      fail(ErrorKind::Runtime, op.name(),
           "Expected reduction dim to be specified for "
           "input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
    }
    for (int64_t dim : plan.axis_dims) {
      if (plan.shape.size() != 0 && plan.shape[static_cast<size_t>(dim)] == 0) {
        fail(ErrorKind::Index, op.name(), "Expected reduction dim ", dim,
             " to have non-zero size, got shape ", plan.shape);
      }
    }
  }
  for (size_t i = 0; i < spec_.results.size(); ++i) {
    const RowResult& result = spec_.results[i];
    DType dtype = named_dtype(inv) && result.type == RowType::Sum
                      ? input
                      : apply_row_type(result.type, input, plan.compute);
    IntList sizes = result.shape == RowShape::Full
                        ? plan.shape
                        : reduced_sizes(plan.shape, plan.axis_dims, keepdim);
    if (inv.results[i].is_none()) {
      inv.results[i] = Value(make_tensor(sizes, dtype, first.device()));
    } else {
      const Tensor& out = inv.results[i].tensor();
      check_output(op, inv.form, out, sizes, follows_output(inv) ? out.dtype() : dtype,
                   first.device());
    }
    plan.dtypes.push_back(inv.results[i].tensor().dtype());
    plan.sizes.push_back(std::move(sizes));
  }
}

namespace {

// A copy with the axis dimensions last, so that they fold into one.
Tensor with_axis_last(const Tensor& tensor, const IntList& shape, const IntList& outer_dims,
                      const IntList& axis_dims) {
  IntList order(outer_dims);
  for (int64_t dim : axis_dims) {
    order.push_back(dim);
  }
  auto lead = static_cast<int64_t>(shape.size()) - tensor.dim();
  IntList strides(shape.size(), 0);
  IntList sizes(shape.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    int64_t at = order[i] - lead;
    int64_t size = at < 0 ? 1 : tensor.sizes()[static_cast<size_t>(at)];
    sizes[static_cast<size_t>(order[i])] = size;
    strides[static_cast<size_t>(order[i])] = stride;
    stride *= size;
  }
  Tensor copy = make_strided(sizes, strides, tensor.dtype(), tensor.device());
  assign(copy, tensor);
  return copy;
}

}  // namespace

void order_by_stride(const Tensor& tensor, size_t rank, IntList& dims) {
  const auto lead = static_cast<int64_t>(rank) - tensor.dim();
  const auto stride = [&](int64_t dim) {
    return dim < lead ? 0 : std::abs(tensor.strides()[static_cast<size_t>(dim - lead)]);
  };
  std::stable_sort(dims.begin(), dims.end(),
                   [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
}

void RowsBody::launch(const Operator& op, Invocation& inv, const RowPlan& plan) const {
  RowSpace space;
  for (int64_t dim : plan.outer_dims) {
    space.outer.push_back(plan.shape[static_cast<size_t>(dim)]);
  }
  for (int64_t dim : plan.axis_dims) {
    if (!plan.shape.empty()) {
      space.length *= plan.shape[static_cast<size_t>(dim)];
    }
  }
  IntList axis_dims = plan.shape.empty() ? IntList() : plan.axis_dims;
  if (!spec_.ordered) {
    order_by_stride(inv.arguments[roles_.tensors[0]].tensor(), plan.shape.size(), axis_dims);
  }
  std::vector<bool> reduced;
  std::vector<Tensor> held;
  std::vector<std::pair<Tensor, Tensor>> write_back;
  for (size_t i = 0; i < spec_.results.size(); ++i) {
    Tensor out = inv.results[i].tensor();
    reduced.push_back(spec_.results[i].shape == RowShape::Reduced);
    bool overlaps = false;
    for (int argument : roles_.tensors) {
      overlaps = overlaps || (inv.arguments[argument].is_tensor() &&
                              inv.arguments[argument].tensor().storage() == out.storage());
    }
    // Reduced results are addressed as if the axis dimensions were there with size 1.
    IntList keep = reduced[i] ? reduced_sizes(plan.shape, axis_dims, true) : plan.shape;
    IntList strides(keep.size(), 0);
    Tensor target = out;
    bool folds = true;
    if (overlaps) {
      target = make_tensor(out.sizes(), out.dtype());
      write_back.emplace_back(out, target);
    }
    if (target.sizes() == keep) {
      strides = IntList(target.strides());
    } else {
      size_t at = 0;
      for (size_t d = 0; d < keep.size(); ++d) {
        bool on_axis = std::find(axis_dims.begin(), axis_dims.end(), static_cast<int64_t>(d)) !=
                       axis_dims.end();
        strides[d] = on_axis ? 0 : target.strides()[at++];
      }
    }
    Tensor view = make_view(target, keep, strides, target.storage_offset());
    RowOperand operand =
        row_operand(*view.impl(), plan.shape, plan.outer_dims, axis_dims, reduced[i], &folds);
    if (!folds) {
      Tensor fresh = with_axis_last(view, plan.shape, plan.outer_dims, axis_dims);
      write_back.emplace_back(out, fresh);
      operand = row_operand(*fresh.impl(), plan.shape, plan.outer_dims, axis_dims, false, &folds);
      held.push_back(fresh);
    }
    held.push_back(view);
    space.operands.push_back(std::move(operand));
  }
  for (int argument : roles_.tensors) {
    if (!inv.arguments[argument].is_tensor()) {
      continue;
    }
    Tensor input = inv.arguments[argument].tensor();
    bool folds = true;
    RowOperand operand =
        row_operand(*input.impl(), plan.shape, plan.outer_dims, axis_dims, false, &folds);
    if (!folds) {
      input = with_axis_last(input, plan.shape, plan.outer_dims, axis_dims);
      operand = row_operand(*input.impl(), plan.shape, plan.outer_dims, axis_dims, false, &folds);
      RUSHLIGHT_ASSERT(folds);
    }
    held.push_back(input);
    space.operands.push_back(std::move(operand));
  }
  space.fold();
  const CompiledRows& compiled = kernel(op, inv.arguments, space, plan.dtypes, plan.compute);
  uint64_t scalars[16];
  for (size_t i = 0; i < compiled.scalars.size(); ++i) {
    const ScalarSource& source = compiled.scalars[i];
    scalars[i] = inv.arguments[source.argument].to_scalar().kernel_bits(source.dtype);
  }
  run_rows(space, compiled.function, scalars, 2.0);
  for (auto& [target, value] : write_back) {
    assign(target, value);
  }
}

std::unique_ptr<Body> make_rows(const Schema& schema, RowSpec spec) {
  return std::make_unique<RowsBody>(schema, std::move(spec));
}

IntList reduced_dims(const Value& dim, int64_t rank, std::string_view op, bool empty_is_all) {
  if (rank > 64) {
    fail(ErrorKind::Runtime, op, "only tensors with up to 64 dims are supported, got ", rank);
  }
  IntList dims;
  IntArrayRef given;
  int64_t single;
  if (dim.tag() == Value::Tag::Ints) {
    given = dim.ints();
  } else if (!dim.is_none()) {
    single = dim.to_int();
    given = IntArrayRef(&single, 1);
  }
  if (dim.is_none() || (given.empty() && empty_is_all)) {
    for (int64_t i = 0; i < rank; ++i) {
      dims.push_back(i);
    }
    return dims;
  }
  for (int64_t item : given) {
    int64_t wrapped = wrap_dim(item, rank, op);
    if (std::find(dims.begin(), dims.end(), wrapped) != dims.end()) {
      fail(ErrorKind::Runtime, op, "dim ", wrapped, " appears multiple times in the list of dims");
    }
    dims.push_back(wrapped);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

}  // namespace rushlight
