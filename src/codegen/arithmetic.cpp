#include "codegen/arithmetic.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "codegen/math.h"
#include "codegen/math_f64.h"
#include "codegen/math_power.h"
#include "codegen/math_wide.h"

namespace rushlight::codegen {

using llvm::Intrinsic::ID;
using loop::Op;

int Arithmetic::lanes(Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* Arithmetic::like(llvm::Type* element, Value* v) {
  int n = lanes(v);
  return n == 1 ? element : llvm::FixedVectorType::get(element, n);
}

llvm::Value* Arithmetic::widen(Value* v, int n) {
  return n == 1 || lanes(v) == n ? v : b_.CreateVectorSplat(n, v);
}

llvm::Value* Arithmetic::constant(const loop::Node* node) {
  llvm::Type* type = value_type(node->dtype);
  if (is_floating(node->dtype)) {
    return llvm::ConstantFP::get(type, node->constant());
  }
  return llvm::ConstantInt::get(type, node->bits, is_signed(node->dtype));
}

llvm::Value* Arithmetic::identity(loop::Combine kind, DType dtype) {
  llvm::Type* type = value_type(dtype);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool floating = is_floating(dtype);
  unsigned bits = type->getScalarSizeInBits();
  bool wraps_low = is_signed(dtype);
  auto integer = [&](llvm::APInt value) { return llvm::ConstantInt::get(type, value); };
  switch (kind) {
    case loop::Combine::Sum:
    case loop::Combine::Or:
      return llvm::Constant::getNullValue(type);
    case loop::Combine::Prod:
      return floating ? llvm::ConstantFP::get(type, 1) : integer(llvm::APInt(bits, 1));
    case loop::Combine::Max:
      return floating ? llvm::ConstantFP::get(type, -kInfinity)
                      : integer(wraps_low ? llvm::APInt::getSignedMinValue(bits)
                                          : llvm::APInt::getMinValue(bits));
    case loop::Combine::Min:
      return floating ? llvm::ConstantFP::get(type, kInfinity)
                      : integer(wraps_low ? llvm::APInt::getSignedMaxValue(bits)
                                          : llvm::APInt::getMaxValue(bits));
    case loop::Combine::And:
      return llvm::Constant::getAllOnesValue(type);
  }
  throw std::runtime_error("unknown combine");
}

llvm::Value* Arithmetic::combine(loop::Combine kind, DType dtype, Value* x, Value* y) {
  bool floating = is_floating(dtype);
  switch (kind) {
    case loop::Combine::Sum:
      return floating ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
    case loop::Combine::Prod:
      return floating ? b_.CreateFMul(x, y) : b_.CreateMul(x, y);
    case loop::Combine::Max:
      return maximum(Op::Max, dtype, x, y);
    case loop::Combine::Min:
      return maximum(Op::Min, dtype, x, y);
    case loop::Combine::Or:
      return b_.CreateOr(x, y);
    case loop::Combine::And:
      return b_.CreateAnd(x, y);
  }
  throw std::runtime_error("unknown combine");
}

llvm::Value* Arithmetic::apply(const loop::Node* node, llvm::ArrayRef<Value*> operands) {
  int width = 1;
  for (Value* operand : operands) {
    width = std::max(width, lanes(operand));
  }
  llvm::SmallVector<Value*, 4> wide;
  for (Value* operand : operands) {
    wide.push_back(widen(operand, width));
  }
  switch (node->op) {
    case Op::Cast: {
      Value* v = convert(wide[0], node->inputs[0]->dtype, node->dtype);
      return compute_dtype(node->buffer) == node->buffer
                 ? v
                 : from_memory(to_memory(v, node->buffer), node->buffer);
    }
    case Op::Bitcast: {
      Value* raw = to_memory(wide[0], node->inputs[0]->dtype);
      return b_.CreateBitCast(raw, like(value_type(node->dtype), raw));
    }
    case Op::Select:
      return b_.CreateSelect(wide[0], wide[1], wide[2]);
    case Op::Fma:
      return b_.CreateIntrinsic(llvm::Intrinsic::fma, {wide[0]->getType()},
                                {wide[0], wide[1], wide[2]});
    default:
      break;
  }
  return wide.size() == 1 ? unary(node, wide[0]) : binary(node, wide[0], wide[1]);
}

llvm::Value* Arithmetic::unary(const loop::Node* node, Value* x) {
  DType dtype = node->inputs[0]->dtype;
  bool floating = is_floating(dtype);
  switch (node->op) {
    case Op::Neg:
      return floating ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case Op::Abs:
      if (floating) {
        return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      }
      return is_signed(dtype) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse())
                              : x;
    case Op::Sqrt:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case Op::Floor:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case Op::Ceil:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    case Op::Trunc:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
    case Op::Round:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
    case Op::Not:
      return b_.CreateNot(x);
    case Op::IsNan:
      return b_.CreateFCmpUNO(x, x);
    default:
      return math(node->op, dtype, {x});
  }
}

llvm::Value* Arithmetic::binary(const loop::Node* node, Value* x, Value* y) {
  DType dtype = node->inputs[0]->dtype;
  bool floating = is_floating(dtype);
  switch (node->op) {
    case Op::Add:
      return floating ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
    case Op::Sub:
      return floating ? b_.CreateFSub(x, y) : b_.CreateSub(x, y);
    case Op::Mul:
      return floating ? b_.CreateFMul(x, y) : b_.CreateMul(x, y);
    case Op::Div:
    case Op::FloorDiv:
    case Op::Rem:
    case Op::Mod:
      return floating ? float_divide(node->op, x, y)
                      : integer_divide(node->op, is_signed(dtype), x, y);
    case Op::Max:
    case Op::Min:
    case Op::FMax:
    case Op::FMin:
      return maximum(node->op, dtype, x, y);
    case Op::And:
      return b_.CreateAnd(x, y);
    case Op::Or:
      return b_.CreateOr(x, y);
    case Op::Xor:
      return b_.CreateXor(x, y);
    case Op::Shl:
    case Op::Shr:
      return shift(node->op, is_signed(dtype), x, y);
    case Op::CopySign:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, y);
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
      return compare(node->op, dtype, x, y);
    case Op::Pow:
      if (floating && is_number(node->inputs[1].node)) {
        Value* exponent = lanes(y) == 1 ? y : b_.CreateExtractElement(y, uint64_t{0});
        return power_of_number(b_, x, exponent, [&] { return math(node->op, dtype, {x, y}); });
      }
      return math(node->op, dtype, {x, y});
    default:
      return math(node->op, dtype, {x, y});
  }
}

