// The error of a call that fits no overload, in the words PyTorch uses.
#include <string>
#include <vector>

#include "arguments.h"

namespace rushlight::python {
namespace {

std::string given_text(const OverloadSet& set, const Arguments& arguments) {
  std::string text = "(";
  for (Py_ssize_t i = set.method ? 1 : 0; i < arguments.positional; ++i) {
    text += (text.size() > 1 ? ", " : "") + type_name(arguments.items[i]);
  }
  for (Py_ssize_t i = 0; i < arguments.keyword_count(); ++i) {
    text += text.size() > 1 ? ", " : "";
    text += message_text(arguments.keyword(i)) + "=" + type_name(arguments.keyword_value(i));
  }
  return text + ")";
}

std::string missing_text(const OverloadSet& set, const Signature& signature,
                         const Arguments& arguments) {
  std::string names;
  int count = 0;
  for (size_t i = static_cast<size_t>(arguments.positional); i < signature.parameters.size(); ++i) {
    const Parameter& parameter = signature.parameters[i];
    bool given = parameter.argument->has_default;
    for (Py_ssize_t k = 0; k < arguments.keyword_count(); ++k) {
      given = given || PyUnicode_Compare(arguments.keyword(k), parameter.name) == 0;
    }
    if (!given) {
      names += std::string(count > 0 ? ", " : "") + "\"" + message_text(parameter.name) + "\"";
      ++count;
    }
  }
  return set.name + "() missing " + std::to_string(count) +
         " required positional arguments: " + names;
}

std::string too_many_text(const OverloadSet& set, const Signature& signature,
                          const Arguments& arguments) {
  int self = set.method ? 1 : 0;
  int allowed = signature.positional - self;
  return set.name + "() takes " + std::to_string(allowed) + " positional argument" +
         (allowed == 1 ? "" : "s") + " but " + std::to_string(arguments.positional - self) +
         (arguments.positional - self == 1 ? " was given" : " were given");
}

std::string wrong_type_text(const OverloadSet& set, const Signature& signature,
                            const Mismatch& mismatch) {
  std::string name = "out";
  std::string type = signature.op->schema.results.size() > 1 ? "tuple of Tensors" : "Tensor";
  if (mismatch.parameter != nullptr) {
    name = message_text(mismatch.parameter->name);
    type = parameter_type(*mismatch.parameter->argument);
  } else if (mismatch.position == kRequiresGrad) {
    name = "requires_grad";
    type = "bool";
  }
  std::string place =
      mismatch.position > 0 ? " (position " + std::to_string(mismatch.position) + ")" : "";
  return set.name + "(): argument '" + name + "'" + place + " must be " + type + ", not " +
         type_name(mismatch.object);
}

std::string one_text(const OverloadSet& set, const Signature& signature, const Arguments& arguments,
                     const Mismatch& mismatch) {
  switch (mismatch.kind) {
    case Mismatch::Kind::TooMany:
      return too_many_text(set, signature, arguments);
    case Mismatch::Kind::Missing:
      return missing_text(set, signature, arguments);
    case Mismatch::Kind::WrongType:
      return wrong_type_text(set, signature, mismatch);
    case Mismatch::Kind::Unexpected:
      return set.name + "() got an unexpected keyword argument '" + message_text(mismatch.object) +
             "'";
    case Mismatch::Kind::Twice:
      return set.name + "() got multiple values for argument '" + message_text(mismatch.object) +
             "'";
  }
  return "";
}

Py_ssize_t capacity(const Signature& signature) {
  return static_cast<Py_ssize_t>(signature.parameters.size()) + signature.takes_out +
         signature.takes_requires_grad;
}

}  // namespace

void fail_call(const OverloadSet& set, const Arguments& arguments) {
  Py_ssize_t given = arguments.positional + arguments.keyword_count();
  std::vector<const Signature*> plausible;
  for (const Signature& signature : set.signatures) {
    if (set.signatures.size() == 1 || given <= capacity(signature) || signature.varargs) {
      plausible.push_back(&signature);
    }
  }
  if (plausible.size() == 1) {
    Frame frame;
    Mismatch mismatch;
    if (!match(set, *plausible[0], arguments, frame, mismatch)) {
      fail(set.misfit, "", one_text(set, *plausible[0], arguments, mismatch));
    }
  }
  std::string text = set.name + "() received an invalid combination of arguments - got " +
                     given_text(set, arguments) + ", but expected one of:\n";
  for (const Signature& signature : set.signatures) {
    text += " * " + signature_text(signature, set.method) + "\n";
  }
  fail(set.misfit, "", text);
}

}  // namespace rushlight::python
