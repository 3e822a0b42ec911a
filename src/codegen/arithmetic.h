// Operations on LLVM values, the same for scalars and vectors: each method emits instructions where
// the builder stands. Results have the same bits on every target and in every lane.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "loop/node.h"

namespace rushlight::codegen {

class Arithmetic {
 public:
  using Value = llvm::Value;

  Arithmetic(llvm::IRBuilder<>& builder, llvm::Module& module) : b_(builder), module_(module) {}

  // Types: of a value in registers (Bool is i1) and in memory (Bool is i8, halves i16, float8 i8).
  llvm::Type* value_type(DType dtype);
  llvm::Type* memory_type(DType dtype);
  static int lanes(Value* v);  // 1 for scalars
  Value* widen(Value* v, int lanes);
  llvm::Type* like(llvm::Type* element, Value* v);  // `element`, with as many lanes as v

  Value* from_memory(Value* raw, DType memory);
  Value* to_memory(Value* v, DType memory);

  // Applies a loop IR operation whose operands are evaluated. `width` lanes where any is a vector.
  Value* apply(const loop::Node* node, llvm::ArrayRef<Value*> operands);
  Value* combine(loop::Combine kind, DType dtype, Value* a, Value* b);
  Value* identity(loop::Combine kind, DType dtype);  // scalar constant
  Value* convert(Value* v, DType from, DType to);
  Value* constant(const loop::Node* node);

  // Calls `rushlight_math_<name>(out, inputs..., count)` of src/runtime/math_helpers.h over the
  // lanes.
  Value* call_lanes(const char* name, llvm::ArrayRef<Value*> operands);
  // `common`, but in the lanes of `rare`, if there are any, what the function gives.
  Value* call_rare_lanes(const char* name, llvm::ArrayRef<Value*> operands, Value* rare,
                         Value* common);

 private:
  Value* unary(const loop::Node* node, Value* x);
  Value* binary(const loop::Node* node, Value* x, Value* y);
  Value* compare(loop::Op op, DType dtype, Value* x, Value* y);
  Value* integer_divide(loop::Op op, bool is_signed, Value* x, Value* y);
  Value* float_divide(loop::Op op, Value* x, Value* y);
  Value* shift(loop::Op op, bool is_signed, Value* x, Value* y);
  Value* maximum(loop::Op op, DType dtype, Value* x, Value* y);
  Value* bf16_bits(Value* v);
  Value* f8_value(Value* raw, DType memory);
  Value* f8_bits(Value* v, DType memory);
  Value* e8m0_value(Value* raw);
  Value* e8m0_bits(Value* v);
  Value* math(loop::Op op, DType dtype, llvm::ArrayRef<Value*> operands);

  llvm::IRBuilder<>& b_;
  llvm::Module& module_;
};

}  // namespace rushlight::codegen
