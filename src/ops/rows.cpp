#include "ops/rows.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "ops/elementwise.h"
#include "ops/row_space.h"
#include "ops/signature.h"
#include "runtime/kernel_cache.h"

namespace rushlight {
namespace {

using loop::Expr;

// `named`: the caller asked for `input`, which sums then keep; truth values are still counted.
DType apply_type(RowType type, DType input, DType compute, bool named = false) {
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

// Builds one kernel. Buffers: results first, then the tensors that were given.
class RowBuilder final : public Rows {
 public:
  RowBuilder(const Operator& op, const Value* arguments, const std::vector<int>& tensors,
             const RowSpec& spec, const RowSpace& space, const std::vector<DType>& result_dtypes,
             const std::vector<bool>& reduced, DType compute)
      : arguments_(arguments), space_(space), reduced_(reduced), compute_(compute) {
    kernel_.name = op.schema.full_name();
    kernel_.axes = {loop::AxisKind::Parallel,
                    spec.scans ? loop::AxisKind::Scan : loop::AxisKind::Reduce};
    if (space.inner >= 0) {
      kernel_.axes.push_back(loop::AxisKind::Parallel);
    }
    for (size_t i = 0; i < result_dtypes.size(); ++i) {
      add_buffer(result_dtypes[i], reduced[i]);
    }
    buffer_of_.assign(op.schema.arguments.size(), -1);
    for (int argument : tensors) {
      if (arguments[argument].is_tensor()) {
        buffer_of_[static_cast<size_t>(argument)] = static_cast<int>(kernel_.buffers.size());
        add_buffer(arguments[argument].impl()->dtype, false);
      }
    }
  }

  Expr raw(int argument) override {
    int buffer = buffer_of_[static_cast<size_t>(argument)];
    RUSHLIGHT_ASSERT(buffer >= 0);
    return loop::load(buffer, kernel_.buffers[static_cast<size_t>(buffer)].dtype, indices(false));
  }
  Expr in(int argument) override { return as(raw(argument), dtype()); }
  Expr scalar(int argument) override {
    for (size_t i = 0; i < scalars_.size(); ++i) {
      if (scalars_[i].argument == argument) {
        return loop::scalar(static_cast<int>(i), dtype());
      }
    }
    scalars_.push_back({argument, dtype()});
    kernel_.scalars.push_back(dtype());
    return loop::scalar(static_cast<int>(scalars_.size()) - 1, dtype());
  }
  DType dtype() const override { return compute_; }
  bool has(int argument) const override { return !arguments_[argument].is_none(); }
  const Value& attribute(int argument) override { return arguments_[argument]; }
  Expr count() override { return as(loop::extent(1), dtype()); }
  Expr position() override { return loop::index(1); }
  Expr sum(Expr x) override { return reduce(loop::Combine::Sum, x); }
  Expr reduce(loop::Combine combine, Expr x) override { return loop::reduce(combine, 1, x); }
  Expr scan(loop::Combine combine, Expr x) override { return loop::scan(combine, 1, x); }
  void store(int result, Expr value) override {
    DType target = compute_dtype(kernel_.buffers[static_cast<size_t>(result)].dtype);
    kernel_.stores.push_back(
        {result, indices(reduced_[static_cast<size_t>(result)]), as(value, target)});
  }

  const std::vector<ScalarSource>& scalars() const { return scalars_; }
  loop::Kernel take() { return loop::simplify(kernel_); }

 private:
  static Expr as(Expr x, DType dtype) { return x.dtype() == dtype ? x : loop::cast(x, dtype); }

  loop::Layout layout(int64_t stride) const {
    return stride == 0 ? loop::Layout::Zero : stride == 1 ? loop::Layout::Unit : loop::Layout::Any;
  }
  void add_buffer(DType dtype, bool reduced) {
    const RowOperand& operand = space_.operands[kernel_.buffers.size()];
    std::vector<loop::Layout> dims{loop::Layout::Any};
    if (!reduced) {
      dims.push_back(space_.inner >= 0 ? loop::Layout::Any : layout(operand.axis));
    } else {
      dims.push_back(loop::Layout::Zero);
    }
    if (space_.inner >= 0) {
      dims.push_back(layout(operand.outer[static_cast<size_t>(space_.inner)]));
    }
    kernel_.buffers.push_back({dtype, std::move(dims)});
  }
  std::vector<Expr> indices(bool reduced) const {
    Expr along = reduced ? loop::constant_int(0, DType::Int64) : loop::index(1);
    if (space_.inner >= 0) {
      return {loop::index(0), along, loop::index(2)};
    }
    return {loop::index(0), along};
  }

  const Value* arguments_;
  const RowSpace& space_;
  const std::vector<bool>& reduced_;
  DType compute_;
  loop::Kernel kernel_;
  std::vector<int> buffer_of_;
  std::vector<ScalarSource> scalars_;
};

struct CompiledRows {
  Signature signature;
  loop::KernelFunction function;
  std::vector<ScalarSource> scalars;
  CompiledRows* next;
};

// Where the arguments with fixed meanings are; -1: the schema has none.
struct RowRoles {
  std::vector<int> tensors;
  std::vector<int> attributes;  // optional scalars count by presence
  int dim;
  int keepdim;
  int dtype;

  explicit RowRoles(const Schema& schema)
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
};

class RowsBody final : public Body {
 public:
  RowsBody(const Schema& schema, RowSpec spec) : roles_(schema), spec_(std::move(spec)) {}
  bool writes_outputs() const override { return true; }
  void run(const Operator& op, Invocation& inv) const override;

 private:
  friend class ReductionBody;
  struct Plan;
  bool named_dtype(const Invocation& inv) const;
  DType input_dtype(const Invocation& inv) const;
  bool follows_output(const Invocation& inv) const;
  void allocate(const Operator& op, Invocation& inv, const Plan& plan) const;
  void launch(const Operator& op, Invocation& inv, const Plan& plan) const;
  const CompiledRows& kernel(const Operator& op, const Value* arguments, const RowSpace& space,
                             const std::vector<DType>& dtypes, DType compute) const;

  RowRoles roles_;
  RowSpec spec_;
  mutable std::atomic<CompiledRows*> kernels_{nullptr};
  mutable std::mutex mutex_;
};

struct RowsBody::Plan {
  IntList shape;      // of the first tensor, broadcast with the others
  IntList axis_dims;  // sorted
  IntList outer_dims;
  DType compute;
  std::vector<DType> dtypes;
  std::vector<IntList> sizes;
};

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

void RowsBody::run(const Operator& op, Invocation& inv) const {
  Plan plan;
  const Tensor& first = inv.arguments[roles_.tensors[0]].tensor();
  plan.shape = IntList(first.sizes());
  for (int argument : roles_.tensors) {
    if (inv.arguments[argument].is_tensor()) {
      const Tensor& tensor = inv.arguments[argument].tensor();
      if (tensor.is_complex()) {
        fail(ErrorKind::NotImplemented, op.name(), "argument '",
             op.schema.arguments[static_cast<size_t>(argument)].name, "' is ", tensor.dtype(),
             ": arithmetic on complex numbers is not offered");
      }
      if (tensor.sizes() != plan.shape) {
        plan.shape = broadcast_shapes(plan.shape, tensor.sizes(), op.name());
      }
    }
  }
  auto rank = static_cast<int64_t>(plan.shape.size());
  plan.axis_dims = roles_.dim < 0 ? reduced_dims(Value(), rank, op.name())
                                  : reduced_dims(inv.arguments[roles_.dim], rank, op.name());
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(plan.axis_dims.begin(), plan.axis_dims.end(), i) == plan.axis_dims.end()) {
      plan.outer_dims.push_back(i);
    }
  }
  DType input = input_dtype(inv);
  plan.compute = compute_dtype(apply_type(spec_.compute, input, input, named_dtype(inv)));
  allocate(op, inv, plan);
  const Tensor& out = inv.results[0].tensor();
  if (!out.is_meta() && out.numel() != 0) {
    launch(op, inv, plan);
  }
}

void RowsBody::allocate(const Operator& op, Invocation& inv, const Plan& plan_in) const {
  auto& plan = const_cast<Plan&>(plan_in);
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
                      : apply_type(result.type, input, plan.compute);
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

// Where order does not matter, the axis dimensions are taken from the widest stride inwards, so
// that those of permuted tensors fold too.
void order_by_stride(const Tensor& tensor, IntList& dims) {
  std::stable_sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) {
    return std::abs(tensor.strides()[static_cast<size_t>(a)]) >
           std::abs(tensor.strides()[static_cast<size_t>(b)]);
  });
}

