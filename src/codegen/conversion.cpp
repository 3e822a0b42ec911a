// Conversions between dtypes, and between values and their form in memory.
#include <stdexcept>

#include "codegen/arithmetic.h"

namespace rushlight::codegen {

llvm::Type* Arithmetic::value_type(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return b_.getInt1Ty();
    case DType::Float32:
      return b_.getFloatTy();
    case DType::Float64:
      return b_.getDoubleTy();
    default:
      if (!is_integral(dtype, false)) {
        throw std::runtime_error("values of this dtype do not occur in the loop IR");
      }
      return b_.getIntNTy(static_cast<unsigned>(element_size(dtype)) * 8);
  }
}

llvm::Type* Arithmetic::memory_type(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return b_.getFloatTy();
    case DType::Float64:
      return b_.getDoubleTy();
    case DType::Float16:
      return b_.getHalfTy();
    default:
      return b_.getIntNTy(static_cast<unsigned>(element_size(dtype)) * 8);
  }
}

llvm::Value* Arithmetic::from_memory(Value* raw, DType memory) {
  switch (memory) {
    case DType::Bool:
      return b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
    case DType::Float16:
      return b_.CreateFPExt(raw, like(b_.getFloatTy(), raw));
    case DType::BFloat16: {
      Value* wide = b_.CreateZExt(raw, like(b_.getInt32Ty(), raw));
      Value* bits = b_.CreateShl(wide, llvm::ConstantInt::get(wide->getType(), 16));
      return b_.CreateBitCast(bits, like(b_.getFloatTy(), raw));
    }
    case DType::Float8E8M0FNU:
      return e8m0_value(raw);
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
      return f8_value(raw, memory);
    default:
      return raw;
  }
}

llvm::Value* Arithmetic::to_memory(Value* v, DType memory) {
  switch (memory) {
    case DType::Bool:
      return b_.CreateZExt(v, like(b_.getInt8Ty(), v));
    case DType::Float16:
      return b_.CreateFPTrunc(v, like(b_.getHalfTy(), v));
    case DType::BFloat16:
      return bf16_bits(v);
    case DType::Float8E8M0FNU:
      return e8m0_bits(v);
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2FNUZ:
      return f8_bits(v, memory);
    default:
      return v;
  }
}

// To nearest, ties to even: adds half of the dropped part's unit, less a trace where the kept part
// is even. Every NaN becomes 0x7fc0.
llvm::Value* Arithmetic::bf16_bits(Value* v) {
  llvm::Type* word = like(b_.getInt32Ty(), v);
  auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  Value* bits = b_.CreateBitCast(v, word);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, c(16)), c(1));
  Value* rounded = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, c(0x7fff)), odd), c(16));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(v, v), c(0x7fc0), rounded);
  return b_.CreateTrunc(result, like(b_.getInt16Ty(), v));
}

namespace {

struct Float8Format {
  int bias;
  int mantissa;   // bits
  uint32_t past;  // the first code past the largest finite value
  uint32_t over;  // the code of values that round to `past` or beyond
  uint32_t nan;
  bool unsigned_zero = false;  // then the place of -0 is NaN's
};

Float8Format format_of(DType memory) {
  switch (memory) {
    case DType::Float8E5M2:
      return {15, 2, 0x7c, 0x7c, 0x7f};
    case DType::Float8E4M3FNUZ:
      return {8, 3, 0x80, 0x80, 0x80, true};
    case DType::Float8E5M2FNUZ:
      return {16, 2, 0x80, 0x80, 0x80, true};
    default:
      return {7, 3, 0x7f, 0x7e, 0x7f};
  }
}

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

}  // namespace

