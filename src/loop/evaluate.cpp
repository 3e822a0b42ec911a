#include "loop/evaluate.h"

#include <rushlight/error.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "loop/special.h"

namespace rushlight::loop {
namespace {

int64_t as_int(Value value) {
  return static_cast<int64_t>(value);
}

Value from_double(double value) {
  return std::bit_cast<Value>(value);
}

// The transcendental functions, in f64; f32 results are rounded by the caller.
double function(Op op, double x) {
  switch (op) {
    case Op::Exp:
      return std::exp(x);
    case Op::Exp2:
      return std::exp2(x);
    case Op::Expm1:
      return std::expm1(x);
    case Op::Log:
      return std::log(x);
    case Op::Log2:
      return std::log2(x);
    case Op::Log10:
      return std::log10(x);
    case Op::Log1p:
      return std::log1p(x);
    case Op::Sin:
      return std::sin(x);
    case Op::Cos:
      return std::cos(x);
    case Op::Tan:
      return std::tan(x);
    case Op::Asin:
      return std::asin(x);
    case Op::Acos:
      return std::acos(x);
    case Op::Atan:
      return std::atan(x);
    case Op::Sinh:
      return std::sinh(x);
    case Op::Cosh:
      return std::cosh(x);
    case Op::Tanh:
      return std::tanh(x);
    case Op::Asinh:
      return std::asinh(x);
    case Op::Acosh:
      return std::acosh(x);
    case Op::Atanh:
      return std::atanh(x);
    case Op::Erf:
      return std::erf(x);
    case Op::Erfc:
      return std::erfc(x);
    case Op::Erfinv:
      return erfinv_f64(x);
    case Op::Lgamma:
      return lgamma_f64(x);
    case Op::Digamma:
      return digamma_f64(x);
    default:
      RUSHLIGHT_ASSERT(!"a unary float op");
  }
  return 0;
}

// Exact in either width, or rounded once from an exact f64 result.
double float_unary(Op op, double x) {
  switch (op) {
    case Op::Neg:
      return -x;
    case Op::Abs:
      return std::fabs(x);
    case Op::Sqrt:
      return std::sqrt(x);
    case Op::Floor:
      return std::floor(x);
    case Op::Ceil:
      return std::ceil(x);
    case Op::Trunc:
      return std::trunc(x);
    case Op::Round:
      return std::nearbyint(x);
    default:
      return function(op, x);
  }
}

template <typename T>
T float_mod(T a, T b) {
  T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <typename T>
T float_floor_div(T a, T b) {
  if (b == 0) {
    return a / b;
  }
  const T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    quotient -= 1;
  }
  if (quotient == 0) {
    return std::copysign(T(0), a / b);
  }
  T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}

template <typename T>
T float_binary(Op op, T a, T b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::FloorDiv:
      return float_floor_div(a, b);
    case Op::Rem:
      return std::fmod(a, b);
    case Op::Mod:
      return float_mod(a, b);
    case Op::Pow:
      return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    case Op::Atan2:
      return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
    case Op::Hypot:
      return static_cast<T>(std::hypot(static_cast<double>(a), static_cast<double>(b)));
    case Op::CopySign:
      return std::copysign(a, b);
    case Op::NextAfter:
      return std::nextafter(a, b);
    case Op::Max:
      return std::isnan(a) ? a : a > b ? a : b;
    case Op::Min:
      return std::isnan(a) ? a : a < b ? a : b;
    case Op::FMax:
      return std::isnan(b) ? a : a > b ? a : b;
    case Op::FMin:
      return std::isnan(b) ? a : a < b ? a : b;
    default:
      RUSHLIGHT_ASSERT(!"a binary float op");
  }
  return 0;
}

template <typename T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    default:
      return a >= b;
  }
}

// Division of a non-zero divisor; T is int64_t or uint64_t, whose operands stand for any width.
template <typename T>
T divide(Op op, T a, T b) {
  if (b == T(-1) && std::is_signed_v<T>) {
    return op == Op::Div || op == Op::FloorDiv ? static_cast<T>(-static_cast<Value>(a)) : 0;
  }
  T quotient = a / b;
  T remainder = a % b;
  bool crosses = remainder != 0 && (remainder < 0) != (b < 0);
  switch (op) {
    case Op::Div:
      return quotient;
    case Op::FloorDiv:
      return quotient - (crosses ? 1 : 0);
    case Op::Rem:
      return remainder;
    default:
      return crosses ? remainder + b : remainder;
  }
}

Value int_pow(Value base, Value exponent, bool negative) {
  if (negative) {
    bool odd = exponent & 1;
    return base == 1 ? 1 : base == ~Value(0) ? (odd ? base : 1) : 0;
  }
  Value result = 1;
  for (; exponent; exponent >>= 1) {
    result *= exponent & 1 ? base : 1;
    base *= base;
  }
  return result;
}

