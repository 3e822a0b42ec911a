// Builds the loop IR kernels of row operators, and keeps them by signature.
#include "ops/rows_body.h"
#include "runtime/kernel_cache.h"

namespace rushlight {
namespace {

using loop::Expr;

Expr as(Expr x, DType dtype) {
  return x.dtype() == dtype ? x : loop::cast(x, dtype);
}

// A body's view of the operands.
class RowExpression final : public Rows {
 public:
  RowExpression(const Value* arguments, DType compute, const std::vector<DType>& dtypes,
                bool is_short, bool counts, RowOperands& operands)
      : arguments_(arguments),
        compute_(compute),
        dtypes_(dtypes),
        is_short_(is_short),
        counts_(counts),
        operands_(operands) {}

  Expr raw(int argument) override { return operands_.load(argument); }
  Expr in(int argument) override {
    return as(counts_ ? as(raw(argument), DType::Bool) : raw(argument), dtype());
  }
  Expr scalar(int argument) override { return operands_.number(argument, dtype()); }
  DType dtype() const override { return compute_; }
  bool has(int argument) const override { return !arguments_[argument].is_none(); }
  const Value& attribute(int argument) override { return arguments_[argument]; }
  Expr count() override { return as(loop::extent(1), dtype()); }
  Expr position() override { return loop::index(1); }
  bool is_short() const override { return is_short_; }
  Expr sum(Expr x) override { return reduce(loop::Combine::Sum, x); }
  Expr reduce(loop::Combine combine, Expr x) override { return loop::reduce(combine, 1, x); }
  Expr scan(loop::Combine combine, Expr x) override { return loop::scan(combine, 1, x); }
  void store(int result, Expr value) override {
    operands_.store(result, as(value, compute_dtype(dtypes_[static_cast<size_t>(result)])));
  }

 private:
  const Value* arguments_;
  DType compute_;
  const std::vector<DType>& dtypes_;
  bool is_short_;
  bool counts_;
  RowOperands& operands_;
};

// Builds one kernel. Buffers: results first, then the tensors that were given.
class RowBuilder final : public RowOperands {
 public:
  RowBuilder(const Operator& op, const Value* arguments, const std::vector<int>& tensors,
             const RowSpec& spec, const RowSpace& space, const std::vector<DType>& result_dtypes,
             const std::vector<bool>& reduced)
      : space_(space), reduced_(reduced) {
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

  Expr load(int argument) override {
    int buffer = buffer_of_[static_cast<size_t>(argument)];
    RUSHLIGHT_ASSERT(buffer >= 0);
    return loop::load(buffer, kernel_.buffers[static_cast<size_t>(buffer)].dtype, indices(false));
  }
  Expr number(int argument, DType dtype) override {
    for (size_t i = 0; i < scalars_.size(); ++i) {
      if (scalars_[i].argument == argument) {
        return loop::scalar(static_cast<int>(i), dtype);
      }
    }
    scalars_.push_back({argument, dtype});
    kernel_.scalars.push_back(dtype);
    return loop::scalar(static_cast<int>(scalars_.size()) - 1, dtype);
  }
  void store(int result, Expr value) override {
    kernel_.stores.push_back({result, indices(reduced_[static_cast<size_t>(result)]), value});
  }

  const std::vector<ScalarSource>& scalars() const { return scalars_; }
  loop::Kernel take() { return loop::simplify(kernel_); }

 private:
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

  const RowSpace& space_;
  const std::vector<bool>& reduced_;
  loop::Kernel kernel_;
  std::vector<int> buffer_of_;
  std::vector<ScalarSource> scalars_;
};
}  // namespace

void RowsBody::express(const Value* arguments, DType compute, const std::vector<DType>& dtypes,
                       bool is_short, RowOperands& operands) const {
  // Truth values are counted: 0.3 and 5 are true, though neither is 1.
  const bool counts = spec_.compute == RowType::Sum && dtypes[0] == DType::Bool;
  RowExpression view(arguments, compute, dtypes, is_short, counts, operands);
  spec_.body(view);
}

const CompiledRows& RowsBody::kernel(const Operator& op, const Value* arguments,
                                     const RowSpace& space, const std::vector<DType>& dtypes,
                                     DType compute) const {
  Signature wanted;
  wanted.add(static_cast<unsigned>(compute), 5);
  bool is_short = space.length <= INT32_MAX;
  wanted.add(space.inner >= 0 ? 1 : 0, 1);
  wanted.add(is_short ? 1 : 0, 1);
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
  RowBuilder builder(op, arguments, roles_.tensors, spec_, space, dtypes, reduced);
  express(arguments, compute, dtypes, is_short, builder);
  auto made = std::make_unique<CompiledRows>();
  made->signature = wanted;
  made->scalars = builder.scalars();
  made->function = get_kernel(builder.take());
  std::lock_guard<std::mutex> lock(mutex_);
  made->next = kernels_.load(std::memory_order_relaxed);
  kernels_.store(made.get(), std::memory_order_release);
  return *made.release();  // lives as long as the table
}

}  // namespace rushlight
