// Short spellings for writing polynomials as LLVM IR.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace rushlight::codegen {

class MathBuilder {
 public:
  using Value = llvm::Value;

  // `like`: a float scalar or vector; results have its shape.
  MathBuilder(llvm::IRBuilder<>& builder, Value* like)
      : b(builder),
        real(like->getType()),
        word(real->getWithNewType(builder.getIntNTy(real->getScalarSizeInBits()))) {}

  Value* c(double value) { return llvm::ConstantFP::get(real, value); }
  Value* i(int64_t value) { return llvm::ConstantInt::get(word, static_cast<uint64_t>(value)); }
  Value* add(Value* x, Value* y) { return b.CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) { return b.CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) { return b.CreateFMul(x, y); }
  Value* div(Value* x, Value* y) { return b.CreateFDiv(x, y); }
  Value* fma(Value* x, Value* y, Value* z) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {real}, {x, y, z});
  }
  Value* abs(Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* copysign(Value* x, Value* sign) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
  }
  Value* bits(Value* x) { return b.CreateBitCast(x, word); }
  Value* from_bits(Value* x) { return b.CreateBitCast(x, real); }
  Value* pick(Value* condition, Value* x, Value* y) { return b.CreateSelect(condition, x, y); }
  Value* less(Value* x, Value* y) { return b.CreateFCmpOLT(x, y); }
  Value* greater(Value* x, Value* y) { return b.CreateFCmpOGT(x, y); }
  // Bounds that let NaN pass; one instruction each on x86.
  Value* at_most(Value* x, double bound) { return pick(less(c(bound), x), c(bound), x); }
  Value* at_least(Value* x, double bound) { return pick(greater(c(bound), x), c(bound), x); }

  // Coefficients lowest first. Pairs are combined first, then pairs of pairs: shorter chains than
  // Horner's rule, so that more than one vector's work overlaps.
  Value* polynomial(Value* x, std::initializer_list<double> coefficients) {
    std::vector<Value*> terms;
    for (double coefficient : coefficients) {
      terms.push_back(c(coefficient));
    }
    Value* power = x;
    while (terms.size() > 1) {
      std::vector<Value*> pairs;
      for (size_t k = 0; k + 1 < terms.size(); k += 2) {
        pairs.push_back(fma(terms[k + 1], power, terms[k]));
      }
      if (terms.size() % 2 != 0) {
        pairs.push_back(terms.back());
      }
      terms = std::move(pairs);
      power = terms.size() > 1 ? mul(power, power) : power;
    }
    return terms[0];
  }

  // The same by Horner's rule: fewer operations, for functions of so many that these fill the time.
  Value* horner(Value* x, std::initializer_list<double> coefficients) {
    const double* at = coefficients.end();
    Value* sum = c(*--at);
    while (at != coefficients.begin()) {
      sum = fma(sum, x, c(*--at));
    }
    return sum;
  }

  llvm::IRBuilder<>& b;
  llvm::Type* real;
  llvm::Type* word;
};

}  // namespace rushlight::codegen
