// Evaluation of expressions where the builder stands, each node once in a scope.
#include <stdexcept>

#include "codegen/lowering.h"

namespace rushlight::codegen {

using loop::Op;

llvm::Value* Lowering::eval(const Node* node) {
  auto found = scope_.values.find(node);
  if (found != scope_.values.end()) {
    return found->second;
  }
  Value* value = compute(node);
  scope_.values[node] = value;
  return value;
}

llvm::Value* Lowering::compute(const Node* node) {
  switch (node->op) {
    case Op::Const:
      return a_.constant(node);
    case Op::Scalar:
      return scalars_.at(node->slot);
    case Op::Extent:
      return extents_.at(node->slot);
    case Op::Index:
      if (node->slot == analysis_.vector_axis()) {
        return lane_positions();
      }
      if (!scope_.axes.at(node->slot)) {
        throw std::runtime_error("an index is used where its axis does not run");
      }
      return scope_.axes[node->slot];
    case Op::Cast:
      if (node->dtype == DType::Int32 && node->inputs[0]->op == Op::Index &&
          node->inputs[0]->slot == analysis_.vector_axis()) {
        return short_lane_positions();
      }
      break;
    case Op::Load:
      return load(node);
    case Op::LoadIf:
      return load_if(node);
    case Op::Reduce:
      reduce_group(node->slot, {node});
      return scope_.values.at(node);
    case Op::Scan:
      return scan_value(node);
    default:
      break;
  }
  llvm::SmallVector<Value*, 3> operands;
  for (const Expr& input : node->inputs) {
    operands.push_back(eval(input.node));
  }
  return a_.apply(node, operands);
}

// Only affine indices are asked for, which are sums and products of the axis with uniform values.
llvm::Value* Lowering::eval_first(const Node* node) {
  if (!analysis_.vectorised(analysis_.deps(node))) {
    return eval(node);
  }
  auto found = scope_.firsts.find(node);
  if (found != scope_.firsts.end()) {
    return found->second;
  }
  Value* value;
  if (node->op == Op::Index) {
    value = scope_.axes[node->slot];
  } else {
    llvm::SmallVector<Value*, 2> operands;
    for (const Expr& input : node->inputs) {
      operands.push_back(eval_first(input.node));
    }
    value = a_.apply(node, operands);
  }
  scope_.firsts[node] = value;
  return value;
}

// Positions of the lanes; those past the end stand at the last valid one.
llvm::Value* Lowering::lane_positions() {
  if (scope_.lanes) {
    return scope_.lanes;
  }
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (int i = 0; i < width_; ++i) {
    numbers.push_back(b_.getInt64(i));
  }
  Value* lanes = llvm::ConstantVector::get(numbers);
  if (scope_.remaining) {
    Value* last = b_.CreateSub(valid_lanes(), b_.getInt64(1));
    Value* most = b_.CreateVectorSplat(width_, last);
    lanes = b_.CreateSelect(b_.CreateICmpSLT(lanes, most), lanes, most);
  }
  Value* base = scope_.axes[analysis_.vector_axis()];
  scope_.lanes = b_.CreateAdd(b_.CreateVectorSplat(width_, base), lanes);
  return scope_.lanes;
}

// The same as i32: half the registers, and no conversion of each lane.
llvm::Value* Lowering::short_lane_positions() {
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (int i = 0; i < width_; ++i) {
    numbers.push_back(b_.getInt32(static_cast<uint32_t>(i)));
  }
  Value* lanes = llvm::ConstantVector::get(numbers);
  if (scope_.remaining) {
    Value* last = b_.CreateTrunc(b_.CreateSub(valid_lanes(), b_.getInt64(1)), b_.getInt32Ty());
    Value* most = b_.CreateVectorSplat(width_, last);
    lanes = b_.CreateSelect(b_.CreateICmpSLT(lanes, most), lanes, most);
  }
  Value* base = b_.CreateTrunc(scope_.axes[analysis_.vector_axis()], b_.getInt32Ty());
  return b_.CreateAdd(b_.CreateVectorSplat(width_, base), lanes);
}

}  // namespace rushlight::codegen
