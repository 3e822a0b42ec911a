#include "codegen/math_power.h"

#include <algorithm>

#include "codegen/math_builder.h"

namespace rushlight::codegen {

using llvm::Value;
using loop::Op;

namespace {

Value* root(MathBuilder& m, Value* x) {
  return m.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
}

struct Special {
  double exponent;
  Value* (*emit)(MathBuilder& m, Value* x);
};

// The usual ones first: they are looked for in this order.
const Special kSpecial[] = {
    {2, [](MathBuilder& m, Value* x) { return m.mul(x, x); }},
    {1, [](MathBuilder&, Value* x) { return x; }},
    {0.5, [](MathBuilder& m, Value* x) { return root(m, x); }},
    {3, [](MathBuilder& m, Value* x) { return m.mul(m.mul(x, x), x); }},
    {-1, [](MathBuilder& m, Value* x) { return m.div(m.c(1), x); }},
    {-0.5, [](MathBuilder& m, Value* x) { return m.div(m.c(1), root(m, x)); }},
    {-2, [](MathBuilder& m, Value* x) { return m.div(m.c(1), m.mul(x, x)); }},
    {0, [](MathBuilder& m, Value*) { return m.c(1); }},
};

}  // namespace

bool is_number(const loop::Node* node) {
  switch (node->op) {
    case Op::Const:
    case Op::Scalar:
      return true;
    case Op::Index:
    case Op::Extent:
    case Op::Load:
    case Op::LoadIf:
    case Op::Reduce:
    case Op::Scan:
      return false;
    default:
      return std::all_of(node->inputs.begin(), node->inputs.end(),
                         [](const loop::Expr& input) { return is_number(input.node); });
  }
}

Value* power_of_number(llvm::IRBuilder<>& builder, Value* x, Value* exponent,
                       const std::function<Value*()>& general) {
  MathBuilder m(builder, x);
  if (auto* constant = llvm::dyn_cast<llvm::ConstantFP>(exponent)) {
    for (const Special& special : kSpecial) {
      if (constant->isExactlyValue(special.exponent)) {
        return special.emit(m, x);
      }
    }
    return general();
  }
  // A branch for all lanes, which always goes the same way.
  llvm::Function* function = builder.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(function->getContext(), name, function);
  };
  llvm::BasicBlock* done = block("power");
  std::vector<std::pair<Value*, llvm::BasicBlock*>> results;
  const auto leave = [&](Value* result) {
    results.emplace_back(result, builder.GetInsertBlock());
    builder.CreateBr(done);
  };
  for (const Special& special : kSpecial) {
    llvm::BasicBlock* here = block("special");
    llvm::BasicBlock* next = block("other");
    Value* number = llvm::ConstantFP::get(exponent->getType(), special.exponent);
    builder.CreateCondBr(builder.CreateFCmpOEQ(exponent, number), here, next);
    builder.SetInsertPoint(here);
    leave(special.emit(m, x));
    builder.SetInsertPoint(next);
  }
  leave(general());
  builder.SetInsertPoint(done);
  llvm::PHINode* power = builder.CreatePHI(x->getType(), static_cast<unsigned>(results.size()));
  for (const auto& [value, from] : results) {
    power->addIncoming(value, from);
  }
  return power;
}

}  // namespace rushlight::codegen