// The code's exponent and mantissa moved to their place in an f32 are the value over 2^(127 -
// bias), subnormals included.
llvm::Value* Arithmetic::f8_value(Value* raw, DType memory) {
  Float8Format f = format_of(memory);
  llvm::Type* word = like(b_.getInt32Ty(), raw);
  llvm::Type* real = like(b_.getFloatTy(), raw);
  auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  Value* code = b_.CreateZExt(raw, word);
  Value* magnitude = b_.CreateAnd(code, c(0x7f));
  Value* moved = b_.CreateBitCast(b_.CreateShl(magnitude, c(23 - f.mantissa)), real);
  Value* value = b_.CreateFMul(moved, llvm::ConstantFP::get(real, power_of_two(127 - f.bias)));
  if (f.past != f.nan) {
    Value* infinite = b_.CreateICmpEQ(magnitude, c(f.past));
    value = b_.CreateSelect(infinite, llvm::ConstantFP::getInfinity(real), value);
  }
  Value* above = f.past == f.nan ? b_.CreateICmpEQ(magnitude, c(f.nan))
                                 : b_.CreateICmpUGT(magnitude, c(f.past));
  value = b_.CreateSelect(above, llvm::ConstantFP::getNaN(real), value);
  Value* sign = b_.CreateShl(b_.CreateAnd(code, c(0x80)), c(24));
  value = b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(value, word), sign), real);
  if (!f.unsigned_zero) {
    return value;
  }
  return b_.CreateSelect(b_.CreateICmpEQ(code, c(f.nan)), llvm::ConstantFP::getNaN(real), value);
}

// Normal results round as in bf16_bits; subnormal ones by adding the power of two whose unit in the
// last place is the smallest subnormal.
llvm::Value* Arithmetic::f8_bits(Value* v, DType memory) {
  Float8Format f = format_of(memory);
  llvm::Type* word = like(b_.getInt32Ty(), v);
  llvm::Type* real = v->getType();
  auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  Value* bits = b_.CreateBitCast(v, word);
  Value* magnitude = b_.CreateAnd(bits, c(0x7fffffff));
  int dropped = 23 - f.mantissa;
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, c(dropped)), c(1));
  Value* up = b_.CreateAdd(b_.CreateAdd(magnitude, c((1u << (dropped - 1)) - 1)), odd);
  uint32_t rebias = static_cast<uint32_t>(127 - f.bias) << f.mantissa;
  Value* normal = b_.CreateSub(b_.CreateLShr(up, c(dropped)), c(rebias));
  float magic = power_of_two(24 - f.bias - f.mantissa);
  Value* sum = b_.CreateFAdd(b_.CreateBitCast(magnitude, real), llvm::ConstantFP::get(real, magic));
  Value* small = b_.CreateSub(b_.CreateBitCast(sum, word), c(std::bit_cast<uint32_t>(magic)));
  Value* is_small = b_.CreateICmpULT(magnitude, c(static_cast<uint32_t>(128 - f.bias) << 23));
  Value* over =
      b_.CreateOr(b_.CreateICmpUGE(normal, c(f.past)), b_.CreateICmpUGE(magnitude, c(0x7f800000)));
  Value* code = b_.CreateSelect(over, c(f.over), normal);
  code = b_.CreateSelect(is_small, small, code);
  code = b_.CreateSelect(b_.CreateFCmpUNO(v, v), c(f.nan), code);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, c(24)), c(0x80));
  if (f.unsigned_zero) {
    Value* has_sign = b_.CreateICmpULT(b_.CreateSub(code, c(1)), c(0x7f));
    sign = b_.CreateSelect(has_sign, sign, c(0));
  }
  return b_.CreateTrunc(b_.CreateOr(code, sign), like(b_.getInt8Ty(), v));
}

// The code is the exponent of an f32; 0 stands for a subnormal one.
llvm::Value* Arithmetic::e8m0_value(Value* raw) {
  llvm::Type* word = like(b_.getInt32Ty(), raw);
  llvm::Type* real = like(b_.getFloatTy(), raw);
  auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  Value* code = b_.CreateZExt(raw, word);
  Value* bits =
      b_.CreateSelect(b_.CreateICmpEQ(code, c(0)), c(0x400000), b_.CreateShl(code, c(23)));
  bits = b_.CreateSelect(b_.CreateICmpEQ(code, c(0xff)), c(0x7fc00000), bits);
  return b_.CreateBitCast(bits, real);
}