template <typename T>
Value int_binary(Op op, DType dtype, T a, T b) {
  Value ua = static_cast<Value>(a);
  Value ub = static_cast<Value>(b);
  bool overshift = ub >= static_cast<Value>(element_size(dtype)) * 8;
  switch (op) {
    case Op::Add:
      return ua + ub;
    case Op::Sub:
      return ua - ub;
    case Op::Mul:
      return ua * ub;
    case Op::Div:
    case Op::FloorDiv:
    case Op::Rem:
    case Op::Mod:
      return b == 0 ? 0 : static_cast<Value>(divide(op, a, b));
    case Op::Pow:
      return int_pow(ua, ub, b < 0);
    case Op::Max:
      return static_cast<Value>(a > b ? a : b);
    case Op::Min:
      return static_cast<Value>(a < b ? a : b);
    case Op::And:
      return ua & ub;
    case Op::Or:
      return ua | ub;
    case Op::Xor:
      return ua ^ ub;
    case Op::Shl:
      return overshift ? 0 : ua << ub;
    case Op::Shr:
      return overshift ? (a < 0 ? ~Value(0) : 0) : static_cast<Value>(a >> ub);
    default:
      RUSHLIGHT_ASSERT(!"a binary integer op");
  }
  return 0;
}

Value evaluate_unary(Op op, DType dtype, Value a) {
  if (op == Op::IsNan) {
    return std::isnan(as_double(a));
  }
  if (is_floating(dtype)) {
    return normalize_float(float_unary(op, as_double(a)), dtype);
  }
  switch (op) {
    case Op::Neg:
      return normalize_int(as_int(-a), dtype);
    case Op::Abs:
      return normalize_int(as_int(is_signed(dtype) && as_int(a) < 0 ? -a : a), dtype);
    case Op::Not:
      return dtype == DType::Bool ? !a : normalize_int(as_int(~a), dtype);
    default:
      RUSHLIGHT_ASSERT(!"a unary integer op");
  }
  return 0;
}

Value evaluate_bitcast(Value value, DType from, DType to) {
  uint64_t raw = 0;
  write_memory(&raw, from, value);
  return read_memory(&raw, to);
}

// Rounds an f32's value through a narrower type.
Value round_through(Value value, DType narrow) {
  uint32_t memory = 0;
  write_memory(&memory, narrow, value);
  return read_memory(&memory, narrow);
}

