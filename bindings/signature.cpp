#include "signature.h"

#include <array>
#include <cstring>

namespace rushlight::python {
namespace {

PyObject* interned(const std::string& text) {
  return check(PyUnicode_InternFromString(text.c_str()));
}

struct Alias {
  const char* name;
  const char* others[3];
};
constexpr Alias kNumpyNames[] = {
    {"dim", {"axis", nullptr, nullptr}},
    {"keepdim", {"keepdims", nullptr, nullptr}},
    {"input", {"x", "a", "x1"}},
    {"other", {"x2", nullptr, nullptr}},
};

Parameter make_parameter(const Operator& op, int index, Face face) {
  const Argument& argument = op.schema.arguments[static_cast<size_t>(index)];
  Parameter parameter{};
  std::string name = argument.name;
  if (face == Face::Function && name == "self") {
    name = "input";
  }
  // PyTorch's Tensor.copy_ alone does not bear the name that its schema has.
  if (face == Face::Method && op.schema.name == "copy" && name == "src") {
    name = "other";
  }
  parameter.name = interned(name);
  parameter.argument = &argument;
  parameter.index = index;
  unsigned needed = index == 0 ? kNumberFirst | kAllNumbers : kNumbers;
  parameter.numbers =
      (op.variants & needed) && argument.type == SchemaType::Tensor && !argument.list;
  for (const Alias& alias : kNumpyNames) {
    if (name == alias.name) {
      for (int i = 0; i < 3 && alias.others[i] != nullptr; ++i) {
        parameter.others[i] = interned(alias.others[i]);
      }
    }
  }
  return parameter;
}

// The schema's order, for methods with self moved to the front.
std::vector<int> python_order(const Operator& op, Face face) {
  std::vector<int> order;
  int self = face == Face::Method ? op.schema.find("self") : -1;
  if (self >= 0) {
    order.push_back(self);
  }
  for (int i = 0; i < static_cast<int>(op.schema.arguments.size()); ++i) {
    if (i != self) {
      order.push_back(i);
    }
  }
  return order;
}

Value borrowed_default(const Argument& argument) {
  const Value& value = argument.default_value;
  switch (value.tag()) {
    case Value::Tag::Ints:
      return Value::borrow(value.ints());
    case Value::Tag::String:
      return Value::borrow(value.text());
    default:
      return value;
  }
}

// A default as Python spells it.
std::string python_default(const Argument& argument) {
  const std::string& text = argument.default_text;
  if (argument.name == "pin_memory") {
    return "False";  // None, in the schema: the same
  }
  if (argument.type == SchemaType::DType) {
    return "None";  // which stands for the default that the schema names
  }
  if (text.starts_with('[')) {
    const std::string items = text.substr(1, text.size() - 2);
    const bool one = !items.empty() && items.find(',') == std::string::npos;
    return one && argument.list_size == 1 ? items : cat("(", items, one ? ",)" : ")");
  }
  return text;
}

bool has_options(const Schema& schema) {
  return schema.find("dtype") >= 0 && schema.find("layout") >= 0 && schema.find("device") >= 0 &&
         schema.find("pin_memory") >= 0;
}

}  // namespace

Signature make_signature(const Operator& op, Face face, Form form) {
  Signature signature;
  signature.op = &op;
  signature.form = form;
  for (int index : python_order(op, face)) {
    signature.parameters.push_back(make_parameter(op, index, face));
    signature.positional += !signature.parameters.back().argument->keyword_only;
  }
  for (const Argument& argument : op.schema.arguments) {
    signature.defaults.push_back(borrowed_default(argument));
  }
  int given = signature.positional - (face == Face::Method ? 1 : 0);
  if (given == 1) {
    const Argument& last = *signature.parameters[signature.positional - 1].argument;
    signature.varargs = last.list && last.type == SchemaType::Int && last.list_size == 0;
  }
  signature.takes_out = form == Form::Functional && (op.variants & kOut) && face != Face::Method;
  signature.takes_requires_grad = face != Face::Operator && has_options(op.schema);
  signature.result_type = return_type(op, false);
  signature.out_type = signature.takes_out ? return_type(op, true) : nullptr;
  return signature;
}

std::string parameter_type(const Argument& argument) {
  std::string name;
  switch (argument.type) {
    case SchemaType::Tensor:
      name = "Tensor";
      break;
    case SchemaType::Scalar:
      name = argument.list ? "Scalar" : "Number";
      break;
    case SchemaType::DType:
      name = "torch.dtype";
      break;
    case SchemaType::Device:
      name = "torch.device";
      break;
    case SchemaType::Layout:
      name = "torch.layout";
      break;
    case SchemaType::MemoryFormat:
      name = "torch.memory_format";
      break;
    case SchemaType::Generator:
      name = "torch.Generator";
      break;
    case SchemaType::Int:
      name = "int";
      break;
    case SchemaType::Float:
      name = "float";
      break;
    case SchemaType::Bool:
      name = "bool";
      break;
    case SchemaType::String:
      name = "str";
      break;
  }
  return argument.list ? "tuple of " + name + "s" : name;
}

std::string signature_text(const Signature& signature, bool method) {
  std::string text = "(";
  bool star = false;
  for (size_t i = method ? 1 : 0; i < signature.parameters.size(); ++i) {
    const Parameter& parameter = signature.parameters[i];
    const Argument& argument = *parameter.argument;
    if (text.size() > 1) {
      text += ", ";
    }
    if (argument.keyword_only && !star) {
      text += "*, ";
      star = true;
    }
    text += parameter_type(argument) + " " + message_text(parameter.name);
    if (argument.has_default) {
      text += " = " + argument.default_text;
    }
  }
  if (signature.takes_out) {
    text += text.size() > 1 ? ", " : "";
    text += star ? "" : "*, ";
    star = true;
    text += signature.op->schema.results.size() > 1 ? "tuple of Tensors out = None"
                                                    : "Tensor out = None";
  }
  if (signature.takes_requires_grad) {
    text += std::string(star ? "" : ", *") + ", bool requires_grad = False";
  }
  return text + ")";
}

bool extends(const Signature& signature, const Signature& base) {
  const std::vector<Parameter>& own = signature.parameters;
  const std::vector<Parameter>& fewer = base.parameters;
  if (&signature == &base || signature.form != base.form || own.size() <= fewer.size() ||
      signature.positional != base.positional) {
    return false;
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const Argument& argument = *own[i].argument;
    const bool shared = i < fewer.size() && own[i].name == fewer[i].name &&
                        argument.default_text == fewer[i].argument->default_text;
    const bool added = i >= fewer.size() && argument.keyword_only && !argument.has_default &&
                       (argument.optional || argument.name == "out");
    if (!shared && !added) {
      return false;
    }
  }
  return true;
}

std::string python_signature_text(const Signature& signature, bool method, bool merged) {
  std::vector<std::string> words;
  bool star = false;
  auto keyword = [&](const std::string& word) {
    if (!star) {
      words.emplace_back("*");
      star = true;
    }
    words.push_back(word);
  };
  for (size_t i = method ? 1 : 0; i < signature.parameters.size(); ++i) {
    const Parameter& parameter = signature.parameters[i];
    const Argument& argument = *parameter.argument;
    std::string word = message_text(parameter.name);
    if (argument.has_default) {
      word += cat("=", python_default(argument));
    } else if (merged && argument.keyword_only) {
      word += "=None";
    }
    if (argument.keyword_only) {
      keyword(word);
    } else {
      words.push_back(word);
    }
  }
  if (signature.takes_out) {
    keyword("out=None");
  }
  if (signature.takes_requires_grad) {
    keyword("requires_grad=False");
  }
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? word : cat(", ", word);
  }
  return cat("(", text, ")");
}

}  // namespace rushlight::python
