#include "ops/schema.h"

#include <cctype>
#include <charconv>

namespace rushlight {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema schema;
    schema.text = std::string(text_);
    std::string full = name(".");
    size_t dot = full.find('.');
    schema.name = full.substr(0, dot);
    schema.overload = dot == std::string::npos ? "" : full.substr(dot + 1);
    expect('(');
    bool keyword_only = false;
    while (!accept(')')) {
      if (accept('*')) {
        keyword_only = true;
      } else {
        schema.arguments.push_back(argument(keyword_only));
      }
      accept(',');
    }
    expect('-');
    expect('>');
    if (accept('(')) {
      while (!accept(')')) {
        schema.results.push_back(result());
        accept(',');
      }
    } else {
      schema.results.push_back(result());
    }
    skip();
    if (at_ != text_.size()) {
      fault("the end");
    }
    return schema;
  }

 private:
  [[noreturn]] void fault(std::string_view expected) {
    fail(ErrorKind::Value, "schema", "expected ", expected, " at position ", at_, " of '", text_,
         "'");
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
  }
  bool accept(char letter) {
    skip();
    if (at_ < text_.size() && text_[at_] == letter) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char letter) {
    if (!accept(letter)) {
      fault(std::string("'") + letter + "'");
    }
  }
  bool peek_name() {
    skip();
    return at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_');
  }
  std::string name(std::string_view extra = "") {
    skip();
    size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
            extra.find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (at_ == start) {
      fault("a name");
    }
    return std::string(text_.substr(start, at_ - start));
  }

  void type(Argument& argument) {
    std::string word = name();
    if (word == "SymInt") {
      word = "int";
    }
    bool found = false;
#define RUSHLIGHT_CASE(enumerator, spelling) \
  if (word == spelling) {                    \
    argument.type = SchemaType::enumerator;  \
    found = true;                            \
  }
    RUSHLIGHT_SCHEMA_TYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    if (!found) {
      fault("a type, got " + word);
    }
    if (accept('(')) {
      name();
      argument.alias = true;
      argument.written = accept('!');
      expect(')');
    }
    bool question = accept('?');
    if (accept('[')) {
      argument.list = true;
      argument.optional_items = question;
      if (peek_name()) {
        std::string digits = name();
        std::from_chars(digits.data(), digits.data() + digits.size(), argument.list_size);
      }
      expect(']');
      question = accept('?');
    }
    argument.optional = question;
  }

  Argument argument(bool keyword_only) {
    Argument made;
    type(made);
    made.name = name();
    made.keyword_only = keyword_only;
    if (accept('=')) {
      made.has_default = true;
      default_value(made);
    }
    return made;
  }

  Argument result() {
    Argument made;
    type(made);
    if (peek_name()) {
      made.name = name();
    }
    return made;
  }

  std::string token() {
    skip();
    size_t start = at_;
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
      char quote = text_[at_++];
      while (at_ < text_.size() && text_[at_] != quote) {
        ++at_;
      }
      ++at_;
    } else if (at_ < text_.size() && text_[at_] == '[') {
      while (at_ < text_.size() && text_[at_] != ']') {
        ++at_;
      }
      ++at_;
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') {
        ++at_;
      }
    }
    return std::string(text_.substr(start, at_ - start));
  }

  void default_value(Argument& made) {
    std::string text = token();
    made.default_text = text;
    if (text == "None") {
      return;
    }
    if (made.list) {
      made.default_value = list_default(made, text);
      return;
    }
    if (text == "True" || text == "False") {
      made.default_value = Value(text == "True");
    } else if (text[0] == '\'' || text[0] == '"') {
      made.default_value = Value(text.substr(1, text.size() - 2));
    } else if (made.type == SchemaType::MemoryFormat) {
      made.default_value =
          Value(text == "contiguous_format" ? MemoryFormat::Contiguous : MemoryFormat::Preserve);
    } else if (made.type == SchemaType::DType) {
      DType dtype;
      if (!parse_dtype(text, &dtype)) {
        fault("a dtype, got " + text);
      }
      made.default_value = Value(dtype);
    } else if (made.type == SchemaType::Float || text.find_first_of(".en") != std::string::npos) {
      made.default_value = Value(std::stod(text));
    } else {
      made.default_value = Value(static_cast<int64_t>(std::stoll(text)));
    }
  }

  Value list_default(const Argument& made, const std::string& text) {
    IntList list;
    if (text[0] != '[') {
      if (text == "True" || text == "False") {
        return Value(std::vector<bool>(static_cast<size_t>(made.list_size), text == "True"));
      }
      return Value(
          IntList(static_cast<size_t>(made.list_size > 0 ? made.list_size : 1), std::stoll(text)));
    }
    std::string_view rest = std::string_view(text).substr(1, text.size() - 2);
    while (!rest.empty()) {
      size_t comma = rest.find(',');
      std::string item(rest.substr(0, comma));
      if (!item.empty()) {
        list.push_back(std::stoll(item));
      }
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    if (made.type == SchemaType::Float) {
      return Value(std::vector<double>(list.begin(), list.end()));
    }
    return Value(list);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

int Schema::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Schema parse_schema(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace rushlight