llvm::Value* Arithmetic::compare(Op op, DType dtype, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  struct Row {
    P floating;
    P signed_integer;
    P unsigned_integer;
  };
  static constexpr Row rows[] = {
      {P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
      {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
      {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE}};
  const Row& row = rows[static_cast<int>(op) - static_cast<int>(Op::Eq)];
  if (is_floating(dtype)) {
    return b_.CreateFCmp(row.floating, x, y);
  }
  return b_.CreateICmp(is_signed(dtype) ? row.signed_integer : row.unsigned_integer, x, y);
}

// Max(a, b) = isnan(a) ? a : a > b ? a : b; FMax(a, b) = isnan(b) ? a : a > b ? a : b. The inner
// select is one instruction on x86.
llvm::Value* Arithmetic::maximum(Op op, DType dtype, Value* x, Value* y) {
  bool most = op == Op::Max || op == Op::FMax;
  if (!is_floating(dtype)) {
    Value* first = compare(most ? Op::Gt : Op::Lt, dtype, x, y);
    return b_.CreateSelect(first, x, y);
  }
  Value* first = most ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y);
  Value* picked = b_.CreateSelect(first, x, y);
  Value* suspect = op == Op::Max || op == Op::Min ? x : y;
  return b_.CreateSelect(b_.CreateFCmpUNO(suspect, suspect), x, picked);
}

llvm::Value* Arithmetic::shift(Op op, bool is_signed, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  unsigned bits = type->getScalarSizeInBits();
  Value* fits = b_.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
  if (op == Op::Shl) {
    return b_.CreateSelect(fits, b_.CreateShl(x, y), llvm::Constant::getNullValue(type));
  }
  if (!is_signed) {
    return b_.CreateSelect(fits, b_.CreateLShr(x, y), llvm::Constant::getNullValue(type));
  }
  Value* count = b_.CreateSelect(fits, y, llvm::ConstantInt::get(type, bits - 1));
  return b_.CreateAShr(x, count);
}

llvm::Value* Arithmetic::integer_divide(Op op, bool is_signed, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* by_zero = b_.CreateICmpEQ(y, zero);
  bool quotient = op == Op::Div || op == Op::FloorDiv;
  if (!is_signed) {
    Value* safe = b_.CreateSelect(by_zero, one, y);
    Value* q = quotient ? b_.CreateUDiv(x, safe) : b_.CreateURem(x, safe);
    return b_.CreateSelect(by_zero, zero, q);
  }
  // The least integer over -1 overflows; divided by 1 it gives what wrapping around gives.
  Value* least =
      llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getScalarSizeInBits()));
  Value* minus_one = llvm::Constant::getAllOnesValue(type);
  Value* overflows = b_.CreateAnd(b_.CreateICmpEQ(x, least), b_.CreateICmpEQ(y, minus_one));
  Value* safe = b_.CreateSelect(b_.CreateOr(by_zero, overflows), one, y);
  if (op == Op::Div || op == Op::Rem) {
    Value* r = quotient ? b_.CreateSDiv(x, safe) : b_.CreateSRem(x, safe);
    return b_.CreateSelect(by_zero, zero, r);
  }
  Value* q = b_.CreateSDiv(x, safe);
  Value* r = b_.CreateSub(x, b_.CreateMul(q, safe));
  Value* opposed = b_.CreateICmpSLT(b_.CreateXor(r, safe), zero);
  Value* crosses = b_.CreateAnd(b_.CreateICmpNE(r, zero), opposed);
  Value* result = quotient ? b_.CreateSelect(crosses, b_.CreateSub(q, one), q)
                           : b_.CreateSelect(crosses, b_.CreateAdd(r, safe), r);
  return b_.CreateSelect(by_zero, zero, result);
}

