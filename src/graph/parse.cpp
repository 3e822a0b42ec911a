// Reads the text form of graphs. The text is not trusted: what it names is checked.
#include <charconv>
#include <cstdlib>

#include "graph/graph.h"
#include "ops/derivative.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph run() {
    skip_blank_lines();
    while (at_ < text_.size()) {
      if (take_word("storage")) {
        storage();
      } else if (take_word("value")) {
        value();
      } else {
        node();
      }
      end_line();
    }
    std::string wrong = verify(graph_);
    if (!wrong.empty()) {
      fail(ErrorKind::Value, "graph.parse", wrong);
    }
    return std::move(graph_);
  }

 private:
  template <typename... Parts>
  [[noreturn]] void wrong(const Parts&... parts) const {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    fail(ErrorKind::Value, "graph.parse", "line ", line, ", column ", column, ": ", parts...);
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }
  void skip_blank_lines() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
      ++at_;
    }
  }
  void end_line() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] != '\n') {
      wrong("expected the end of the line");
    }
    skip_blank_lines();
  }
  bool take(char letter) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == letter) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char letter) {
    if (!take(letter)) {
      wrong("expected '", std::string(1, letter), "'");
    }
  }
  std::string_view peek_word() {
    skip_spaces();
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 ||
                                  text_[end] == '_' || text_[end] == '.')) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (peek_word() != word) {
      return false;
    }
    at_ += word.size();
    return true;
  }
  std::string_view word() {
    std::string_view found = peek_word();
    if (found.empty()) {
      wrong("expected a word");
    }
    at_ += found.size();
    return found;
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const char* end = text_.data() + text_.size();
    auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) {
      wrong("expected an integer");
    }
    at_ = static_cast<size_t>(stop - text_.data());
    return value;
  }
  int count(size_t limit, const char* what) {
    int64_t value = integer();
    if (value < 0 || value >= static_cast<int64_t>(limit)) {
      wrong("there is no ", what, " ", value);
    }
    return static_cast<int>(value);
  }
  template <typename F>
  void list(F&& item) {
    expect('[');
    if (take(']')) {
      return;
    }
    do {
      item();
    } while (take(','));
    expect(']');
  }
  IntList ints() {
    IntList made;
    list([&] { made.push_back(integer()); });
    return made;
  }

  void storage() {
    if (integer() != static_cast<int64_t>(graph_.storages.size())) {
      wrong("storages are numbered in order");
    }
    StorageInfo made;
    made.input = take_word("input");
    int64_t bytes = integer();
    if (bytes < 0 || bytes > int64_t{1} << 46) {
      wrong("a storage of ", bytes, " bytes");
    }
    made.bytes = static_cast<size_t>(bytes);
    graph_.storages.push_back(made);
  }

  DType dtype() {
    DType made;
    std::string_view name = word();
    if (!parse_dtype(name, &made)) {
      wrong("there is no dtype ", name);
    }
    return made;
  }

  void value() {
    if (integer() != static_cast<int64_t>(graph_.values.size())) {
      wrong("values are numbered in order");
    }
    ValueInfo made;
    if (!take_word("storage")) {
      wrong("expected 'storage'");
    }
    made.storage = count(graph_.storages.size(), "storage");
    made.dtype = dtype();
    made.sizes = ints();
    made.strides = ints();
    made.numel = checked_numel(made.sizes, "graph.parse");
    if (!take_word("at")) {
      wrong("expected 'at'");
    }
    made.offset = integer();
    if (take_word("contiguous")) {
      made.flags |= TensorImpl::kContiguous;
    }
    if (take_word("number")) {
      made.flags |= TensorImpl::kWrappedNumber;
    }
    StorageInfo& info = graph_.storages[static_cast<size_t>(made.storage)];
    made.next = info.last_value;
    info.last_value = static_cast<int>(graph_.values.size());
    graph_.values.push_back(std::move(made));
  }

  int tensor() {
    if (take_word("none")) {
      return -1;
    }
    expect('%');
    return count(graph_.values.size(), "value");
  }

  double real(std::string_view found) {
    if (found == "nan" || found == "inf") {
      at_ += found.size();
      return found == "nan" ? std::numeric_limits<double>::quiet_NaN()
                            : std::numeric_limits<double>::infinity();
    }
    double value = 0;
    const char* end = text_.data() + text_.size();
    auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) {
      wrong("expected a number");
    }
    at_ = static_cast<size_t>(stop - text_.data());
    return value;
  }

  Scalar scalar() {
    if (take_word("true") || peek_word() == "false") {
      return Scalar(!take_word("false"));
    }
    if (take_word("complex")) {
      expect('(');
      double first = number().to_double();
      expect(',');
      double second = number().to_double();
      expect(')');
      return Scalar(std::complex<double>(first, second));
    }
    return number();
  }

  // Reals have a point, an exponent or a name; integers above int64 have 20 digits.
  Scalar number() {
    skip_spaces();
    size_t start = at_;
    bool negative = take('-');
    std::string_view found = peek_word();
    if (found == "nan" || found == "inf") {
      double value = real(found);
      return Scalar(negative ? -value : value);
    }
    at_ = start;
    size_t end = at_;
    while (end < text_.size() && std::string_view(" ,)]\n").find(text_[end]) == std::string::npos) {
      ++end;
    }
    std::string_view digits = text_.substr(at_, end - at_);
    if (digits.find_first_of(".e") != std::string_view::npos) {
      return Scalar(real(found));
    }
    if (!negative) {
      uint64_t value = 0;
      auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc()) {
        wrong("expected a number");
      }
      at_ = static_cast<size_t>(stop - text_.data());
      return Scalar(value);
    }
    return Scalar(integer());
  }

  std::string text() {
    expect('"');
    std::string made;
    while (at_ < text_.size() && text_[at_] != '"') {
      at_ += text_[at_] == '\\' ? 1 : 0;
      if (at_ < text_.size()) {
        made += text_[at_++];
      }
    }
    expect('"');
    return made;
  }

  Value named(std::string_view kind) {
    at_ += kind.size();
    if (kind == "none") {
      return Value();
    }
    if (kind == "dtype") {
      return Value(dtype());
    }
    if (kind == "device") {
      return Value(Device(word()));
    }
    if (kind == "layout") {
      return Value(static_cast<LayoutKind>(count(4, "layout")));
    }
    if (kind == "memory_format") {
      return Value(static_cast<MemoryFormat>(count(4, "memory format")));
    }
    if (kind == "floats") {
      std::vector<double> made;
      list([&] { made.push_back(number().to_double()); });
      return Value(std::move(made));
    }
    if (kind == "bools") {
      std::vector<bool> made;
      list([&] { made.push_back(scalar().to_bool()); });
      return Value(std::move(made));
    }
    std::vector<Scalar> made;
    list([&] { made.push_back(scalar()); });
    return Value(std::move(made));
  }

  Slot slot() {
    Slot made;
    made.first = static_cast<int>(graph_.operands.size());
    skip_spaces();
    char first = at_ < text_.size() ? text_[at_] : '\n';
    if (first == '%') {
      made.count = 1;
      graph_.operands.push_back(tensor());
      return made;
    }
    if (take_word("tensors")) {
      made.list = true;
      made.count = 0;
      list([&] {
        graph_.operands.push_back(tensor());
        ++made.count;
      });
      return made;
    }
    if (first == '[') {
      made.attribute = Value(ints());
      return made;
    }
    if (first == '"') {
      made.attribute = Value(text());
      return made;
    }
    std::string_view kind = peek_word();
    for (std::string_view known :
         {"none", "dtype", "device", "layout", "memory_format", "floats", "bools", "scalars"}) {
      if (kind == known) {
        made.attribute = named(kind);
        return made;
      }
    }
    if (kind == "generator") {
      wrong("a generator of its own cannot be written as text");
    }
    made.attribute = Value(scalar());
    return made;
  }

  void node() {
    Node made;
    made.first_result = static_cast<int>(graph_.results.size());
    do {
      graph_.results.push_back(tensor());
      ++made.result_count;
    } while (take(','));
    expect('=');
    made.form = take_word("inplace") ? Form::Inplace
                : take_word("out")   ? Form::Out
                                     : Form::Functional;
    std::string_view name = word();
    made.op = Table::instance().find(name);
    made.op = made.op == nullptr ? find_gradient_operator(name) : made.op;
    if (made.op == nullptr) {
      wrong("there is no operator ", name, " in the table");
    }
    made.first_slot = static_cast<int>(graph_.slots.size());
    expect('(');
    if (!take(')')) {
      do {
        const std::vector<Argument>& arguments = made.op->schema.arguments;
        auto position = static_cast<size_t>(made.slot_count);
        std::string_view argument = word();
        if (position >= arguments.size() || arguments[position].name != argument) {
          wrong(made.op->name(), " has no argument ", argument, " at position ", position);
        }
        expect('=');
        graph_.slots.push_back(slot());
        ++made.slot_count;
      } while (take(','));
      expect(')');
    }
    graph_.nodes.push_back(made);
  }

  std::string_view text_;
  size_t at_ = 0;
  Graph graph_;
};

}  // namespace

Graph parse(std::string_view text) {
  return Parser(text).run();
}

}  // namespace rushlight::graph
