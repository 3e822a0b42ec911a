#include <rushlight/error.h>

#include <charconv>
#include <limits>

#include "loop/evaluate.h"
#include "loop/text.h"

namespace rushlight::loop {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '%' || c == '+' || c == '-';
}

bool starts_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '.';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Kernel kernel() {
    Kernel result;
    expect_word("kernel");
    result.name = quoted_string();
    for (; accept_word("axis");) {
      expect_number(result.axes.size());
      result.axes.push_back(static_cast<AxisKind>(one_of(kAxisTexts, "an axis kind")));
    }
    for (; accept_word("buffer");) {
      expect_number(result.buffers.size());
      result.buffers.push_back(buffer());
    }
    for (; accept_word("scalar");) {
      expect_number(result.scalars.size());
      result.scalars.push_back(dtype(word()));
    }
    definitions();
    while (!at_end()) {
      result.stores.push_back(store());
    }
    return result;
  }

  Expr expression() {
    definitions();
    Expr result = expr(0);
    if (!at_end()) {
      error("expected the end of the text");
    }
    return result;
  }

 private:
  template <typename... Parts>
  [[noreturn]] void error(const Parts&... parts) {
    size_t line = 1;
    size_t column = 1;
    for (char c : text_.substr(0, start_)) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n';
    }
    fail(ErrorKind::Value, "loop.parse", "line ", line, ", column ", column, ": ", parts...);
  }

  // Tokens: words, quoted strings and single punctuation characters; `#` starts a comment.
  void skip_space() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        break;
      }
    }
    start_ = at_;
  }

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  std::string_view peek_word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  std::string_view word() {
    std::string_view result = peek_word();
    if (result.empty()) {
      error("expected a word, got ", at_ == text_.size() ? "the end" : text_.substr(at_, 1));
    }
    at_ += result.size();
    return result;
  }

  bool accept_word(std::string_view wanted) {
    bool found = peek_word() == wanted;
    at_ += found ? wanted.size() : 0;
    return found;
  }

  void expect_word(std::string_view wanted) {
    if (!accept_word(wanted)) {
      error("expected `", wanted, "`, got `", peek_word(), "`");
    }
  }

  bool accept(char c) {
    skip_space();
    bool found = at_ < text_.size() && text_[at_] == c;
    at_ += found;
    return found;
  }

  void expect(char c) {
    if (!accept(c)) {
      error("expected `", c, "`, got ",
            at_ == text_.size() ? "the end" : cat("`", text_.substr(at_, 1), "`"));
    }
  }

  std::string quoted_string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      bool escape = text_[at_] == '\\';
      at_ += escape;
      if (at_ == text_.size()) {
        break;
      }
      out += escape && text_[at_] == 'n' ? '\n' : text_[at_];
      ++at_;
    }
    if (at_ == text_.size()) {
      error("the name is not closed");
    }
    ++at_;
    return out;
  }

  template <size_t N>
  size_t one_of(const std::string_view (&texts)[N], std::string_view what) {
    std::string_view name = word();
    for (size_t i = 0; i < N; ++i) {
      if (name == texts[i]) {
        return i;
      }
    }
    error("`", name, "` is not ", what);
  }

  template <typename T>
  T number(std::string_view digits) {
    T value{};
    auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status == std::errc::result_out_of_range) {
      error("`", digits, "` is out of range");
    }
    if (status != std::errc() || end != digits.data() + digits.size()) {
      error("`", digits, "` is not a number");
    }
    return value;
  }

  void expect_number(size_t wanted) {
    std::string_view digits = word();
    if (number<size_t>(digits) != wanted) {
      error("expected number ", wanted, ", got ", digits);
    }
  }

  // A letter and a number: b0, i1, n2, s3.
  int slot(std::string_view name, char letter) {
    if (name.size() < 2 || name[0] != letter) {
      error("expected `", letter, "` and a number, got `", name, "`");
    }
    unsigned value = number<unsigned>(name.substr(1));
    if (value > 255) {
      error("`", name, "`: numbers go to 255");
    }
    return static_cast<int>(value);
  }

  DType dtype(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i) {
      if (kDTypeTable[i].ir_name == name) {
        return static_cast<DType>(i);
      }
    }
    error("`", name, "` is not a dtype");
  }

  Buffer buffer() {
    Buffer result{dtype(word()), {}};
    for (bool more = true; more;) {
      more = false;
      for (const std::string_view& text : kLayoutTexts) {
        if (!more && accept_word(text)) {
          result.dims.push_back(static_cast<Layout>(&text - &kLayoutTexts[0]));
          more = true;
        }
      }
    }
    return result;
  }

  void definitions() {
    while (peek_word().starts_with('%')) {
      size_t before = at_;
      std::string_view name = word();
      size_t start = start_;
      if (!accept('=')) {  // the root of an expression rather than a definition
        at_ = before;
        return;
      }
      if (!names_.emplace(name, expr(0)).second) {
        start_ = start;
        error("`", name, "` is defined twice");
      }
    }
  }

  Store store() {
    Store result;
    result.mode = static_cast<StoreMode>(one_of(kStoreTexts, "a store"));
    result.buffer = slot(word(), 'b');
    expect('(');
    if (!accept(')')) {
      result.indices = operands(0);
    }
    expect('=');
    result.value = expr(0);
    if (accept_word("if")) {
      result.mask = expr(0);
    }
    return result;
  }

  // Operands up to and with the closing parenthesis.
  std::vector<Expr> operands(int depth) {
    std::vector<Expr> result;
    do {
      result.push_back(expr(depth + 1));
    } while (accept(','));
    expect(')');
    return result;
  }

  Expr expr(int depth) {
    if (depth > kParsedDepth) {
      error("expressions may be nested ", kParsedDepth,
            " deep: name a part with a line `%n = ...`");
    }
    std::string_view name = word();
    size_t start = start_;
    if (name[0] == '%') {
      auto found = names_.find(name);
      if (found == names_.end()) {
        error("`", name, "` is not defined");
      }
      return found->second;
    }
    if (accept('(')) {
      return checked(start, [&] { return call(name, start, depth); });
    }
    return checked(start, [&] { return leaf(name, start); });
  }

  // The factories' complaints, with the place in the text.
  template <typename F>
  Expr checked(size_t start, F make) {
    try {
      return make();
    } catch (const Error& cause) {
      if (cause.kind() != ErrorKind::Internal) {
        throw;
      }
      start_ = start;
      error(cause.what());
    }
  }

  Expr leaf(std::string_view name, size_t start) {
    start_ = start;
    if (name == "true" || name == "false") {
      return constant_int(name == "true", DType::Bool);
    }
    if (name.size() > 1 && name[0] == 'i' && starts_number(name[1])) {
      return index(slot(name, 'i'));
    }
    if (name[0] == 'n' && name != "nan") {
      return extent(slot(name, 'n'));
    }
    if (!accept(':')) {
      error("`", name, "` is neither a value nor an operator with operands");
    }
    DType type = dtype(word());
    start_ = start;
    if (name[0] == 's') {
      return scalar(slot(name, 's'), type);
    }
    return is_floating(type) ? constant(number<double>(name), type) : integer(name, type);
  }

  Expr integer(std::string_view digits, DType type) {
    int64_t value = type == DType::UInt64 ? static_cast<int64_t>(number<uint64_t>(digits))
                                          : number<int64_t>(digits);
    if (normalize_int(value, type) != static_cast<Value>(value)) {
      error("`", digits, "` is out of the range of ", type);
    }
    return constant_int(value, type);
  }

  Expr call(std::string_view name, size_t start, int depth) {
    size_t dot = std::min(name.find('.'), name.size());
    std::string_view suffix = dot < name.size() ? name.substr(dot + 1) : "";
    Op op = op_named(name.substr(0, dot), start);
    int first = -1;
    if (op == Op::Load || op == Op::LoadIf) {
      first = slot(word(), 'b');
    } else if (op == Op::Reduce || op == Op::Scan) {
      first = slot(word(), 'i');
    }
    std::vector<Expr> inputs;
    if (first < 0 || accept(',')) {
      inputs = operands(depth);
    } else {
      expect(')');
    }
    start_ = start;
    check_count(op, inputs.size());
    return build(op, suffix, first, std::move(inputs));
  }

  Op op_named(std::string_view name, size_t start) {
    for (int i = 0; i < kOpCount; ++i) {
      Op op = static_cast<Op>(i);
      if (info(op).text == name && info(op).arity != Arity::Leaf) {
        return op;
      }
    }
    start_ = start;
    error("`", name, "` is not an operator");
  }

  void check_count(Op op, size_t count) {
    Arity arity = info(op).arity;
    bool fits = arity == Arity::Variadic ? (op == Op::Load || count >= 2)
                                         : count == static_cast<size_t>(arity);
    if (!fits) {
      error("`", info(op).text, "` does not take ", count, " operands");
    }
  }

  Expr build(Op op, std::string_view suffix, int slot, std::vector<Expr> inputs) {
    switch (op) {
      case Op::Load:
        return load(slot, dtype(suffix), std::move(inputs));
      case Op::LoadIf: {
        std::vector<Expr> indices(inputs.begin() + 2, inputs.end());
        return load_if(inputs[0], inputs[1], slot, dtype(suffix), std::move(indices));
      }
      case Op::Cast:
        return cast(inputs[0], dtype(suffix));
      case Op::Bitcast:
        return bitcast(inputs[0], dtype(suffix));
      case Op::Reduce:
        return reduce(combine(suffix), slot, inputs[0]);
      case Op::Scan:
        return scan(combine(suffix), slot, inputs[0]);
      default:
        break;
    }
    if (!suffix.empty()) {
      error("`", info(op).text, "` takes no `.", suffix, "`");
    }
    switch (inputs.size()) {
      case 1:
        return unary(op, inputs[0]);
      case 2:
        return binary(op, inputs[0], inputs[1]);
      default:
        return op == Op::Fma ? fma(inputs[0], inputs[1], inputs[2])
                             : select(inputs[0], inputs[1], inputs[2]);
    }
  }

  Combine combine(std::string_view name) {
    constexpr Combine kAll[] = {Combine::Sum, Combine::Prod, Combine::Max,
                                Combine::Min, Combine::Or,   Combine::And};
    for (Combine kind : kAll) {
      if (combine_text(kind) == name) {
        return kind;
      }
    }
    error("`", name, "` is not a combine");
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t start_ = 0;  // of the current token, for messages
  std::unordered_map<std::string_view, Expr> names_;
};

}  // namespace

Kernel parse(std::string_view text) {
  return Parser(text).kernel();
}

Expr parse_expr(std::string_view text) {
  return Parser(text).expression();
}

}  // namespace rushlight::loop
