#include <rushlight/error.h>

#include <atomic>
#include <charconv>
#include <cstdio>

namespace rushlight {
namespace {

void print_warning(const std::string& text) {
  std::fprintf(stderr, "Warning: %s\n", text.c_str());
}

std::atomic<WarningHandler> g_warning_handler{print_warning};

template <typename T>
void append_number(std::string& out, T value) {
  char text[40];
  auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  out.append(text, end);
}

}  // namespace

namespace detail {

void append(std::string& out, std::string_view value) {
  out += value;
}
void append(std::string& out, const char* value) {
  out += value;
}
void append(std::string& out, const std::string& value) {
  out += value;
}
void append(std::string& out, bool value) {
  out += value ? "True" : "False";
}
void append(std::string& out, char value) {
  out += value;
}
void append(std::string& out, int value) {
  append_number(out, value);
}
void append(std::string& out, unsigned value) {
  append_number(out, value);
}
void append(std::string& out, long value) {
  append_number(out, value);
}
void append(std::string& out, long long value) {
  append_number(out, value);
}
void append(std::string& out, unsigned long value) {
  append_number(out, value);
}
void append(std::string& out, unsigned long long value) {
  append_number(out, value);
}
void append(std::string& out, double value) {
  append_number(out, value);
}
void append(std::string& out, DType value) {
  out += dtype_name(value);
}

void append(std::string& out, std::span<const int64_t> shape) {
  out += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    out += i ? ", " : "";
    append_number(out, shape[i]);
  }
  out += ']';
}

void assertion_failed(const char* condition, const char* file, int line) {
  fail(ErrorKind::Internal, "", file, ":", line, ": assertion `", condition,
       "` failed. This is a fault of Rushlight, please report it.");
}

}  // namespace detail

void raise(ErrorKind kind, std::string_view op, std::string text) {
  throw Error(kind, std::string(op), std::move(text));
}

void warn(const std::string& text) {
  g_warning_handler.load()(text);
}

void set_warning_handler(WarningHandler handler) {
  g_warning_handler.store(handler ? handler : print_warning);
}

}  // namespace rushlight
