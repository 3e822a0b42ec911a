// Loop IR expressions: immutable, interned nodes. Equal means identical, so `==` is pointer
// equality and hashing is free.
//
// Semantics (the interpreter in interpret.cpp is the definition):
// - Integer arithmetic wraps around; Div on integers truncates, FloorDiv floors, Rem has the sign
//   of the dividend, Mod that of the divisor; division by zero yields 0 for integers (operators
//   that must raise check before). Shifts by a count outside 0..width-1 give 0 (arithmetic right:
//   the sign). Pow with a negative exponent is 1 for base 1, +-1 for base -1, else 0.
// - Floats follow IEEE 754 to nearest even, no contraction, no reassociation, NaN kept (which of
//   two NaNs, and its payload, is left open). Fma is one rounding. Round goes to even.
//   Max(a, b) = isnan(a) ? a : a > b ? a : b, so NaN propagates and of equal zeros the second wins;
//   FMax(a, b) = isnan(b) ? a : a > b ? a : b ignores NaN. Min, FMin: the same with `<`.
//   Rem is C's fmod. Mod: r = fmod(a, b), plus b where r != 0 and (r < 0) != (b < 0).
//   FloorDiv: a / b where b == 0; else q = (a - r) / b, less 1 where Mod adds; where q == 0, a zero
//   with the sign of a / b; else f = floor(q), plus 1 where q - f > 0.5.
// - f16, bf16 and f8 values occur only at Load, Store and Cast: Load converts to f32 at once (node
//   dtype is compute_dtype of the buffer), Store rounds once, Cast to such a type rounds through it
//   and is an f32 again (f64 goes through f32). Bool is 0 or 1, one byte in memory.
// - Cast to Bool is `x != 0`. Cast between integers wraps. Cast of a float truncates and wraps, but
//   outside i32 to i32 it is the least integer, outside i64 (for u64: u64) it is unspecified.
// - Complex values occur in bodies only: `lower_complex` (complex.h) makes pairs of real nodes of
//   them before a kernel is run. A constant of a complex dtype is real.
// - Select evaluates both arms (there are no side effects); Loads under a Select may be guarded:
//   `LoadIf(mask, ...)` touches memory only where the mask holds and is `other` elsewhere.
#pragma once

#include <rushlight/dtype.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rushlight::loop {

enum class Arity : uint8_t { Leaf = 0, Unary = 1, Binary = 2, Ternary = 3, Variadic = 4 };

// How a node's dtype follows from its operands: Same = all operands and the result agree;
// Bool = operands agree, result is Bool; Own = stored in the node (Const, Cast, Load, ...).
enum class Typing : uint8_t { Same, Bool, Own };

