// A strict reader of JSON text, token by token: what a caller does not ask for is an error.
//
// Nothing recurses, so the depth of hostile text does not matter. Errors are Error(Value) and name
// the byte where the text stops being what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rushlight::io {

class JsonCursor {
 public:
  // `what` names the text in errors.
  JsonCursor(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  // Takes the character, blanks before it skipped; false and nothing taken where another stands.
  bool take(char wanted);
  void expect(char wanted);
  std::string string();  // valid UTF-8, escapes resolved
  uint64_t whole();      // a number without sign, fraction and exponent, below 2^63
  void end();            // nothing but blanks may follow
  [[noreturn]] void fail_here(std::string_view expected) const;

 private:
  void skip_blanks();
  void escape(std::string& out);
  uint32_t hex4();

  std::string_view text_;
  std::string_view what_;
  size_t at_ = 0;
};

// The text as a JSON string, in quotes.
std::string json_quoted(std::string_view text);

}  // namespace rushlight::io
