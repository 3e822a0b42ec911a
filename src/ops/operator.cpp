#include "ops/operator.h"

#include <algorithm>
#include <unordered_map>

#include "ops/elementwise.h"

namespace rushlight {
namespace {

struct Family {
  std::string name;
  FamilyFunction function;
};

std::vector<Family>& families() {
  static std::vector<Family> list;
  return list;
}

// A body that is an ordinary function.
class FunctionBody final : public Body {
 public:
  FunctionBody(BoxedFunction function, bool writes)
      : function_(std::move(function)), writes_(writes) {}
  void run(const Operator&, Invocation& inv) const override { function_(inv); }
  bool writes_outputs() const override { return writes_; }

 private:
  BoxedFunction function_;
  bool writes_;
};

}  // namespace

struct Table::Index {
  std::unordered_map<std::string, std::vector<Operator*>> by_name;
};

FamilyRegistrar::FamilyRegistrar(const char* name, FamilyFunction function) {
  families().push_back({name, function});
}

Table::Table() : index_(std::make_shared<Index>()) {
  std::vector<Family>& list = families();
  // Link order must not show in the table.
  std::sort(list.begin(), list.end(),
            [](const Family& a, const Family& b) { return a.name < b.name; });
  for (const Family& family : list) {
    family.function([&](std::string_view schema, unsigned variants) {
      return Entry(add(schema, variants, family.name));
    });
  }
}

Table& Table::instance() {
  static Table* table = new Table;  // used by tensors that outlive static destruction
  return *table;
}

Operator& Table::add(std::string_view schema, unsigned variants, std::string_view family) {
  auto made = std::make_unique<Operator>();
  made->schema = parse_schema(schema);
  made->variants = variants;
  made->family = std::string(family);
  std::vector<Operator*>& overloads = index_->by_name[made->schema.name];
  for (const Operator* other : overloads) {
    if (other->schema.overload == made->schema.overload) {
      fail(ErrorKind::Internal, "", "operator ", made->schema.full_name(), " is defined twice, in ",
           other->family, " and ", made->family);
    }
  }
  overloads.push_back(made.get());
  operators_.push_back(std::move(made));
  return *operators_.back();
}

const Operator* Table::find(std::string_view full_name) const {
  size_t dot = full_name.find('.');
  auto found = index_->by_name.find(std::string(full_name.substr(0, dot)));
  if (found == index_->by_name.end()) {
    return nullptr;
  }
  if (dot == std::string_view::npos && found->second.size() == 1) {
    return found->second[0];
  }
  std::string_view overload =
      dot == std::string_view::npos ? std::string_view() : full_name.substr(dot + 1);
  for (const Operator* op : found->second) {
    if (op->schema.overload == overload) {
      return op;
    }
  }
  return nullptr;
}

std::vector<const Operator*> Table::overloads(std::string_view name) const {
  auto found = index_->by_name.find(std::string(name));
  if (found == index_->by_name.end()) {
    return {};
  }
  return {found->second.begin(), found->second.end()};
}

const Operator& find_operator(std::string_view full_name) {
  const Operator* op = Table::instance().find(full_name);
  if (op == nullptr) {
    fail(ErrorKind::Internal, "", "there is no operator ", full_name);
  }
  return *op;
}

Entry& Entry::doc(std::string_view text) {
  op_.doc = std::string(text);
  return *this;
}

Entry& Entry::elementwise(Rule rule, std::function<loop::Expr(Elementwise&)> body) {
  op_.kind = Kind::Elementwise;
  define_elementwise(op_, rule, std::move(body));
  return *this;
}

Entry& Entry::function_body(Kind kind, BoxedFunction function) {
  return body(kind, std::make_unique<FunctionBody>(std::move(function), false));
}

Entry& Entry::kernel_into(BoxedFunction function) {
  return body(Kind::Kernel, std::make_unique<FunctionBody>(std::move(function), true));
}

Entry& Entry::body(Kind kind, std::unique_ptr<Body> made) {
  op_.kind = kind;
  op_.body = std::move(made);
  // Factories take the dtype of what they fill.
  op_.casts_out = true;
  for (const Argument& argument : op_.schema.arguments) {
    op_.casts_out = op_.casts_out && argument.type != SchemaType::Tensor;
  }
  return *this;
}

Entry& Entry::gradient(std::string_view saves, GradientRule rule) {
  op_.saved_arguments = 0;
  op_.layout_arguments = 0;
  op_.saved_results = 0;
  op_.reads.clear();
  bool by_argument = saves.find(':') != std::string_view::npos;
  if (by_argument) {
    op_.reads.resize(op_.schema.arguments.size());
  }
  while (!saves.empty()) {
    size_t blank = saves.find(' ');
    std::string_view word = saves.substr(0, blank);
    saves = blank == std::string_view::npos ? std::string_view() : saves.substr(blank + 1);
    if (word.empty()) {
      continue;
    }
    constexpr std::string_view kLayout = ".layout";
    const bool layout =
        word.size() > kLayout.size() && word.substr(word.size() - kLayout.size()) == kLayout;
    if (layout) {
      word.remove_suffix(kLayout.size());
    }
    size_t colon = word.find(':');
    int reader = colon == std::string_view::npos ? -1 : op_.schema.find(word.substr(0, colon));
    int argument = op_.schema.find(word.substr(colon + 1));
    if (argument >= 0) {
      uint64_t bit = uint64_t{1} << argument;
      op_.saved_arguments |= bit;
      op_.layout_arguments |= layout ? bit : 0;
      for (size_t i = 0; i < op_.reads.size(); ++i) {
        op_.reads[i] |= reader < 0 || i == static_cast<size_t>(reader) ? bit : 0;
      }
    } else if (word.substr(0, 6) == "result") {
      int position = word.size() == 6 ? 0 : std::stoi(std::string(word.substr(6)));
      op_.saved_results |= uint64_t{1} << position;
    } else {
      fail(ErrorKind::Internal, op_.name(), "its gradient saves '", word,
           "', which is neither an argument nor a result");
    }
  }
  op_.gradient = std::move(rule);
  op_.derived_gradient = false;
  op_.differentiable = true;
  return *this;
}

bool is_number(const Value& argument) {
  return !argument.is_tensor() || argument.impl()->has(TensorImpl::kWrappedNumber);
}

Entry& Entry::check(void (*function)(const Invocation& inv)) {
  op_.check = function;
  return *this;
}

Entry& Entry::node(const char* name) {
  op_.node_name = name;
  return *this;
}

Entry& Entry::node(const char* (*rule)(const Invocation& inv)) {
  op_.node_name_rule = rule;
  return *this;
}

Entry& Entry::not_differentiable() {
  op_.differentiable = false;
  op_.gradient = nullptr;
  return *this;
}

Entry& Entry::complex(ComplexRule rule) {
  RUSHLIGHT_ASSERT(op_.body == nullptr || op_.kind != Kind::Elementwise);  // gradients look at it
  op_.complex = rule;
  return *this;
}

Entry& Entry::complex_function(BoxedFunction function) {
  op_.complex_body = std::make_unique<FunctionBody>(std::move(function), false);
  return *this;
}

Entry& Entry::seen_function(BoxedFunction function) {
  op_.seen_as = std::make_unique<FunctionBody>(std::move(function), false);
  return *this;
}

Entry& Entry::real_of_complex() {
  op_.real_result = true;
  return complex(ComplexRule::Own);
}

Entry& Entry::casts_out(bool casts) {
  op_.casts_out = casts;
  return *this;
}

Entry& Entry::samples(std::string_view name) {
  op_.samples = std::string(name);
  return *this;
}

}  // namespace rushlight