// X(op, text, arity, typing, allowed operand kinds: f float, i integer, b bool,
// c complex)
#define RUSHLIGHT_LOOP_OPS(X)                  \
  X(Const, "const", Leaf, Own, "")             \
  X(Scalar, "scalar", Leaf, Own, "")           \
  X(Index, "index", Leaf, Own, "")             \
  X(Extent, "extent", Leaf, Own, "")           \
  X(Load, "load", Variadic, Own, "")           \
  X(Cast, "cast", Unary, Own, "fib")           \
  X(Bitcast, "bitcast", Unary, Own, "fi")      \
  X(Neg, "neg", Unary, Same, "fic")            \
  X(Abs, "abs", Unary, Same, "fi")             \
  X(Sqrt, "sqrt", Unary, Same, "fc")           \
  X(Floor, "floor", Unary, Same, "f")          \
  X(Ceil, "ceil", Unary, Same, "f")            \
  X(Trunc, "trunc", Unary, Same, "f")          \
  X(Round, "round", Unary, Same, "f")          \
  X(Exp, "exp", Unary, Same, "fc")             \
  X(Exp2, "exp2", Unary, Same, "fc")           \
  X(Expm1, "expm1", Unary, Same, "fc")         \
  X(Log, "log", Unary, Same, "fc")             \
  X(Log2, "log2", Unary, Same, "fc")           \
  X(Log10, "log10", Unary, Same, "fc")         \
  X(Log1p, "log1p", Unary, Same, "fc")         \
  X(Sin, "sin", Unary, Same, "fc")             \
  X(Cos, "cos", Unary, Same, "fc")             \
  X(Tan, "tan", Unary, Same, "fc")             \
  X(Asin, "asin", Unary, Same, "fc")           \
  X(Acos, "acos", Unary, Same, "fc")           \
  X(Atan, "atan", Unary, Same, "fc")           \
  X(Sinh, "sinh", Unary, Same, "fc")           \
  X(Cosh, "cosh", Unary, Same, "fc")           \
  X(Tanh, "tanh", Unary, Same, "fc")           \
  X(Asinh, "asinh", Unary, Same, "fc")         \
  X(Acosh, "acosh", Unary, Same, "fc")         \
  X(Atanh, "atanh", Unary, Same, "fc")         \
  X(Erf, "erf", Unary, Same, "f")              \
  X(Erfc, "erfc", Unary, Same, "f")            \
  X(Erfinv, "erfinv", Unary, Same, "f")        \
  X(Lgamma, "lgamma", Unary, Same, "f")        \
  X(Digamma, "digamma", Unary, Same, "f")      \
  X(Not, "not", Unary, Same, "ib")             \
  X(IsNan, "isnan", Unary, Bool, "fc")         \
  X(Add, "add", Binary, Same, "fic")           \
  X(Sub, "sub", Binary, Same, "fic")           \
  X(Mul, "mul", Binary, Same, "fic")           \
  X(Div, "div", Binary, Same, "fic")           \
  X(FloorDiv, "floordiv", Binary, Same, "fi")  \
  X(Rem, "rem", Binary, Same, "fi")            \
  X(Mod, "mod", Binary, Same, "fi")            \
  X(Pow, "pow", Binary, Same, "fic")           \
  X(Atan2, "atan2", Binary, Same, "f")         \
  X(Hypot, "hypot", Binary, Same, "f")         \
  X(CopySign, "copysign", Binary, Same, "f")   \
  X(NextAfter, "nextafter", Binary, Same, "f") \
  X(Max, "max", Binary, Same, "fib")           \
  X(Min, "min", Binary, Same, "fib")           \
  X(FMax, "fmax", Binary, Same, "f")           \
  X(FMin, "fmin", Binary, Same, "f")           \
  X(And, "and", Binary, Same, "ib")            \
  X(Or, "or", Binary, Same, "ib")              \
  X(Xor, "xor", Binary, Same, "ib")            \
  X(Shl, "shl", Binary, Same, "i")             \
  X(Shr, "shr", Binary, Same, "i")             \
  X(Eq, "eq", Binary, Bool, "fibc")            \
  X(Ne, "ne", Binary, Bool, "fibc")            \
  X(Lt, "lt", Binary, Bool, "fib")             \
  X(Le, "le", Binary, Bool, "fib")             \
  X(Gt, "gt", Binary, Bool, "fib")             \
  X(Ge, "ge", Binary, Bool, "fib")             \
  X(Fma, "fma", Ternary, Same, "f")            \
  X(Select, "select", Ternary, Own, "fibc")    \
  X(LoadIf, "loadif", Variadic, Own, "")       \
  X(Reduce, "reduce", Unary, Own, "fib")       \
  X(Scan, "scan", Unary, Own, "fib")           \
  X(Complex, "complex", Binary, Own, "f")      \
  X(Real, "real", Unary, Own, "c")             \
  X(Imag, "imag", Unary, Own, "c")

enum class Op : uint8_t {
#define RUSHLIGHT_ENUM(op, text, arity, typing, kinds) op,
  RUSHLIGHT_LOOP_OPS(RUSHLIGHT_ENUM)
#undef RUSHLIGHT_ENUM
};

struct OpInfo {
  std::string_view text;
  Arity arity;
  Typing typing;
  std::string_view kinds;
};
const OpInfo& info(Op op);
inline constexpr int kOpCount = 0
#define RUSHLIGHT_COUNT(op, text, arity, typing, kinds) +1
    RUSHLIGHT_LOOP_OPS(RUSHLIGHT_COUNT);
#undef RUSHLIGHT_COUNT

// Associative combines of Reduce and Scan, with their identities.
// X(kind, text): Sum 0, Prod 1, Max lowest (-inf / false), Min highest, Or false, And true.
#define RUSHLIGHT_LOOP_COMBINES(X) \
  X(Sum, "sum") X(Prod, "prod") X(Max, "max") X(Min, "min") X(Or, "or") X(And, "and")
enum class Combine : uint8_t {
#define RUSHLIGHT_ENUM(kind, text) kind,
  RUSHLIGHT_LOOP_COMBINES(RUSHLIGHT_ENUM)
#undef RUSHLIGHT_ENUM
};
std::string_view combine_text(Combine combine);

// Whether a node of a kernel may have this dtype: neither complex nor a half or float8 type.
bool is_value_dtype(DType dtype);

struct Node;

// A handle to an interned node. Copy freely; nodes live as long as the process.
struct Expr {
  const Node* node = nullptr;
  const Node* operator->() const { return node; }
  explicit operator bool() const { return node != nullptr; }
  friend bool same(Expr a, Expr b) { return a.node == b.node; }
  DType dtype() const;
};

