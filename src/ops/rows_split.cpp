// Reductions of long rows: block by block in parallel, then over the blocks.
#include <algorithm>

#include "ops/rows_body.h"

namespace rushlight {
namespace {

using loop::Expr;

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
    if (!inv.arguments[0].tensor().is_meta() && inv.results[0].is_none()) {
      if (Cut made = cut(op, inv); made.blocks != 0) {
        run_split(op, inv, made);
        return;
      }
    }
    whole_.run(op, inv);
  }

  struct Cut {
    RowOperand operand;
    IntList outer;
    int64_t rows = 1;
    int64_t block = 0;
    int64_t blocks = 0;
    int64_t tail = 0;
    int64_t beside = 1;  // parts of a block that take turns at its elements: see side_by_side
  };
  Cut cut(const Operator& op, const Invocation& inv) const;
  const RowsBody& whole() const { return whole_; }

 private:
  static constexpr int64_t kRowBlock = 16384;
  static constexpr int64_t kColumnBlock = 1024;

  static RowSpec whole_spec(const ReduceSpec& spec) {
    RowSpec made{{{RowShape::Reduced, spec.type}}, {}, spec.compute, spec.allow_empty};
    made.empty_is_all = spec.empty_is_all;
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

  void run_split(const Operator& op, Invocation& inv, const Cut& cut) const;
  void run_blocks(const Operator& op, Value* arguments, const Tensor& view,
                  const Tensor& out) const;

  RowRoles roles_;
  RowsBody whole_;
  RowsBody blocks_;
  RowsBody combine_;
};

// Few columns leave most of a vector empty. Where they lie without gaps, so many rows side by side
// are taken for one, whose columns are summed apart.
int64_t side_by_side(const ReductionBody::Cut& cut) {
  constexpr int64_t kEnough = 64;  // columns
  constexpr int64_t kMost = 16;
  int64_t expected = 1;
  for (size_t d = cut.outer.size(); d-- > 0;) {
    if (cut.outer[d] != 1 && cut.operand.outer[d] != expected) {
      return 1;
    }
    expected *= cut.outer[d];
  }
  if (cut.operand.axis != expected) {
    return 1;
  }
  int64_t beside = 1;
  while (beside < kMost && beside * cut.rows < kEnough) {
    beside *= 2;
  }
  return beside;
}

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

// How a call is cut; `blocks` is 0 where it is not.
ReductionBody::Cut ReductionBody::cut(const Operator& op, const Invocation& inv) const {
  Cut made;
  const Tensor& input = inv.arguments[0].tensor();
  if (input.numel() < 2 * kColumnBlock || input.is_complex() || roles_.dim < 0 ||
      roles_.tensors.size() != 1) {
    return made;
  }
  IntList axis_dims =
      reduced_dims(inv.arguments[roles_.dim], input.dim(), op.name(), whole_.spec().empty_is_all);
  IntList outer_dims;
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (std::find(axis_dims.begin(), axis_dims.end(), i) == axis_dims.end()) {
      outer_dims.push_back(i);
    }
  }
  order_by_stride(input, input.sizes().size(), axis_dims);
  bool folds = true;
  made.operand = row_operand(*input.impl(), input.sizes(), outer_dims, axis_dims, false, &folds);
  for (int64_t dim : outer_dims) {
    made.outer.push_back(input.sizes()[static_cast<size_t>(dim)]);
    made.rows *= made.outer.back();
  }
  int64_t length = made.rows == 0 ? 0 : input.numel() / made.rows;
  made.block = made.operand.axis == 1 ? kRowBlock : kColumnBlock;
  bool counts = whole_.named_dtype(inv) && whole_.input_dtype(inv) == DType::Bool;
  // Counts do not convert to truth values between the stages.
  if (folds && length >= 2 * made.block && !counts) {
    made.blocks = length / made.block;
    made.tail = length % made.block;
    made.beside = made.operand.axis == 1 ? 1 : side_by_side(made);
  }
  return made;
}