int64_t truncate(double value, DType to) {
  constexpr double kTwo63 = 9223372036854775808.0;
  if (to == DType::UInt64 && value >= kTwo63 && value < 2 * kTwo63) {
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  if (to == DType::Int32 && !(std::fabs(value) < 2147483648.0)) {
    return std::numeric_limits<int32_t>::min();
  }
  bool fits = value >= -kTwo63 && value < kTwo63;
  return fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

template <typename T>
T read_as(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T>
void write_as(void* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace

Value normalize_float(double value, DType dtype) {
  if (std::isnan(value)) {
    return from_double(std::numeric_limits<double>::quiet_NaN());
  }
  return from_double(dtype == DType::Float32 ? static_cast<float>(value) : value);
}

Value normalize_int(int64_t value, DType dtype) {
  if (dtype == DType::Bool) {
    return value != 0;
  }
  int unused = 64 - 8 * static_cast<int>(element_size(dtype));
  Value high = static_cast<Value>(value) << unused;
  return is_signed(dtype) ? static_cast<Value>(static_cast<int64_t>(high) >> unused)
                          : high >> unused;
}

Value evaluate_binary(Op op, DType operands, Value a, Value b) {
  bool comparison = info(op).typing == Typing::Bool;
  if (is_floating(operands)) {
    double x = as_double(a);
    double y = as_double(b);
    if (comparison) {
      return compare(op, x, y);
    }
    double result = operands == DType::Float32
                        ? float_binary(op, static_cast<float>(x), static_cast<float>(y))
                        : float_binary(op, x, y);
    return normalize_float(result, operands);
  }
  if (is_signed(operands)) {
    return comparison
               ? compare(op, as_int(a), as_int(b))
               : normalize_int(as_int(int_binary(op, operands, as_int(a), as_int(b))), operands);
  }
  return comparison ? compare(op, a, b)
                    : normalize_int(as_int(int_binary(op, operands, a, b)), operands);
}

Value evaluate(const Node& node, const Value* inputs) {
  switch (node.op) {
    case Op::Cast:
      return convert(inputs[0], node.inputs[0].dtype(), node.buffer);
    case Op::Bitcast:
      return evaluate_bitcast(inputs[0], node.inputs[0].dtype(), node.dtype);
    case Op::Select:
      return inputs[0] ? inputs[1] : inputs[2];
    case Op::Fma: {
      double a = as_double(inputs[0]);
      double b = as_double(inputs[1]);
      double c = as_double(inputs[2]);
      double result =
          node.dtype == DType::Float32
              ? std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))
              : std::fma(a, b, c);
      return normalize_float(result, node.dtype);
    }
    default:
      break;
  }
  DType operands = node.inputs[0].dtype();
  if (info(node.op).arity == Arity::Unary) {
    return evaluate_unary(node.op, operands, inputs[0]);
  }
  return evaluate_binary(node.op, operands, inputs[0], inputs[1]);
}

Value identity(Combine combine, DType dtype) {
  bool floating = is_floating(dtype);
  int bits = 8 * static_cast<int>(element_size(dtype));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value lowest = is_signed(dtype) ? ~Value(0) << (bits - 1) : 0;
  switch (combine) {
    case Combine::Sum:
    case Combine::Or:
      return 0;
    case Combine::Prod:
      return floating ? from_double(1) : 1;
    case Combine::Max:
      return floating ? from_double(-kInfinity) : lowest;
    case Combine::Min:
      return floating ? from_double(kInfinity) : normalize_int(as_int(~lowest), dtype);
    case Combine::And:
      return normalize_int(-1, dtype);
  }
  return 0;
}

Value combine_values(Combine combine, DType dtype, Value a, Value b) {
  constexpr Op kOps[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::Or, Op::And};
  return evaluate_binary(kOps[static_cast<int>(combine)], dtype, a, b);
}

Value convert(Value value, DType from, DType to) {
  if (is_floating(from)) {
    double x = as_double(value);
    if (to == DType::Bool) {
      return x != 0;
    }
    if (!is_floating(to)) {
      return normalize_int(truncate(x, to), to);
    }
    Value rounded = normalize_float(x, compute_dtype(to));
    return compute_dtype(to) == to ? rounded : round_through(rounded, to);
  }
  if (!is_floating(to)) {
    return normalize_int(as_int(value), to);
  }
  // Straight to f32: by way of f64 a wide integer would be rounded twice.
  bool narrow = to != DType::Float64;
  double x = is_signed(from)
                 ? (narrow ? static_cast<float>(as_int(value)) : static_cast<double>(as_int(value)))
                 : (narrow ? static_cast<float>(value) : static_cast<double>(value));
  return compute_dtype(to) == to ? from_double(x) : round_through(from_double(x), to);
}

Value read_memory(const void* address, DType memory) {
  switch (memory) {
    case DType::Bool:
      return read_as<uint8_t>(address) != 0;
    case DType::UInt8:
      return read_as<uint8_t>(address);
    case DType::Int8:
      return static_cast<Value>(static_cast<int64_t>(read_as<int8_t>(address)));
    case DType::UInt16:
      return read_as<uint16_t>(address);
    case DType::Int16:
      return static_cast<Value>(static_cast<int64_t>(read_as<int16_t>(address)));
    case DType::UInt32:
      return read_as<uint32_t>(address);
    case DType::Int32:
      return static_cast<Value>(static_cast<int64_t>(read_as<int32_t>(address)));
    case DType::UInt64:
    case DType::Int64:
      return read_as<uint64_t>(address);
#define RUSHLIGHT_CASE(type, convert) \
  case DType::type:                   \
    return from_double(to_float(read_as<type>(address)));
      RUSHLIGHT_FLOAT8(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    case DType::Float16:
      return from_double(to_float(read_as<Half>(address)));
    case DType::BFloat16:
      return from_double(to_float(read_as<BFloat16>(address)));
    case DType::Float32:
      return from_double(read_as<float>(address));
    case DType::Float64:
      return read_as<uint64_t>(address);
    default:
      RUSHLIGHT_ASSERT(!"a dtype of the loop IR");
  }
  return 0;
}

void write_memory(void* address, DType memory, Value value) {
  float narrow = static_cast<float>(as_double(value));
  switch (memory) {
#define RUSHLIGHT_CASE(type, convert) \
  case DType::type:                   \
    return write_as(address, convert(narrow));
    RUSHLIGHT_FLOAT8(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    case DType::Float16:
      return write_as(address, to_half(narrow));
    case DType::BFloat16:
      return write_as(address, to_bfloat16(narrow));
    case DType::Float32:
      return write_as(address, narrow);
    default:
      // Little-endian: the low bytes are the narrower integer.
      std::memcpy(address, &value, static_cast<size_t>(element_size(memory)));
  }
}

Value from_argument(uint64_t bits, DType dtype) {
  if (dtype == DType::Float32) {
    return from_double(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return is_floating(dtype) ? bits : normalize_int(static_cast<int64_t>(bits), dtype);
}

}  // namespace rushlight::loop
