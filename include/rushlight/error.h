// Errors that users can cause: exceptions with text that names operator, argument, got, expected.
//
// Internal errors are assertions (RUSHLIGHT_ASSERT): they mean a fault of ours, and say so.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#define RUSHLIGHT_API __attribute__((visibility("default")))

namespace rushlight {

// X(kind): the Python exception type has the same name with "Error" appended, save OutOfMemory.
enum class ErrorKind : uint8_t {
  Runtime,
  Type,
  Value,
  Index,
  Key,
  Attribute,
  NotImplemented,
  ZeroDivision,
  Overflow,
  OutOfMemory,  // Python: rushlight.OutOfMemoryError, a RuntimeError
  LinAlg,       // Python: rushlight.linalg.LinAlgError, a RuntimeError
  Internal,     // Python: RuntimeError, with a request to report it
};

class RUSHLIGHT_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string op, std::string text)
      : std::runtime_error(op.empty() ? text : op + ": " + text), kind_(kind), op_(std::move(op)) {}
  ErrorKind kind() const { return kind_; }
  const std::string& op() const { return op_; }  // the operator's name, or empty

 private:
  ErrorKind kind_;
  std::string op_;
};

namespace detail {
void append(std::string& out, std::string_view value);
void append(std::string& out, const char* value);
void append(std::string& out, const std::string& value);
void append(std::string& out, bool value);
void append(std::string& out, char value);
void append(std::string& out, int value);
void append(std::string& out, unsigned value);
void append(std::string& out, long value);
void append(std::string& out, long long value);
void append(std::string& out, unsigned long value);
void append(std::string& out, unsigned long long value);
void append(std::string& out, double value);
void append(std::string& out, DType value);
void append(std::string& out, std::span<const int64_t> shape);  // "[2, 3]"
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace detail

class Tensor;

// Joins its arguments as text: strings, numbers, dtypes, shapes. (Lists of tensors are joined by
// the operator of the same name.)
template <typename... Parts>
  requires(!std::is_same_v<Parts, std::vector<Tensor>> && ...)
std::string cat(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

[[noreturn]] RUSHLIGHT_API void raise(ErrorKind kind, std::string_view op, std::string text);

// Throws Error(kind) with text "op: parts..."; an empty op leaves the prefix out.
template <typename... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail(ErrorKind kind, std::string_view op,
                                                       const Parts&... parts) {
  raise(kind, op, cat(parts...));
}

// Writes a warning: to stderr, or to the handler that the Python binding installs.
RUSHLIGHT_API void warn(const std::string& text);
using WarningHandler = void (*)(const std::string&);
RUSHLIGHT_API void set_warning_handler(WarningHandler handler);

}  // namespace rushlight

#define RUSHLIGHT_ASSERT(condition) \
  ((condition) ? (void)0 : ::rushlight::detail::assertion_failed(#condition, __FILE__, __LINE__))
