#include "io/json_cursor.h"

#include <rushlight/error.h>

#include <cstdio>

namespace rushlight::io {
namespace {

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// Bytes of the UTF-8 sequence that starts here; 0 where it is not valid.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // Overlong forms, surrogates, and codes past the last.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

}  // namespace

void JsonCursor::fail_here(std::string_view expected) const {
  fail(ErrorKind::Value, what_, "invalid JSON at byte ", at_, ": expected ", expected);
}

void JsonCursor::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonCursor::take(char wanted) {
  skip_blanks();
  if (at_ < text_.size() && text_[at_] == wanted) {
    ++at_;
    return true;
  }
  return false;
}

void JsonCursor::expect(char wanted) {
  if (!take(wanted)) {
    const char name[] = {'\'', wanted, '\'', '\0'};
    fail_here(name);
  }
}

uint32_t JsonCursor::hex4() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c >= '0' && c <= '9') {
      code = code * 16 + static_cast<uint32_t>(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      code = code * 16 + static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      fail_here("four hexadecimal digits");
    }
  }
  return code;
}

void JsonCursor::escape(std::string& out) {
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  const size_t found = c == '\0' ? std::string_view::npos : kNames.find(c);
  if (found != std::string_view::npos) {
    ++at_;
    out += kValues[found];
    return;
  }
  if (c != 'u') {
    fail_here("an escape");
  }
  ++at_;
  uint32_t code = hex4();
  if (code >= 0xdc00 && code <= 0xdfff) {
    fail_here("the first half of a surrogate pair");
  }
  if (code >= 0xd800 && code <= 0xdbff) {
    if (text_.substr(at_, 2) != "\\u") {
      fail_here("the second half of a surrogate pair");
    }
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) {
      fail_here("the second half of a surrogate pair");
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(out, code);
}

std::string JsonCursor::string() {
  expect('"');
  std::string out;
  while (true) {
    if (at_ >= text_.size()) {
      fail_here("the end of a string");
    }
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return out;
    }
    if (c == '\\') {
      ++at_;
      escape(out);
      continue;
    }
    const size_t length = utf8_length(text_.substr(at_));
    if (static_cast<unsigned char>(c) < 0x20 || length == 0) {
      fail_here("a character of valid UTF-8");
    }
    out.append(text_.substr(at_, length));
    at_ += length;
  }
}

uint64_t JsonCursor::whole() {
  skip_blanks();
  const size_t start = at_;
  uint64_t value = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const auto digit = static_cast<uint64_t>(text_[at_] - '0');
    if (value > (INT64_MAX - digit) / 10) {
      fail_here("a number below 2^63");
    }
    value = value * 10 + digit;
    ++at_;
  }
  if (at_ == start || (text_[start] == '0' && at_ - start > 1)) {
    at_ = start;
    fail_here("a whole number");
  }
  return value;
}

void JsonCursor::end() {
  skip_blanks();
  if (at_ != text_.size()) {
    fail_here("the end");
  }
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\b') {
      out += "\\b";
    } else if (c == '\f') {
      out += "\\f";
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(byte));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace rushlight::io