void ReductionBody::run_split(const Operator& op, Invocation& inv, const Cut& cut) const {
  const Tensor& input = inv.arguments[0].tensor();
  const RowOperand& operand = cut.operand;
  const IntList& outer = cut.outer;
  int64_t blocks = cut.blocks;
  int64_t tail = cut.tail;
  int64_t block = cut.block;
  std::vector<Value> arguments(inv.arguments, inv.arguments + inv.argument_count);
  if (roles_.keepdim >= 0) {
    arguments[static_cast<size_t>(roles_.keepdim)] = Value(false);
  }
  DType in_dtype = input.dtype();
  if (roles_.dtype >= 0 && !inv.arguments[roles_.dtype].is_none()) {
    in_dtype = inv.arguments[roles_.dtype].dtype();
  }
  bool named = whole_.named_dtype(inv);
  DType compute = compute_dtype(apply_row_type(blocks_.spec().compute, in_dtype, in_dtype, named));
  IntList partial_sizes(outer);
  partial_sizes.push_back(blocks * cut.beside + (tail != 0 ? 1 : 0));
  // Columns stay beside each other: the blocks are then the outermost dimension in memory.
  IntList partial_strides = contiguous_strides(partial_sizes);
  if (operand.axis != 1) {
    partial_strides = contiguous_strides(outer);
    partial_strides.push_back(cut.rows);
  }
  Tensor partial = make_strided(partial_sizes, partial_strides, compute);
  // `beside` parts of each of `count` blocks of `size`, the first of which goes to `place`.
  auto run_part = [&](int64_t from, int64_t count, int64_t size, int64_t beside, int64_t place) {
    const int64_t row = partial_strides.back();
    IntList sizes(outer);
    IntList strides(operand.outer);
    IntList out_strides(partial_strides);
    out_strides.pop_back();
    const auto add_first = [&](int64_t items, int64_t stride, int64_t out_stride) {
      sizes.insert(0, items);
      strides.insert(0, stride);
      out_strides.insert(0, out_stride);
    };
    if (beside > 1) {
      add_first(beside, operand.axis, row);
      add_first(count, operand.axis * block, row * beside);
    } else {
      sizes.push_back(count);
      strides.push_back(operand.axis * block);
      out_strides.push_back(row);
    }
    Tensor out = make_view(partial, sizes, out_strides, place * row);
    sizes.push_back(size / beside);
    strides.push_back(operand.axis * beside);
    Tensor view =
        make_view(input, sizes, strides, input.storage_offset() + from * block * operand.axis);
    run_blocks(op, arguments.data(), view, out);
  };
  run_part(0, blocks, block, cut.beside, 0);
  if (tail != 0) {
    run_part(blocks, 1, tail, 1, blocks * cut.beside);
  }
  // The result in the form that was asked for, written through a view without the axis dimensions.
  {
    bool keepdim = roles_.keepdim >= 0 && inv.arguments[roles_.keepdim].to_bool();
    IntList sorted = reduced_dims(inv.arguments[roles_.dim], input.dim(), op.name());
    DType dtype = apply_row_type(whole_.spec().results[0].type, in_dtype, compute, named);
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
}
}  // namespace

std::unique_ptr<Body> make_reduction(const Schema& schema, ReduceSpec spec) {
  return std::make_unique<ReductionBody>(schema, spec);
}

const RowsBody* rows_body(const Operator& op) {
  if (const auto* split = dynamic_cast<const ReductionBody*>(op.body.get())) {
    return &split->whole();
  }
  return dynamic_cast<const RowsBody*>(op.body.get());
}

bool splits_rows(const Operator& op, const Invocation& inv) {
  const auto* split = dynamic_cast<const ReductionBody*>(op.body.get());
  return split != nullptr && split->cut(op, inv).blocks != 0;
}

}  // namespace rushlight