// Halves are rounded up.
llvm::Value* Arithmetic::e8m0_bits(Value* v) {
  llvm::Type* word = like(b_.getInt32Ty(), v);
  auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  Value* magnitude = b_.CreateAnd(b_.CreateBitCast(v, word), c(0x7fffffff));
  Value* code = b_.CreateLShr(b_.CreateAdd(magnitude, c(0x400000)), c(23));
  Value* small = b_.CreateZExt(b_.CreateICmpUGT(magnitude, c(0x400000)), word);
  code = b_.CreateSelect(b_.CreateICmpULT(magnitude, c(0x800000)), small, code);
  code = b_.CreateSelect(b_.CreateICmpUGE(magnitude, c(0x7f800000)), c(0xff), code);
  return b_.CreateTrunc(code, like(b_.getInt8Ty(), v));
}

namespace {

// The low 32 bits of the integer part of an f32. From 2^31 on the value is an integer, and its low
// bits are the mantissa shifted left.
llvm::Value* low_word(llvm::IRBuilder<>& b, llvm::Value* v, llvm::Type* word) {
  auto c = [&](uint32_t value) { return llvm::ConstantInt::get(word, value); };
  llvm::Value* bits = b.CreateBitCast(v, word);
  llvm::Value* exponent = b.CreateAnd(b.CreateLShr(bits, c(23)), c(0xff));
  llvm::Value* fits = b.CreateICmpULT(exponent, c(127 + 31));
  llvm::Value* near = b.CreateFPToSI(v, word);
  llvm::Value* mantissa = b.CreateOr(b.CreateAnd(bits, c(0x7fffff)), c(0x800000));
  llvm::Value* count = b.CreateSub(exponent, c(127 + 23));
  llvm::Value* in_word = b.CreateICmpULT(count, c(32));
  llvm::Value* shifted = b.CreateShl(mantissa, b.CreateSelect(in_word, count, c(0)));
  llvm::Value* far = b.CreateSelect(in_word, shifted, c(0));
  llvm::Value* negative = b.CreateICmpSLT(bits, c(0));
  far = b.CreateSelect(negative, b.CreateNeg(far), far);
  return b.CreateSelect(fits, near, far);
}

}  // namespace

llvm::Value* Arithmetic::convert(Value* v, DType from, DType to) {
  if (from == to) {
    return v;
  }
  llvm::Type* type = like(value_type(to), v);
  if (to == DType::Bool) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    return is_floating(from) ? b_.CreateFCmpUNE(v, zero) : b_.CreateICmpNE(v, zero);
  }
  if (is_floating(from) && is_floating(to)) {
    return b_.CreateFPCast(v, type);
  }
  if (is_floating(to)) {
    return is_signed(from) ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
  }
  if (!is_floating(from)) {
    return is_signed(from) ? b_.CreateSExtOrTrunc(v, type) : b_.CreateZExtOrTrunc(v, type);
  }
  if (to == DType::UInt64) {
    // By way of i64, so that negative values wrap and levels with an instruction of their own for
    // u64 give the same for what does not fit. Where i64 overflows it has its sign bit alone.
    Value* low = b_.CreateFPToSI(v, type);
    Value* past = llvm::ConstantFP::get(v->getType(), 0x1p63);
    Value* high = b_.CreateFPToSI(b_.CreateFSub(v, past), type);
    return b_.CreateOr(low, b_.CreateAnd(high, b_.CreateAShr(low, 63)));
  }
  if (to == DType::Int32) {
    // What does not fit gives the least integer, as the instruction of x86 does.
    Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
    Value* fits = b_.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(v->getType(), 0x1p31));
    return b_.CreateSelect(fits, b_.CreateFPToSI(v, type),
                           llvm::ConstantInt::getSigned(type, INT32_MIN));
  }
  if (from == DType::Float32 && to != DType::Int64) {
    return b_.CreateTrunc(low_word(b_, v, like(b_.getInt32Ty(), v)), type);
  }
  return b_.CreateTrunc(b_.CreateFPToSI(v, like(b_.getInt64Ty(), v)), type);
}

}  // namespace rushlight::codegen