struct Node {
  Op op;
  DType dtype;      // of the value; never a half or float8 type; complex in bodies only
  DType buffer;     // Load, LoadIf: dtype in memory. Cast: dtype rounded to. Else equal to dtype.
  uint8_t slot;     // Scalar, Load: which scalar or buffer. Index, Extent, Reduce, Scan: the axis.
  Combine combine;  // Reduce, Scan
  uint64_t bits;    // Const: value; integers extended by their sign, floats as f64 bits
  uint64_t hash;    // structural: stable between runs and machines
  std::vector<Expr> inputs;  // Load: index a buffer dimension. LoadIf: mask, other, then indices.
  double constant() const { return std::bit_cast<double>(bits); }
};

inline DType Expr::dtype() const {
  return node->dtype;
}

// Checking factories: each throws Error(Internal) naming the op where operands do not fit. They
// fold nothing. Thread-safe.
Expr constant(double value, DType dtype);       // rounds to float dtypes, exact in others
Expr constant_int(int64_t value, DType dtype);  // integer: wraps to the width; bool: value != 0
Expr scalar(int slot, DType dtype);             // run-time scalar argument number `slot`
Expr index(int axis);                           // i64, 0 <= value < extent
Expr extent(int axis);                          // i64
Expr load(int buffer, DType memory, std::vector<Expr> indices);
Expr load_if(Expr mask, Expr other, int buffer, DType memory, std::vector<Expr> indices);
Expr cast(Expr x, DType dtype);     // x itself where it has the dtype already
Expr bitcast(Expr x, DType dtype);  // same size
Expr unary(Op op, Expr x);
Expr binary(Op op, Expr a, Expr b);
Expr complex(Expr real, Expr imag);
Expr real(Expr x);                 // x itself where it is real
Expr imag(Expr x);                 // of a complex value
Expr fma(Expr a, Expr b, Expr c);  // a * b + c
Expr select(Expr condition, Expr a, Expr b);
Expr reduce(Combine combine, int axis, Expr body);
Expr scan(Combine combine, int axis, Expr body);  // inclusive

// The node with other inputs (and the same payload): what passes rebuild with. Returns `node`
// itself where no input changed.
Expr with_inputs(Expr node, std::vector<Expr> inputs);

// The nodes under `roots`, each once, inputs before their users, in an order that depends only on
// the structure. Expressions may be thousands of nodes deep: walk this list rather than recurse.
std::vector<Expr> post_order(std::span<const Expr> roots);

// Rewrites bottom-up, each distinct node once: `f` sees a node whose inputs are rewritten already.
template <typename F>
Expr rewrite(Expr root, F&& f) {
  std::unordered_map<const Node*, Expr> done;
  for (Expr expr : post_order({&root, 1})) {
    std::vector<Expr> inputs;
    for (Expr input : expr->inputs) {
      inputs.push_back(done.at(input.node));
    }
    done[expr.node] = f(with_inputs(expr, std::move(inputs)));
  }
  return done.at(root.node);
}

// Operators for writing bodies. Numbers take the dtype of the other operand.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator+(Expr a, double b);
Expr operator-(Expr a, double b);
Expr operator*(Expr a, double b);
Expr operator/(Expr a, double b);
Expr operator+(double a, Expr b);
Expr operator-(double a, Expr b);
Expr operator*(double a, Expr b);
Expr operator/(double a, Expr b);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator<(Expr a, double b);
Expr operator<=(Expr a, double b);
Expr operator>(Expr a, double b);
Expr operator>=(Expr a, double b);
Expr operator==(Expr a, Expr b);  // element-wise; identity is same(a, b)
Expr operator!=(Expr a, Expr b);
Expr operator==(Expr a, double b);
Expr operator!=(Expr a, double b);
Expr operator&(Expr a, Expr b);
Expr operator|(Expr a, Expr b);
Expr operator^(Expr a, Expr b);
Expr operator~(Expr a);  // Not: logical on bool, bitwise on integers (`!a` is: a is null)

// Lower-case functions for every unary op: exp(x), tanh(x), sqrt(x), isnan(x), ...
Expr abs(Expr x);   // of a complex value: hypot of its parts, which is real
Expr conj(Expr x);  // x itself where it is real
Expr sqrt(Expr x);
Expr rsqrt(Expr x);  // 1 / sqrt(x)
Expr floor(Expr x);
Expr ceil(Expr x);
Expr trunc(Expr x);
Expr round(Expr x);
Expr exp(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log2(Expr x);
Expr log10(Expr x);
Expr log1p(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
Expr erf(Expr x);
Expr erfc(Expr x);
Expr erfinv(Expr x);
Expr lgamma(Expr x);
Expr digamma(Expr x);
Expr sigmoid(Expr x);  // 1 / (1 + exp(-x))
Expr isnan(Expr x);
Expr isinf(Expr x);
Expr max(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr pow(Expr a, Expr b);
Expr where(Expr condition, Expr a, Expr b);
Expr where(Expr condition, Expr a, double b);
Expr where(Expr condition, double a, Expr b);

}  // namespace rushlight::loop