void RowsBody::launch(const Operator& op, Invocation& inv, const Plan& plan) const {
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
    order_by_stride(inv.arguments[roles_.tensors[0]].tensor(), axis_dims);
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

const CompiledRows& RowsBody::kernel(const Operator& op, const Value* arguments,
                                     const RowSpace& space, const std::vector<DType>& dtypes,
                                     DType compute) const {
  Signature wanted;
  wanted.add(static_cast<unsigned>(compute), 5);
  wanted.add(space.inner >= 0 ? 1 : 0, 1);
  for (DType dtype : dtypes) {
    wanted.add(static_cast<unsigned>(dtype), 5);
  }
  for (int argument : roles_.tensors) {
    const TensorImpl* impl = arguments[argument].impl();
    wanted.add(impl == nullptr ? 31 : static_cast<unsigned>(impl->dtype), 5);
  }
  for (const RowOperand& operand : space.operands) {
    int64_t along =
        space.inner >= 0 ? operand.outer[static_cast<size_t>(space.inner)] : operand.axis;
    wanted.add(along == 0 ? 0 : along == 1 ? 1 : 2, 2);
  }
  for (int argument : roles_.attributes) {
    const Argument& declared = op.schema.arguments[static_cast<size_t>(argument)];
    if (declared.type == SchemaType::Scalar || declared.type == SchemaType::Float) {
      wanted.add(arguments[argument].is_none() ? 0 : 1, 1);
    } else {
      wanted.add_value(arguments[argument]);
    }
  }
  for (CompiledRows* at = kernels_.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    if (at->signature == wanted) {
      return *at;
    }
  }
  std::vector<bool> reduced;
  for (const RowResult& result : spec_.results) {
    reduced.push_back(result.shape == RowShape::Reduced);
  }
  RowBuilder builder(op, arguments, roles_.tensors, spec_, space, dtypes, reduced, compute);
  spec_.body(builder);
  auto made = std::make_unique<CompiledRows>();
  made->signature = wanted;
  made->scalars = builder.scalars();
  made->function = get_kernel(builder.take());
  std::lock_guard<std::mutex> lock(mutex_);
  made->next = kernels_.load(std::memory_order_relaxed);
  kernels_.store(made.get(), std::memory_order_release);
  return *made.release();  // lives as long as the table
}

// A splittable reduction: rows longer than two blocks are reduced block by block, then over blocks.
class ReductionBody final : public Body {
 public:
  ReductionBody(const Schema& schema, const ReduceSpec& spec)
      : roles_(schema),
        whole_(schema, whole_spec(spec)),
        blocks_(schema, blocks_spec(spec)),
        combine_(schema, combine_spec(spec)) {}
  bool writes_outputs() const override { return true; }

  void run(const Operator& op, Invocation& inv) const override {
    const Tensor& input = inv.arguments[0].tensor();
    if (input.numel() < 2 * kColumnBlock || input.is_meta() || input.is_complex() ||
        !run_split(op, inv, input)) {
      whole_.run(op, inv);
    }
  }

 private:
  static constexpr int64_t kRowBlock = 16384;
  static constexpr int64_t kColumnBlock = 1024;

  static RowSpec whole_spec(const ReduceSpec& spec) {
    RowSpec made{{{RowShape::Reduced, spec.type}}, {}, spec.compute, spec.allow_empty};
    made.body = [spec](Rows& r) {
      Expr total = r.reduce(spec.combine, spec.map(r));
      r.store(0, spec.finish ? spec.finish(r, total) : total);
    };
    return made;
  }
  static RowSpec blocks_spec(const ReduceSpec& spec) {
    RowSpec made{{{RowShape::Reduced, RowType::Compute}}, {}, spec.compute};
    made.body = [spec](Rows& r) { r.store(0, r.reduce(spec.combine, spec.map(r))); };
    return made;
  }
  static RowSpec combine_spec(const ReduceSpec& spec) {
    RowType type = spec.type == RowType::Sum ? RowType::Same : spec.type;
    RowSpec made{{{RowShape::Reduced, type}}, {}, RowType::Same};
    made.body = [spec](Rows& r) {
      Expr total = r.reduce(spec.combine, r.in(0));
      r.store(0, spec.finish ? spec.finish(r, total) : total);
    };
    return made;
  }

  bool run_split(const Operator& op, Invocation& inv, const Tensor& input) const;
  void run_blocks(const Operator& op, Value* arguments, const Tensor& view,
                  const Tensor& out) const;

  RowRoles roles_;
  RowsBody whole_;
  RowsBody blocks_;
  RowsBody combine_;
};

// Reduces the last dimension of `view` into `out`.
void ReductionBody::run_blocks(const Operator& op, Value* arguments, const Tensor& view,
                               const Tensor& out) const {
  arguments[0] = Value(view);
  if (roles_.dim >= 0) {
    arguments[roles_.dim] = Value(IntList{view.dim() - 1});
  }
  Value result(out);
  Invocation inv{&op, Form::Inplace, static_cast<uint8_t>(op.schema.arguments.size()),
                 1,   arguments,     &result};
  blocks_.run(op, inv);
}

bool ReductionBody::run_split(const Operator& op, Invocation& inv, const Tensor& input) const {
  if (roles_.dim < 0 || roles_.tensors.size() != 1 || !inv.results[0].is_none()) {
    return false;
  }
  IntList axis_dims = reduced_dims(inv.arguments[roles_.dim], input.dim(), op.name());
  IntList outer_dims;
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (std::find(axis_dims.begin(), axis_dims.end(), i) == axis_dims.end()) {
      outer_dims.push_back(i);
    }
  }
  order_by_stride(input, axis_dims);
  bool folds = true;
  RowOperand operand =
      row_operand(*input.impl(), input.sizes(), outer_dims, axis_dims, false, &folds);
  IntList outer;
  int64_t rows = 1;
  for (int64_t dim : outer_dims) {
    outer.push_back(input.sizes()[static_cast<size_t>(dim)]);
    rows *= outer.back();
  }
  int64_t length = rows == 0 ? 0 : input.numel() / rows;
  int64_t block = operand.axis == 1 ? kRowBlock : kColumnBlock;
  if (!folds || length < 2 * block) {
    return false;
  }
  int64_t blocks = length / block;
  int64_t tail = length % block;
  std::vector<Value> arguments(inv.arguments, inv.arguments + inv.argument_count);
  if (roles_.keepdim >= 0) {
    arguments[static_cast<size_t>(roles_.keepdim)] = Value(false);
  }
  DType in_dtype = input.dtype();
  if (roles_.dtype >= 0 && !inv.arguments[roles_.dtype].is_none()) {
    in_dtype = inv.arguments[roles_.dtype].dtype();
  }
  bool named = whole_.named_dtype(inv);
  if (named && in_dtype == DType::Bool) {
    return false;  // counts do not convert to truth values between the stages
  }
  DType compute = compute_dtype(apply_type(blocks_.spec_.compute, in_dtype, in_dtype, named));
  IntList partial_sizes(outer);
  partial_sizes.push_back(blocks + (tail != 0 ? 1 : 0));
  // Columns stay beside each other: the blocks are then the outermost dimension in memory.
  IntList partial_strides = contiguous_strides(partial_sizes);
  if (operand.axis != 1) {
    partial_strides = contiguous_strides(outer);
    partial_strides.push_back(rows);
  }
  Tensor partial = make_strided(partial_sizes, partial_strides, compute);
  auto run_part = [&](int64_t from, int64_t count, int64_t size) {
    IntList sizes(outer);
    IntList strides(operand.outer);
    sizes.push_back(count);
    strides.push_back(operand.axis * block);
    sizes.push_back(size);
    strides.push_back(operand.axis);
    Tensor view =
        make_view(input, sizes, strides, input.storage_offset() + from * block * operand.axis);
    IntList out_sizes(outer);
    out_sizes.push_back(count);
    Tensor out = make_view(partial, out_sizes, partial_strides, from * partial_strides.back());
    run_blocks(op, arguments.data(), view, out);
  };
  run_part(0, blocks, block);
  if (tail != 0) {
    run_part(blocks, 1, tail);
  }
  // The result in the form that was asked for, written through a view without the axis dimensions.
  {
    bool keepdim = roles_.keepdim >= 0 && inv.arguments[roles_.keepdim].to_bool();
    IntList sorted = reduced_dims(inv.arguments[roles_.dim], input.dim(), op.name());
    DType dtype = apply_type(whole_.spec_.results[0].type, in_dtype, compute, named);
    inv.results[0] =
        Value(make_tensor(reduced_sizes(input.sizes(), sorted, keepdim), dtype, input.device()));
  }
  Value target(make_view(inv.results[0].tensor(), outer, contiguous_strides(outer), 0));
  std::vector<Value> last(arguments);
  last[0] = Value(partial);
  last[static_cast<size_t>(roles_.dim)] = Value(IntList{partial.dim() - 1});
  if (roles_.dtype >= 0) {
    last[static_cast<size_t>(roles_.dtype)] = Value();
  }
  Invocation finish{&op, Form::Inplace, inv.argument_count, 1, last.data(), &target};
  combine_.run(op, finish);
  return true;
}

}  // namespace

std::unique_ptr<Body> make_reduction(const Schema& schema, ReduceSpec spec) {
  return std::make_unique<ReductionBody>(schema, spec);
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
