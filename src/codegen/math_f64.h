// Math functions of f64 expanded in line; their bounds are in math.h.
//
// Polynomials are relative minimax fits by Remez' exchange in 45 digits, rounded to f64 coefficient
// by coefficient. What the f32 functions leave to rounding is here carried along as a second, small
// number wherever the result would feel it.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/math_builder.h"
#include "loop/node.h"

namespace rushlight::codegen {

class Arithmetic;

// Emits `op` of f64 operands, scalars or vectors, or returns null where it is not expanded in line.
llvm::Value* inline_math_f64(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, loop::Op op,
                             llvm::ArrayRef<llvm::Value*> operands);

// The families, each null for an op that is not its own.
llvm::Value* emit_exponential_f64(MathBuilder& m, loop::Op op, llvm::Value* x);
llvm::Value* emit_logarithm_f64(MathBuilder& m, loop::Op op, llvm::Value* x);
llvm::Value* emit_inverse_f64(MathBuilder& m, loop::Op op, llvm::Value* x);
llvm::Value* emit_error_f64(MathBuilder& m, loop::Op op, llvm::Value* x);
llvm::Value* emit_trigonometric_f64(Arithmetic& arithmetic, llvm::IRBuilder<>& builder, loop::Op op,
                                    llvm::Value* x);
llvm::Value* emit_binary_f64(MathBuilder& m, loop::Op op, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_atan2_f64(MathBuilder& m, llvm::Value* y, llvm::Value* x);

// Parts that the families share.

constexpr double kLog2eF64 = 0x1.71547652b82fep+0;
constexpr double kLn2HighF64 = 0x1.62e42fefa39efp-1;
constexpr double kLn2LowF64 = 0x1.abc9e3b39803fp-56;
constexpr double kHalfPiF64 = 0x1.921fb54442d18p+0;
constexpr double kHalfPiLowF64 = 0x1.1a62633145c07p-54;

// Adding 1.5 * 2^52 leaves the integer nearest to a small number in the low bits.
constexpr double kRounderF64 = 0x1.8p52;

struct WholeF64 {
  llvm::Value* value;  // nearest integer, as a float
  llvm::Value* word;   // the same, as an integer
};

// Rounds x, or x * factor where `factor` is not null.
WholeF64 nearest_f64(MathBuilder& m, llvm::Value* x, llvm::Value* factor);

// 2^exponent for -1022 <= exponent <= 1023.
llvm::Value* power_of_two_f64(MathBuilder& m, llvm::Value* exponent);

// y * 2^exponent for -2046 <= exponent <= 2046, so that y * 2^exponent is rounded once where y is
// in [1/2, 2].
llvm::Value* scale_f64(MathBuilder& m, llvm::Value* y, llvm::Value* exponent);

// exp(x) for x in [-708, 709], and what follows from it.
llvm::Value* exp_middle_f64(MathBuilder& m, llvm::Value* x);

// 2^(head + tail) for -1080 <= head <= 1025 and a tail of less than 2^-8.
llvm::Value* exp2_sum_f64(MathBuilder& m, llvm::Value* head, llvm::Value* tail);

// A number in two parts, the second less than a unit in the last place of the first.
struct PairF64 {
  llvm::Value* high;
  llvm::Value* low;
};

// factor * exp(x + low) for x in [-1000, 700], a low of less than 2^-20 and a factor in [2^-10, 1].
llvm::Value* exp_product_f64(MathBuilder& m, llvm::Value* x, llvm::Value* low, PairF64 factor);

// (exp(x) - 1) / 2^halvings for x in [-44, 710.5].
PairF64 expm1_f64(MathBuilder& m, llvm::Value* x, int halvings);

// log(u + low) for a normal, finite u > 0 and |low| within a unit in the last place of u; `extra`,
// where not null, is added to the exponent.
llvm::Value* log_sum_f64(MathBuilder& m, llvm::Value* u, llvm::Value* low, llvm::Value* extra);

}  // namespace rushlight::codegen