llvm::Value* Arithmetic::float_divide(Op op, Value* x, Value* y) {
  if (op == Op::Div) {
    return b_.CreateFDiv(x, y);
  }
  llvm::Type* type = x->getType();
  bool narrow = type->getScalarType()->isFloatTy();
  Value* r = narrow ? emit_fmod(*this, b_, x, y) : call_lanes("fmod_f64", {x, y});
  if (op == Op::Rem) {
    return r;
  }
  Value* zero = llvm::ConstantFP::get(type, 0);
  Value* opposed = b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(y, zero));
  Value* crosses = b_.CreateAnd(b_.CreateFCmpUNE(r, zero), opposed);
  if (op == Op::Mod) {
    return b_.CreateSelect(crosses, b_.CreateFAdd(r, y), r);
  }
  Value* one = llvm::ConstantFP::get(type, 1);
  Value* ratio = b_.CreateFDiv(x, y);
  Value* q = b_.CreateFDiv(b_.CreateFSub(x, r), y);
  q = b_.CreateSelect(crosses, b_.CreateFSub(q, one), q);
  Value* floored = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, q);
  Value* up = b_.CreateFCmpOGT(b_.CreateFSub(q, floored), llvm::ConstantFP::get(type, 0.5));
  Value* rounded = b_.CreateSelect(up, b_.CreateFAdd(floored, one), floored);
  Value* signed_zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, ratio);
  Value* result = b_.CreateSelect(b_.CreateFCmpOEQ(q, zero), signed_zero, rounded);
  return b_.CreateSelect(b_.CreateFCmpOEQ(y, zero), ratio, result);
}

llvm::Value* Arithmetic::math(Op op, DType dtype, llvm::ArrayRef<Value*> operands) {
  if (dtype == DType::Float32) {
    if (Value* v = inline_math(*this, b_, op, operands)) {
      return v;
    }
  }
  if (dtype == DType::Float64) {
    if (Value* v = inline_math_f64(*this, b_, op, operands)) {
      return v;
    }
  }
  std::string name;
  for (char c : loop_op_text(op)) {
    name += c;
  }
  if (op == Op::Pow && !is_floating(dtype)) {
    llvm::Type* wide = like(b_.getInt64Ty(), operands[0]);
    bool negative = is_signed(dtype);
    Value* x = negative ? b_.CreateSExt(operands[0], wide) : b_.CreateZExt(operands[0], wide);
    Value* y = negative ? b_.CreateSExt(operands[1], wide) : b_.CreateZExt(operands[1], wide);
    Value* v = call_lanes(negative ? "pow_i64" : "pow_u64", {x, y});
    return b_.CreateTrunc(v, operands[0]->getType());
  }
  name += dtype == DType::Float32 ? "_f32" : "_f64";
  return call_lanes(name.c_str(), operands);
}

llvm::Value* Arithmetic::call_rare_lanes(const char* name, llvm::ArrayRef<Value*> operands,
                                         Value* rare, Value* common) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = function->getContext();
  Value* any = lanes(rare) == 1 ? rare : b_.CreateOrReduce(rare);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* calls = llvm::BasicBlock::Create(context, "rare", function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "common", function);
  llvm::MDNode* weights =
      llvm::MDNode::get(context, {llvm::MDString::get(context, "branch_weights"),
                                  llvm::ConstantAsMetadata::get(b_.getInt32(1)),
                                  llvm::ConstantAsMetadata::get(b_.getInt32(2000))});
  b_.CreateCondBr(any, calls, done, weights);
  b_.SetInsertPoint(calls);
  Value* slow = b_.CreateSelect(rare, call_lanes(name, operands), common);
  llvm::BasicBlock* calls_end = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(common->getType(), 2);
  result->addIncoming(common, before);
  result->addIncoming(slow, calls_end);
  return result;
}

// Through memory: one call for all lanes keeps the code small, and the callee is plain C++.
llvm::Value* Arithmetic::call_lanes(const char* name, llvm::ArrayRef<Value*> operands) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
  llvm::Type* type = operands[0]->getType();
  auto slot = [&] {
    llvm::AllocaInst* memory = entry.CreateAlloca(type);
    memory->setAlignment(llvm::Align(64));
    return memory;
  };
  llvm::SmallVector<Value*, 4> arguments{slot()};
  llvm::SmallVector<llvm::Type*, 4> types{b_.getPtrTy()};
  for (Value* operand : operands) {
    arguments.push_back(slot());
    b_.CreateStore(operand, arguments.back());
    types.push_back(b_.getPtrTy());
  }
  arguments.push_back(b_.getInt64(lanes(operands[0])));
  types.push_back(b_.getInt64Ty());
  llvm::FunctionType* signature = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  llvm::FunctionCallee callee =
      module_.getOrInsertFunction(std::string("rushlight_math_") + name, signature);
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  b_.CreateCall(callee, arguments);
  return b_.CreateLoad(type, arguments[0]);
}

}  // namespace rushlight::codegen
